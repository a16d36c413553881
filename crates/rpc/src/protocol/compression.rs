//! Compression of single messages, by the choice of the client.

use std::io::{Read as _, Write as _};

use bytes::Bytes;

use super::status::{Code, Status};

/// How messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Zstd,
}

/// What a refusal names (compression.md).
pub(crate) const ACCEPTED: &str = "identity, gzip, zstd";

/// Faster than the usual levels: a call waits for it.
const GZIP_LEVEL: u32 = 3;
const ZSTD_LEVEL: i32 = 1;

impl Encoding {
    /// By name; `None` within is no compression.
    pub(crate) fn of(name: &[u8]) -> Option<Option<Self>> {
        match name {
            b"identity" | b"" => Some(None),
            b"gzip" => Some(Some(Self::Gzip)),
            b"zstd" => Some(Some(Self::Zstd)),
            _ => None,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Those of a list that are known.
    pub(crate) fn all_of(list: &[u8]) -> impl Iterator<Item = Self> {
        list.split(|byte| *byte == b',').filter_map(|name| Self::of(name.trim_ascii()).flatten())
    }

    /// The message, compressed.
    pub(crate) fn compress(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                // Into memory, which takes all.
                let _ = encoder.write_all(message);
                encoder.finish().unwrap_or_default()
            }
            Self::Zstd => zstd::bulk::compress(message, ZSTD_LEVEL).unwrap_or_default(),
        }
    }

    /// The message as it was before, of at most this many bytes.
    pub(crate) fn decompress(self, bytes: &[u8], most_bytes: usize) -> Result<Bytes, Status> {
        let mut message = Vec::new();
        // One byte more shows that there would be more.
        let limit = most_bytes as u64 + 1;
        let read = match self {
            Self::Gzip => {
                flate2::read::MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut message)
            }
            Self::Zstd => zstd::stream::read::Decoder::with_buffer(bytes)
                .and_then(|decoder| decoder.take(limit).read_to_end(&mut message)),
        };
        if let Err(why) = read {
            let words = format!("a message can't be decompressed with {}: {why}", self.name());
            return Err(Status::new(Code::Internal, words));
        }
        if message.len() > most_bytes {
            return Err(too_large("more, decompressed,", most_bytes));
        }
        Ok(message.into())
    }
}

/// A message is over the limit.
pub(crate) fn too_large(bytes: impl std::fmt::Display, most_bytes: usize) -> Status {
    let words = format!(
        "SERVER: Received message larger than max ({bytes} vs. {most_bytes}): send less, or start \
         the server with a larger --max-message"
    );
    Status::new(Code::ResourceExhausted, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limit_is_that_of_the_message_and_not_of_its_bytes_on_the_wire() {
        for encoding in [Encoding::Gzip, Encoding::Zstd] {
            let zeros = encoding.compress(&[0; 100_000]);
            assert!(zeros.len() < 1_000);
            assert_eq!(encoding.decompress(&zeros, 100_000).expect("fits").len(), 100_000);
            let refused = encoding.decompress(&zeros, 99_999).expect_err("one too many");
            assert_eq!(refused.code, Code::ResourceExhausted);
            let refused = encoding.decompress(b"no such thing", 99).expect_err("none");
            assert_eq!(refused.code, Code::Internal);
        }
    }

    proptest! {
        #[test]
        fn any_message_comes_back(message: Vec<u8>) {
            for encoding in [Encoding::Gzip, Encoding::Zstd] {
                let sent = encoding.compress(&message);
                let back = encoding.decompress(&sent, message.len());
                prop_assert_eq!(back.expect("the same"), message.clone());
            }
        }

        #[test]
        fn any_bytes_are_a_message_or_refused(bytes: Vec<u8>) {
            for encoding in [Encoding::Gzip, Encoding::Zstd] {
                let _ = encoding.decompress(&bytes, 1_000);
            }
        }
    }
}
