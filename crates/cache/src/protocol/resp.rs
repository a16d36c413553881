//! Redis' protocol (RESP2), as far as a load generator needs it: commands out, replies in.

use super::text::answer::put_number;

/// The end of every line and of a bulk string.
pub const LINE_END: &[u8] = b"\r\n";

/// A reply's line is at most this long.
pub const MAX_LINE_BYTES: usize = 4096;

/// Appends the head of a command of `words` arguments.
#[inline]
pub fn put_command(words: usize, into: &mut Vec<u8>) {
    into.push(b'*');
    put_number(words as u64, into);
    into.extend_from_slice(LINE_END);
}

/// Appends one word of a command, which `write` formats and which is `count` bytes long.
#[inline]
pub fn put_word(count: usize, into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    into.push(b'$');
    put_number(count as u64, into);
    into.extend_from_slice(LINE_END);
    write(into);
    into.extend_from_slice(LINE_END);
}

/// A reply, or the head of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A status, such as `OK`.
    Status(&'a [u8]),
    /// An error.
    Error(&'a [u8]),
    /// A number.
    Number(i64),
    /// A string of this length follows, and a line end.
    Bulk(usize),
    /// There is none.
    Nothing,
    /// This many replies follow.
    Array(usize),
}

/// Bytes that are no line of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no reply")]
pub struct NoReply;

/// Parses a reply's line. Returns its length with its end; `Ok(None)` when it is incomplete.
///
/// # Errors
/// When it is no line of a reply.
#[inline]
pub fn read_reply(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, NoReply> {
    let start = &bytes[..bytes.len().min(MAX_LINE_BYTES)];
    let Some(end) = memchr::memchr(b'\n', start) else {
        return if bytes.len() > MAX_LINE_BYTES { Err(NoReply) } else { Ok(None) };
    };
    let line = start[..end].strip_suffix(b"\r").ok_or(NoReply)?;
    let (kind, rest) = line.split_first().ok_or(NoReply)?;
    let number = || -> Option<i64> { std::str::from_utf8(rest).ok()?.parse().ok() };
    let count = || number().and_then(|count| usize::try_from(count).ok());
    let reply = match kind {
        b'+' => Reply::Status(rest),
        b'-' => Reply::Error(rest),
        b':' => Reply::Number(number().ok_or(NoReply)?),
        b'$' | b'*' if rest == b"-1" => Reply::Nothing,
        b'$' => Reply::Bulk(count().ok_or(NoReply)?),
        b'*' => Reply::Array(count().ok_or(NoReply)?),
        _ => return Err(NoReply),
    };
    Ok(Some((reply, end + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_apart() {
        for (bytes, reply) in [
            (&b"+OK\r\n"[..], Reply::Status(b"OK")),
            (b"-ERR no\r\n", Reply::Error(b"ERR no")),
            (b":-7\r\n", Reply::Number(-7)),
            (b"$5\r\nhello\r\n", Reply::Bulk(5)),
            (b"$-1\r\n", Reply::Nothing),
            (b"*2\r\n", Reply::Array(2)),
        ] {
            let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
            assert_eq!(read_reply(bytes), Ok(Some((reply, end))));
            assert_eq!(read_reply(&bytes[..end - 1]), Ok(None));
        }
        for wrong in [&b"\r\n"[..], b"?\r\n", b":x\r\n", b"$-2\r\n", b"+OK\n", &[b'+'; 5000]] {
            assert_eq!(read_reply(wrong), Err(NoReply), "{wrong:?}");
        }
    }

    #[test]
    fn a_command_is_written_word_by_word() {
        let mut bytes = Vec::new();
        put_command(2, &mut bytes);
        put_word(3, &mut bytes, |into| into.extend_from_slice(b"GET"));
        put_word(1, &mut bytes, |into| into.push(b'k'));
        assert_eq!(bytes, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
