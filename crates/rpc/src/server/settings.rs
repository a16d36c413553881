//! The limits of a server.

use std::time::Duration;

use service::Tokens;

use crate::waiting::Wait;
use crate::writes::Writes;

/// How a server serves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Threads that serve.
    pub threads: usize,
    /// The most bytes of a message that is received, decompressed.
    pub max_message_bytes: usize,
    /// Calls of a connection at once.
    pub max_streams: u32,
    /// The most bytes of a call's metadata: names and values, and 32 for each.
    pub max_metadata_bytes: u32,
    /// The least time between two pings of a client to which nothing is sent meanwhile.
    pub keepalive_min: Duration,
    /// Connections at once; further ones are closed.
    pub max_connections: usize,
    /// The most bytes of messages that wait to be whole or to be sent, or that running functions
    /// have, and of metadata of calls that wait, of all connections.
    pub max_memory_bytes: usize,
    /// Tokens, one of which a call has to carry.
    pub tokens: Option<Tokens>,
    /// What connections are encrypted with.
    pub tls: Option<wire::Tls>,
    /// How long a handshake may take, of TLS and of HTTP/2.
    pub handshake_timeout: Duration,
    /// How long a client may take nothing of what waits for it.
    pub take_timeout: Duration,
    /// How a connection over shared memory waits for its client.
    pub wait: Wait,
    /// How answers of own frames are divided into writes.
    pub writes: Writes,
    /// Leaves Nagle's algorithm on.
    pub nagle: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threads: 1,
            max_message_bytes: 4 << 20,
            max_streams: 256,
            max_metadata_bytes: 16 << 10,
            keepalive_min: Duration::from_secs(300),
            max_connections: 1_024,
            max_memory_bytes: 256 << 20,
            tokens: None,
            tls: None,
            handshake_timeout: Duration::from_secs(10),
            take_timeout: Duration::from_secs(30),
            wait: Wait::default(),
            writes: Writes::default(),
            nagle: false,
        }
    }
}
