//! Base64 with padding, as meta commands write keys that are not text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends `bytes` in base64.
pub fn encode(bytes: &[u8], into: &mut Vec<u8>) {
    for part in bytes.chunks(3) {
        let at = |index: usize| u32::from(part.get(index).copied().unwrap_or_default());
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            let six = (word >> (18 - 6 * index)) as usize & 63;
            into.push(if index <= part.len() { ALPHABET[six] } else { b'=' });
        }
    }
}

/// Decodes base64 into the start of `into`. Returns the length; `None` when it is empty,
/// no base64, or longer than `into`.
pub fn decode(text: &[u8], into: &mut [u8]) -> Option<usize> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if text.is_empty() || !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut count = 0;
    let mut word = 0_u32;
    for (index, byte) in text[..text.len() - padding].iter().enumerate() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(six);
        if !index.is_multiple_of(4) {
            // The number of bits left once this byte is removed.
            let left = 6 - 2 * (index % 4);
            *into.get_mut(count)? = (word >> left) as u8;
            count += 1;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_standard_are_met() {
        // RFC 4648, section 10.
        for (plain, coded) in [
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let (mut text, mut bytes) = (Vec::new(), [0; 8]);
            encode(plain.as_bytes(), &mut text);
            assert_eq!(text, coded.as_bytes());
            let count = decode(coded.as_bytes(), &mut bytes).expect(coded);
            assert_eq!(&bytes[..count], plain.as_bytes());
        }
        for wrong in ["", "Zg", "Zg=", "Z===", "Zm 9", "====", "Zg==Zg=="] {
            assert_eq!(decode(wrong.as_bytes(), &mut [0; 8]), None, "{wrong}");
        }
        assert_eq!(decode(b"Zm9vYmFy", &mut [0; 5]), None, "no room");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in prop::collection::vec(any::<u8>(), 1..250)) {
            let (mut text, mut back) = (Vec::new(), [0; 250]);
            encode(&bytes, &mut text);
            let count = decode(&text, &mut back).expect("base64");
            prop_assert_eq!(&back[..count], &bytes[..]);
        }

        #[test]
        fn no_text_does_harm(text in prop::collection::vec(any::<u8>(), 0..400)) {
            decode(&text, &mut [0; 250]);
        }
    }
}
