//! How what happens reaches the owner of the tree. The owner lies behind a lock that no one waits
//! for but its own thread: a connection's thread that finds it free has a short request carried
//! out at once, without waking another thread; what finds it busy waits in a list that whoever has
//! the owner works off before letting go of it. What takes long is always the owner's thread's.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

use journal::Progress;
use wire::wake_together;

use super::message::{Asked, Message, is_short, not_now};
use super::owner::{BATCH, Owner};
use super::slot::{Answer, SMALL_BYTES};
use super::turns::{Owned, Turns};
use crate::protocol::{Header, Reply, Request};

/// The most that waits for an owner that is busy: as many as there are connections by default.
const WAITING_LIMIT: usize = 4096;

/// What is answered to a header before another request than it goes with.
pub(super) const WITH_NOTHING_ELSE: &str =
    "a header goes with a sync (no news) without a handle, and with nothing else";

/// The way to the owner.
pub(super) struct Dispatch {
    turns: Turns<Owner>,
    /// To the owner's thread.
    messages: Sender<Message>,
}

impl Owned for Owner {
    type Message = Message;

    fn take(&mut self, message: Message) {
        Self::take(self, message);
    }

    fn finish(&mut self) {
        Self::finish(self);
    }

    fn give_up(self) {
        Self::give_up(self);
    }
}

impl Dispatch {
    /// A way to an owner that is still to come; `messages` are read by its thread.
    pub(super) fn new(messages: Sender<Message>) -> Self {
        let late = messages.clone();
        // Its thread ends last.
        let turns = Turns::new(move |message| drop(late.send(message)));
        Self { turns, messages }
    }

    /// The owner begins.
    pub(super) fn begin(&self, owner: Owner) {
        self.turns.begin(owner);
    }

    /// Passes a request on, from its connection's thread, which calls [`Self::finish`] later.
    pub(super) fn request(&self, request: Box<Request>, asked: Asked) {
        if has_nul(&asked.document) {
            let why = "a text has the character NUL, at which clients end it: leave it out";
            return asked.slot.put(Answer::Reply(Reply::error(why.to_owned())));
        }
        if asked.header.is_some() && !Header::goes_with(&request) {
            return asked.slot.put(Answer::Reply(Reply::error(WITH_NOTHING_ELSE)));
        }
        let is_short = asked.document.len() <= SMALL_BYTES && is_short(&request);
        if !is_short {
            return self.send(Message::Request(request, asked));
        }
        let refused = self.turns.add(Message::Request(request, asked), WAITING_LIMIT);
        if let Err(Message::Request(request, asked)) = refused {
            let why = format!("{WAITING_LIMIT} requests wait: try again");
            return asked.slot.put(Answer::Reply(not_now(&request.body, why)));
        }
        self.turns.work_off();
    }

    /// Passes the journal's progress on, from the journal's thread.
    pub(super) fn progress(&self, progress: Progress) {
        let number = match progress {
            Progress::Acknowledged { through, others_wait: false } => through,
            // Applied by the owner's thread, while this one writes the others.
            Progress::Acknowledged { through, .. } => {
                return self.send(Message::Acknowledged(through));
            }
            progress => return self.send(Message::Journal(progress)),
        };
        // It takes no one's place: any number of them may wait.
        let _ = self.turns.add(Message::Acknowledged(number), usize::MAX);
        wake_together(|| self.turns.settle());
    }

    /// Passes a message to the owner's thread.
    pub(super) fn send(&self, message: Message) {
        // It ends last.
        let _ = self.messages.send(message);
    }

    /// Has the journal and the log keep what connections' threads have had done.
    pub(super) fn finish(&self) {
        self.turns.finish();
    }

    /// Does something with the owner, on its own thread.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut Owner) -> R) -> Option<R> {
        let made = self.turns.lock().as_mut().map(work);
        wake_together(|| self.turns.settle());
        made
    }

    /// Has the owner take messages, on its own thread, and between them what is short and waits.
    /// Those who are answered are woken after each: the next may take seconds. For the same reason
    /// what came before a request is kept first.
    pub(super) fn take_all(&self, messages: impl Iterator<Item = Message>) {
        for message in messages {
            if matches!(message, Message::Request(..)) {
                wake_together(|| self.turns.settle());
            }
            wake_together(|| self.turns.take(message));
        }
        wake_together(|| self.turns.settle());
    }

    /// Takes the owner out, for its end: what still comes goes to its thread.
    pub(super) fn end(&self) -> Option<Owner> {
        let owner = self.turns.lock().take();
        self.turns.settle();
        owner
    }
}

/// Whether a text of a document has the character NUL, as it is or in JSON's escape.
pub(super) fn has_nul(document: &[u8]) -> bool {
    let is_escape = |at: usize| {
        let escapes = document[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        escapes % 2 == 0
    };
    memchr::memchr(0, document).is_some()
        || memchr::memmem::find_iter(document, b"\\u0000").any(is_escape)
}

/// Has the owner do what comes, on its thread, until it is stopped, and then makes all durable.
pub(super) fn serve(dispatch: &Dispatch, messages: &Receiver<Message>) {
    dispatch.with(Owner::started);
    loop {
        let Some(due) = dispatch.with(|owner| owner.due()) else { return };
        let first = match messages.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let mut is_over = false;
        let all = first.into_iter().chain(messages.try_iter().take(BATCH)).filter(|message| {
            let is_stop = matches!(message, Message::Stop);
            is_over |= is_stop;
            !is_stop
        });
        dispatch.take_all(all);
        dispatch.with(Owner::time);
        if is_over {
            break;
        }
    }
    if let Some(owner) = dispatch.end() {
        owner.end(messages);
    }
}

#[cfg(test)]
mod tests {
    use super::has_nul;

    #[test]
    fn nul_is_found_where_it_is_meant() {
        assert!(has_nul(br#"{"value_": "a\u0000b"}"#));
        assert!(has_nul(br#"{"value_": "\\\u0000"}"#));
        assert!(has_nul(b"{\"value_\": \"a\0b\"}"));
        assert!(!has_nul(br#"{"value_": "\\u0000 \u0001"}"#));
    }
}
