//! The elements of an array, compared while they come: every one has to be the first one. Data
//! plane: a piece is looked at once, while it is in the processor's cache.

use crate::protocol::Order;

/// Elements of 8 bytes that have come so far.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    order: Order,
    /// Bytes still to come.
    left: u64,
    /// The bytes of the first one.
    first: Option<u64>,
    /// Bits in which any differs from the first.
    differ: u64,
    /// An element of which only a part has come.
    part: [u8; 8],
    part_len: usize,
}

impl Elements {
    /// So many elements are to come.
    pub(super) fn new(count: usize, order: Order) -> Self {
        let left = count as u64 * 8;
        Self { order, left, first: None, differ: 0, part: [0; 8], part_len: 0 }
    }

    /// Bytes still to come.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Takes what belongs to the elements from the front of `bytes`; says how much that is.
    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= count as u64;
        let mut bytes = &bytes[..count];
        if self.part_len > 0 {
            let more = bytes.len().min(8 - self.part_len);
            self.part[self.part_len..self.part_len + more].copy_from_slice(&bytes[..more]);
            self.part_len += more;
            bytes = &bytes[more..];
            if self.part_len < 8 {
                return count;
            }
            self.part_len = 0;
            let whole = self.part;
            self.compare(&whole);
        }
        let (words, rest) = bytes.split_at(bytes.len() / 8 * 8);
        self.compare(words);
        self.part[..rest.len()].copy_from_slice(rest);
        self.part_len = rest.len();
        count
    }

    /// Without an early way out the comparison becomes a straight run of vector code.
    #[inline]
    fn compare(&mut self, words: &[u8]) {
        let words = words.chunks_exact(8);
        let words = words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let Some(first) = self.first.or_else(|| words.clone().next()) else { return };
        self.first = Some(first);
        self.differ = words.fold(self.differ, |differ, word| differ | (word ^ first));
    }

    /// What the first one is.
    pub(super) fn number(&self) -> Option<i64> {
        let bytes = self.first?.to_ne_bytes();
        Some(match self.order {
            Order::Little => i64::from_le_bytes(bytes),
            Order::Big => i64::from_be_bytes(bytes),
        })
    }

    /// Whether all that came are like the first.
    pub(super) fn are_alike(&self) -> bool {
        self.differ == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_element_that_differs_is_found_however_they_are_cut(
            count in 1_usize..500, pieces in prop::collection::vec(1_usize..100, 1..20),
            number: i64, flip: prop::sample::Index, is_flipped: bool, rest in 0_usize..9,
        ) {
            for (order, word) in
                [(Order::Little, number.to_le_bytes()), (Order::Big, number.to_be_bytes())]
            {
                let mut bytes = word.repeat(count);
                // What differs from the first can only be told from the second on.
                let is_flipped = is_flipped && count > 1;
                if is_flipped {
                    bytes[8 + flip.index((count - 1) * 8)] ^= 1;
                }
                bytes.extend(vec![0xEE; rest]);
                let mut elements = Elements::new(count, order);
                let (mut at, mut sizes) = (0, pieces.iter().cycle());
                while elements.left() > 0 {
                    let end = bytes.len().min(at + sizes.next().unwrap());
                    at += elements.take(&bytes[at..end]);
                }
                prop_assert_eq!(bytes.len() - at, rest);
                prop_assert_eq!(elements.number(), Some(number));
                prop_assert_eq!(elements.are_alike(), !is_flipped);
            }
        }
    }

    #[test]
    fn of_no_elements_there_is_no_number() {
        let mut elements = Elements::new(0, Order::Little);
        assert_eq!((elements.take(b"12345678"), elements.number()), (0, None));
    }
}
