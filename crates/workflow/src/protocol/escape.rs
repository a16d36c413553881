//! Texts as JSON has them.

use memchr::memchr2;

/// Appends a text in quotation marks, escaped as rapidjson does.
pub(super) fn escape(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape_piece(out, text);
    out.push(b'"');
}

/// The same without quotation marks.
pub(super) fn escape_piece(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 16 + 2);
    let mut rest = text.as_bytes();
    // Of all that is escaped, lines' ends and quotation marks alone are frequent.
    let is_plain = !has_rare(rest);
    loop {
        let end = memchr2(b'\n', b'"', rest).unwrap_or(rest.len());
        if is_plain {
            out.extend_from_slice(&rest[..end]);
        } else {
            piece(out, &rest[..end]);
        }
        match rest.get(end) {
            None => break,
            Some(b'\n') => out.extend_from_slice(b"\\n"),
            Some(_) => out.extend_from_slice(b"\\\""),
        }
        rest = &rest[end + 1..];
    }
}

/// Whether there are bytes that are escaped, beside line ends and quotation marks. It looks at each
/// byte, which takes less time than to stop at the first: several are looked at at once.
fn has_rare(bytes: &[u8]) -> bool {
    let is_rare = |byte: u8| (byte < b' ') & (byte != b'\n') | (byte == b'\\');
    bytes.iter().fold(false, |has, byte| has | is_rare(*byte))
}

/// Appends bytes without line ends and quotation marks.
fn piece(out: &mut Vec<u8>, bytes: &[u8]) {
    if !has_rare(bytes) {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            12 => out.extend_from_slice(b"\\f"),
            0..b' ' => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn texts_are_escaped_so_that_any_reader_of_json_reads_them() {
        for text in ["", "plain", "a\nb\"c\\d\u{8}\t\u{1}é😀", "\n\n", "\"\"", "end\\"] {
            let mut out = Vec::new();
            escape(&mut out, text);
            let read = super::super::json::Reader::new(&out)
                .and_then(|mut one| one.string().map(std::borrow::Cow::into_owned));
            assert_eq!(read.as_deref(), Ok(text), "{}", String::from_utf8_lossy(&out));
        }
    }
}
