//! The state of a handshake, of TLS or of an outgoing connection.

/// The state of a handshake.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS waits for the peer"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The connection's bytes may be read and sent.
    Done,
    /// It waits for bytes from the peer.
    Reads,
    /// It waits for room in the socket.
    Writes,
    /// It has failed, or the peer has closed.
    Failed(std::io::ErrorKind),
}
