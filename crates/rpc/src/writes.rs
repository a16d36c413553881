//! How what a side sends is divided into writes, and what comes into reads: all that there is at
//! once, or, to show what that costs, the frames in several parts.

use bytes::{Buf as _, Bytes};
use std::io::IoSlice;

use crate::protocol::native::Outbox;
use crate::protocol::native::frame::{FIELD_ENDS, HEADER_BYTES};

/// How what is sent is divided into writes.
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

/// How a frame is cut; its payload is always one part.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Not at all, nor from its neighbours.
    Nowhere,
    /// Behind each field of its header.
    Fields,
    /// Its header into this many parts.
    Parts(usize),
}

/// Where the frames of a connection are cut.
#[derive(Debug)]
pub(crate) struct Cuts {
    cut: Cut,
    /// Of the frame under way, what has passed.
    header: [u8; HEADER_BYTES],
    came: usize,
    payload: usize,
}

impl Cuts {
    fn new(cut: Cut) -> Self {
        Self { cut, header: [0; HEADER_BYTES], came: 0, payload: 0 }
    }

    /// Has a frame read by this many reads, two at least, of which the last is for its payload.
    pub(crate) fn of_reads(reads: Option<usize>) -> Self {
        let reads = reads.filter(|reads| *reads > 1);
        Self::new(reads.map_or(Cut::Nowhere, |reads| Cut::Parts(reads - 1)))
    }

    fn of_writes(writes: Writes) -> Self {
        Self::new(match writes {
            Writes::Field => Cut::Fields,
            Writes::Struct => Cut::Parts(1),
            Writes::Buffer | Writes::Array => Cut::Nowhere,
        })
    }

    /// How many of these bytes the next part has.
    pub(crate) fn next(&self, bytes: usize) -> usize {
        let end = match self.cut {
            Cut::Nowhere => return bytes,
            _ if self.payload > 0 => return self.payload.min(bytes),
            Cut::Fields => FIELD_ENDS.into_iter().find(|end| *end > self.came),
            Cut::Parts(count) => {
                let part = ((self.came + 1) * count).div_ceil(HEADER_BYTES);
                Some(part * HEADER_BYTES / count)
            }
        };
        let end = end.map_or(HEADER_BYTES, |end| end.min(HEADER_BYTES));
        (end - self.came).min(bytes)
    }

    /// These bytes have passed, no more than one part.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        if let Cut::Nowhere = self.cut {
            return;
        }
        if self.payload > 0 {
            self.payload = self.payload.saturating_sub(bytes.len());
            return;
        }
        for (to, from) in self.header.iter_mut().skip(self.came).zip(bytes) {
            *to = *from;
            self.came += 1;
        }
        if self.came == HEADER_BYTES {
            let [a, b, c, d, ..] = self.header;
            (self.came, self.payload) = (0, u32::from_le_bytes([a, b, c, d]) as usize);
        }
    }
}

/// Divides what one side sends. What comes first, its greeting, is one write.
#[derive(Debug)]
pub(crate) struct Sending {
    writes: Writes,
    cuts: Cuts,
    has_greeted: bool,
    /// What is divided or copied: the bytes that waited when it began.
    copied: Bytes,
}

impl Sending {
    pub(crate) fn new(writes: Writes) -> Self {
        let cuts = Cuts::of_writes(writes);
        Self { writes, cuts, has_greeted: false, copied: Bytes::new() }
    }

    /// Hands over what the next write is to send.
    pub(crate) fn with_slices<R>(
        &mut self,
        out: &Outbox,
        write: impl FnOnce(&[IoSlice<'_>]) -> R,
    ) -> R {
        if self.writes == Writes::Array {
            return out.with_slices(write);
        }
        if self.copied.is_empty() {
            self.copied = out.to_vec().into();
        }
        let all = self.copied.len();
        let size = if self.has_greeted { self.cuts.next(all) } else { all };
        write(&[IoSlice::new(self.copied.get(..size).unwrap_or_default())])
    }

    /// This many bytes of it are sent.
    pub(crate) fn sent(&mut self, out: &mut Outbox, count: usize) {
        out.advance(count);
        if self.writes == Writes::Array {
            return;
        }
        let sent = self.copied.split_to(count.min(self.copied.len()));
        if self.has_greeted {
            self.cuts.pass(&sent);
        }
        self.has_greeted |= !self.copied.has_remaining();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::native::frame::{Header, Kind};

    /// Frames with payloads of this length.
    fn frames(payloads: &[u32]) -> Outbox {
        let mut out = Outbox::default();
        for payload in payloads {
            let header = Header { length: *payload, ..Header::of(Kind::Answer, 1) };
            out.push(&header, &vec![7; *payload as usize].into());
        }
        out
    }

    /// The sizes of the reads of these frames.
    fn reads(reads: Option<usize>, payloads: &[u32], space: usize) -> Vec<usize> {
        let (mut cuts, mut sizes) = (Cuts::of_reads(reads), Vec::new());
        let bytes = frames(payloads).to_vec();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = cuts.next(space).min(rest.len());
            cuts.pass(&rest[..size]);
            sizes.push(size);
            rest = &rest[size..];
        }
        sizes
    }

    #[test]
    fn a_frame_is_read_in_as_many_parts_as_are_asked_for() {
        assert_eq!(reads(None, &[8, 8], 1_000), [64]);
        assert_eq!(reads(Some(1), &[8, 8], 1_000), [64]);
        assert_eq!(reads(Some(2), &[8, 0, 5], 1_000), [24, 8, 24, 24, 5]);
        assert_eq!(reads(Some(4), &[8], 1_000), [8, 8, 8, 8]);
        for count in 2..=25 {
            assert_eq!(reads(Some(count), &[8], 1_000).len(), count);
            assert!(reads(Some(count), &[8], 1).len() == 32, "{count}, a byte each");
        }
        assert_eq!(reads(Some(2), &[250], 100), [24, 100, 100, 50]);
    }

    /// The sizes of the writes of a greeting and these frames, each of which takes this much at
    /// most.
    fn writes(writes: Writes, payloads: &[u32], most: usize) -> Vec<usize> {
        let (mut sending, mut sizes) = (Sending::new(writes), Vec::new());
        let mut greeting = Outbox::default();
        greeting.raw().extend_from_slice(&[0x9b; 40]);
        for mut out in [greeting, frames(payloads)] {
            let right = out.to_vec();
            let mut came = Vec::new();
            while !out.is_empty() {
                let count = sending.with_slices(&out, |slices| {
                    let all: Vec<_> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                    let count = all.len().min(most);
                    came.extend_from_slice(&all[..count]);
                    count
                });
                sending.sent(&mut out, count);
                sizes.push(count);
            }
            assert_eq!(came, right, "{writes:?}");
        }
        sizes
    }

    #[test]
    fn frames_are_written_whole_or_in_the_parts_that_are_asked_for_and_a_greeting_at_once() {
        let fields = [4, 1, 1, 2, 8, 4, 4];
        assert_eq!(writes(Writes::Array, &[9, 0], 1_000), [40, 57]);
        assert_eq!(writes(Writes::Buffer, &[9, 5_000], 10_000), [40, 5_057]);
        assert_eq!(writes(Writes::Struct, &[9, 0], 1_000), [40, 24, 9, 24]);
        let field = writes(Writes::Field, &[9, 0], 1_000);
        assert_eq!(field, [&[40][..], &fields, &[9], &fields].concat());
        assert_eq!(writes(Writes::Struct, &[30], 20), [20, 20, 20, 4, 20, 10]);
    }
}
