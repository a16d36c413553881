//! The frame around each document: its length as eight hexadecimal digits, padded with spaces.

/// The bytes of a frame's head.
pub const HEAD_BYTES: usize = 8;

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// The eight bytes are not a hexadecimal number.
    #[error("a request begins with its length as 8 hexadecimal digits")]
    NotALength,
    /// The length is zero.
    #[error("a request of no bytes")]
    Empty,
    /// The length is over the limit.
    #[error("a request of {bytes} bytes, and at most {most} are taken (--max-message)")]
    TooLarge {
        /// The length that the head names.
        bytes: u64,
        /// The limit.
        most: u64,
    },
}

/// Reads a head: digits of either case, behind spaces or zeros. Nothing is allocated for a length
/// before it is known to be at most `most`.
///
/// # Errors
/// When it is no length, or one over the limit.
pub fn length(head: [u8; HEAD_BYTES], most: u64) -> Result<u64, BadHead> {
    let blanks = head.iter().take_while(|byte| **byte == b' ').count();
    let digits = &head[blanks..];
    if digits.is_empty() {
        return Err(BadHead::NotALength);
    }
    let mut bytes = 0_u64;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16).ok_or(BadHead::NotALength)?;
        bytes = bytes << 4 | u64::from(digit);
    }
    match bytes {
        0 => Err(BadHead::Empty),
        _ if bytes > most => Err(BadHead::TooLarge { bytes, most }),
        _ => Ok(bytes),
    }
}

/// Appends a frame around what `write` appends.
pub fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    frame_with(out, 0, write);
}

/// The same of a document in which this number of bytes is put where they are sent.
pub fn frame_with(out: &mut Vec<u8>, more: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let head = out.len();
    out.extend_from_slice(&[b' '; HEAD_BYTES]);
    write(out);
    let bytes = out.len() - head - HEAD_BYTES + more;
    let text = format!("{bytes:>8x}");
    out[head..head + HEAD_BYTES].copy_from_slice(&text.as_bytes()[text.len() - HEAD_BYTES..]);
}

#[cfg(test)]
mod tests {
    use super::{BadHead, frame, length};

    #[test]
    fn a_length_is_hexadecimal_behind_spaces_or_zeros() {
        for (head, bytes) in
            [(b"     135", 0x135), (b"00000135", 0x135), (b"  aBcDeF", 0x00ab_cdef)]
        {
            assert_eq!(length(*head, 1 << 30), Ok(bytes));
        }
        for head in [b"        ", b"GET / HT", b"-0000001", b"0x000001", b"12      ", b"     1 2"] {
            assert_eq!(length(*head, 1 << 30), Err(BadHead::NotALength));
        }
        assert_eq!(length(*b"       0", 9), Err(BadHead::Empty));
        let refused = Err(BadHead::TooLarge { bytes: 0xffff_ffff, most: 1 << 30 });
        assert_eq!(length(*b"ffffffff", 1 << 30), refused);
    }

    #[test]
    fn a_frame_begins_with_the_length_of_what_is_in_it() {
        let mut out = b"before".to_vec();
        frame(&mut out, |out| out.extend_from_slice(&[b'x'; 300]));
        assert_eq!(&out[..14], b"before     12c");
        assert_eq!(length(*b"     12c", 1000), Ok(300));
    }
}
