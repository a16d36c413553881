//! The lengths that the protocols allow.

/// A key has at least one byte and at most this many.
pub const MAX_KEY_BYTES: usize = 250;

/// The longest command line, but for the keys of `get`, whose number is not limited.
pub const MAX_LINE_BYTES: usize = 2048;
