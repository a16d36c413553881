//! The head of a response: its status line and headers, borrowed from the received bytes.

use super::request::{is_field_value, is_token_byte};
use wire::ProtocolError;

/// How the end of a response's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// After this many bytes; 0 for a response without a body.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// When the server closes the connection.
    UntilClose,
}

/// The status line and headers of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The status, such as 200.
    pub status: u16,
    /// How the body ends.
    pub body: Body,
    /// Whether the server closes the connection after this response.
    pub closes: bool,
    /// The whole head, from the status line to the empty line.
    pub bytes: &'a [u8],
    /// The header lines and the empty line.
    fields: &'a [u8],
}

/// The headers of a response, each as its name and value.
#[derive(Clone, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (line, rest) = split_line(self.0)?;
        self.0 = rest;
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    }
}

/// The first line of `bytes`, without its end, and the rest. A bare line feed ends a line too, as
/// RFC 9112 allows.
#[inline]
pub(super) fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

/// The headers that determine where the response ends.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    is_encoded: bool,
    is_chunked: bool,
    closes: bool,
    keeps: bool,
}

impl<'a> Head<'a> {
    /// Parses a complete head, which ends with its empty line. `is_bodiless`: the response to
    /// this request has no body, whatever its headers are.
    pub(super) fn read(bytes: &'a [u8], is_bodiless: bool) -> Result<Self, ProtocolError> {
        let (line, fields) = split_line(bytes).unwrap_or((bytes, &[]));
        let (minor, status) = read_status_line(line)?;
        let mut framing = Framing::default();
        let mut rest = fields;
        while let Some((line, after)) = split_line(rest)
            && !line.is_empty()
        {
            framing.read_field(line)?;
            rest = after;
        }
        let has_none = is_bodiless || matches!(status, 100..=199 | 204 | 304);
        let body = if has_none { Body::Length(0) } else { framing.body()? };
        let keeps = if minor == 0 { framing.keeps } else { !framing.closes };
        // An HTTP/1.0 server knows no chunks: one that sends them is not to be trusted further.
        let closes = !keeps || body == Body::UntilClose || (minor == 0 && framing.is_encoded);
        Ok(Self { status, body, closes, bytes, fields })
    }

    /// The head of an answer of another version, with its status and headers written as lines.
    pub fn written(status: u16, bytes: &'a [u8]) -> Self {
        let fields = split_line(bytes).map_or(&[][..], |(_, fields)| fields);
        Self { status, body: Body::UntilClose, closes: false, bytes, fields }
    }

    /// The version, as it begins the status line.
    pub fn version(&self) -> &'static str {
        match self.bytes {
            bytes if bytes.starts_with(b"HTTP/2") => "HTTP/2",
            bytes if bytes.starts_with(b"HTTP/1.0") => "HTTP/1.0",
            _ => "HTTP/1.1",
        }
    }

    /// The headers, in order.
    pub fn fields(&self) -> Fields<'a> {
        Fields(self.fields)
    }

    /// The values of the header `name`, compared case-insensitively.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let named = move |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.fields().filter(named).map(|(_, value)| value)
    }
}

/// The start of every status line.
pub(super) const START: &[u8] = b"HTTP/1.";

pub(super) fn no_status_line() -> ProtocolError {
    ProtocolError::new("the answer does not begin with an HTTP/1 status line")
}

/// `HTTP/1.1 200 OK`: the minor version and the status.
fn read_status_line(line: &[u8]) -> Result<(u8, u16), ProtocolError> {
    let wrong = no_status_line;
    let rest = line.strip_prefix(START).ok_or_else(wrong)?;
    let [minor @ b'0'..=b'9', b' ', code @ ..] = rest else { return Err(wrong()) };
    // Some servers leave the space after the status out where no reason follows.
    let (digits, reason) = code.split_at_checked(3).ok_or_else(wrong)?;
    if !digits.iter().all(u8::is_ascii_digit) || !matches!(reason.first(), None | Some(b' ')) {
        return Err(wrong());
    }
    let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    if status < 100 || !is_field_value(reason) {
        return Err(wrong());
    }
    Ok((minor - b'0', status))
}

impl Framing {
    #[inline]
    fn read_field(&mut self, line: &[u8]) -> Result<(), ProtocolError> {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(0));
        // A folded line begins with a space, and a space before the colon hides a header's name.
        if name.is_empty() || !name.iter().all(|byte| is_token_byte(*byte)) {
            return Err(ProtocolError::new("a line of the answer's head is not a header"));
        }
        let value = value[1..].trim_ascii();
        if !is_field_value(value) {
            return Err(ProtocolError::new("a header of the answer holds a control character"));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            self.read_length(value)?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.is_encoded = true;
            // Only `chunked` as the last coding determines where the body ends.
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            self.is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|byte| *byte == b',') {
                let option = option.trim_ascii();
                self.closes |= option.eq_ignore_ascii_case(b"close");
                self.keeps |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Ok(())
    }

    /// The same length may be repeated, in one header or in several.
    fn read_length(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        for item in value.split(|byte| *byte == b',') {
            let length = read_number(item.trim_ascii(), 10)
                .ok_or_else(|| ProtocolError::new("the answer's content-length is not a number"))?;
            if self.length.is_some_and(|other| other != length) {
                return Err(ProtocolError::new("the answer has two content-lengths that differ"));
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn body(&self) -> Result<Body, ProtocolError> {
        match (self.is_encoded, self.length) {
            (true, Some(_)) => {
                Err(ProtocolError::new("the answer has both transfer-encoding and content-length"))
            }
            (true, None) if self.is_chunked => Ok(Body::Chunked),
            (true, None) | (false, None) => Ok(Body::UntilClose),
            (false, Some(length)) => Ok(Body::Length(length)),
        }
    }
}

/// Parses digits of this base and nothing else; None if the number overflows.
pub(super) fn read_number(digits: &[u8], base: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = char::from(*byte).to_digit(base)?;
        number.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::{Body, Head};

    fn read(text: &str) -> Result<Head<'_>, String> {
        Head::read(text.as_bytes(), false).map_err(|fault| fault.to_string())
    }

    /// How the body ends and whether the server closes.
    fn framing(text: &str) -> (Body, bool) {
        let head = read(text).expect(text);
        (head.body, head.closes)
    }

    #[test]
    fn the_end_of_a_body_follows_from_version_status_and_headers() {
        let ending = |rest: &str| framing(&format!("HTTP/1.1 200 OK\r\n{rest}\r\n"));
        assert_eq!(ending("Content-Length: 5\r\n"), (Body::Length(5), false));
        assert_eq!(ending("content-length: 5, 5\r\nContent-Length:5\r\n").0, Body::Length(5));
        assert_eq!(ending("transfer-encoding: gzip, Chunked\r\n"), (Body::Chunked, false));
        assert_eq!(ending("transfer-encoding: gzip\r\n"), (Body::UntilClose, true));
        assert_eq!(ending("x: y\r\n"), (Body::UntilClose, true));
        assert!(ending("content-length: 0\r\nconnection: x, Close\r\n").1);
        assert_eq!(framing("HTTP/1.1 204\r\n\r\n"), (Body::Length(0), false));
        let unchanged = "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n";
        assert_eq!(framing(unchanged), (Body::Length(0), false));
        let old = "HTTP/1.0 200 OK\r\ncontent-length: 9\r\n";
        assert_eq!(framing(&format!("{old}\r\n")), (Body::Length(9), true));
        let kept = format!("{old}connection: keep-alive\r\n\r\n");
        assert_eq!(framing(&kept), (Body::Length(9), false));
    }

    #[test]
    fn headers_are_found_by_name_in_any_case_and_without_their_padding() {
        let head = read("HTTP/1.1 200 OK\nEtag: \"a\" \t\r\nSet-Cookie: a\nset-cookie:b\n\n");
        let head = head.expect("a head");
        assert_eq!(head.values("ETAG").collect::<Vec<_>>(), [b"\"a\""]);
        assert_eq!(head.values("set-cookie").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(head.values("etags").count(), 0);
        assert_eq!(head.fields().count(), 3);
    }

    #[test]
    fn an_invalid_head_is_refused_with_its_reason() {
        let error = |text: &str| read(text).expect_err(text);
        for line in ["", "HTTP/2 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000", "HTTP/1.1 099 x"] {
            assert!(error(&format!("{line}\r\n\r\n")).contains("status line"), "{line}");
        }
        let field = |line: &str| error(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n"));
        assert!(field("no colon").contains("is not a header"));
        assert!(field(" folded: line").contains("is not a header"));
        assert!(field("name : value").contains("is not a header"));
        assert!(field("name: va\rlue").contains("control character"));
        assert!(field("content-length: 1x").contains("not a number"));
        assert!(field("content-length: 99999999999999999999").contains("not a number"));
        assert!(field("content-length: 1\r\ncontent-length: 2").contains("differ"));
        assert!(field("content-length: 1\r\ntransfer-encoding: chunked").contains("both"));
    }
}
