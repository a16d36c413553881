//! The keys of evicted items, for a while, with the frequencies that they had: a table of 16 bits
//! for each, 12 of fingerprint and 4 of level, at the place that the tag wants. A new one takes an
//! older one's place, so it stays for about as many insertions as there are places; nothing is
//! ever searched.

/// The table. One fingerprint in 4,095 is taken for another's.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    places: Vec<u16>,
}

/// The bits of a place that are its level.
const LEVEL_BITS: u32 = 4;

/// The lower bits of a place.
const LEVEL_MASK: u16 = (1 << LEVEL_BITS) - 1;

impl Ghosts {
    /// How much memory one place takes.
    pub(super) const PLACE_BYTES: usize = 2;

    /// Empties the table and gives it this many places.
    pub(super) fn reset(&mut self, places: usize) {
        self.places = vec![0; places];
    }

    /// How much memory the table takes.
    pub(super) fn bytes(&self) -> usize {
        self.places.len() * Self::PLACE_BYTES
    }

    fn place(&mut self, tag: u32) -> Option<&mut u16> {
        let at = (u64::from(tag) * self.places.len() as u64) >> 32;
        self.places.get_mut(at as usize)
    }

    /// Remembers a key with its level. Another key's higher level falls by one instead.
    pub(super) fn insert(&mut self, tag: u32, level: u8) {
        let level = u16::from(level);
        debug_assert!(level <= LEVEL_MASK, "a level has four bits");
        match self.place(tag) {
            Some(place) if *place & LEVEL_MASK > level => *place -= 1,
            Some(place) => *place = fingerprint(tag) << LEVEL_BITS | level,
            None => {}
        }
    }

    /// The level of a key that is remembered; it is forgotten with that.
    pub(super) fn take(&mut self, tag: u32) -> Option<u8> {
        let place = self.place(tag)?;
        if *place >> LEVEL_BITS != fingerprint(tag) {
            return None;
        }
        let level = (*place & LEVEL_MASK) as u8;
        *place = 0;
        Some(level)
    }

    /// All levels fall by one; keys whose level is zero are forgotten.
    pub(super) fn age(&mut self) {
        for place in &mut self.places {
            *place = if *place & LEVEL_MASK == 0 { 0 } else { *place - 1 };
        }
    }
}

/// Never zero, which is an empty place.
fn fingerprint(tag: u32) -> u16 {
    (tag as u16 >> LEVEL_BITS).max(1)
}

#[cfg(test)]
mod tests {
    use super::Ghosts;

    #[test]
    fn a_key_is_remembered_once_and_until_others_take_its_place() {
        let mut ghosts = Ghosts::default();
        assert_eq!(ghosts.take(7), None);
        ghosts.reset(1000);
        let tag = |number: u32| number.wrapping_mul(0x9e37_79b9);
        (0..1000).for_each(|number| ghosts.insert(tag(number), 0));
        let kept = (0..1000).filter(|number| ghosts.take(tag(*number)).is_some()).count();
        assert!(kept > 500, "{kept} of 1,000 places");
        assert!((0..1000).all(|number| ghosts.take(tag(number)).is_none()));
        assert_eq!(ghosts.bytes(), 2000);
    }

    #[test]
    fn a_level_is_remembered_and_falls_with_age() {
        let mut ghosts = Ghosts::default();
        ghosts.reset(1);
        ghosts.insert(0xabcd_ef01, 3);
        // Another key takes the place only once the level has fallen to its own.
        (0..2).for_each(|_| ghosts.insert(0x1234_5678, 1));
        assert_eq!(ghosts.take(0x1234_5678), None);
        assert_eq!(ghosts.take(0xabcd_ef01), Some(1));
        ghosts.insert(7, 2);
        ghosts.age();
        assert_eq!(ghosts.take(7), Some(1));
        ghosts.insert(7, 0);
        ghosts.age();
        assert_eq!(ghosts.take(7), None);
    }
}
