//! One operation of a workload, as the lab sees it.

use std::borrow::Cow;

/// What the lab tells apart about operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It reads: answers that are not misses count as hits.
    Read,
    /// It changes something, or does anything else.
    Write,
    /// It subscribes: updates come until the stream is cancelled.
    Stream,
}

/// One operation of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name in suites, e.g. `get`.
    pub name: Cow<'static, str>,
    /// What it does.
    pub kind: Kind,
    /// One sentence for `--help` and error messages.
    pub doc: &'static str,
}

impl Operation {
    /// An operation whose name the service's code knows.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), kind, doc }
    }
}
