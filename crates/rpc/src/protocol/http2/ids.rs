//! Which stream belongs to which tag. Data plane.

/// Streams by their ids, which are odd and grow, so that those that are open are mostly neighbours:
/// each has a place by its number. One that has been open for so long that another one needs its
/// place lies aside, with the few of its kind.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Id and tag; id 0 is an empty place. At least twice as many places as streams.
    places: Vec<(u32, u32)>,
    aside: Vec<(u32, u32)>,
    count: usize,
}

impl Ids {
    #[inline]
    fn place_of(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len().wrapping_sub(1))
    }

    /// How many streams are open.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The tag of a stream that is open.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        match self.places.get(self.place_of(id)) {
            Some((found, tag)) if *found == id && id != 0 => Some(*tag),
            _ => self.aside.iter().find(|entry| entry.0 == id).map(|entry| entry.1),
        }
    }

    /// Adds a stream that is not there. Its id is not 0.
    #[inline]
    pub(super) fn insert(&mut self, id: u32, tag: u32) {
        if (self.count + 1) * 2 > self.places.len() {
            self.grow();
        }
        let place = self.place_of(id);
        let older = std::mem::replace(&mut self.places[place], (id, tag));
        if older.0 != 0 {
            self.aside.push(older);
        }
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(16);
        let mut old = std::mem::replace(&mut self.places, vec![(0, 0); size]);
        old.append(&mut self.aside);
        self.count = 0;
        for (id, tag) in old.into_iter().filter(|entry| entry.0 != 0) {
            self.insert(id, tag);
        }
    }

    /// Removes a stream.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<u32> {
        let place = self.place_of(id);
        let tag = match self.places.get_mut(place) {
            Some(entry) if entry.0 == id && id != 0 => std::mem::take(entry).1,
            _ => {
                let aside = self.aside.iter().position(|entry| entry.0 == id)?;
                self.aside.swap_remove(aside).1
            }
        };
        self.count -= 1;
        Some(tag)
    }

    /// The ids beyond `last`, in any order.
    pub(super) fn beyond(&self, last: u32) -> Vec<u32> {
        let all = self.places.iter().chain(&self.aside);
        all.map(|entry| entry.0).filter(|id| *id > last).collect()
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
            prop_assert_eq!((ids.find(0), ids.remove(0)), (None, None));
            for (adds, number) in steps {
                let id = number * 2 + 1;
                if adds && !map.contains_key(&id) {
                    ids.insert(id, number + 7);
                    map.insert(id, number + 7);
                } else {
                    prop_assert_eq!(ids.remove(id), map.remove(&id));
                }
                prop_assert_eq!((ids.len(), ids.find(0)), (map.len(), None));
                for id in (1..161).step_by(2) {
                    prop_assert_eq!(ids.find(id), map.get(&id).copied());
                }
            }
        }
    }
}
