//! Metadata of a call: names and values in order. Names that end in `-bin` have bytes, which travel
//! as base64; the others have printable ASCII.

#[cfg(feature = "grpc")]
pub(crate) use self::text::to_base64;
pub(crate) use self::text::{from_base64, is_binary, is_name};
use bytes::Bytes;

/// Names and values, in order; a name may come several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(Vec<(String, Bytes)>);

impl Metadata {
    /// Adds a value. The name is in lower case; bytes of `-bin` names are as they are meant.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<Bytes>) {
        self.0.push((name.into(), value.into()));
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.0.iter().map(|(name, value)| (&name[..], value))
    }

    /// The memory that they take: beside their bytes a row, and what an allocator adds to two
    /// pieces.
    pub(crate) fn kept_bytes(&self) -> usize {
        let row = size_of::<(String, Bytes)>() + 64;
        self.iter().map(|(name, value)| name.len() + value.len() + row).sum()
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.iter().find(|(one, _)| *one == name).map(|(_, value)| value)
    }
}

/// Metadata as gRPC sends them.
mod text {
    use base64::Engine as _;
    use base64::alphabet::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    use bytes::Bytes;

    /// Sent without padding, taken with it and without.
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_encode_padding(false)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );

    /// Whether the values of a name are bytes.
    pub(crate) fn is_binary(name: &str) -> bool {
        name.ends_with("-bin")
    }

    /// Bytes as they are sent.
    #[cfg(feature = "grpc")]
    pub(crate) fn to_base64(bytes: &[u8]) -> String {
        BASE64.encode(bytes)
    }

    /// The values of one header of a `-bin` name, several of which may be joined by commas; `None`
    /// where one is no base64.
    pub(crate) fn from_base64(sent: &[u8]) -> Option<Vec<Bytes>> {
        let parts = sent.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        parts.map(|part| BASE64.decode(part).ok().map(Bytes::from)).collect()
    }

    /// Whether a name may be one of an application's: lower-case letters, digits, `_`, `-` and `.`,
    /// and not gRPC's own.
    pub(crate) fn is_name(name: &str) -> bool {
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
        !name.is_empty() && name.bytes().all(fits) && !name.starts_with("grpc-")
    }
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn padded_and_bare_base64_and_several_values_are_taken() {
        assert_eq!(to_base64(&[0, 1, 255]), "AAH/");
        assert_eq!(to_base64(&[171]), "qw");
        for sent in ["qw", "qw=="] {
            assert_eq!(from_base64(sent.as_bytes()), Some(vec![Bytes::from_static(&[171])]));
        }
        let both = from_base64(b"AAH/, qw==").expect("two");
        assert_eq!(both, [&[0, 1, 255][..], &[171]]);
        assert_eq!(from_base64(b"not base64!"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            let back = from_base64(to_base64(&bytes).as_bytes());
            prop_assert_eq!(back, Some(vec![Bytes::from(bytes)]));
        }
    }
}
