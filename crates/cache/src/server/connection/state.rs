//! The state of one connection: what its next bytes are, and what is unfinished.

use std::sync::Arc;

use wire::{ProtocolError, Waker};

use super::block::Block;
use crate::model::{Cursor, Seconds};
use crate::protocol::text::{Listing, RequestForm};
use crate::server::clients::ClientEntry;
use crate::server::service::Service;
use crate::server::watch::Watching;

/// What the next bytes are part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The first byte of the connection, which selects the protocol.
    Start,
    /// A command line.
    Line,
    /// The keys of a `get`.
    Keys(Keys),
    /// The rest of a refused line.
    RestOfLine,
    /// A request of the binary protocol.
    Packet,
    /// A data block, which is read into `block`.
    Block,
    /// This many bytes of a refused data block.
    Refused(usize),
    /// Nothing yet: a list is being sent.
    List(Listing, Cursor),
    /// Nothing any more: the connection is a stream of log lines.
    Watch,
}

impl State {
    /// Its name in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Line => "line",
            Self::Keys(_) => "keys",
            Self::RestOfLine => "rest of line",
            Self::Packet => "packet",
            Self::Block => "block",
            Self::Refused(_) => "refused block",
            Self::List(..) => "list",
            Self::Watch => "watch",
        }
    }
}

/// An unfinished `get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Whether unique numbers are requested.
    pub(super) with_cas: bool,
    /// The items' new expiry.
    pub(super) expires_s: Option<Seconds>,
    /// The form of the keys so far: an HTTP request line is refused.
    pub(super) form: RequestForm,
}

/// The outcome of a step, with the number of bytes that it has consumed.
pub(super) enum Step {
    /// A request or a part of one.
    Consumed(usize),
    /// The rest has to arrive first.
    NeedMore(usize),
    /// A request that has moved the clock.
    ClockMoved(usize),
    /// The client has asked to close.
    Quit,
    /// The client has broken the protocol.
    Broken(ProtocolError),
}

impl Step {
    /// The number of bytes that it has consumed, as far as it matters to the log.
    pub(super) fn used(&self) -> usize {
        match self {
            Self::Consumed(count) | Self::NeedMore(count) | Self::ClockMoved(count) => *count,
            Self::Quit | Self::Broken(_) => 0,
        }
    }
}

/// The server side of one connection.
#[derive(Debug)]
pub struct CacheConnection {
    pub(super) service: Arc<Service>,
    pub(super) thread: usize,
    pub(super) state: State,
    /// Whether requests are packets of the binary protocol.
    pub(super) is_binary: bool,
    /// Whether the client still has to authenticate.
    pub(super) is_unauthenticated: bool,
    /// Bits of those that observe this batch of commands.
    pub(super) observers: u8,
    pub(super) block: Block,
    pub(super) client: Option<ClientEntry>,
    pub(super) waker: Option<Waker>,
    pub(super) watching: Option<Watching>,
}

impl CacheConnection {
    /// Creates a connection to `service` on thread number `thread`.
    pub fn new(service: Arc<Service>, thread: usize) -> Self {
        Self {
            is_unauthenticated: service.accounts.is_some(),
            service,
            thread,
            state: State::Start,
            is_binary: false,
            observers: 0,
            block: Block::default(),
            client: None,
            waker: None,
            watching: None,
        }
    }

    /// Discards what is unfinished, so that the next bytes are the first.
    pub(in crate::server) fn begin(&mut self) {
        self.state = State::Start;
        self.block = Block::default();
    }

    /// Returns the state between two requests.
    pub(super) fn idle(&self) -> State {
        if self.is_binary { State::Packet } else { State::Line }
    }

    /// Skips the next `left` bytes, a refused data block.
    pub(super) fn refuse_bytes(&mut self, left: usize) {
        self.state = if left == 0 { self.idle() } else { State::Refused(left) };
    }
}
