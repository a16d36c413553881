//! Memory that processes of one host share: a segment holds one array at a time, and a sequence
//! lock by which a reader detects that the array was overwritten meanwhile. The only `unsafe` code
//! of this service: the system's mappings are pointers.
//!
//! A segment is a file without a name (memfd_create(2)), which belongs to its process and can be
//! opened through `/proc` by that user alone. It is sealed: it can't become shorter, so that no
//! reader reads beyond its end, and no other process can write it.
//!
//! It begins with a page for its number and its count of writings, which is odd while it is being
//! written. The order of reads and writes is that of a sequence lock (H.-J. Boehm, "Can Seqlocks
//! Get Along With Programming Language Memory Models?", MSPC 2012, figure 6).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};

use crate::protocol::ArrayLocation;

/// The array begins so far behind the segment's start.
const HEAD_BYTES: usize = 4096;

/// The number of the segment, and its count of writings, as words of its head.
const NUMBER: usize = 0;
const COUNT: usize = 1;

/// A segment of this process.
#[derive(Debug)]
pub(crate) struct Segment {
    file: File,
    map: MmapRaw,
    number: u64,
}

/// A segment of any process, to be read.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: MmapRaw,
}

/// The words of a mapping's head, or all of them.
#[allow(unsafe_code)]
fn word(map: &MmapRaw, index: usize) -> &AtomicU64 {
    assert!(index < map.len() / 8, "word {index} of {} bytes", map.len());
    // SAFETY: a mapping begins at a page and is not moved while it is borrowed, the word is within
    // it, and its file can't become shorter. Reading it needs no right to write: only the owner of
    // a segment stores. What another process writes meanwhile is read as atomics are.
    unsafe { AtomicU64::from_ptr(map.as_mut_ptr().cast::<u64>().add(index)) }
}

impl Segment {
    /// Memory for an array of at most `bytes` bytes.
    ///
    /// # Errors
    /// When the system has none.
    pub(crate) fn new(bytes: usize, number: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("records", flags)?);
        // Whole words, so that the last is read as the others are.
        let length = HEAD_BYTES + bytes.next_multiple_of(8);
        ftruncate(&file, length as u64)?;
        let map = MmapOptions::new().len(length).map_raw(&file)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        word(&map, NUMBER).store(number, Ordering::Relaxed);
        Ok(Self { file, map, number })
    }

    /// How many bytes its array may have.
    pub(crate) fn capacity(&self) -> usize {
        self.map.len() - HEAD_BYTES
    }

    /// Where its array begins, as a number.
    pub(crate) fn address(&self) -> usize {
        self.bytes().as_ptr().addr()
    }

    /// Begins to write: what readers see from now on is invalid.
    pub(crate) fn begin(&mut self) {
        let count = word(&self.map, COUNT);
        count.store(count.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Ends writing: the array is valid.
    pub(crate) fn end(&mut self) {
        let count = word(&self.map, COUNT);
        let next = (count.load(Ordering::Relaxed) | 1) + 1;
        count.store(next, Ordering::Release);
    }

    /// Where an array of its first `bytes` is for others.
    pub(crate) fn place(&self, bytes: usize) -> ArrayLocation {
        ArrayLocation {
            process: std::process::id(),
            descriptor: self.file.as_raw_fd().cast_unsigned(),
            segment: self.number,
            sequence: word(&self.map, COUNT).load(Ordering::Relaxed),
            bytes: bytes as u64,
        }
    }

    #[allow(unsafe_code)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has that many bytes behind its head and is there for as long as this
        // is borrowed. Nobody writes them meanwhile: in this process that takes an exclusive
        // borrow, and the seal keeps others from it.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(HEAD_BYTES), self.capacity()) }
    }

    #[allow(unsafe_code)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, length) = (self.map.as_mut_ptr(), self.capacity());
        // SAFETY: as above; the borrow is exclusive within this process. Other processes read
        // what is being written, as atomics, and throw it away when the count has moved.
        unsafe { std::slice::from_raw_parts_mut(start.add(HEAD_BYTES), length) }
    }
}

impl Mapped {
    /// Maps the segment of a place.
    ///
    /// # Errors
    /// When it isn't there any more, belongs to another user or host, or is no such segment.
    pub(crate) fn open(place: &ArrayLocation) -> io::Result<Self> {
        let path = format!("/proc/{}/fd/{}", place.process, place.descriptor);
        // A socket can't be opened; a pipe would be waited for.
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if !std::fs::metadata(&path)?.is_file() {
            return Err(wrong("it is no file"));
        }
        let file = File::open(&path)?;
        let seals = fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if !seals.contains(SealFlags::SHRINK) {
            return Err(wrong("it could become shorter while it is read"));
        }
        let length = file.metadata()?.len();
        if length < HEAD_BYTES as u64 {
            return Err(wrong("it is too short"));
        }
        let map = MmapOptions::new().map_raw_read_only(&file)?;
        let mapped = Self { map };
        if word(&mapped.map, NUMBER).load(Ordering::Relaxed) != place.segment {
            return Err(wrong("it is another segment"));
        }
        Ok(mapped)
    }

    /// Has `look` read the array at a location. Returns nothing when the array is gone, or was
    /// overwritten while it was read.
    pub(crate) fn look<T>(
        &self,
        place: &ArrayLocation,
        look: impl FnOnce(Words<'_>) -> T,
    ) -> Option<T> {
        let bytes = usize::try_from(place.bytes).ok()?;
        if bytes > self.map.len() - HEAD_BYTES {
            return None;
        }
        let count = word(&self.map, COUNT);
        let is_even = place.sequence.is_multiple_of(2);
        // Memory that can't be written may be loaded from in relaxed order only.
        if !is_even || count.load(Ordering::Relaxed) != place.sequence {
            return None;
        }
        fence(Ordering::Acquire);
        let seen = look(Words { map: &self.map, bytes });
        fence(Ordering::Acquire);
        (count.load(Ordering::Relaxed) == place.sequence).then_some(seen)
    }
}

/// The bytes of an array in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    map: &'a MmapRaw,
    bytes: usize,
}

impl Words<'_> {
    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The eight bytes from `index` × 8 on, of which those beyond the array mean nothing.
    ///
    /// # Panics
    /// When the array is shorter.
    pub(crate) fn word(&self, index: usize) -> [u8; 8] {
        assert!(index < self.bytes.div_ceil(8), "word {index} of {} bytes", self.bytes);
        word(self.map, HEAD_BYTES / 8 + index).load(Ordering::Relaxed).to_ne_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_what_was_written_or_nothing() {
        let mut segment = Segment::new(20, 5).expect("memory");
        assert_eq!((segment.capacity(), segment.address() % 4096), (24, 0));
        segment.begin();
        segment.bytes_mut().fill(7);
        segment.end();
        let place = segment.place(20);
        let mapped = Mapped::open(&place).expect("the own process is open to itself");
        let look =
            |place: &ArrayLocation| mapped.look(place, |words| (words.bytes(), words.word(2)));
        assert_eq!(look(&place), Some((20, [7; 8])));
        let during = mapped.look(&place, |words| {
            segment.begin();
            words.word(0)
        });
        assert_eq!(during, None, "it was written meanwhile");
        assert_eq!(look(&segment.place(20)), None, "and still is");
        segment.bytes_mut().fill(8);
        segment.end();
        assert_eq!(look(&place), None, "what it was is gone");
        assert_eq!(look(&segment.place(17)), Some((17, [8; 8])));
        assert_eq!(look(&ArrayLocation { bytes: 25, ..segment.place(8) }), None);
    }

    #[test]
    fn only_segments_are_mapped_and_nobody_else_writes_them() {
        let segment = Segment::new(8, 1).expect("memory");
        let place = segment.place(8);
        assert!(Mapped::open(&ArrayLocation { segment: 2, ..place }).is_err());
        let path = format!("/proc/{}/fd/{}", place.process, place.descriptor);
        let file = File::options().read(true).write(true).open(path).expect("its own user");
        assert!(file.set_len(0).is_err());
        assert!(std::io::Write::write(&mut &file, b"x").is_err());
        let other = tempfile();
        let descriptor = other.as_raw_fd().cast_unsigned();
        let error = Mapped::open(&ArrayLocation { descriptor, ..place }).unwrap_err();
        assert!(error.to_string().contains("shorter"), "{error}");
    }

    fn tempfile() -> File {
        File::from(memfd_create("other", MemfdFlags::CLOEXEC).expect("a file"))
    }
}
