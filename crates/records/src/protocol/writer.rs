//! Writing: into the output of a connection, where arrays are shared, or into plain bytes.

use wire::{Bytes, Output};

use super::Order;
use super::header::{Command, HEADER_BYTES, Header, Sender};

/// Where messages are written.
pub trait Sink {
    /// The end of the copied bytes, to be appended to.
    fn tail(&mut self) -> &mut Vec<u8>;

    /// Appends bytes, uncopied where that is possible.
    fn share(&mut self, bytes: Bytes);

    /// How many bytes have been appended and not sent.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Sink for Output {
    #[inline]
    fn tail(&mut self) -> &mut Vec<u8> {
        Output::tail(self)
    }

    #[inline]
    fn share(&mut self, bytes: Bytes) {
        Output::share(self, bytes);
    }

    #[inline]
    fn len(&self) -> usize {
        Output::len(self)
    }
}

impl Sink for Vec<u8> {
    fn tail(&mut self) -> &mut Vec<u8> {
        self
    }

    fn share(&mut self, bytes: Bytes) {
        self.extend_from_slice(&bytes);
    }

    fn len(&self) -> usize {
        self.len()
    }
}

/// Appends to a sink in one order of bytes.
pub struct Writer<'a, S> {
    sink: &'a mut S,
    order: Order,
}

macro_rules! number {
    ($($name:ident: $type:ty),*) => {
        $(
            #[doc = concat!("Appends a `", stringify!($type), "`.")]
            #[inline]
            pub fn $name(&mut self, number: $type) {
                match self.order {
                    Order::Little => self.raw(&number.to_le_bytes()),
                    Order::Big => self.raw(&number.to_be_bytes()),
                }
            }
        )*
    };
}

impl<'a, S: Sink> Writer<'a, S> {
    /// Appends to `sink`.
    #[inline]
    pub fn new(sink: &'a mut S, order: Order) -> Self {
        Self { sink, order }
    }

    /// The order of bytes.
    #[inline]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.sink.tail().extend_from_slice(bytes);
    }

    /// Appends bytes as they are, uncopied where that is possible.
    pub fn share(&mut self, bytes: Bytes) {
        self.sink.share(bytes);
    }

    number!(u8: u8, i8: i8, u16: u16, i16: i16, u32: u32, i32: i32, u64: u64, i64: i64);
    number!(f32: f32, f64: f64);

    /// Appends a size. One above 2^32 − 1 has no encoding: no array or string may have that
    /// length, which is checked where they are made.
    #[inline]
    pub fn size(&mut self, size: usize) {
        match u8::try_from(size) {
            Ok(small) if small < 254 => self.u8(small),
            _ => {
                self.u8(254);
                self.u32(u32::try_from(size).unwrap_or(u32::MAX));
            }
        }
    }

    /// Appends the null that stands for no size.
    pub fn null_size(&mut self) {
        self.u8(255);
    }

    /// Appends a string.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.size(text.len());
        self.raw(text.as_bytes());
    }

    /// Appends an address as IPv6, or as IPv4 within it.
    pub fn address(&mut self, address: std::net::IpAddr) {
        let wide = match address {
            std::net::IpAddr::V4(address) => address.to_ipv6_mapped(),
            std::net::IpAddr::V6(address) => address,
        };
        self.raw(&wide.octets());
    }
}

/// Appends a whole message: its header, and what `body` writes.
#[inline]
pub fn message<S: Sink>(
    sink: &mut S,
    sender: Sender,
    order: Order,
    command: Command,
    body: impl FnOnce(&mut Writer<'_, S>),
) {
    let head = sink.tail().len();
    let before = sink.len();
    sink.tail().extend_from_slice(&Header::whole(sender, order, command, 0).bytes());
    body(&mut Writer::new(sink, order));
    let size = sink.len() - before - HEADER_BYTES;
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let bytes = match order {
        Order::Little => size.to_le_bytes(),
        Order::Big => size.to_be_bytes(),
    };
    sink.tail()[head + 4..head + HEADER_BYTES].copy_from_slice(&bytes);
}
