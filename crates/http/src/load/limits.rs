//! What requests and their answers may be.

/// The longest body of an answer; a longer one is wrong, and its connection is given up.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// The longest body that a suite sends or expects.
pub const MAX_SAID_BYTES: u64 = 16 << 20;

/// The most requests of one suite.
pub const MAX_REQUESTS: usize = 256;
