//! How what comes is divided into reads: all that there is by one, or, to show what that costs, a
//! frame by several small ones.

use crate::protocol::native::frame::HEADER_BYTES;

/// Of the frame that is read, what has come.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Reads of a frame, two at least: its header is divided into all but the last, which is for
    /// its payload. Without it all that has come is read.
    reads: Option<usize>,
    header: [u8; HEADER_BYTES],
    came: usize,
    payload: usize,
}

impl Reading {
    pub(super) fn new(reads: Option<usize>) -> Self {
        let reads = reads.filter(|reads| *reads > 1);
        Self { reads, ..Self::default() }
    }

    /// How many bytes the next read takes at most, into a buffer of this size.
    pub(super) fn most(&self, space: usize) -> usize {
        let Some(reads) = self.reads else { return space };
        let most = match self.payload {
            0 => HEADER_BYTES.div_ceil(reads - 1).min(HEADER_BYTES - self.came),
            payload => payload,
        };
        most.min(space)
    }

    /// Bytes have come, no more than one read takes.
    pub(super) fn note(&mut self, bytes: &[u8]) {
        if self.reads.is_none() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the reads of these frames, with payloads of this length.
    fn sizes(reads: Option<usize>, payloads: &[u32], space: usize) -> Vec<usize> {
        let mut bytes = Vec::new();
        for payload in payloads {
            bytes.extend(payload.to_le_bytes());
            bytes.resize(bytes.len() + HEADER_BYTES - 4 + *payload as usize, 7);
        }
        let (mut reading, mut sizes, mut rest) = (Reading::new(reads), Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let size = reading.most(space).min(rest.len());
            reading.note(&rest[..size]);
            sizes.push(size);
            rest = &rest[size..];
        }
        sizes
    }

    #[test]
    fn a_frame_is_read_in_as_many_parts_as_are_asked_for() {
        assert_eq!(sizes(None, &[8, 8], 1_000), [64]);
        assert_eq!(sizes(Some(1), &[8, 8], 1_000), [64]);
        assert_eq!(sizes(Some(2), &[8, 0, 5], 1_000), [24, 8, 24, 24, 5]);
        assert_eq!(sizes(Some(4), &[8], 1_000), [8, 8, 8, 8]);
        assert_eq!(sizes(Some(2), &[250], 100), [24, 100, 100, 50]);
    }
}
