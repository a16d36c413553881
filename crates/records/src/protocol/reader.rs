//! Reading: a cursor over a message with a sticky fault, so that no single read needs a check.
//!
//! After the first error every read returns zeros or nothing; [`Reader::end`] returns that error.
//! pvxs' `src/pvaproto.h` has the same idea.

use std::sync::Arc;

use wire::{Bytes, ProtocolError};

use super::MAX_VALUES;

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least significant byte first: what this program's servers choose.
    #[default]
    Little,
    /// The most significant byte first.
    Big,
}

/// A cursor over the payload of one message.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    order: Order,
    fault: Option<&'static str>,
    /// Where the bytes lie, when arrays may be slices of them instead of copies.
    owner: Option<&'a Bytes>,
    /// How many more values may be made of this message.
    values_left: usize,
}

macro_rules! number {
    ($($name:ident: $type:ty),*) => {
        $(
            #[doc = concat!("The next `", stringify!($type), "`.")]
            #[inline]
            pub fn $name(&mut self) -> $type {
                let bytes = self.array();
                match self.order {
                    Order::Little => <$type>::from_le_bytes(bytes),
                    Order::Big => <$type>::from_be_bytes(bytes),
                }
            }
        )*
    };
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, copying what is kept of them.
    #[inline]
    pub fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, at: 0, order, fault: None, owner: None, values_left: MAX_VALUES }
    }

    /// Reads `bytes`; large arrays are slices of them and not copied.
    #[inline]
    pub fn shared(bytes: &'a Bytes, order: Order) -> Self {
        Self { owner: Some(bytes), ..Self::new(bytes, order) }
    }

    /// The order of bytes in this message.
    #[inline]
    pub fn order(&self) -> Order {
        self.order
    }

    /// How many bytes are left; none after a fault.
    #[inline]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Notes a mistake, if it is the first.
    #[cold]
    pub fn fail(&mut self, what: &'static str) {
        self.fault.get_or_insert(what);
        self.at = self.bytes.len();
    }

    /// Whether all reads so far made sense.
    #[inline]
    pub fn is_good(&self) -> bool {
        self.fault.is_none()
    }

    /// Says whether all that was read made sense. Bytes that are left don't matter: a later
    /// version of the protocol may add some.
    ///
    /// # Errors
    /// The first mistake.
    #[inline]
    pub fn end(&self) -> Result<(), ProtocolError> {
        match self.fault {
            None => Ok(()),
            Some(what) => Err(ProtocolError::new(what)),
        }
    }

    /// The next `count` bytes, or none at all.
    #[inline]
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        if count > self.left() {
            self.fail("a message ends in the middle of a value");
            return &[];
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        taken
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(self.left())
    }

    /// The next bytes as shared ones: a slice of the message where it may be kept, else a copy.
    pub(super) fn take_shared(&mut self, count: usize) -> Bytes {
        let taken = self.take(count);
        match self.owner {
            // A small slice would keep all of a large message in memory.
            Some(owner) if taken.len() >= owner.len() / 4 && !taken.is_empty() => {
                owner.slice_ref(taken)
            }
            _ => Bytes::copy_from_slice(taken),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.take(N);
        taken.try_into().unwrap_or([0; N])
    }

    number!(u8: u8, i8: i8, u16: u16, i16: i16, u32: u32, i32: i32, u64: u64, i64: i64);
    number!(f32: f32, f64: f64);

    /// A GUID, which has no order of bytes.
    pub fn guid(&mut self) -> [u8; 12] {
        self.array()
    }

    /// An address: IPv6, or IPv4 within it.
    pub fn address(&mut self) -> std::net::IpAddr {
        std::net::Ipv6Addr::from(self.array::<16>()).to_canonical()
    }

    /// A size; the null that Java writes is `None`.
    #[inline]
    pub fn nullable_size(&mut self) -> Option<usize> {
        match self.u8() {
            255 => None,
            254 => Some(self.u32() as usize),
            size => Some(usize::from(size)),
        }
    }

    /// A size that may not be null.
    #[inline]
    pub fn size(&mut self) -> usize {
        self.nullable_size().unwrap_or_else(|| {
            self.fail("a size is null where that means nothing");
            0
        })
    }

    /// How many elements follow, each at least `least_bytes` long; none are read that can't be
    /// there.
    pub(super) fn count(&mut self, least_bytes: usize) -> usize {
        let count = self.size();
        if count.saturating_mul(least_bytes) > self.left() {
            self.fail("an array is longer than its message");
            return 0;
        }
        count
    }

    /// Counts values that are about to be made.
    #[inline]
    pub(super) fn spend(&mut self, count: usize) -> bool {
        if count > self.values_left {
            self.fail("a message holds more values than are allowed");
            return false;
        }
        self.values_left -= count;
        true
    }

    /// The bytes of a string; null is empty.
    #[inline]
    pub fn text_bytes(&mut self) -> &'a [u8] {
        let size = self.nullable_size().unwrap_or_default();
        self.take(size)
    }

    /// A string. Bytes that are no UTF-8 become U+FFFD: records do hold Latin-1.
    #[inline]
    pub fn text(&mut self) -> Arc<str> {
        let bytes = self.text_bytes();
        match std::str::from_utf8(bytes) {
            Ok(text) => Arc::from(text),
            Err(_) => Arc::from(String::from_utf8_lossy(bytes)),
        }
    }

    /// A string of at most `most` bytes, such as a name.
    pub fn short_text(&mut self, most: usize) -> Arc<str> {
        let text = self.text();
        if text.len() > most {
            self.fail("a name is longer than is allowed");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Reader};

    #[test]
    fn the_first_fault_stays_and_everything_after_it_is_empty() {
        let mut reader = Reader::new(&[1, 2, 3], Order::Big);
        assert_eq!((reader.u16(), reader.u32(), reader.u8()), (0x0102, 0, 0));
        reader.fail("later");
        let fault = reader.end().unwrap_err();
        assert_eq!(fault.to_string(), "a message ends in the middle of a value");
    }

    #[test]
    fn sizes_have_three_forms() {
        let bytes = [0, 253, 254, 254, 0, 0, 0, 255];
        let mut reader = Reader::new(&bytes, Order::Little);
        let sizes = [(); 4].map(|()| reader.nullable_size());
        assert_eq!(sizes, [Some(0), Some(253), Some(254), None]);
        reader.end().unwrap();
    }
}
