//! A number of things over places.

/// Divides a number of things over places, as evenly as can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    things: u64,
    places: u64,
    place: u64,
}

impl Spread {
    pub(super) fn new(things: u64, places: u64) -> Self {
        Self { things, places: places.max(1), place: 0 }
    }

    /// How many the next place has.
    pub(super) fn take(&mut self) -> u64 {
        let before = self.things * self.place / self.places;
        self.place += 1;
        self.things * self.place / self.places - before
    }
}
