//! Bytes of a wrong answer: printable ones as they are, the others escaped, and a mark under
//! the first that differs.

/// Number of columns of bytes that are shown.
const SHOWN: usize = 60;

/// Number of them before the first difference, for orientation.
const BEFORE: usize = 16;

/// The expected and the received bytes, as lines without indentation.
pub(super) fn difference(expected: &[u8], received: &[u8]) -> Vec<String> {
    let common = expected.iter().zip(received).take_while(|(a, b)| a == b).count();
    let differ = common < expected.len() || common < received.len();
    let before = if differ { fit(received[..common].iter().rev(), BEFORE) } else { common };
    let start = common - before;
    let ahead = if start > 0 { "…" } else { "" };
    let row = |name: &str, bytes: &[u8]| {
        let size = format!("{} B", bytes.len());
        let shown = bytes.get(start..).unwrap_or_default();
        let count = fit(shown.iter(), SHOWN);
        let behind = if shown.len() > count { "…" } else { "" };
        let shown: String = shown[..count].iter().map(|b| escape(*b)).collect();
        format!("{name} {size:>8}  {ahead}{shown}{behind}")
    };
    let mut lines = vec![row("expected", expected), row("received", received)];
    // What has neither its beginning nor its length in common is something else, such as the text
    // of a refusal.
    let is_comparable = common > 0 || expected.len() == received.len();
    if differ && is_comparable {
        let before: String = received[start..common].iter().map(|b| escape(*b)).collect();
        let column = "received 12345678  ".len() + ahead.chars().count() + before.chars().count();
        let (wanted, got) = (byte_at(expected, common), byte_at(received, common));
        lines.push(format!(
            "{}^ byte {common}: {wanted} expected, {got} received",
            " ".repeat(column)
        ));
    } else if !differ {
        lines.push("the bytes shown are the same".to_owned());
    }
    lines
}

/// The number of the first of these bytes that fit in this number of columns.
fn fit<'a>(bytes: impl Iterator<Item = &'a u8>, columns: usize) -> usize {
    let ends = bytes.scan(0, |end, byte| {
        *end += escape(*byte).len();
        Some(*end)
    });
    ends.take_while(|end| *end <= columns).count()
}

fn byte_at(bytes: &[u8], index: usize) -> String {
    bytes.get(index).map_or_else(|| "the end".to_owned(), |byte| format!("0x{byte:02x}"))
}

fn escape(byte: u8) -> String {
    match byte {
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        b'\r' => "\\r".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\t' => "\\t".to_owned(),
        _ => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_difference_is_pointed_at_behind_escapes() {
        let lines = difference(b"a\r\n\x00bcd", b"a\r\n\x00bXd");
        assert_eq!(lines[0], r"expected      7 B  a\r\n\x00bcd");
        assert_eq!(lines[1], r"received      7 B  a\r\n\x00bXd");
        assert_eq!(
            lines[2],
            r"                             ^ byte 5: 0x63 expected, 0x58 received"
        );
    }

    #[test]
    fn a_late_difference_and_a_short_answer_are_found() {
        let long = [b'v'; 480];
        let lines = difference(&long, &long[..200]);
        assert_eq!(lines[1], format!("received    200 B  …{}", "v".repeat(16)));
        assert!(lines[0].ends_with('…'));
        assert!(lines[2].ends_with("^ byte 200: 0x76 expected, the end received"), "{}", lines[2]);
        assert_eq!(difference(b"", b"").len(), 3);
        assert_eq!(difference(b"", b"too busy").len(), 2, "a refusal differs nowhere");
        assert_eq!(difference(b"yes", b"nay").len(), 3);
    }
}
