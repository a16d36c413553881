//! Places on the axis of validity.

use serde::{Deserialize, Serialize};

/// The largest number of either half of a moment, and what an open interval ends at.
pub const MAX_NUMBER: u64 = i64::MAX as u64;

/// A place on the axis: a major number and a minor one, such as a run and an event. The order is
/// that of pairs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment {
    /// The major number, of which each has minor ones of its own.
    pub major: u64,
    /// The minor number.
    pub minor: u64,
}

impl Moment {
    /// What an open interval ends at.
    pub const OPEN: Self = Self { major: MAX_NUMBER, minor: MAX_NUMBER };

    /// A moment.
    pub fn of(major: u64, minor: u64) -> Self {
        Self { major, minor }
    }

    /// The last moment that is not after two numbers of any size; `None` before all of them.
    pub fn floor(major: i128, minor: i128) -> Option<Self> {
        let past = u128::from(u64::MAX);
        let clamp = |number: i128| u64::try_from(u128::try_from(number).ok()?.min(past)).ok();
        match (clamp(major), clamp(minor)) {
            (Some(major), Some(minor)) => Some(Self { major, minor }),
            (Some(major), None) => Some(Self { major: major.checked_sub(1)?, minor: u64::MAX }),
            (None, _) => None,
        }
    }
}

/// An interval of validity: from its start until before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The first moment.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
}

impl Interval {
    /// Whether it counts as open where a locked list is added to: no minor number ends it, and no
    /// major one does, or the major one is 0.
    pub fn is_open(&self) -> bool {
        self.end.minor == MAX_NUMBER && [0, MAX_NUMBER].contains(&self.end.major)
    }

    /// Whether it is one: it ends after it starts, and its numbers are in range.
    pub fn is_valid(&self) -> bool {
        let Self { start, end } = self;
        let numbers = [start.major, start.minor, end.major, end.minor];
        start < end && numbers.iter().all(|number| *number <= MAX_NUMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_before_or_after_all_moments() {
        assert_eq!(Moment::floor(3, 4), Some(Moment::of(3, 4)));
        assert_eq!(Moment::floor(3, -1), Some(Moment::of(2, u64::MAX)));
        assert_eq!((Moment::floor(0, -1), Moment::floor(-1, 5)), (None, None));
        assert!(Moment::floor(i128::MAX, i128::MAX) > Some(Moment::OPEN));
    }
}
