//! Keys: how many there are, and how they are written.

/// The keys of a workload: key `i` is written as `k` and zero-padded decimal digits.
#[derive(Clone, Debug)]
pub struct Keys {
    count: u64,
    bytes: usize,
}

impl Keys {
    /// `count` keys of `bytes` bytes each; `None` when so many do not fit into that length.
    pub fn new(count: u64, bytes: usize) -> Option<Self> {
        let digits = bytes.checked_sub(1)?;
        let fits = digits >= 20 || 10_u64.checked_pow(digits as u32).is_none_or(|n| count <= n);
        (count > 0 && fits).then_some(Self { count, bytes })
    }

    /// No keys at all, for a workload that draws none.
    pub fn none() -> Self {
        Self { count: 0, bytes: 0 }
    }

    /// How many more keys could be written in this length, beyond those there are.
    pub(super) fn spare(&self) -> u64 {
        let digits = self.bytes.saturating_sub(1) as u32;
        10_u64.checked_pow(digits).unwrap_or(u64::MAX).saturating_sub(self.count)
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How long every key is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the text of `key`.
    #[inline]
    pub fn put(&self, mut key: u64, into: &mut Vec<u8>) {
        if self.bytes == 8 {
            // The most frequent length: as many bytes as are copied without a call.
            let mut text = eight_digits((key % 10_000_000) as u32);
            text[0] = b'k';
            return into.extend_from_slice(&text);
        }
        let start = into.len();
        into.resize(start + self.bytes, b'0');
        let text = &mut into[start..];
        text[0] = b'k';
        let mut left = &mut text[1..];
        while key > 0 && left.len() >= 8 {
            let (rest, last) = left.split_at_mut(left.len() - 8);
            last.copy_from_slice(&eight_digits((key % 100_000_000) as u32));
            key /= 100_000_000;
            left = rest;
        }
        if key > 0 {
            let digits = eight_digits((key % 100_000_000) as u32);
            let length = left.len();
            left.copy_from_slice(&digits[digits.len() - length..]);
        }
    }
}

impl Keys {
    /// Whether this is the text of `key`.
    #[inline]
    pub fn is(&self, mut key: u64, text: &[u8]) -> bool {
        let Some((b'k', mut left)) = text.split_first().filter(|_| text.len() == self.bytes) else {
            return false;
        };
        while let Some((rest, last)) = left.split_last_chunk::<8>() {
            if *last != eight_digits((key % 100_000_000) as u32) {
                return false;
            }
            key /= 100_000_000;
            left = rest;
        }
        let digits = eight_digits((key % 100_000_000) as u32);
        // Few bytes: a loop is shorter than a call that compares.
        digits[digits.len() - left.len()..].iter().zip(left).all(|(a, b)| a == b)
    }
}

/// The decimal digits of a number below 10^8, as text. All of them at once, each in its byte of a
/// word: halves of four digits, of two, of one.
#[inline]
fn eight_digits(number: u32) -> [u8; 8] {
    let (high, low) = (u64::from(number / 10_000), u64::from(number % 10_000));
    let fours = high | low << 32;
    // n · 10,486 / 2^20 is n / 100 for every n below 10,000; n · 103 / 2^10 is n / 10 below 100.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - tens * 10) << 8;
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_those_of_the_number() {
        let numbers = (0..10_000).chain((0..100_000_000).step_by(997)).chain([99_999_999]);
        for number in numbers {
            assert_eq!(eight_digits(number), *format!("{number:08}").as_bytes(), "{number}");
        }
    }

    #[test]
    fn keys_of_any_length_hold_their_number() {
        for bytes in 2..30 {
            let most = 10_u64.checked_pow(bytes as u32 - 1).unwrap_or(u64::MAX);
            let keys = Keys::new(1, bytes).unwrap();
            for key in [0, 7, 10, 12_345_678, 123_456_789, 9_876_543_210_123, u64::MAX] {
                if key >= most && most != u64::MAX {
                    continue;
                }
                let mut text = b"x".to_vec();
                keys.put(key, &mut text);
                let expected = format!("xk{key:0width$}", width = bytes - 1);
                if expected.len() == bytes + 1 {
                    assert_eq!(text, expected.as_bytes());
                    assert!(keys.is(key, &text[1..]) && !keys.is(key ^ 1, &text[1..]));
                    assert!(!keys.is(key, &text) && !keys.is(key, &text[2..]));
                }
            }
        }
    }

    #[test]
    fn keys_are_written_with_padding_and_all_differ() {
        let keys = Keys::new(1000, 8).unwrap();
        let mut text = Vec::new();
        keys.put(0, &mut text);
        keys.put(907, &mut text);
        assert_eq!(text, b"k0000000k0000907");
        assert!(Keys::new(1001, 4).is_none());
        assert!(Keys::new(1000, 4).is_some());
        assert!(Keys::new(1, 0).is_none());
        assert!(Keys::new(u64::MAX, 250).is_some());
    }
}
