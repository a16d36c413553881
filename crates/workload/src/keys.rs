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

    /// No keys at all, for a workload that asks for none.
    pub(crate) fn none() -> Self {
        Self { count: 0, bytes: 0 }
    }

    /// How many more keys could be written in this length, beyond those there are.
    pub(crate) fn spare(&self) -> u64 {
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
        let start = into.len();
        into.resize(start + self.bytes, b'0');
        let text = &mut into[start..];
        text[0] = b'k';
        for digit in text[1..].iter_mut().rev() {
            if key == 0 {
                break;
            }
            *digit = b'0' + (key % 10) as u8;
            key /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
