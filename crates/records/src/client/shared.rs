//! Reading arrays that a server of this host leaves in shared memory.

use std::io;

use wire::Bytes;

use crate::protocol::{Array, ArrayLocation, Scalar, Value};
use crate::shared::{Mapped, Words};

/// How many segments are kept mapped.
const MAX_MAPPED: usize = 16;

/// The distance of the words that are checked, in bytes: one a page.
const LOOK_EVERY_BYTES: usize = 4096;

/// The segments that have been seen, mapped.
#[derive(Debug, Default)]
pub struct Segments(Vec<(ArrayLocation, Mapped)>);

/// What a check of single words has found of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct SpotCheck {
    /// How many elements it has.
    pub elements: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Its first and its last element; none, when it is empty.
    pub ends: Option<(Value, Value)>,
    /// On how many pages the first word isn't that of the array. None, where all elements are
    /// alike.
    pub unlike: u64,
}

impl Segments {
    /// Looks at the first and the last element of an array, and at one word of each page. Nothing,
    /// when the server has written another array there meanwhile.
    ///
    /// # Errors
    /// When the memory can't be had: it is another host's or another user's, or gone.
    pub fn spot_check(
        &mut self,
        place: &ArrayLocation,
        scalar: Scalar,
    ) -> io::Result<Option<SpotCheck>> {
        Ok(self.mapped(place)?.look(place, |words| spots(words, scalar)))
    }

    /// The whole array, copied. Nothing, when the server has written another one meanwhile.
    ///
    /// # Errors
    /// As `Segments::spots`.
    pub fn copy(&mut self, place: &ArrayLocation, scalar: Scalar) -> io::Result<Option<Array>> {
        let copied = self.mapped(place)?.look(place, |words| {
            let mut bytes = Vec::with_capacity(words.bytes().next_multiple_of(8));
            (0..words.bytes().div_ceil(8)).for_each(|index| bytes.extend(words.word(index)));
            bytes.truncate(words.bytes());
            Bytes::from(bytes)
        });
        Ok(copied.filter(|_| scalar.bytes().is_some()).map(|bytes| Array::new(scalar, bytes)))
    }

    fn mapped(&mut self, place: &ArrayLocation) -> io::Result<&Mapped> {
        let is_it = |(had, _): &(ArrayLocation, Mapped)| {
            (had.process, had.segment) == (place.process, place.segment)
        };
        let index = match self.0.iter().position(is_it) {
            Some(index) => index,
            None => {
                let mapped = Mapped::open(place)?;
                if self.0.len() == MAX_MAPPED {
                    self.0.remove(0);
                }
                self.0.push((*place, mapped));
                self.0.len() - 1
            }
        };
        Ok(&self.0[index].1)
    }
}

fn spots(words: Words<'_>, scalar: Scalar) -> SpotCheck {
    let each = scalar.bytes().unwrap_or(1);
    let (bytes, elements) = (words.bytes(), words.bytes() / each);
    let element = |index: usize| {
        let at = index * each;
        let word = words.word(at / 8);
        let bytes = Bytes::copy_from_slice(&word[at % 8..at % 8 + each]);
        Array::new(scalar, bytes).get(0)
    };
    let ends = || Some((element(0)?, element(elements - 1)?));
    // The last word may hold what is no part of the array.
    let pages = (0..bytes / 8).step_by(LOOK_EVERY_BYTES / 8);
    let unlike = pages.filter(|index| words.word(*index) != words.word(0)).count();
    SpotCheck {
        elements: elements as u64,
        bytes: bytes as u64,
        ends: if elements > 0 { ends() } else { None },
        unlike: unlike as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Segment;

    #[test]
    fn ends_and_one_word_of_each_page_are_seen_and_the_whole_is_copied() {
        let mut segment = Segment::new(10_001, 3).expect("memory");
        segment.begin();
        segment.bytes_mut().fill(1);
        segment.bytes_mut()[8192] = 2;
        segment.bytes_mut()[10_000] = 9;
        segment.end();
        let (mut segments, place) = (Segments::default(), segment.place(10_001));
        let spots =
            segments.spot_check(&place, Scalar::Byte).expect("it is there").expect("unwritten");
        let ends = Some((Value::Byte(1), Value::Byte(9)));
        assert_eq!(spots, SpotCheck { elements: 10_001, bytes: 10_001, ends, unlike: 1 });
        let copied = segments.copy(&place, Scalar::Byte).expect("it is there").expect("unwritten");
        assert_eq!(&copied.bytes()[..], &segment.bytes()[..10_001]);
        segment.begin();
        assert_eq!(segments.spot_check(&place, Scalar::Byte).expect("it is there"), None);
        let none = segment.place(0);
        segment.end();
        assert!(none.sequence % 2 == 1 && segments.copy(&none, Scalar::Long).unwrap().is_none());
        let empty = segments.spot_check(&segment.place(0), Scalar::Long).expect("it is there");
        assert_eq!(empty.map(|spots| spots.ends), Some(None));
    }
}
