//! Columns of numbers in a segment's index, each number in as few bytes as its column needs.
//!
//! A number is kept as its distance from the least of the column; all bits of its width stand for
//! the greatest. So one open end, or one piece of a thousand that is cut, makes no column wide.

use std::ops::Range;

/// The bytes of a column's description: the least number, the greatest, and the width in bytes.
pub(super) const DESCRIPTION_BYTES: usize = 20;

/// A column of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) at: usize,
    /// The bytes of a number; 0 to 8.
    pub(super) width: usize,
    /// All bits of the width.
    all: u64,
    least: u64,
    greatest: u64,
}

/// All bits of a width.
fn bits(width: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * width as u32).unwrap_or(0)
}

impl Packed {
    /// Those of a description that were written one after another, from a place on.
    pub(super) fn decode(description: &[u8], at: usize) -> Option<Self> {
        let [least, greatest] = [0, 8].map(|at| u64_at(description, at));
        let width = u32::from_le_bytes(*description.get(16..)?.first_chunk()?) as usize;
        (width <= 8).then(|| Self { at, width, all: bits(width), least, greatest })
    }

    /// The description of these numbers.
    pub(super) fn of(numbers: impl Iterator<Item = u64> + Clone) -> Self {
        let least = numbers.clone().min().unwrap_or(0);
        let greatest = numbers.clone().max().unwrap_or(0);
        let most = numbers.filter(|number| *number < greatest).max();
        let fits = |width: &usize| most.is_none_or(|most| most - least < bits(*width));
        let width = (0..8).find(fits).unwrap_or(8);
        Self { at: 0, width, all: bits(width), least, greatest }
    }

    pub(super) fn describe(&self, into: &mut Vec<u8>) {
        into.extend(self.least.to_le_bytes());
        into.extend(self.greatest.to_le_bytes());
        into.extend((self.width as u32).to_le_bytes());
    }

    /// Appends numbers, all of which it describes.
    pub(super) fn append(&self, numbers: impl Iterator<Item = u64>, into: &mut Vec<u8>) {
        for number in numbers {
            let kept = if number == self.greatest { u64::MAX } else { number - self.least };
            into.extend_from_slice(&kept.to_le_bytes()[..self.width]);
        }
    }

    /// The bytes of some numbers, which are equal where the numbers are.
    pub(super) fn kept<'a>(&self, bytes: &'a [u8], places: Range<usize>) -> Option<&'a [u8]> {
        let at = |place: usize| self.width.checked_mul(place)?.checked_add(self.at);
        bytes.get(at(places.start)?..at(places.end)?)
    }

    /// A number, by its place. Seven bytes have to follow the last one.
    pub(super) fn get(&self, bytes: &[u8], place: usize) -> u64 {
        let kept = u64_at(bytes, self.at.wrapping_add(self.width.wrapping_mul(place)));
        let kept = kept & self.all;
        if kept == self.all { self.greatest } else { self.least.wrapping_add(kept) }
    }
}

/// The number at a place; 0 beyond the end, which no place that was checked is.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// As [`u64_at`].
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_as_few_bytes_as_their_distances_need() {
        for (numbers, width) in [
            (vec![], 0),
            (vec![7, 7, 7], 0),
            (vec![1 << 40, u64::MAX], 1),
            (vec![1000, 1254, 1 << 62], 1),
            (vec![1000, 1255, 1 << 62], 2),
            (vec![0, 65_534, 65_535], 2),
            (vec![0, 1 << 54, 9 << 54], 7),
            (vec![0, u64::MAX - 1, u64::MAX], 8),
            (vec![0, 1 << 62, u64::MAX], 8),
        ] {
            let packed = Packed::of(numbers.iter().copied());
            assert_eq!(packed.width, width, "{numbers:?}");
            let mut bytes = Vec::new();
            packed.describe(&mut bytes);
            assert_eq!(bytes.len(), DESCRIPTION_BYTES);
            let packed = Packed::decode(&bytes, bytes.len()).expect("a description");
            packed.append(numbers.iter().copied(), &mut bytes);
            bytes.extend([0xff; 7]);
            let read: Vec<_> = (0..numbers.len()).map(|n| packed.get(&bytes, n)).collect();
            assert_eq!(read, numbers);
        }
        assert_eq!(Packed::decode(&[9; DESCRIPTION_BYTES], 0), None);
        assert_eq!(Packed::decode(&[0; DESCRIPTION_BYTES - 1], 0), None);
    }
}
