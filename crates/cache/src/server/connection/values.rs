//! Values in answers: small ones are copied, large ones shared with other readers.

use wire::Output;

use super::state::CacheConnection;
use crate::server::large_values::LARGE_BYTES;

impl CacheConnection {
    /// Whether [`CacheConnection::put_value`] copies a value of this length.
    #[inline]
    pub(super) fn copies(&self, value_bytes: usize) -> bool {
        // Datagrams are composed of plain bytes, and a corrupted value is one reader's own.
        value_bytes < LARGE_BYTES || self.waker.is_none() || self.service.corrupts()
    }

    /// Appends a value, which is that of `key`.
    #[inline]
    pub(super) fn put_value(&self, key: &[u8], value: &[u8], out: &mut Output) {
        if self.copies(value.len()) {
            let at = out.tail().len();
            out.put(value);
            self.service.corrupt(&mut out.tail()[at..], value.len());
        } else {
            self.share_value(key, value, out);
        }
    }

    #[cold]
    pub(super) fn share_value(&self, key: &[u8], value: &[u8], out: &mut Output) {
        match self.service.large_values.share(key, value) {
            Some(shared) => out.share(shared),
            None => out.put(value),
        }
    }
}
