//! What the simulated clients ask, and what they are answered, in any of the protocols.

/// A key: one of the client's own, or one that all clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Bytes.
    Own { client: u64, number: u64 },
    /// A number, for arithmetic.
    Number { client: u64, number: u64 },
    /// Read and written by all.
    Shared { number: u64 },
}

impl Key {
    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Own { client, number } => format!("own:{client}:{number}").into_bytes(),
            Self::Number { client, number } => format!("number:{client}:{number}").into_bytes(),
            Self::Shared { number } => format!("shared:{number}").into_bytes(),
        }
    }
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    /// Only if the item has this unique number.
    Cas(u64),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Get {
        keys: Vec<Key>,
    },
    /// Misses are not answered; a command behind it tells that there was none.
    QuietGet {
        key: Key,
    },
    Store {
        verb: Verb,
        key: Key,
        value: Vec<u8>,
        flags: u32,
        exptime: u32,
        quiet: bool,
    },
    Delete {
        key: Key,
        quiet: bool,
    },
    Increment {
        key: Key,
        by: u64,
    },
    Touch {
        key: Key,
        exptime: u32,
    },
    /// Get and touch.
    GetTouch {
        key: Key,
        exptime: u32,
    },
    /// No command at all.
    Nonsense,
}

impl Op {
    /// Whether there is no answer, unless something is wrong.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self, Self::Store { quiet: true, .. } | Self::Delete { quiet: true, .. })
    }
}

/// A value as it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) flags: u32,
    pub(super) cas: Option<u64>,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The values that were found.
    Values(Vec<Got>),
    Stored,
    NotStored,
    /// The item has another unique number.
    Exists,
    NotFound,
    Deleted,
    Touched,
    Number(u64),
    /// The value is too large, or there is no memory for it.
    NoRoom,
    /// The request is no command.
    Refused,
}

/// A whole answer with its length, or none while a part of it is missing.
pub(super) type Parsed = Result<Option<(usize, Answer)>, String>;
