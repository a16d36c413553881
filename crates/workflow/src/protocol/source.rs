//! A long text that is made while it is written.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::escape::escape_piece;

type Make = dyn Fn(&mut dyn FnMut(&str)) + Send + Sync;

/// A text as JSON has it, once it is made: of all sources of the same text, so that all who ask for
/// it at a time share it.
pub type Escaped = Arc<Mutex<Option<Bytes>>>;

/// A text that is passed on piece by piece, so that 60 MB of it are never in memory beside the
/// answer that they become.
#[derive(Clone)]
pub struct Source {
    make: Arc<Make>,
    escaped: Escaped,
}

impl Source {
    /// The text that `make` passes on, which gives the same each time.
    #[must_use]
    pub fn new(make: impl Fn(&mut dyn FnMut(&str)) + Send + Sync + 'static) -> Self {
        Self::shared(make, Escaped::default())
    }

    /// The same of a text that others may have made already: `escaped` is theirs, too.
    #[must_use]
    pub fn shared(
        make: impl Fn(&mut dyn FnMut(&str)) + Send + Sync + 'static,
        escaped: Escaped,
    ) -> Self {
        Self { make: Arc::new(make), escaped }
    }

    /// The text as JSON has it, without quotation marks. Where no one has made it yet it is made,
    /// and others who ask for it wait; `keep` has it counted, or refuses it for want of memory.
    pub fn escaped(&self, keep: impl FnOnce(Vec<u8>) -> Option<Bytes>) -> Option<Bytes> {
        // Who panics leaves none.
        let mut escaped = self.escaped.lock().unwrap_or_else(PoisonError::into_inner);
        if escaped.is_none() {
            let mut text = Vec::new();
            self.each(&mut |piece| escape_piece(&mut text, piece));
            *escaped = keep(text);
        }
        escaped.clone()
    }

    /// Passes the pieces to `take`.
    pub(super) fn each(&self, take: &mut dyn FnMut(&str)) {
        (self.make)(take);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.each(&mut |piece| text.push_str(piece));
        text
    }
}

impl From<String> for Source {
    fn from(text: String) -> Self {
        Self::new(move |take| take(&text))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
