//! Who has put what: handed to whoever keeps such a log.

use std::fmt;
use std::sync::Arc;

use super::connection::Who;
use crate::model::{Record, Time};
use crate::protocol::Bits;

/// One put.
#[derive(Debug)]
pub struct PutEntry<'a> {
    /// When.
    pub time: Time,
    /// By whom.
    pub who: &'a Who,
    /// Into what.
    pub record: &'a Record,
    /// Which fields.
    pub fields: &'a Bits,
    /// Why it was refused, if it was.
    pub refused: Option<&'a str>,
}

/// What is called after each put, on the thread that serves: it has to be quick.
#[derive(Clone)]
pub struct PutLog(Arc<dyn Fn(&PutEntry<'_>) + Send + Sync>);

impl PutLog {
    /// Calls `note`.
    pub fn new(note: impl Fn(&PutEntry<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(note))
    }

    pub(super) fn note(&self, entry: &PutEntry<'_>) {
        (self.0)(entry);
    }
}

impl fmt::Debug for PutLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PutLog")
    }
}
