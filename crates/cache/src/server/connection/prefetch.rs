//! Prefetching the items of a batch before its commands are carried out.

use super::state::{CacheConnection, State};
use crate::model::Prefetch;
use crate::protocol::text::{self, Key};

/// How a line of several keys begins.
const GET: &[u8] = b"get ";

impl CacheConnection {
    /// Prefetches the items of the reads at the start of `bytes`. Returns the length of these
    /// reads: nothing is prefetched again before they are answered.
    pub(super) fn look_ahead(&self, bytes: &[u8]) -> usize {
        if self.state != State::Line {
            return 0;
        }
        let store = &self.service.store;
        let mut keys = Prefetch::default();
        let mut at = 0;
        while !keys.is_full() {
            let rest = &bytes[at..];
            if let Some(read) = text::plain_read(rest) {
                // The store prefetches these itself.
                if store.finds_batches() {
                    break;
                }
                store.add_prefetch(read.key, &mut keys);
                at += read.line_bytes;
            } else if rest.starts_with(GET) {
                at += GET.len();
                while let Key::One(key, used) = text::next_key(&bytes[at..]) {
                    store.add_prefetch(key, &mut keys);
                    at += used;
                }
                at += bytes[at..].iter().take_while(|byte| **byte < b' ').count();
            } else {
                break;
            }
        }
        if keys.len() > 1 {
            store.prefetch(&keys);
        }
        at
    }
}
