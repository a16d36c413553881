//! What is let go to make room: who it was, how it is counted, and who is told.

use std::fmt;
use std::sync::Arc;

use super::Seconds;

/// An item that is let go to make room for others.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// What it took: key, value and what the store adds.
    pub bytes: usize,
    /// The length of its value.
    pub value_bytes: usize,
    /// How long ago it was last read, or stored when it was never read.
    pub idle_s: Seconds,
    /// How long it would still have lived; `None` for ever.
    pub left_s: Option<Seconds>,
    /// Whether it had ever been read.
    pub fetched: bool,
    /// Whether it had been read since the policy last looked at it.
    pub active: bool,
}

/// Who is told of what is let go. Called under a shard's lock, so it must not use the store.
#[derive(Clone)]
pub struct Witness(Arc<dyn Fn(&Loss<'_>) + Send + Sync>);

impl Witness {
    /// Tells `tell`.
    pub fn new(tell: impl Fn(&Loss<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, loss: &Loss<'_>) {
        (self.0)(loss);
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

/// So many powers of two are told apart, the first of which is 0.
const POWERS: usize = 33;

/// Counts by powers of two: 0, 1, 2 to 3, 4 to 7, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Powers([u64; POWERS]);

impl Default for Powers {
    fn default() -> Self {
        Self([0; POWERS])
    }
}

impl Powers {
    fn add(&mut self, number: u32) {
        self.0[(u32::BITS - number.leading_zeros()) as usize] += 1;
    }

    fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.0.iter_mut().zip(other.0).for_each(|(one, other)| *one += other);
        sum
    }

    /// The counts that are not 0, each with its first and last number.
    pub fn counted(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let all = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(power, count)| match power {
            0 => (0, 0, *count),
            _ => (1 << (power - 1), u32::MAX >> (POWERS - 1 - power), *count),
        })
    }
}

/// What has been let go, counted by what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// By how long nobody had read or stored it, in seconds.
    pub by_idle_s: Powers,
    /// By what it took in memory, in bytes.
    pub by_bytes: Powers,
    /// Bytes of all of them.
    pub bytes: u64,
    /// How many would have expired at some time.
    pub mortal: u64,
    /// How long nobody had used the last of them, in seconds.
    pub last_idle_s: Seconds,
}

impl Losses {
    pub(super) fn add(&mut self, loss: &Loss<'_>) {
        self.by_idle_s.add(loss.idle_s);
        self.by_bytes.add(u32::try_from(loss.bytes).unwrap_or(u32::MAX));
        self.bytes += loss.bytes as u64;
        self.mortal += u64::from(loss.left_s.is_some());
        self.last_idle_s = loss.idle_s;
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            by_idle_s: self.by_idle_s.plus(&other.by_idle_s),
            by_bytes: self.by_bytes.plus(&other.by_bytes),
            bytes: self.bytes + other.bytes,
            mortal: self.mortal + other.mortal,
            // Which shard's was the last of all is not known; the oldest says most.
            last_idle_s: self.last_idle_s.max(other.last_idle_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_by_powers_of_two() {
        let mut powers = Powers::default();
        for number in [0, 1, 2, 3, 4, 7, 8, u32::MAX] {
            powers.add(number);
        }
        let counted: Vec<_> = powers.plus(&powers).counted().collect();
        assert_eq!(
            counted,
            [(0, 0, 2), (1, 1, 2), (2, 3, 4), (4, 7, 4), (8, 15, 2), (1 << 31, u32::MAX, 2)]
        );
    }
}
