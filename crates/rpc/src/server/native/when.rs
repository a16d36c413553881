//! When something came.

use std::cell::OnceCell;
use std::time::Instant;

/// When something came, by a clock that is read once it is asked for: most calls need no time, and
/// reading it takes as long as their function.
#[derive(Debug, Default)]
pub(in crate::server) struct When(OnceCell<Instant>);

impl When {
    /// The time; of what came just now.
    pub(in crate::server) fn get(&self) -> Instant {
        *self.0.get_or_init(Instant::now)
    }
}

impl From<Instant> for When {
    fn from(time: Instant) -> Self {
        Self(OnceCell::from(time))
    }
}
