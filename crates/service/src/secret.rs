//! Files of accounts, certificates, keys and tokens, which SIGHUP reads again.

use std::path::Path;

use base::FileError;

/// They are short: the most that is read of one.
pub const MAX_SECRET_BYTES: u64 = 1 << 20;

/// Reads such a file. It has to be a regular one: a pipe has nothing to be read again, and could
/// keep whoever reads it waiting for ever.
///
/// # Errors
/// When it can't be read, is no regular file, or holds more than [`MAX_SECRET_BYTES`].
pub fn read_secret(path: &Path) -> Result<Vec<u8>, FileError> {
    base::read_regular(path, MAX_SECRET_BYTES)
}
