//! What is in the journal and not durable yet. It is applied to the tree once it is, so that what a
//! full disk refuses has changed nothing.

use std::collections::VecDeque;

use super::message::{Asked, CommandEnd, CommandWhat, is_short};
use crate::protocol::Request;

/// What a record is of, with its time and random number.
pub(super) struct Recorded {
    pub(super) at_us: i64,
    pub(super) random: u64,
    pub(super) what: Change,
}

/// What a record is of.
pub(super) enum Change {
    Request(Box<Request>, Asked),
    /// Whether the calendars go on by a minute, whatever the clock says.
    Tick(bool),
    /// The end of a command, and what the journal has of it.
    Command {
        end: CommandEnd,
        code: u8,
        text: String,
    },
}

impl Recorded {
    /// Whether it is applied in microseconds.
    pub(super) fn is_short(&self) -> bool {
        match &self.what {
            Change::Request(request, _) => is_short(request),
            Change::Tick(_) => false,
            // A tree that was read, or a node that has gone, may be of any size.
            Change::Command { end, .. } => {
                !matches!(end.what, CommandWhat::Read(..) | CommandWhat::Moved)
            }
        }
    }
}

/// What waits.
#[derive(Default)]
pub(super) struct Pending {
    /// By the last record of each, in order.
    waiting: VecDeque<(u64, Recorded)>,
    /// Requests that come while a snapshot waits for what is before them.
    pub(super) held: Vec<(Box<Request>, Asked)>,
    /// Ends of commands that a full disk refused: they are recorded later.
    pub(super) refused: Vec<CommandEnd>,
    /// Whether what no client asked for was refused, and has not been kept since.
    pub(super) is_refusing: bool,
}

impl Pending {
    /// Whether everything is applied.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many changes wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds what ends with this record.
    pub(super) fn push(&mut self, number: u64, recorded: Recorded) {
        self.waiting.push_back((number, recorded));
    }

    /// Whether the next of what is durable through a record is short; `None` where there is none.
    pub(super) fn is_next_short(&self, number: u64) -> Option<bool> {
        let (last, recorded) = self.waiting.front()?;
        (*last <= number).then(|| recorded.is_short())
    }

    /// The next of what is durable through a record.
    pub(super) fn pop_through(&mut self, number: u64) -> Option<Recorded> {
        let (last, _) = self.waiting.front()?;
        if *last > number {
            return None;
        }
        self.waiting.pop_front().map(|(_, recorded)| recorded)
    }
}
