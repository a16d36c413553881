//! How what happens reaches the owner of the tree. The owner lies behind a lock that no one waits
//! for but its own thread: a connection's thread that finds it free has a short request carried
//! out at once, without waking another thread; what finds it busy waits in a list that whoever has
//! the owner works off before letting go of it. What takes long is always the owner's thread's.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use journal::Progress;
use wire::wake_together;

use super::message::{Asked, Message, is_short, not_now};
use super::owner::{BATCH, Owner};
use super::slot::{Answer, SMALL_BYTES};
use crate::protocol::{Header, Reply, Request};

/// The most that waits for an owner that is busy: as many as there are connections by default.
const WAITING_LIMIT: usize = 4096;

/// The way to the owner.
pub(super) struct Dispatch {
    /// `None` before the start and after the end.
    owner: Mutex<Option<Owner>>,
    /// What is short, and has found the owner busy.
    waiting: Mutex<VecDeque<Message>>,
    /// Whether connections' threads have had requests carried out that are not kept yet.
    is_unfinished: AtomicBool,
    /// To the owner's thread.
    messages: Sender<Message>,
}

impl Dispatch {
    /// A way to an owner that is still to come; `messages` are read by its thread.
    pub(super) fn new(messages: Sender<Message>) -> Self {
        Self {
            owner: Mutex::new(None),
            waiting: Mutex::default(),
            is_unfinished: AtomicBool::new(false),
            messages,
        }
    }

    /// The owner begins.
    pub(super) fn begin(&self, owner: Owner) {
        if let Ok(mut place) = self.owner.lock() {
            *place = Some(owner);
        }
    }

    /// The owner, once it is free. One in whose hands a change broke off by a panic is given up:
    /// its tree may be half changed, and the journal has what was acknowledged.
    fn lock(&self) -> MutexGuard<'_, Option<Owner>> {
        self.owner.lock().unwrap_or_else(|poisoned| {
            let mut place = poisoned.into_inner();
            if let Some(owner) = place.take() {
                owner.give_up();
            }
            self.waiting().clear();
            place
        })
    }

    /// The owner, where it is free.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Owner>>> {
        match self.owner.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => Some(self.lock()),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Message>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a request on, from its connection's thread, which calls [`Self::finish`] later.
    pub(super) fn request(&self, request: Box<Request>, asked: Asked) {
        if has_nul(&asked.document) {
            let why = "a text has the character NUL, at which clients end it: leave it out";
            return asked.slot.put(Answer::Reply(Reply::error(why.to_owned())));
        }
        if asked.header.is_some() && !Header::goes_with(&request) {
            let why = "a header goes with a sync (no news) without a handle, and with nothing else";
            return asked.slot.put(Answer::Reply(Reply::error(why.to_owned())));
        }
        let is_short = asked.document.len() <= SMALL_BYTES && is_short(&request);
        if !is_short {
            return self.send(Message::Request(request, asked));
        }
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING_LIMIT {
            drop(waiting);
            let why = format!("{WAITING_LIMIT} requests wait: try again");
            return asked.slot.put(Answer::Reply(not_now(&request.body, why)));
        }
        waiting.push_back(Message::Request(request, asked));
        drop(waiting);
        self.work_off();
    }

    /// Passes the journal's progress on, from the journal's thread.
    pub(super) fn progress(&self, progress: Progress) {
        let Progress::Acknowledged(number) = progress else {
            return self.send(Message::Journal(progress));
        };
        self.waiting().push_back(Message::Acknowledged(number));
        wake_together(|| self.settle());
    }

    /// Passes a message to the owner's thread.
    pub(super) fn send(&self, message: Message) {
        // It ends last.
        let _ = self.messages.send(message);
    }

    /// Has the journal and the log keep what connections' threads have had done.
    pub(super) fn finish(&self) {
        if self.is_unfinished.load(SeqCst) {
            self.settle();
        }
    }

    /// Works off what waits. Where the owner is busy, whoever has it does.
    fn work_off(&self) {
        while !self.waiting().is_empty() {
            let Some(mut owner) = self.try_lock() else { return };
            self.take_waiting(&mut owner);
            // With the owner in hand, so that whoever settles has it committed or comes before it:
            // then this thread settles at the end of its pass.
            self.is_unfinished.store(true, SeqCst);
        }
    }

    /// Works off what waits, and has the journal and the log keep it.
    fn settle(&self) {
        loop {
            let Some(mut owner) = self.try_lock() else { return };
            self.take_waiting(&mut owner);
            self.is_unfinished.store(false, SeqCst);
            if let Some(owner) = owner.as_mut() {
                owner.finish();
            }
            drop(owner);
            // What has come since has found the owner busy.
            if self.waiting().is_empty() && !self.is_unfinished.load(SeqCst) {
                return;
            }
        }
    }

    fn take_waiting(&self, owner: &mut Option<Owner>) {
        loop {
            let Some(message) = self.waiting().pop_front() else { return };
            match owner {
                Some(owner) => owner.take(message),
                // It is at its end, and its thread takes what is left.
                None => self.send(message),
            }
        }
    }

    /// Does something with the owner, on its own thread.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut Owner) -> R) -> Option<R> {
        let made = self.lock().as_mut().map(work);
        wake_together(|| self.settle());
        made
    }

    /// Has the owner take messages, on its own thread, and between them what is short and waits.
    /// Those who are answered are woken after each: the next may take seconds. For the same reason
    /// what came before a request is kept first.
    pub(super) fn take_all(&self, messages: impl Iterator<Item = Message>) {
        for message in messages {
            if matches!(message, Message::Request(..)) {
                wake_together(|| self.settle());
            }
            wake_together(|| {
                let mut owner = self.lock();
                if let Some(owner) = owner.as_mut() {
                    owner.take(message);
                }
                self.take_waiting(&mut owner);
            });
        }
        wake_together(|| self.settle());
    }

    /// Takes the owner out, for its end: what still comes goes to its thread.
    pub(super) fn end(&self) -> Option<Owner> {
        let owner = self.lock().take();
        self.settle();
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
