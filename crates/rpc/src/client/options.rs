//! How a call is made, over whatever carries it.

use std::time::Duration;

use crate::protocol::metadata::Metadata;

/// How a call is made.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// Metadata of the request.
    pub metadata: Metadata,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Whether requests are compressed, with gzip.
    pub gzip: bool,
    /// The most bytes of a message of the answer.
    pub max_message_bytes: usize,
}

impl Default for CallOptions {
    fn default() -> Self {
        let max_message_bytes = 64 << 20;
        Self { metadata: Metadata::default(), timeout: None, gzip: false, max_message_bytes }
    }
}
