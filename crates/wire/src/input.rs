//! Bytes received and not yet consumed.

use crate::ProtocolError;

/// A receive buffer: the loop fills it at the end, the protocol consumes it from the start.
///
/// It never holds more than its limit; a protocol that needs more at once names a
/// [`Connection::place`](crate::Connection::place) for them.
#[derive(Debug, Default)]
pub struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// An empty buffer that allocates nothing until it is filled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer that holds `bytes`, for tests, fuzzers and in-memory use.
    pub fn of(bytes: &[u8]) -> Self {
        Self { buffer: bytes.to_vec(), start: 0, end: bytes.len() }
    }

    /// The bytes received and not yet consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The number of unconsumed bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether all bytes are consumed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops the first `count` bytes, which the protocol has parsed.
    ///
    /// # Panics
    /// When there are fewer, which is a bug in the protocol's code.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "consumed {count} of {} bytes", self.len());
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Returns room for at least one and, within the limit, `at_least` more bytes; the buffer
    /// grows by doubling. Unconsumed bytes and room together never exceed `limit`.
    ///
    /// # Errors
    /// When the unconsumed bytes have reached `limit`: one message is larger than its protocol
    /// may buffer.
    #[inline]
    pub fn space(&mut self, at_least: usize, limit: usize) -> Result<&mut [u8], ProtocolError> {
        let most = limit.saturating_sub(self.len());
        if most == 0 {
            return Err(ProtocolError::new("a message is larger than this connection may buffer"));
        }
        let at_least = at_least.clamp(1, most);
        if self.buffer.len() - self.end < at_least {
            self.make_room(at_least, limit);
        }
        let end = self.buffer.len().min(self.end.saturating_add(most));
        Ok(&mut self.buffer[self.end..end])
    }

    #[cold]
    fn make_room(&mut self, at_least: usize, limit: usize) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < at_least {
            let doubled = (self.buffer.len() * 2).min(limit);
            self.buffer.resize(doubled.max(self.end + at_least), 0);
        }
    }

    /// Appends a copy of `bytes`, whatever the limit: for bytes that move from one buffer to
    /// another, and for tests.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.buffer.len() - self.end < bytes.len() {
            self.make_room(bytes.len(), usize::MAX);
        }
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Drops all bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// The buffer's capacity.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Adds the first `count` bytes of the room that [`Input::space`] returned.
    ///
    /// # Panics
    /// When there was less room.
    #[inline]
    pub fn filled(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.end, "filled past the end of the buffer");
        self.end += count;
    }

    /// Frees the memory if all bytes are consumed, so that an idle connection holds none.
    pub fn release(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// Moves the unconsumed bytes into a buffer just large enough, and keeps this one's memory.
    ///
    /// The loop lends one large buffer to each connection in turn; a connection keeps only its
    /// unfinished message.
    pub fn split_rest(&mut self) -> Self {
        let rest = Self::of(self.bytes());
        self.start = 0;
        self.end = 0;
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::Input;

    fn fill(input: &mut Input, bytes: &[u8], limit: usize) {
        let space = input.space(bytes.len(), limit).expect("room");
        space[..bytes.len()].copy_from_slice(bytes);
        input.filled(bytes.len());
    }

    #[test]
    fn what_is_filled_is_read_in_order_and_once() {
        let mut input = Input::new();
        fill(&mut input, b"get a\r\nge", 64);
        input.consume(7);
        fill(&mut input, b"t b\r\n", 64);
        assert_eq!(input.bytes(), b"get b\r\n");
        input.consume(7);
        assert!(input.is_empty());
    }

    #[test]
    fn a_message_over_the_limit_is_an_error_and_takes_no_more_memory() {
        let mut input = Input::new();
        fill(&mut input, &[0; 16], 16);
        assert!(input.space(1, 16).is_err());
        input.consume(1);
        assert!(input.space(1, 16).is_ok());
    }

    #[test]
    fn a_large_buffer_gives_no_more_room_than_the_limit() {
        let mut input = Input::new();
        fill(&mut input, &[0; 4096], 4096);
        input.consume(4096);
        assert_eq!(input.space(1, 100).expect("room").len(), 100);
        fill(&mut input, &[1; 60], 100);
        assert_eq!(input.space(100, 100).expect("room").len(), 40);
    }

    #[test]
    fn without_a_limit_there_is_room_behind_what_waits() {
        let mut input = Input::new();
        fill(&mut input, &[0; 100], usize::MAX);
        input.consume(90);
        assert!(!input.space(10, usize::MAX).expect("room").is_empty());
    }

    #[test]
    fn appended_bytes_follow_those_that_wait() {
        let mut input = Input::of(b"abcd");
        input.consume(3);
        input.append(b"ef");
        input.append(&[b'g'; 100]);
        assert_eq!(&input.bytes()[..4], b"defg");
        assert_eq!(input.len(), 103);
    }

    #[test]
    fn the_rest_moves_out_and_the_large_buffer_stays() {
        let mut input = Input::new();
        fill(&mut input, &[7; 1000], 4096);
        input.consume(990);
        let rest = input.split_rest();
        assert_eq!(rest.bytes(), &[7; 10]);
        assert!(input.is_empty());
        assert!(input.space(1000, 1000).is_ok());
    }
}
