//! The header of a request, and the numbers of its extras.

/// The length of a header.
pub const HEADER_BYTES: usize = 24;

/// The first byte of a request.
pub const REQUEST: u8 = 0x80;

/// The first byte of an answer.
pub const ANSWER: u8 = 0x81;

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The operation.
    pub opcode: u8,
    /// How long the extras are.
    pub extras_bytes: usize,
    /// How long the key is.
    pub key_bytes: usize,
    /// How long extras, key and value are together.
    pub body_bytes: usize,
    /// The client's own 32 bits, given back as they are.
    pub opaque: [u8; 4],
    /// The unique number that the item has to have; 0 is any.
    pub cas: u64,
}

impl Header {
    /// Reads a header; `None` when it does not begin as one.
    #[inline]
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|index| bytes[at + index]));
        (bytes[0] == REQUEST).then(|| Self {
            opcode: bytes[1],
            key_bytes: usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
            extras_bytes: usize::from(bytes[4]),
            body_bytes: word(8) as usize,
            opaque: [0, 1, 2, 3].map(|index| bytes[12 + index]),
            cas: u64::from(word(16)) << 32 | u64::from(word(20)),
        })
    }

    /// How long the value is; `None` when extras and key are longer than all together.
    #[inline]
    pub fn value_bytes(&self) -> Option<usize> {
        self.body_bytes.checked_sub(self.extras_bytes + self.key_bytes)
    }
}

/// The big-endian number of 32 bits at `at` of the extras; 0 where they are shorter.
#[inline]
pub fn word(extras: &[u8], at: usize) -> u32 {
    let bytes = extras.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(bytes.unwrap_or_default())
}

/// The big-endian number of 64 bits at `at` of the extras; 0 where they are shorter.
#[inline]
pub fn long(extras: &[u8], at: usize) -> u64 {
    let bytes = extras.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_be_bytes(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_the_document_shows_it() {
        // The request of the document's example for `set`: key "Hello", value "World".
        let bytes = [
            0x80, 0x02, 0x00, 0x05, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00,
            0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
        ];
        let header = Header::read(&bytes).expect("a request");
        let expected = Header {
            opcode: 2,
            extras_bytes: 8,
            key_bytes: 5,
            body_bytes: 18,
            opaque: [0, 0, 0, 7],
            cas: 1,
        };
        assert_eq!(header, expected);
        assert_eq!(header.value_bytes(), Some(5));
        let mut answer = bytes;
        answer[0] = ANSWER;
        assert_eq!(Header::read(&answer), None);
        let short = Header { body_bytes: 12, ..expected };
        assert_eq!(short.value_bytes(), None);
    }
}
