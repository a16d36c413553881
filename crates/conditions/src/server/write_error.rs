//! Why a change is not made.

use journal::MAX_RECORD_BYTES;

use crate::model::Refusal;

/// The most changes that wait for their turn.
pub(super) const WAITING: usize = 1_024;

/// Why a change is not made.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The model refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is too large for the journal.
    #[error("a change of {0} bytes: {MAX_RECORD_BYTES} bytes are the most")]
    TooLarge(usize),
    /// Too many wait.
    #[error("{WAITING} changes wait already")]
    Busy,
    /// Nothing is written any more; it was not made.
    #[error("nothing can be written: {0}")]
    Disk(String),
    /// Too much is not sealed.
    #[error("too many changes are in memory, and they can't be put into segments: {0}")]
    Unsealed(String),
    /// What several servers share has no room for it, or no way to it.
    #[error("nothing can be changed here: {0}")]
    Shared(String),
    /// It may be durable already, or become so.
    #[error("it is unknown whether the change was, or will be, made: {0}")]
    Unknown(String),
}
