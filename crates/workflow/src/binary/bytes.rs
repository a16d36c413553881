//! Numbers, texts and lists as bytes; what is written and what is read stand side by side.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::definition::kept_expression;
use crate::model::{Condition, Expression, Joint, OwnText, Part, Step, Text, Texts};

/// Why bytes are no tree.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no tree in binary: byte {at}: {what}")]
pub struct BadBinary {
    /// Where.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

pub(super) type Result<T> = std::result::Result<T, BadBinary>;

/// About the size of the pieces that are passed on.
const PIECE_BYTES: usize = 64 << 10;

/// What writes.
pub(super) struct Writer<'a> {
    out: Vec<u8>,
    take: &'a mut dyn FnMut(&[u8]),
    /// The numbers of texts and expressions by their addresses: what is shared is written once, and
    /// what only equals another costs no search.
    texts: HashMap<usize, u64>,
    expressions: HashMap<usize, u64>,
    /// Shared texts are written each time.
    pub(super) is_apart: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(take: &'a mut dyn FnMut(&[u8])) -> Self {
        let (out, is_apart) = (Vec::with_capacity(2 * PIECE_BYTES), false);
        Self { out, take, texts: HashMap::new(), expressions: HashMap::new(), is_apart }
    }

    /// Passes on what there is, where that is a piece.
    pub(super) fn pass(&mut self) {
        if self.out.len() >= PIECE_BYTES {
            self.end();
        }
    }

    /// Passes on what is left.
    pub(super) fn end(&mut self) {
        (self.take)(&self.out);
        self.out.clear();
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    fn string(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }
}

/// The number of what lies at an address; 0, and its number from now on, where it is new.
fn known(all: &mut HashMap<usize, u64>, address: usize) -> u64 {
    let next = all.len() as u64 + 1;
    let mut number = 0;
    all.entry(address).and_modify(|known| number = *known).or_insert(next);
    number
}

/// What reads.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    texts: Vec<Text>,
    expressions: Vec<Arc<Expression>>,
    operands: Texts,
    /// Room for the steps of the expression that is being read.
    steps: Vec<Step>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let (texts, expressions) = (Vec::new(), Vec::new());
        let (operands, steps) = (Texts::default(), Vec::new());
        Self { bytes, at: 0, texts, expressions, operands, steps }
    }

    pub(super) fn bad<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(BadBinary { at: self.at, what: what.into() })
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => self.bad(format!("{count} bytes are to come, and {} do", self.left())),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.bad("a number of more than 64 bits")
    }

    pub(super) fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// How many things follow, of which each has a byte at least.
    pub(super) fn count(&mut self) -> Result<usize> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => self.bad(format!("{count} things in {} bytes", self.left())),
        }
    }

    fn string(&mut self) -> Result<&'a str> {
        let count = self.count()?;
        let bytes = self.take(count)?;
        std::str::from_utf8(bytes).or_else(|_| self.bad("a text that isn't UTF-8"))
    }

    fn within<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let number = self.signed()?;
        T::try_from(number).or_else(|_| self.bad(format!("the number {number} is out of range")))
    }
}

/// What is written as bytes, and read again.
pub(super) trait Pack: Sized {
    fn put(&self, to: &mut Writer<'_>);
    fn take(from: &mut Reader<'_>) -> Result<Self>;
}

impl Pack for bool {
    fn put(&self, to: &mut Writer<'_>) {
        to.byte((*self).into());
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => from.bad(format!("{byte} is neither no (0) nor yes (1)")),
        }
    }
}

impl Pack for u8 {
    fn put(&self, to: &mut Writer<'_>) {
        to.byte(*self);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        from.byte()
    }
}

/// Numbers of several bytes.
macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Pack for $number {
            fn put(&self, to: &mut Writer<'_>) {
                to.signed(i64::from(*self));
            }

            fn take(from: &mut Reader<'_>) -> Result<Self> {
                from.within()
            }
        }
    )*};
}

numbers!(u16 i32 u32 i64);

impl Pack for Text {
    fn put(&self, to: &mut Writer<'_>) {
        let number = match to.is_apart {
            true => 0,
            false => known(&mut to.texts, self.as_ptr() as usize),
        };
        to.number(number);
        if number == 0 {
            to.string(self);
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        let number = from.number()?;
        if number == 0 {
            let text = Self::from(from.string()?);
            from.texts.push(text.clone());
            return Ok(text);
        }
        let known = usize::try_from(number - 1).ok().and_then(|at| from.texts.get(at));
        known.cloned().map_or_else(|| from.bad(format!("there is no text {number} yet")), Ok)
    }
}

impl Pack for OwnText {
    fn put(&self, to: &mut Writer<'_>) {
        to.string(self);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        Ok(from.string()?.into())
    }
}

impl Pack for Condition {
    fn put(&self, to: &mut Writer<'_>) {
        let number = known(&mut to.expressions, Arc::as_ptr(&self.expression) as usize);
        to.number(number);
        if number == 0 {
            self.expression.parts.put(to);
        }
        self.free.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        let number = from.number()?;
        let expression = if number == 0 {
            let parts: Vec<Part> = Pack::take(from)?;
            let is_first = |place: usize, part: &Part| (part.joint == Joint::First) == (place == 0);
            if parts.is_empty() || !parts.iter().enumerate().all(|(at, one)| is_first(at, one)) {
                return from.bad("parts of an expression that aren't joined");
            }
            // What can't be read never holds, as in a text.
            let made = Arc::new(kept_expression(parts, &mut from.operands, &mut from.steps));
            from.expressions.push(Arc::clone(&made));
            made
        } else {
            let known = usize::try_from(number - 1).ok().and_then(|at| from.expressions.get(at));
            let unknown = || from.bad(format!("there is no expression {number} yet"));
            known.cloned().map_or_else(unknown, Ok)?
        };
        Ok(Self { expression, free: bool::take(from)? })
    }
}

impl<T: Pack> Pack for Option<T> {
    fn put(&self, to: &mut Writer<'_>) {
        self.is_some().put(to);
        self.iter().for_each(|one| one.put(to));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Pack> Pack for Box<T> {
    fn put(&self, to: &mut Writer<'_>) {
        (**self).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        T::take(from).map(Self::new)
    }
}

impl<T: Pack> Pack for Arc<T> {
    fn put(&self, to: &mut Writer<'_>) {
        (**self).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        T::take(from).map(Self::new)
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn put(&self, to: &mut Writer<'_>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<A: Pack, B: Pack, C: Pack> Pack for (A, B, C) {
    fn put(&self, to: &mut Writer<'_>) {
        self.0.put(to);
        self.1.put(to);
        self.2.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        Ok((A::take(from)?, B::take(from)?, C::take(from)?))
    }
}

/// Lists: how many, and each.
macro_rules! lists {
    ($($list:ty $(, $item:ident)?;)*) => {$(
        impl $(<$item: Pack>)? Pack for $list {
            fn put(&self, to: &mut Writer<'_>) {
                to.number(self.len() as u64);
                self.iter().for_each(|one| one.put(to));
            }

            fn take(from: &mut Reader<'_>) -> Result<Self> {
                (0..from.count()?).map(|_| Pack::take(from)).collect()
            }
        }
    )*};
}

lists! {
    Vec<T>, T;
    VecDeque<Text>;
    BTreeSet<Text>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        let mut take = |bytes: &[u8]| out.extend_from_slice(bytes);
        let mut writer = Writer::new(&mut take);
        write(&mut writer);
        writer.end();
        out
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need_and_none_is_misread() {
        let all = [0, 1, -1, 63, -64, 64, 1 << 40, i64::MAX, i64::MIN];
        let bytes = written(|to| all.iter().for_each(|number| to.signed(*number)));
        let mut reader = Reader::new(&bytes);
        assert_eq!(all.map(|_| reader.signed().expect("a number")), all);
        assert_eq!(bytes[..6], [0, 2, 1, 126, 127, 0x80]);
        let mut reader = Reader::new(&[0xff; 10]);
        assert!(reader.number().is_err(), "more than 64 bits");
        assert!(i32::take(&mut Reader::new(&written(|to| to.signed(1 << 31)))).is_err());
    }

    #[test]
    fn a_shared_text_is_written_once_and_an_unknown_one_is_refused() {
        let (text, other) = (Text::from("name"), Text::from("other"));
        let all = [text.clone(), text.clone(), other, text].to_vec();
        let bytes = written(|to| all.put(to));
        assert_eq!(bytes, b"\x04\0\x04name\x01\0\x05other\x01");
        assert_eq!(Vec::<Text>::take(&mut Reader::new(&bytes)), Ok(all));
        for bytes in [&b"\x01"[..], b"\0\x05name", b"\0\x01\xff", b""] {
            assert!(Text::take(&mut Reader::new(bytes)).is_err(), "{bytes:?}");
        }
        let huge = [0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Vec::<Text>::take(&mut Reader::new(&huge)).is_err(), "nothing is allocated");
    }

    #[test]
    fn texts_that_are_written_apart_are_read_as_the_same() {
        let text = Text::from("name");
        let all = [text.clone(), text].to_vec();
        let bytes = written(|to| {
            to.is_apart = true;
            all.put(to);
        });
        assert_eq!(bytes, b"\x02\0\x04name\0\x04name");
        assert_eq!(Vec::<Text>::take(&mut Reader::new(&bytes)), Ok(all));
    }
}
