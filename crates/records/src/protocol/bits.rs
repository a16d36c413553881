//! Sets of bits: which fields of a structure have changed, are sent, or were lost.
//!
//! Bit n is the n-th field, depth first; 0 is the structure itself. A structure's bit stands for
//! all its fields, and theirs may be set beside it or not.

use super::{Reader, Sink, Writer};

/// A set of field numbers. The first 64 take no memory of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bits {
    first: u64,
    /// Never ends with a zero.
    rest: Vec<u64>,
}

impl Bits {
    /// The empty set.
    pub const fn new() -> Self {
        Self { first: 0, rest: Vec::new() }
    }

    /// Adds `bit`.
    #[inline]
    pub fn insert(&mut self, bit: usize) {
        let (word, mask) = (bit / 64, 1_u64 << (bit % 64));
        if word == 0 {
            self.first |= mask;
        } else {
            if self.rest.len() < word {
                self.rest.resize(word, 0);
            }
            self.rest[word - 1] |= mask;
        }
    }

    /// Takes `bit` out.
    pub fn remove(&mut self, bit: usize) {
        let mask = !(1_u64 << (bit % 64));
        match bit / 64 {
            0 => self.first &= mask,
            word if word <= self.rest.len() => self.rest[word - 1] &= mask,
            _ => {}
        }
        while self.rest.last() == Some(&0) {
            self.rest.pop();
        }
    }

    /// Whether it has `bit`.
    #[inline]
    pub fn contains(&self, bit: usize) -> bool {
        self.word(bit / 64) & (1_u64 << (bit % 64)) != 0
    }

    #[inline]
    fn word(&self, word: usize) -> u64 {
        match word {
            0 => self.first,
            word => self.rest.get(word - 1).copied().unwrap_or_default(),
        }
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.is_empty()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.first = 0;
        self.rest.clear();
    }

    /// Adds all of `other`.
    #[inline]
    pub fn union(&mut self, other: &Self) {
        self.first |= other.first;
        if self.rest.len() < other.rest.len() {
            self.rest.resize(other.rest.len(), 0);
        }
        self.rest.iter_mut().zip(&other.rest).for_each(|(into, from)| *into |= from);
    }

    /// Keeps only what `other` has, too.
    #[inline]
    pub fn intersect(&mut self, other: &Self) {
        self.first &= other.first;
        self.rest.truncate(other.rest.len());
        self.rest.iter_mut().zip(&other.rest).for_each(|(into, from)| *into &= from);
        while self.rest.last() == Some(&0) {
            self.rest.pop();
        }
    }

    /// Whether it shares a bit with `other`.
    #[inline]
    pub fn meets(&self, other: &Self) -> bool {
        let shared = self.rest.iter().zip(&other.rest).any(|(one, two)| one & two != 0);
        self.first & other.first != 0 || shared
    }

    /// The first bit at `from` or after it.
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.word(word) & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            if word > self.rest.len() {
                return None;
            }
            bits = self.word(word);
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The bits, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.next(0), |bit| self.next(bit + 1))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let rest: u32 = self.rest.iter().map(|word| word.count_ones()).sum();
        (self.first.count_ones() + rest) as usize
    }

    /// Appends its encoding: whole words, then the bytes that are needed of the last one.
    #[inline]
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        let (last, full) = match self.rest.split_last() {
            Some((last, full)) => (*last, full.len() + 1),
            None => (self.first, 0),
        };
        let tail = 8 - last.leading_zeros() as usize / 8;
        writer.size(full * 8 + tail);
        for word in 0..full {
            writer.u64(self.word(word));
        }
        if tail == 8 {
            writer.u64(last);
        } else {
            writer.raw(&last.to_le_bytes()[..tail]);
        }
    }

    /// Reads one. Bits past `width` are ignored: an encoder may round up to whole bytes.
    pub fn read(reader: &mut Reader<'_>, width: usize) -> Self {
        let size = reader.size();
        if size > reader.left() {
            reader.fail("a set of bits is longer than its message");
            return Self::new();
        }
        let mut bits = Self::new();
        for word in 0..size / 8 {
            let value = reader.u64();
            bits.put_word(word, value, width);
        }
        let tail = reader.take(size % 8);
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        bits.put_word(size / 8, u64::from_le_bytes(last), width);
        bits
    }

    fn put_word(&mut self, word: usize, value: u64, width: usize) {
        let value = match width.saturating_sub(word * 64) {
            0 => 0,
            left if left < 64 => value & ((1 << left) - 1),
            _ => value,
        };
        if value != 0 && word == 0 {
            self.first = value;
        } else if value != 0 {
            self.rest.resize(word, 0);
            self.rest[word - 1] = value;
        }
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(bits: I) -> Self {
        let mut all = Self::new();
        bits.into_iter().for_each(|bit| all.insert(bit));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Order, Reader, Writer};
    use super::Bits;
    use proptest::prelude::*;

    fn written(bits: &Bits, order: Order) -> Vec<u8> {
        let mut bytes = Vec::new();
        bits.write(&mut Writer::new(&mut bytes, order));
        bytes
    }

    #[test]
    fn the_examples_of_the_specification() {
        let cases: [(&[usize], &[u8]); 8] = [
            (&[], &[0]),
            (&[0], &[1, 1]),
            (&[7], &[1, 0x80]),
            (&[8], &[2, 0, 1]),
            (&[55], &[7, 0, 0, 0, 0, 0, 0, 0x80]),
            (&[0, 1, 2, 4, 8], &[2, 0x17, 1]),
            (&[64], &[9, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (
                &[8, 17, 24, 25, 34, 40, 42, 49, 50, 56, 57, 58, 67, 72, 75],
                &[0x0a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            ),
        ];
        for (bits, bytes) in cases {
            let bits: Bits = bits.iter().copied().collect();
            assert_eq!(written(&bits, Order::Little), bytes);
            assert_eq!(Bits::read(&mut Reader::new(bytes, Order::Little), 1000), bits);
        }
    }

    proptest! {
        #[test]
        fn bits_are_read_as_they_are_written(
            bits in prop::collection::btree_set(0_usize..300, 0..20), big: bool,
        ) {
            let order = if big { Order::Big } else { Order::Little };
            let set: Bits = bits.iter().copied().collect();
            let bytes = written(&set, order);
            let mut reader = Reader::new(&bytes, order);
            prop_assert_eq!(&Bits::read(&mut reader, 300), &set);
            prop_assert!(reader.end().is_ok() && reader.left() == 0);
            prop_assert!(set.iter().eq(bits.iter().copied()));
            let mut fewer = set.clone();
            bits.iter().skip(1).for_each(|bit| fewer.remove(*bit));
            prop_assert!(fewer.iter().eq(bits.iter().copied().take(1)));
            let narrow = Bits::read(&mut Reader::new(&bytes, order), 70);
            prop_assert!(narrow.iter().eq(bits.iter().copied().filter(|bit| *bit < 70)));
        }
    }
}
