//! Messages as they come: small ones whole, and of large ones what is needed, so that an array of
//! 80 MB goes by in pieces and is never in memory at once. Data plane.

use wire::ProtocolError;

use super::elements::Elements;
use super::layout::Found;
use crate::protocol::{Command, HEADER_BYTES, Header, Order, Segment};

/// A message up to this size is understood once it is whole.
const SMALL_BYTES: usize = 16 << 10;

/// What stands before and behind an array, and a large message without one, may be so long.
const MAX_BESIDE_BYTES: usize = 1 << 20;

/// This much of a large message tells where its array begins.
const HEAD_BYTES: usize = 512;

/// What a large message's array belongs to, and what has been read before it.
#[derive(Debug)]
pub(super) struct Partial {
    /// The operation's number.
    pub(super) request: u32,
    pub(super) changed: u64,
    /// The leaf at which reading goes on behind the array.
    pub(super) next_leaf: usize,
    pub(super) found: Found,
    pub(super) elements: Elements,
}

/// A message of which a part has come.
#[derive(Debug)]
struct Large {
    command: Command,
    code: u8,
    order: Order,
    /// Payload bytes still to come in this segment.
    left: usize,
    is_last: bool,
    /// What is kept: the head until the array begins, then what follows it.
    kept: Vec<u8>,
    partial: Option<Partial>,
}

/// The state of the stream.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    large: Option<Large>,
}

/// What has come.
#[derive(Debug)]
pub(super) enum Came<'a> {
    /// Nothing whole yet.
    Nothing,
    /// Some bytes, which are taken care of.
    Bytes,
    /// A control message.
    Control(Header),
    /// A whole message's payload.
    Message(Command, Order, &'a [u8]),
    /// A large message's array has come: what stands behind it.
    Behind(Order, Partial, Vec<u8>),
    /// A whole message that was kept.
    Kept(Command, Order, Vec<u8>),
}

/// Says where in the head of a large message its array begins, and what it belongs to: the bytes
/// before it. `None` when more bytes, or all of them, are needed.
pub(super) type Begin<'b> =
    &'b dyn Fn(Command, Order, &[u8]) -> Result<Option<(usize, Partial)>, ProtocolError>;

impl Incoming {
    /// Takes the next message, or a part of one, from the front of `bytes`; says how many bytes
    /// that are.
    ///
    /// # Errors
    /// When what comes is no pvAccess, or too long to be kept.
    #[inline]
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        begin: Begin<'_>,
    ) -> Result<(usize, Came<'a>), ProtocolError> {
        match &mut self.large {
            Some(large) if large.left > 0 => {
                let count = large.left.min(bytes.len());
                if count == 0 {
                    return Ok((0, Came::Nothing));
                }
                large.left -= count;
                large.take(&bytes[..count], begin)?;
                return Ok((count, self.finish()));
            }
            _ => {}
        }
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok((0, Came::Nothing)) };
        let header = Header::read(head)?;
        if header.is_control {
            return Ok((HEADER_BYTES, Came::Control(header)));
        }
        let size = header.size as usize;
        let whole = header.segment == Segment::Whole && self.large.is_none();
        if whole && size <= SMALL_BYTES {
            let Some(body) = bytes.get(HEADER_BYTES..HEADER_BYTES + size) else {
                return Ok((0, Came::Nothing));
            };
            let came = Came::Message(header.command(), header.order, body);
            return Ok((HEADER_BYTES + size, came));
        }
        self.begin_segment(&header)?;
        Ok((HEADER_BYTES, self.finish()))
    }

    fn begin_segment(&mut self, header: &Header) -> Result<(), ProtocolError> {
        let is_first = matches!(header.segment, Segment::Whole | Segment::First);
        let is_last = matches!(header.segment, Segment::Whole | Segment::Last);
        let left = header.size as usize;
        match &mut self.large {
            None if is_first => {
                self.large = Some(Large {
                    command: header.command(),
                    code: header.code,
                    order: header.order,
                    left,
                    is_last,
                    kept: Vec::new(),
                    partial: None,
                });
            }
            Some(large) if !is_first && large.code == header.code => {
                (large.left, large.is_last) = (left, is_last);
            }
            _ => {
                return Err(ProtocolError::new(
                    "the segments of a message do not follow each other",
                ));
            }
        }
        Ok(())
    }

    fn finish<'a>(&mut self) -> Came<'a> {
        let Some(large) = self.large.take_if(|large| large.left == 0 && large.is_last) else {
            return Came::Bytes;
        };
        match large.partial {
            Some(partial) => Came::Behind(large.order, partial, large.kept),
            None => Came::Kept(large.command, large.order, large.kept),
        }
    }
}

impl Large {
    fn take(&mut self, mut bytes: &[u8], begin: Begin<'_>) -> Result<(), ProtocolError> {
        if self.partial.is_none() {
            let wanted =
                HEAD_BYTES.saturating_sub(self.kept.len()).max(bytes.len().min(HEAD_BYTES));
            let count = wanted.min(bytes.len());
            self.keep(&bytes[..count])?;
            bytes = &bytes[count..];
            if let Some((at, mut partial)) = begin(self.command, self.order, &self.kept)? {
                let kept = std::mem::take(&mut self.kept);
                let rest = &kept[at..];
                let taken = partial.elements.take(rest);
                self.partial = Some(partial);
                self.keep(&rest[taken..])?;
            }
        }
        if let Some(partial) = &mut self.partial {
            let taken = partial.elements.take(bytes);
            bytes = &bytes[taken..];
        }
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.kept.len() + bytes.len() > MAX_BESIDE_BYTES {
            return Err(ProtocolError::new(
                "a message without an array is longer than this load keeps",
            ));
        }
        self.kept.extend_from_slice(bytes);
        Ok(())
    }
}
