//! A service's own counters: how a service is asked for them, and what its answer says.
//!
//! Sans I/O: the lab owns the connection, the clock and the time-out. It asks once a second and
//! around slices, from a thread that carries no load. Control plane.

use wire::ProtocolError;

/// An answer may be this long; a longer one is unseen.
pub const MAX_COUNTERS_BYTES: usize = 4 << 20;

/// At most so many counters of one service are kept; the rest of an answer is passed over.
pub const MAX_COUNTERS: usize = 512;

/// What a counter's value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// It only grows: its growth is what happened meanwhile.
    Total,
    /// It stands at a value that may fall again.
    Level,
}

/// One counter as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name, as the service writes it.
    pub name: String,
    /// What its value means.
    pub kind: CounterKind,
    /// Its value.
    pub value: f64,
}

impl Counter {
    /// A counter that only grows.
    pub fn total(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), kind: CounterKind::Total, value }
    }

    /// A counter that may fall.
    pub fn level(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), kind: CounterKind::Level, value }
    }
}

/// How a service is asked for its counters over a connection of their own, which is kept.
pub trait Counters: Send + Sync + std::fmt::Debug {
    /// Writes the question.
    fn ask(&self, into: &mut Vec<u8>);

    /// Reads the answer, of which `bytes` are what has come so far, and `ended` says that the
    /// service has closed the connection; `None` when more has to come.
    ///
    /// # Errors
    /// When this is no answer; the connection is then made anew for the next question.
    fn read(&self, bytes: &[u8], ended: bool) -> Result<Option<Vec<Counter>>, ProtocolError>;
}

impl<T: Counters + ?Sized> Counters for &'static T {
    fn ask(&self, into: &mut Vec<u8>) {
        (**self).ask(into);
    }

    fn read(&self, bytes: &[u8], ended: bool) -> Result<Option<Vec<Counter>>, ProtocolError> {
        (**self).read(bytes, ended)
    }
}
