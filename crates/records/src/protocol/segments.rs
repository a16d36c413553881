//! Sending large messages in segments (`Protocol-Messages.md`, "Message Header"), for receivers
//! with small buffers, and to try those that put segments together.
//!
//! A segment's payload is a multiple of eight bytes but for the last one's. So it needs none of the
//! padding that the specification asks for and that no peer sends.

use std::collections::VecDeque;

use wire::{Bytes, Output};

use super::{HEADER_BYTES, Header, Segment};

/// The shortest payload that a segment may be limited to.
pub const MIN_SEGMENT_BYTES: usize = 64;

/// Divides the messages in `out` that begin after its first `at` bytes into segments with payloads
/// of at most `most` bytes. Arrays are still sent from where they lie.
///
/// Whole messages have to lie there, as [`message`](super::message) writes them.
pub fn divide(out: &mut Output, at: usize, most: usize) {
    let most = most.max(MIN_SEGMENT_BYTES) / 8 * 8;
    if out.len() - at <= most.saturating_add(HEADER_BYTES) {
        return;
    }
    let mut waiting = Waiting(out.split_off(at).into());
    while let Some(header) = waiting.header() {
        let size = if header.is_control { 0 } else { header.size as usize };
        if size <= most {
            out.put(&header.bytes());
            waiting.give(size, out);
            continue;
        }
        let mut left = size;
        while left > 0 {
            let part = left.min(most);
            let segment = if left == size {
                Segment::First
            } else if left == part {
                Segment::Last
            } else {
                Segment::Middle
            };
            out.put(&Header { segment, size: part as u32, ..header }.bytes());
            waiting.give(part, out);
            left -= part;
        }
    }
}

/// Bytes that were taken back, to be sent with other headers.
struct Waiting(VecDeque<Bytes>);

impl Waiting {
    fn header(&mut self) -> Option<Header> {
        let mut bytes = [0; HEADER_BYTES];
        for byte in &mut bytes {
            let piece = self.0.front_mut()?;
            *byte = piece[0];
            self.advance(1);
        }
        Header::read(&bytes).ok()
    }

    /// Moves `count` bytes to the output.
    fn give(&mut self, mut count: usize, out: &mut Output) {
        while let Some(piece) = self.0.front_mut().filter(|_| count > 0) {
            let part = count.min(piece.len());
            out.share(piece.slice(..part));
            count -= part;
            self.advance(part);
        }
    }

    fn advance(&mut self, count: usize) {
        if let Some(piece) = self.0.front_mut() {
            let _ = piece.split_to(count);
            if piece.is_empty() {
                self.0.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Command, Frame, Frames, Order, Pool, Sender, message};
    use super::*;
    use proptest::prelude::*;

    /// What a receiver makes of a stream, and how large the payloads of its frames were.
    fn received(mut stream: &[u8]) -> (Vec<(u8, Vec<u8>)>, Vec<usize>) {
        let mut sizes = Vec::new();
        let mut rest = stream;
        while let Some(bytes) = rest.first_chunk() {
            let header = Header::read(bytes).unwrap();
            let size = if header.is_control { 0 } else { header.size as usize };
            sizes.push(size);
            rest = &rest[HEADER_BYTES + size..];
        }
        let mut frames = Frames::new(Sender::Server, 1 << 20, Pool::new(0));
        let mut all = Vec::new();
        loop {
            let (used, frame) = frames.next(stream).unwrap();
            stream = &stream[used..];
            match frame {
                Some(Frame::Control(header)) => all.push((255, vec![header.code])),
                Some(Frame::Message { command, order, body, .. }) => {
                    all.push((command.code(), body.reader(order).rest().to_vec()));
                }
                None => match frames.place() {
                    Some(place) => {
                        let count = place.len().min(stream.len());
                        place[..count].copy_from_slice(&stream[..count]);
                        stream = &stream[count..];
                        frames.placed(count);
                    }
                    None if used == 0 => return (all, sizes),
                    None => {}
                },
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_divided_is_put_together_again(
            bodies in prop::collection::vec((0_u8..20, 0_usize..9000, 0_usize..3000), 1..6),
            most in 0_usize..5000,
        ) {
            let mut out = Output::new(usize::MAX);
            let mut expected = Vec::new();
            out.put(&Header::control(Sender::Server, Order::Big, 3, u32::MAX).bytes());
            expected.push((255, vec![3]));
            for (code, shared, small) in bodies {
                let at = out.len();
                let body: Vec<u8> = (0..shared + small).map(|at| (at % 251) as u8).collect();
                message(&mut out, Sender::Server, Order::Big, code.into(), |writer| {
                    writer.share(Bytes::copy_from_slice(&body[..shared]));
                    writer.raw(&body[shared..]);
                });
                divide(&mut out, at, most);
                expected.push((code, body));
            }
            divide(&mut out, 0, usize::MAX);
            let (all, sizes) = received(&out.take());
            prop_assert_eq!(all, expected);
            let most = most.max(MIN_SEGMENT_BYTES);
            prop_assert!(sizes.iter().all(|size| *size <= most), "{:?} {}", sizes, most);
        }
    }

    #[test]
    fn segments_are_said_as_pv_access_cpp_says_them() {
        let mut out = Output::new(usize::MAX);
        message(&mut out, Sender::Server, Order::Little, Command::Get, |writer| {
            writer.raw(&[7; 150]);
        });
        divide(&mut out, 0, 71);
        let bytes = out.take();
        let heads = [&bytes[..8], &bytes[72..80], &bytes[144..152]];
        assert_eq!(heads[0], [0xCA, 2, 0x50, 0x0A, 64, 0, 0, 0]);
        assert_eq!(heads[1], [0xCA, 2, 0x70, 0x0A, 64, 0, 0, 0]);
        assert_eq!(heads[2], [0xCA, 2, 0x60, 0x0A, 22, 0, 0, 0]);
        assert_eq!(bytes.len(), 152 + 22);
    }
}
