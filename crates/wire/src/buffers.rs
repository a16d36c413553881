//! The buffers that a thread lends to each of its connections in turn. Data plane.

use std::mem;

use crate::{Input, Output};

/// The most empty output buffers kept for reuse, and the most memory of all of them.
const SPARE_OUTPUTS: usize = 64;
const SPARE_BYTES: usize = 4 << 20;

/// A few unsent bytes in a buffer with more memory than this are copied into a smaller one: a
/// connection that waits with a small answer must not hold the memory of a large one.
const LARGE_BYTES: usize = 128 << 10;

/// An unfinished message up to this size is copied back into the thread's input to be completed; a
/// larger one is completed in the connection's own buffer.
pub(crate) const SMALL_REST_BYTES: usize = 4096;

/// The buffers that a thread lends to each of its connections in turn.
pub(crate) struct ThreadBuffers {
    pub(crate) input: Input,
    pub(crate) output: Output,
    spare: Vec<Output>,
    spare_bytes: usize,
    limit_bytes: usize,
}

impl ThreadBuffers {
    pub(crate) fn new(input_bytes: usize, limit_bytes: usize) -> Self {
        let mut input = Input::new();
        // Grows the buffer to its full size at once. It can't fail: the buffer is empty.
        let _ = input.space(input_bytes, input_bytes);
        let output = Output::new(limit_bytes);
        Self { input, output, spare: Vec::new(), spare_bytes: 0, limit_bytes }
    }

    /// The buffer that a connection is read into: the thread's, unless a large unfinished message
    /// waits in its own.
    #[inline]
    pub(crate) fn input_for<'a>(&'a mut self, own: &'a mut Input) -> &'a mut Input {
        if own.len() > SMALL_REST_BYTES {
            return own;
        }
        if !own.is_empty() {
            self.input.append(own.bytes());
            *own = Input::new();
        }
        &mut self.input
    }

    /// Makes the connection's unsent output, if it has any, the one that is appended to.
    #[inline]
    pub(crate) fn attach(&mut self, own: &mut Option<Output>) {
        if let Some(own) = own.take() {
            let empty = mem::replace(&mut self.output, own);
            debug_assert!(empty.is_empty(), "bytes of another connection");
            self.keep(empty);
        }
    }

    /// Leaves unsent bytes with the connection; an empty buffer stays here.
    #[inline]
    pub(crate) fn detach(&mut self, own: &mut Option<Output>) {
        if !self.output.is_empty() {
            let mut next = self.spare();
            match self.output.plain() {
                Some(bytes)
                    if self.output.capacity() > LARGE_BYTES && bytes.len() <= LARGE_BYTES / 2 =>
                {
                    next.put(bytes);
                    self.output.clear(self.keep_bytes());
                }
                _ => mem::swap(&mut next, &mut self.output),
            }
            *own = Some(next);
        } else if self.output.capacity() > self.keep_bytes() {
            self.output.clear(self.keep_bytes());
        }
    }

    /// Keeps an empty buffer for reuse, within the limits.
    #[inline]
    pub(crate) fn keep(&mut self, empty: Output) {
        let spare_bytes = self.spare_bytes + empty.capacity();
        if self.spare.len() < SPARE_OUTPUTS && spare_bytes <= SPARE_BYTES {
            self.spare_bytes = spare_bytes;
            self.spare.push(empty);
        }
    }

    #[inline]
    fn spare(&mut self) -> Output {
        match self.spare.pop() {
            Some(spare) => {
                self.spare_bytes -= spare.capacity();
                spare
            }
            None => Output::new(self.limit_bytes),
        }
    }

    /// Discards the bytes of a connection that has ended.
    pub(crate) fn discard(&mut self) {
        self.input.clear();
        self.output.clear(self.keep_bytes());
    }

    /// A buffer grows by doubling, so one within the limit has at most twice its size; the last
    /// answer may exceed it a little.
    fn keep_bytes(&self) -> usize {
        self.limit_bytes.saturating_mul(2).saturating_add(64 * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::{Output, SPARE_BYTES, ThreadBuffers};

    #[test]
    fn unsent_output_moves_to_its_connection_and_its_memory_comes_back() {
        let mut buffers = ThreadBuffers::new(4096, 1000);
        let mut own = None;
        buffers.attach(&mut own);
        buffers.output.put(&[1; 500_000]);
        buffers.detach(&mut own);
        assert!(buffers.output.is_empty() && own.as_ref().is_some_and(|own| own.len() == 500_000));
        buffers.attach(&mut own);
        assert!(own.is_none());
        buffers.output.advance(500_000);
        buffers.detach(&mut own);
        assert!(own.is_none());
        assert!(buffers.output.capacity() < 100_000, "an overgrown buffer shrinks");
    }

    #[test]
    fn the_memory_of_large_answers_is_neither_held_by_small_ones_nor_kept_without_limit() {
        let mut buffers = ThreadBuffers::new(4096, 1 << 20);
        let mut all = [const { None }; 100];
        let answer = |buffers: &mut ThreadBuffers, own: &mut _, bytes| {
            buffers.output.put(&vec![1; bytes]);
            buffers.detach(own);
        };
        for own in &mut all {
            buffers.output.put(&[1; 300_000]);
            buffers.output.advance(300_000);
            answer(&mut buffers, own, 1000);
        }
        let held = |own: &Option<Output>| own.as_ref().map_or(0, Output::capacity);
        assert!(all.iter().all(|own| held(own) < 10_000) && buffers.output.capacity() >= 300_000);
        for own in &mut all {
            answer(&mut buffers, own, 300_000);
        }
        for own in &mut all {
            buffers.attach(own);
            buffers.output.advance(300_000);
        }
        assert!(buffers.spare.iter().map(Output::capacity).sum::<usize>() <= SPARE_BYTES);
        assert_eq!(buffers.spare.iter().map(Output::capacity).sum::<usize>(), buffers.spare_bytes);
        assert!(!buffers.spare.is_empty());
    }
}
