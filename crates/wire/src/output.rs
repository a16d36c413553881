//! Bytes to send: small ones copied into one buffer, large ones shared and sent without a copy.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

/// The most pieces of one vectored write; the kernel's own limit is 1,024.
pub(crate) const MAX_PIECES: usize = 128;

/// A shared slice shorter than this is copied: its reference count and its own piece of a vectored
/// write cost more than the copy.
const SHARED_AT_LEAST_BYTES: usize = 1024;

/// Sent bytes are dropped from the front once there are this many, even if others still wait.
const COMPACT_AT_BYTES: usize = 16 * 1024;

/// A send buffer in which copied bytes and shared slices keep the order they were put in.
///
/// One vectored write sends both, so an 80 MB array goes out uncopied and its memory is the
/// array's alone, however slowly the peer reads.
#[derive(Debug)]
pub struct Output {
    small: Vec<u8>,
    small_sent: usize,
    /// Bytes dropped from the front of `small` so far.
    dropped: usize,
    /// Shared slices, each with the number of bytes of `small`, dropped ones included, before it.
    shared: VecDeque<(usize, Bytes)>,
    shared_len: usize,
    limit: usize,
}

impl Output {
    /// An empty buffer that asks the protocol to pause once `limit` bytes, at least 1, wait.
    pub fn new(limit: usize) -> Self {
        Self {
            small: Vec::new(),
            small_sent: 0,
            dropped: 0,
            shared: VecDeque::new(),
            shared_len: 0,
            limit: limit.max(1),
        }
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.small.extend_from_slice(bytes);
    }

    /// Appends `bytes` without a copy, unless they are few; they are released once sent.
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_AT_LEAST_BYTES {
            self.put(&bytes);
        } else {
            self.shared_len += bytes.len();
            self.shared.push_back((self.dropped + self.small.len(), bytes));
        }
    }

    /// The end of the copied bytes, for formatting in place. Only append to it.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.small
    }

    /// How many bytes wait to be sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.small.len() - self.small_sent + self.shared_len
    }

    /// Whether nothing waits to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the protocol should pause until the peer has read some of this.
    ///
    /// A protocol checks it between two answers and leaves the rest of its input where it is; the
    /// loop calls it again once the output has drained.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// Fills `into` with the unsent bytes, in order, as pieces for one vectored write of at most
    /// `most` bytes. Returns the number of pieces.
    pub fn pieces<'a>(&'a self, most: usize, into: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut left = most;
        let mut push = |bytes: &'a [u8]| {
            let take = bytes.len().min(left);
            if take > 0 && count < into.len() {
                into[count] = IoSlice::new(&bytes[..take]);
                count += 1;
                left -= take;
            }
            left > 0 && count < into.len()
        };
        let mut at = self.small_sent;
        for (offset, bytes) in &self.shared {
            let before = offset - self.dropped;
            if !push(&self.small[at..before]) || !push(bytes) {
                return count;
            }
            at = before;
        }
        push(&self.small[at..]);
        count
    }

    /// The unsent bytes, if none are shared: the common case, which takes one plain write.
    #[inline]
    pub fn plain(&self) -> Option<&[u8]> {
        self.shared.is_empty().then(|| &self.small[self.small_sent..])
    }

    /// Removes the first `count` bytes, which are sent.
    ///
    /// # Panics
    /// When fewer bytes wait.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "sent {count} of {} bytes", self.len());
        let count = if self.shared.is_empty() { count } else { self.advance_shared(count) };
        self.small_sent += count;
        if self.small_sent == self.small.len() && self.shared.is_empty() {
            self.small.clear();
            self.small_sent = 0;
            self.dropped = 0;
        } else if self.small_sent >= COMPACT_AT_BYTES && self.small_sent >= self.small.len() / 2 {
            // Without this, sent bytes would pile up for a reader that always leaves a little.
            self.drop_sent();
        }
    }

    /// Advances over everything up to the last shared slice that is sent in full or in part.
    /// Returns the number of copied bytes left to advance over.
    fn advance_shared(&mut self, mut count: usize) -> usize {
        while let Some((offset, bytes)) = self.shared.front_mut() {
            let before = *offset - self.dropped - self.small_sent;
            if count < before {
                return count;
            }
            self.small_sent += before;
            count -= before;
            let part = bytes.len().min(count);
            bytes::Buf::advance(bytes, part);
            self.shared_len -= part;
            count -= part;
            if !bytes.is_empty() {
                return 0;
            }
            self.shared.pop_front();
        }
        count
    }

    #[cold]
    fn drop_sent(&mut self) {
        self.dropped += self.small_sent;
        self.small.drain(..self.small_sent);
        self.small_sent = 0;
    }

    /// Removes and returns everything after the first `at` unsent bytes, in order; shared slices
    /// stay shared.
    ///
    /// # Panics
    /// When fewer bytes wait.
    pub fn split_off(&mut self, at: usize) -> Vec<Bytes> {
        assert!(at <= self.len(), "kept {at} of {} bytes", self.len());
        let (mut left, mut small, mut kept) = (at, self.small_sent, 0);
        let mut all = Vec::new();
        while let Some((offset, bytes)) = self.shared.get_mut(kept) {
            let before = *offset - self.dropped - small;
            if left <= before {
                break;
            }
            (left, small, kept) = (left - before, small + before, kept + 1);
            if left < bytes.len() {
                all.push(bytes.split_off(left));
                left = 0;
                break;
            }
            left -= bytes.len();
        }
        small += left;
        let copied = Bytes::copy_from_slice(&self.small[small..]);
        let mut from = 0;
        for (offset, bytes) in self.shared.split_off(kept) {
            let to = offset - self.dropped - small;
            all.extend([copied.slice(from..to), bytes]);
            from = to;
        }
        all.push(copied.slice(from..));
        all.retain(|bytes| !bytes.is_empty());
        self.small.truncate(small);
        self.shared_len = self.shared.iter().map(|(_, bytes)| bytes.len()).sum();
        all
    }

    /// Removes and returns all unsent bytes as one vector: for tests and datagrams.
    pub fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        while !self.is_empty() {
            let before = all.len();
            let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
            let count = self.pieces(usize::MAX, &mut pieces);
            pieces[..count].iter().for_each(|piece| all.extend_from_slice(piece));
            self.advance(all.len() - before);
        }
        all
    }

    /// Drops all unsent bytes, and keeps at most `keep_bytes` of memory.
    pub fn clear(&mut self, keep_bytes: usize) {
        self.shared.clear();
        self.small.clear();
        self.small.shrink_to(keep_bytes);
        self.shared.shrink_to(MAX_PIECES);
        self.shared_len = 0;
        self.small_sent = 0;
        self.dropped = 0;
    }

    /// Changes the bytes, at least 1, at which the protocol is asked to pause.
    #[inline]
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// Releases memory that the unsent bytes don't need, if it is most of it.
    pub(crate) fn shrink(&mut self) {
        let unsent = self.small.len() - self.small_sent;
        if self.small.capacity() >= COMPACT_AT_BYTES && unsent <= self.small.capacity() / 2 {
            self.drop_sent();
            self.small.shrink_to_fit();
        }
    }

    /// The capacity of the buffer of copied bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.small.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PIECES, Output};
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::io::IoSlice;

    #[test]
    fn shared_bytes_are_sent_without_a_copy() {
        let array = Bytes::from(vec![9; 4096]);
        let mut out = Output::new(64);
        out.put(b"head");
        out.share(array.clone());
        out.put(b"tail");
        let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
        assert_eq!(out.pieces(usize::MAX, &mut pieces), 3);
        assert_eq!(pieces[1].as_ptr(), array.as_ptr());
        assert!(out.is_full());
        out.advance(4 + 4096 + 1);
        assert_eq!(out.plain(), Some(&b"ail"[..]));
    }

    #[test]
    fn a_reader_that_always_leaves_a_little_does_not_make_it_grow() {
        let mut out = Output::new(1 << 20);
        let chunk = [1_u8; 10_000];
        out.put(&chunk);
        for round in 0..10_000 {
            if round % 3 == 0 {
                out.share(Bytes::from_static(&[2; 2000]));
            }
            out.put(&chunk);
            out.advance(out.len() - 5000);
        }
        assert!(out.capacity() <= 128 * 1024, "{} bytes", out.capacity());
        assert_eq!(out.take(), [1; 5000]);
    }

    proptest! {
        #[test]
        fn what_is_split_off_and_what_is_left_are_what_was_put(
            parts in prop::collection::vec((any::<bool>(), 0_usize..3000, any::<u8>()), 0..9),
            sent in 0.0..1.0, at in 0.0..=1.0,
        ) {
            let mut out = Output::new(1);
            let mut expected = Vec::new();
            for (shared, len, byte) in parts {
                let bytes = vec![byte; len];
                expected.extend_from_slice(&bytes);
                if shared { out.share(Bytes::from(bytes)) } else { out.put(&bytes) }
            }
            let sent = (sent * expected.len() as f64) as usize;
            out.advance(sent);
            let expected = &expected[sent..];
            let at = (at * expected.len() as f64) as usize;
            let back = out.split_off(at);
            prop_assert!(back.iter().all(|bytes| !bytes.is_empty()));
            prop_assert_eq!(back.concat(), &expected[at..]);
            out.put(b"more");
            prop_assert_eq!(out.len(), at + 4);
            prop_assert_eq!(out.take(), [&expected[..at], b"more"].concat());
        }

        #[test]
        fn any_split_of_writes_sends_the_same_bytes(
            parts in prop::collection::vec(
                (any::<bool>(), 0_usize..3000, any::<u8>()), 0..200),
            steps in prop::collection::vec((1_usize..40_000, 1_usize..9), 1..20),
        ) {
            let mut out = Output::new(1 << 20);
            let mut expected = Vec::new();
            let mut sent = Vec::new();
            let mut steps = steps.iter().cycle();
            let mut send = |out: &mut Output| {
                let (most, pieces_most) = steps.next().expect("endless");
                let mut pieces = [IoSlice::new(&[]); 8];
                let count = out.pieces(*most, &mut pieces[..*pieces_most]);
                let before = sent.len();
                pieces[..count].iter().for_each(|piece| sent.extend_from_slice(piece));
                let chunk_len = sent.len() - before;
                assert!(chunk_len <= *most && (chunk_len > 0 || out.is_empty()));
                out.advance(chunk_len);
            };
            for (shared, len, byte) in parts {
                let bytes: Vec<u8> = (0..len).map(|at| byte.wrapping_add(at as u8)).collect();
                expected.extend_from_slice(&bytes);
                if shared { out.share(Bytes::from(bytes)) } else { out.put(&bytes) }
                if byte % 3 == 0 { send(&mut out) }
            }
            while !out.is_empty() { send(&mut out) }
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(out.len(), 0);
        }
    }
}
