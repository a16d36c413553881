//! What requests and their answers may be.

/// An answer's body may be this long; a longer one is wrong, and its connection is given up.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// A body that a suite says or expects may be this long.
pub const MAX_SAID_BYTES: u64 = 16 << 20;

/// At most this many requests in one suite.
pub const MAX_REQUESTS: usize = 256;
