//! The keys of items that went without having been read, for a while: a table of 16-bit
//! fingerprints, each at the place that its tag wants. A new one takes an older one's place, so a
//! fingerprint stays for about as many insertions as there are places; nothing is ever searched.

/// The table. One fingerprint in 65,535 is taken for another's.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    places: Vec<u16>,
}

impl Ghosts {
    /// How much memory one place takes.
    pub(super) const PLACE_BYTES: usize = 2;

    /// Starts anew with so many places.
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

    /// Remembers a key.
    pub(super) fn insert(&mut self, tag: u32) {
        if let Some(place) = self.place(tag) {
            *place = fingerprint(tag);
        }
    }

    /// Whether a key is remembered; it is forgotten with that.
    pub(super) fn take(&mut self, tag: u32) -> bool {
        match self.place(tag) {
            Some(place) if *place == fingerprint(tag) => {
                *place = 0;
                true
            }
            _ => false,
        }
    }
}

/// Never zero, which is an empty place.
fn fingerprint(tag: u32) -> u16 {
    (tag as u16).max(1)
}

#[cfg(test)]
mod tests {
    use super::Ghosts;

    #[test]
    fn a_key_is_remembered_once_and_until_others_take_its_place() {
        let mut ghosts = Ghosts::default();
        assert!(!ghosts.take(7));
        ghosts.reset(1000);
        let tag = |number: u32| number.wrapping_mul(0x9e37_79b9);
        (0..1000).for_each(|number| ghosts.insert(tag(number)));
        let kept = (0..1000).filter(|number| ghosts.take(tag(*number))).count();
        assert!(kept > 500, "{kept} of 1,000 places");
        assert!((0..1000).all(|number| !ghosts.take(tag(number))));
        assert_eq!(ghosts.bytes(), 2000);
    }
}
