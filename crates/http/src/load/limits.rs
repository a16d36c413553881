//! What requests and their answers may be.

/// The longest body of an answer; a longer one is wrong, and its connection is given up.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// The longest body that a suite sends or expects.
pub const MAX_SAID_BYTES: u64 = 16 << 20;

/// The most bytes that may wait to be sent on one connection beside its requests. What a client of
/// HTTP/2 has to answer (PING, SETTINGS) comes without being asked for: a server that sends it and
/// reads none of the answers would fill the memory.
pub const MAX_UNREAD_BYTES: usize = 4 << 20;

/// The most requests of one suite.
pub const MAX_REQUESTS: usize = 256;
