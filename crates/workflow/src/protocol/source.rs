//! A long text that is made while it is written.

use std::fmt;
use std::sync::Arc;

use super::escape::escape_piece;

type Make = dyn Fn(&mut dyn FnMut(&str)) + Send + Sync;

/// A text that is passed on piece by piece, so that 60 MB of it are never in memory beside the
/// answer that they become.
#[derive(Clone)]
pub struct Source(Arc<Make>);

impl Source {
    /// The text that `make` passes on, which gives the same each time.
    #[must_use]
    pub fn new(make: impl Fn(&mut dyn FnMut(&str)) + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Appends the text as JSON has it, without quotation marks.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.each(&mut |piece| escape_piece(out, piece));
    }

    /// Passes the pieces to `take`.
    pub(super) fn each(&self, take: &mut dyn FnMut(&str)) {
        (self.0)(take);
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
