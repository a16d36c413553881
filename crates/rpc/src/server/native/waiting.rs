//! A call whose function waits: what it waits for, what has come for it, and what it may send.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::model::call::{Got, Shared as Exchanged, Want};
use crate::model::function::Outcome;
use crate::protocol::native::frame::{WINDOW_BYTES, cost};
use crate::protocol::status::{Code, Status};

/// The longest that a function sleeps at once: clocks go further.
const MOST_SLEEP: Duration = Duration::from_secs(24 * 3_600);

/// When a function goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Wake {
    /// At once: it hasn't begun.
    Begin,
    At(Instant),
    /// Once the server begins to stop.
    Stop,
    /// With the client's next message, or their end.
    Message,
    /// Once this message may be sent.
    Room(Bytes),
}

/// A call whose function waits.
pub(super) struct Waiting {
    function: Outcome,
    pub(super) exchanged: Exchanged,
    /// Its messages, until the function has taken them.
    inbox: VecDeque<Bytes>,
    inbox_bytes: usize,
    /// The client sends no more of them.
    has_ended: bool,
    /// What the client may still send.
    window: i64,
    /// What was taken of it and is not given back yet.
    owed: u32,
    /// What the client takes of a stream.
    credit: i64,
    /// Its answer is a stream.
    streams: bool,
    /// The one answer, once the function has sent it.
    answer: Option<Bytes>,
    /// What comes before the first message has been sent.
    has_head: bool,
    /// What it counts as memory.
    pub(super) held: usize,
    pub(super) wake: Wake,
    pub(super) deadline: Option<Instant>,
}

/// What a function that has gone on came to. After a head or message it is to go on again.
pub(super) enum Step {
    Waits,
    /// Metadata before the first message are to be sent.
    Head,
    /// A message of a stream is.
    Message(Bytes),
    Ended(Result<Option<Bytes>, Status>),
}

impl Waiting {
    /// A call with its one message, or one that is open for messages.
    pub(super) fn new(
        function: Outcome,
        exchanged: Exchanged,
        request: Option<Bytes>,
        streams: bool,
        deadline: Option<Instant>,
    ) -> Self {
        let window = WINDOW_BYTES.into();
        Self {
            function,
            exchanged,
            inbox_bytes: request.as_ref().map_or(0, Bytes::len),
            has_ended: request.is_some(),
            inbox: request.into_iter().collect(),
            window,
            owed: 0,
            credit: window,
            streams,
            answer: None,
            has_head: false,
            held: 0,
            wake: Wake::Begin,
            deadline,
        }
    }

    /// When there is something to do for it.
    pub(super) fn due(&self) -> Option<Instant> {
        let wake = match self.wake {
            Wake::At(at) => Some(at),
            _ => None,
        };
        [wake, self.deadline].into_iter().flatten().min()
    }

    /// What it takes as memory now.
    pub(super) fn kept_bytes(&self) -> usize {
        let unsent = match &self.wake {
            Wake::Room(message) => message.len(),
            _ => 0,
        };
        self.exchanged.kept_bytes()
            + self.inbox_bytes
            + unsent
            + self.answer.as_ref().map_or(0, Bytes::len)
    }

    /// Whether the client still sends messages.
    pub(super) fn is_open(&self) -> bool {
        !self.has_ended
    }

    /// A message has come; `false` where the client had no credit for it.
    pub(super) fn push(&mut self, message: Bytes) -> bool {
        let had_credit = self.window > 0;
        self.window -= cost(&message);
        self.inbox_bytes += message.len();
        self.inbox.push_back(message);
        had_credit
    }

    /// No more will come.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// The client takes this much more; `false` where that is more than there can be.
    pub(super) fn give(&mut self, bytes: u32) -> bool {
        self.credit += i64::from(bytes);
        self.credit <= WINDOW_BYTES.into()
    }

    /// What is to be given back to the client: half of the window at least.
    pub(super) fn take_owed(&mut self) -> Option<u32> {
        let is_due = self.owed >= WINDOW_BYTES / 2 && !self.has_ended;
        is_due.then(|| {
            self.window += i64::from(self.owed);
            std::mem::take(&mut self.owed)
        })
    }

    /// Whether it waits with a message, for which the client has given credit.
    pub(super) fn may_go_on_sending(&self) -> bool {
        matches!(self.wake, Wake::Room(_)) && self.credit > 0
    }

    /// Whether it can go on.
    pub(super) fn is_ready(&self, has_room: bool) -> bool {
        match &self.wake {
            Wake::Begin => true,
            Wake::Message => !self.inbox.is_empty() || self.has_ended,
            Wake::Room(_) => has_room && self.credit > 0,
            Wake::At(_) | Wake::Stop => false,
        }
    }

    fn next_message(&mut self) -> Option<Got> {
        let Some(message) = self.inbox.pop_front() else {
            return self.has_ended.then_some(Got::End);
        };
        self.inbox_bytes -= message.len();
        self.owed = self.owed.saturating_add(cost(&message) as u32);
        Some(Got::Message(message, false))
    }

    /// Whether a message may be sent now, which is counted then.
    fn may_send(&mut self, message: &Bytes, has_room: bool) -> bool {
        let may = has_room && self.credit > 0;
        if may {
            self.credit -= cost(message);
        }
        may
    }

    /// Whether metadata wait to be sent before the first message.
    fn owes_head(&mut self, is_asked: bool) -> bool {
        let has_some = self.exchanged.with(|exchange| exchange.headers.iter().next().is_some());
        !self.has_head && (is_asked || has_some) && {
            self.has_head = true;
            true
        }
    }

    /// Goes on with its function, which waited for what has come now.
    pub(super) fn resume(&mut self, is_stopping: bool, has_room: bool, now: Instant) -> Step {
        let got = match std::mem::replace(&mut self.wake, Wake::Begin) {
            Wake::Begin => None,
            Wake::At(_) | Wake::Stop => Some(Got::Done),
            Wake::Message => match self.next_message() {
                Some(got) => Some(got),
                None => {
                    self.wake = Wake::Message;
                    return Step::Waits;
                }
            },
            Wake::Room(message) if self.may_send(&message, has_room) => {
                self.exchanged.with(|exchange| exchange.got = Some(Got::Done));
                return Step::Message(message);
            }
            Wake::Room(message) => {
                self.wake = Wake::Room(message);
                return Step::Waits;
            }
        };
        if got.is_some() {
            self.exchanged.with(|exchange| exchange.got = got);
        }
        self.step(is_stopping, has_room, now)
    }

    /// Does what the function wants until it waits, sends or ends.
    fn step(&mut self, is_stopping: bool, has_room: bool, now: Instant) -> Step {
        loop {
            // It waits for nothing but what it asks for.
            match self.function.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => return Step::Ended(self.ended()),
                Poll::Ready(Err(status)) => return Step::Ended(Err(status)),
                Poll::Pending => {}
            }
            let got = match self.exchanged.with(|exchange| exchange.want.take()) {
                Some(Want::Receive) => match self.next_message() {
                    Some(got) => got,
                    None => {
                        self.wake = Wake::Message;
                        return Step::Waits;
                    }
                },
                Some(Want::SendHeaders) => {
                    self.exchanged.with(|exchange| exchange.got = Some(Got::Done));
                    if self.owes_head(true) {
                        return Step::Head;
                    }
                    continue;
                }
                Some(Want::Send(message, _)) if self.streams => {
                    self.wake = Wake::Room(message);
                    if self.owes_head(false) {
                        // The message follows with the next step.
                        return Step::Head;
                    }
                    return self.resume(is_stopping, has_room, now);
                }
                Some(Want::Send(message, _)) if self.answer.is_none() => {
                    self.answer = Some(message);
                    Got::Done
                }
                Some(Want::Send(..)) => {
                    let words = "several answers to a call that has one";
                    return Step::Ended(Err(Status::new(Code::Unimplemented, words)));
                }
                Some(Want::Sleep(time)) => {
                    self.wake = Wake::At(now + time.min(MOST_SLEEP));
                    return Step::Waits;
                }
                Some(Want::Stop) if is_stopping => Got::Done,
                Some(Want::Stop) => {
                    self.wake = Wake::Stop;
                    return Step::Waits;
                }
                None => {
                    let words = "a function waits for nothing";
                    return Step::Ended(Err(Status::new(Code::Internal, words)));
                }
            };
            self.exchanged.with(|exchange| exchange.got = Some(got));
        }
    }

    fn ended(&mut self) -> Result<Option<Bytes>, Status> {
        let words = "the function has sent no answer";
        match (self.streams, self.answer.take()) {
            (true, answer) => Ok(answer),
            (false, Some(answer)) => Ok(Some(answer)),
            (false, None) => Err(Status::new(Code::Internal, words)),
        }
    }

    /// Whether metadata of the head are still to be sent when it ends.
    pub(super) fn ends_with_head(&mut self) -> bool {
        self.owes_head(false)
    }
}
