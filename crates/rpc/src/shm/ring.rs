//! A ring of bytes in one direction, as records: a word with the count of bytes, then those,
//! up to the end of a cache line. A small record takes one line, and so one transfer between
//! two cores. The word behind the last record is zero; a record is there once its word isn't.
//!
//! Each side keeps its own position. The reader publishes its own every quarter of the ring, so
//! that a writer always has room once the reader has taken all. What the other side writes, a count
//! or a position, is read once and checked: it can end the connection, and nothing else.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Words of a line.
const LINE: usize = 8;

/// The most bytes of a record.
const MOST_BYTES: usize = 32 << 10;

fn hostile(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the other side has written {what}"))
}

/// Lines of a record of this many bytes.
fn lines(bytes: usize) -> usize {
    (bytes + 8).div_ceil(8 * LINE)
}

/// The writer's end; positions are in lines.
#[derive(Debug, Default)]
pub struct Writer {
    at: u64,
    /// The reader's position, as it was seen last.
    taken: u64,
}

impl Writer {
    /// Lines that are free. `taken` is the reader's word.
    fn free(&mut self, ring: &[AtomicU64], taken: &AtomicU64) -> io::Result<usize> {
        let all = ring.len() / LINE;
        let used = |taken: u64| self.at.wrapping_sub(taken) as usize;
        if all - used(self.taken) > lines(MOST_BYTES) {
            return Ok(all - used(self.taken));
        }
        let now = taken.load(Acquire);
        if now.wrapping_sub(self.taken) > self.at.wrapping_sub(self.taken) {
            return Err(hostile("a position that it can't have"));
        }
        let free = all - used(now);
        self.taken = now;
        Ok(free)
    }

    /// Whether a record finds room.
    ///
    /// # Errors
    /// When the reader's position can't be.
    pub fn has_room(&mut self, ring: &[AtomicU64], taken: &AtomicU64) -> io::Result<bool> {
        Ok(self.free(ring, taken)? >= 2)
    }

    /// Writes a record of as many of these bytes as find room; 0 where none do.
    ///
    /// # Errors
    /// When the reader's position can't be.
    pub fn write(
        &mut self,
        ring: &[AtomicU64],
        taken: &AtomicU64,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let (all, free) = (ring.len() / LINE, self.free(ring, taken)?);
        if free < 2 || bytes.is_empty() {
            return Ok(0);
        }
        let at = self.at as usize % all;
        // A record doesn't wrap, and leaves a line for the zero behind it.
        let most = (free - 1).min(all - at) * LINE * 8 - 8;
        let bytes = &bytes[..bytes.len().min(most).min(MOST_BYTES)];
        let count = lines(bytes.len());
        let (word, next) = (at * LINE, (at + count) % all * LINE);
        ring[next].store(0, Relaxed);
        let (whole, rest) = bytes.as_chunks::<8>();
        let words = &ring[word + 1..];
        for (to, from) in words.iter().zip(whole) {
            to.store(u64::from_le_bytes(*from), Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len()].store(u64::from_le_bytes(last), Relaxed);
        }
        ring[word].store(bytes.len() as u64, Release);
        self.at += count as u64;
        Ok(bytes.len())
    }
}

/// The reader's end.
#[derive(Debug, Default)]
pub struct Reader {
    at: u64,
    published: u64,
    /// Bytes of the record at this position, and those of them that were taken.
    record: (usize, usize),
}

impl Reader {
    /// Whether there is something to read.
    pub fn has_some(&self, ring: &[AtomicU64]) -> bool {
        let all = ring.len() / LINE;
        self.record.0 > 0 || ring[self.at as usize % all * LINE].load(Acquire) != 0
    }

    /// Takes bytes of one record; 0 where there is none. Returns whether the position was
    /// published, too.
    ///
    /// # Errors
    /// When the record has a length that can't be.
    pub fn read(
        &mut self,
        ring: &[AtomicU64],
        taken: &AtomicU64,
        space: &mut [u8],
    ) -> io::Result<(usize, bool)> {
        let all = ring.len() / LINE;
        let at = self.at as usize % all;
        if self.record.0 == 0 {
            let bytes = ring[at * LINE].load(Acquire);
            if bytes == 0 {
                return Ok((0, false));
            }
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MOST_BYTES);
            let fits = bytes.filter(|bytes| lines(*bytes) <= all - at);
            self.record = (fits.ok_or_else(|| hostile("a length that can't be"))?, 0);
        }
        let (bytes, before) = self.record;
        let count = (bytes - before).min(space.len());
        copy(&ring[at * LINE + 1..], before, &mut space[..count]);
        self.record.1 += count;
        if self.record.1 < bytes {
            return Ok((count, false));
        }
        self.record = (0, 0);
        self.at += lines(bytes) as u64;
        let publishes = (self.at - self.published) as usize >= all / 4;
        if publishes {
            self.published = self.at;
            taken.store(self.at, Release);
        }
        Ok((count, publishes))
    }
}

/// Copies from words, from this byte of them on.
fn copy(words: &[AtomicU64], from: usize, mut space: &mut [u8]) {
    let mut words = words[from / 8..].iter().map(|word| word.load(Relaxed).to_le_bytes());
    if !from.is_multiple_of(8)
        && let Some(word) = words.next()
    {
        let part = &word[from % 8..];
        let count = part.len().min(space.len());
        space[..count].copy_from_slice(&part[..count]);
        space = &mut space[count..];
    }
    let (whole, rest) = space.as_chunks_mut::<8>();
    for (to, word) in whole.iter_mut().zip(&mut words) {
        *to = word;
    }
    if !rest.is_empty()
        && let Some(word) = words.next()
    {
        rest.copy_from_slice(&word[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ring(lines: usize) -> Vec<AtomicU64> {
        (0..lines * LINE).map(|_| AtomicU64::new(0)).collect()
    }

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in_whatever_the_pieces(
            steps in proptest::collection::vec((0..2_000_usize, 1..3_000_usize), 1..200),
            size in 8..64_usize
        ) {
            let (ring, taken) = (ring(size), AtomicU64::new(0));
            let (mut writer, mut reader) = (Writer::default(), Reader::default());
            let (mut sent, mut came) = (Vec::<u8>::new(), Vec::<u8>::new());
            for (write, read) in steps {
                // Bytes that look like lengths.
                let bytes: Vec<u8> = (0..write).map(|at| (sent.len() + at) as u8 | 1).collect();
                let count = writer.write(&ring, &taken, &bytes).expect("no fault");
                sent.extend(&bytes[..count]);
                let mut space = vec![0; read];
                let (count, _) = reader.read(&ring, &taken, &mut space).expect("no fault");
                came.extend(&space[..count]);
                prop_assert!(sent.starts_with(&came));
            }
            let mut space = [0; 100];
            loop {
                let (count, _) = reader.read(&ring, &taken, &mut space).expect("no fault");
                came.extend(&space[..count]);
                if count == 0 {
                    break;
                }
            }
            prop_assert_eq!(&sent, &came);
            prop_assert!(writer.has_room(&ring, &taken).expect("no fault"), "all is taken");
        }

        #[test]
        fn whatever_the_other_side_writes_is_bytes_or_an_error(
            noise in proptest::collection::vec((0..80_usize, prop_oneof![any::<u64>(), 0..99_u64]),
                0..200),
            positions in proptest::collection::vec(any::<u64>(), 8)
        ) {
            let (ring, taken) = (ring(10), AtomicU64::new(0));
            let (mut writer, mut reader) = (Writer::default(), Reader::default());
            for (at, value) in noise {
                ring[at].store(value, Relaxed);
                let mut space = [0; 50];
                let _ = reader.read(&ring, &AtomicU64::new(0), &mut space);
            }
            for position in positions {
                taken.store(position, Relaxed);
                let _ = writer.write(&ring, &taken, &[1; 300]);
            }
        }
    }
}
