//! How what waits is divided into writes: all of it in one vectored write, or, to show what that
//! costs, in many small ones.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::Bytes;

use crate::carriers::Carrier;
use crate::protocol::native::Outbox;
use crate::protocol::native::frame::{FIELD_ENDS, HEADER_BYTES, Header};

/// How requests are divided into writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Writes {
    /// Each field of a header by itself, and the message
    Field,
    /// The header, then the message
    Struct,
    /// All that waits, copied into one buffer
    Buffer,
    /// All that waits, by one vectored write
    #[default]
    Array,
}

/// When a buffer is flushed, which gathers what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Flush {
    /// With each write, so that it gathers nothing
    Each,
    /// Once a message is whole
    Message,
}

/// What is sent by itself.
#[derive(Debug)]
pub(super) struct Sending {
    writes: Writes,
    /// The sizes of the writes to come, where they are not all that waits.
    sizes: VecDeque<usize>,
    /// What is divided or copied: the bytes that waited when it began.
    copied: Bytes,
}

impl Sending {
    pub(super) fn new(writes: Writes, buffered: Option<Flush>) -> Self {
        let writes = if buffered == Some(Flush::Message) { Writes::Buffer } else { writes };
        Self { writes, sizes: VecDeque::new(), copied: Bytes::new() }
    }

    /// A frame is to be sent.
    pub(super) fn note(&mut self, header: &Header) {
        match self.writes {
            Writes::Field => {
                let starts = [0].iter().chain(&FIELD_ENDS);
                let sizes = FIELD_ENDS.iter().zip(starts).map(|(end, start)| end - start);
                self.sizes.extend(sizes);
            }
            Writes::Struct => self.sizes.push_back(HEADER_BYTES),
            Writes::Buffer | Writes::Array => return,
        }
        if header.length > 0 {
            self.sizes.push_back(header.length as usize);
        }
    }

    /// Sends what one write takes.
    pub(super) fn send(
        &mut self,
        carrier: &mut dyn Carrier,
        out: &mut Outbox,
    ) -> io::Result<usize> {
        if self.writes == Writes::Array {
            let sent = out.with_slices(|slices| carrier.send(slices))?;
            out.advance(sent);
            return Ok(sent);
        }
        if self.copied.is_empty() {
            self.copied = out.to_vec().into();
        }
        let size = self.sizes.front().map_or(self.copied.len(), |size| *size);
        let piece = self.copied.get(..size).unwrap_or(&self.copied);
        let sent = carrier.send(&[IoSlice::new(piece)])?;
        if let Some(first) = self.sizes.front_mut() {
            *first = first.saturating_sub(sent);
            if *first == 0 {
                self.sizes.pop_front();
            }
        }
        drop(self.copied.split_to(sent));
        out.advance(sent);
        Ok(sent)
    }
}
