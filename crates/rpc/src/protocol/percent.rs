//! The text of a status: UTF-8 in which what is not printable ASCII is percent-encoded.

/// As it is sent. Bytes from space to `~` stay as they are, but for `%`.
#[cfg(any(feature = "grpc", test))]
pub(crate) fn encode(text: &str) -> String {
    use std::fmt::Write as _;

    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(byte.into()),
            // Writing to a string can't fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// As it was meant. What is no encoding stays as it is, and what is no UTF-8 is replaced: a status
/// is never lost for its text.
pub(crate) fn decode(sent: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(sent.len());
    let mut rest = sent;
    while let [first, after @ ..] = rest {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match (*first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_sent_as_other_servers_send_it() {
        assert_eq!(encode("größe % \n x"), "gr%C3%B6%C3%9Fe %25 %0A x");
        assert_eq!(decode(b"100% %zz %4"), "100% %zz %4");
        assert_eq!(decode(b"%ff"), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in ".*") {
            let sent = encode(&text);
            prop_assert!(sent.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(decode(sent.as_bytes()), text);
        }
    }
}
