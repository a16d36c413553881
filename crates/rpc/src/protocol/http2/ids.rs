//! Which stream belongs to which tag: a table with open addressing, a few entries for each stream
//! that is open. Data plane.

/// Streams by their ids, which are odd and grow: neighbours lie beside each other.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Id and tag; id 0 is an empty place.
    places: Vec<(u32, u32)>,
    count: usize,
}

impl Ids {
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len() - 1)
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// How many streams are open.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn place_of(&self, id: u32) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let mut place = self.home(id);
        loop {
            match self.places[place].0 {
                0 => return None,
                found if found == id => return Some(place),
                _ => place = self.after(place),
            }
        }
    }

    /// The tag of a stream that is open.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        self.place_of(id).map(|place| self.places[place].1)
    }

    /// Adds a stream that is not there.
    #[inline]
    pub(super) fn insert(&mut self, id: u32, tag: u32) {
        if (self.count + 1) * 2 > self.places.len() {
            self.grow();
        }
        let mut place = self.home(id);
        while self.places[place].0 != 0 {
            place = self.after(place);
        }
        self.places[place] = (id, tag);
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(16);
        let old = std::mem::replace(&mut self.places, vec![(0, 0); size]);
        self.count = 0;
        for (id, tag) in old.into_iter().filter(|entry| entry.0 != 0) {
            self.insert(id, tag);
        }
    }

    /// Removes a stream. What lies behind it moves up, so that it is found from its home.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<u32> {
        let mut hole = self.place_of(id)?;
        let tag = self.places[hole].1;
        let mut next = self.after(hole);
        let mask = self.places.len() - 1;
        while self.places[next].0 != 0 {
            let home = self.home(self.places[next].0);
            // Whether its home is no farther along than the hole.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.places[hole] = (0, 0);
        self.count -= 1;
        Some(tag)
    }

    /// The ids beyond `last`, in any order.
    pub(super) fn beyond(&self, last: u32) -> Vec<u32> {
        self.places.iter().map(|entry| entry.0).filter(|id| *id > last).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            steps in prop::collection::vec((any::<bool>(), 0_u32..80), 0..400),
        ) {
            let (mut ids, mut map) = (Ids::default(), BTreeMap::new());
            for (adds, number) in steps {
                let id = number * 2 + 1;
                if adds && !map.contains_key(&id) {
                    ids.insert(id, number + 7);
                    map.insert(id, number + 7);
                } else {
                    prop_assert_eq!(ids.remove(id), map.remove(&id));
                }
                prop_assert_eq!(ids.len(), map.len());
                for id in (1..161).step_by(2) {
                    prop_assert_eq!(ids.find(id), map.get(&id).copied());
                }
            }
        }
    }
}
