//! Answers of the binary protocol.

use super::header::{ANSWER, Header};

/// The status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Success.
    Done = 0x00,
    /// The key is not there.
    NotFound = 0x01,
    /// The key is there, or has another unique number.
    Exists = 0x02,
    /// The value is too large to be stored.
    TooLarge = 0x03,
    /// The lengths are invalid for this request.
    Invalid = 0x04,
    /// `append` or `prepend` of a key that is absent.
    NotStored = 0x05,
    /// The value is no number.
    NotANumber = 0x06,
    /// That is not allowed.
    NotAllowed = 0x20,
    /// There is no such request.
    Unknown = 0x81,
    /// There is no memory, and nothing may be evicted.
    OutOfMemory = 0x82,
}

impl Status {
    /// Returns the text of an error answer.
    pub fn text(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::Invalid => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NotANumber => "Non-numeric server-side value for incr or decr",
            Self::NotAllowed => "Auth failure.",
            Self::Unknown => "Unknown command",
            Self::OutOfMemory => "Out of memory",
        }
    }
}

/// What an answer carries beside its header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered<'a> {
    /// The unique number of the item.
    pub cas: u64,
    /// The extras.
    pub extras: &'a [u8],
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Appends an answer.
#[inline]
pub fn put_answer(header: &Header, status: Status, answered: &Answered<'_>, into: &mut Vec<u8>) {
    put_head(header, status, answered, into);
    into.extend_from_slice(answered.value);
}

/// Appends an answer up to its value.
#[inline]
pub fn put_head(header: &Header, status: Status, answered: &Answered<'_>, into: &mut Vec<u8>) {
    let Answered { cas, extras, key, value } = answered;
    let body_bytes = extras.len() + key.len() + value.len();
    into.extend_from_slice(&[ANSWER, header.opcode]);
    into.extend_from_slice(&(key.len() as u16).to_be_bytes());
    into.extend_from_slice(&[extras.len() as u8, 0]);
    into.extend_from_slice(&(status as u16).to_be_bytes());
    into.extend_from_slice(&(body_bytes as u32).to_be_bytes());
    into.extend_from_slice(&header.opaque);
    into.extend_from_slice(&cas.to_be_bytes());
    into.extend_from_slice(extras);
    into.extend_from_slice(key);
}

/// Appends an error answer with its text.
pub fn put_error(header: &Header, status: Status, into: &mut Vec<u8>) {
    let answered = Answered { value: status.text().as_bytes(), ..Answered::default() };
    put_answer(header, status, &answered, into);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_written_as_the_document_shows_it() {
        let header = Header {
            opcode: 0,
            extras_bytes: 0,
            key_bytes: 5,
            body_bytes: 5,
            opaque: [0; 4],
            cas: 0,
        };
        let mut bytes = Vec::new();
        put_error(&header, Status::NotFound, &mut bytes);
        let mut expected = vec![0x81, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9];
        expected.extend([0; 12]);
        expected.extend(b"Not found");
        assert_eq!(bytes, expected);
    }
}
