//! The log of puts: each is handed to a function of the server's owner.

use std::fmt;
use std::sync::Arc;

use super::channel::Identity;
use crate::model::{Record, Time};
use crate::protocol::Bits;

/// One put.
#[derive(Debug)]
pub struct PutEntry<'a> {
    /// The time of the put.
    pub time: Time,
    /// The client.
    pub identity: &'a Identity,
    /// The record.
    pub record: &'a Record,
    /// The fields that were put.
    pub fields: &'a Bits,
    /// Why it was refused, if it was.
    pub refused: Option<&'a str>,
}

/// A function that is called after each put on the serving thread, so it must not block.
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
