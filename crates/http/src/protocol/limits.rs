//! The limits of a response.

/// The largest head, status line and empty line included.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The longest line before a chunk, extensions included.
pub const MAX_LINE_BYTES: usize = 4 * 1024;

/// The most interim responses (1xx) before a final one.
pub const MAX_INTERIM: u32 = 64;
