//! memcached's protocol: bytes to types and back. It opens no socket and knows no clock.
//!
//! Server, client and load share this and nothing else.

pub mod text;

/// A key has at least one byte and at most this many.
pub const MOST_KEY_BYTES: usize = 250;

/// A command line is at most this long, but for the keys of `get`, which may go on for ever.
pub const MOST_LINE_BYTES: usize = 2048;

/// An answer that says what was wrong with a request. The connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such command, or not with so many words.
    #[error("ERROR")]
    Unknown,
    /// A word of the line is not what it should be.
    #[error("CLIENT_ERROR bad command line format")]
    BadLine,
    /// `delete` with words that it doesn't have.
    #[error("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]")]
    BadDelete,
    /// The line is longer than [`MOST_LINE_BYTES`].
    #[error("CLIENT_ERROR line too long")]
    LongLine,
    /// A data block does not end where its line said.
    #[error("CLIENT_ERROR bad data chunk")]
    BadChunk,
    /// A meta command's flag is given twice.
    #[error("CLIENT_ERROR duplicate flag")]
    DuplicateFlag,
    /// A meta command has no such flag.
    #[error("CLIENT_ERROR invalid flag")]
    InvalidFlag,
    /// A meta command has more flags than anyone needs.
    #[error("CLIENT_ERROR options flags are too long")]
    ManyFlags,
    /// A meta command's opaque word is too long.
    #[error("CLIENT_ERROR opaque token too long")]
    LongOpaque,
    /// The value is too large to be stored.
    #[error("SERVER_ERROR object too large for cache")]
    TooLarge,
}

impl Refusal {
    /// The line that says it, with its end.
    pub fn line(self) -> &'static [u8] {
        match self {
            Self::Unknown => b"ERROR\r\n",
            Self::BadLine => b"CLIENT_ERROR bad command line format\r\n",
            Self::BadDelete => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Self::LongLine => b"CLIENT_ERROR line too long\r\n",
            Self::BadChunk => b"CLIENT_ERROR bad data chunk\r\n",
            Self::DuplicateFlag => b"CLIENT_ERROR duplicate flag\r\n",
            Self::InvalidFlag => b"CLIENT_ERROR invalid flag\r\n",
            Self::ManyFlags => b"CLIENT_ERROR options flags are too long\r\n",
            Self::LongOpaque => b"CLIENT_ERROR opaque token too long\r\n",
            Self::TooLarge => b"SERVER_ERROR object too large for cache\r\n",
        }
    }
}
