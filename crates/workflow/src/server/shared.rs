//! What the owner of the tree and the connections share that any thread uses.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use wire::{PoolFull, TaskPool, Waker};

use super::access::Access;
use super::fates::Fates;
use super::log::{Category, Log, unix_us};
use super::message::Message;
use super::opened::Opened;
use super::slot::{Answer, Held, Memory, Rendered, SMALL_BYTES, Slot};
use super::spawn::Spawner;
use crate::model::Snapshot;
use crate::protocol::{Reply, Request};

/// What connections, the owner and the pool share.
pub(super) struct Shared {
    /// To the owner's thread.
    pub(super) owner: Sender<Message>,
    pub(super) access: RwLock<Access>,
    pub(super) log: Log,
    /// Pings since the owner counted them last.
    pub(super) pings: AtomicU32,
    /// See [`Shared::in_background`].
    pub(super) pool: TaskPool,
    /// The largest request.
    pub(super) max_message: u64,
    /// Of large documents that have come or are coming.
    pub(super) memory: Arc<Memory>,
    /// Of large answers that are being sent.
    pub(super) answers: Arc<Memory>,
    /// Places of clients that are sent what changes, one each.
    pub(super) followers: Arc<Memory>,
    /// How long those are sent nothing, at most.
    pub(super) silence: Duration,
    pub(super) spawner: Arc<Spawner>,
    pub(super) opened: Opened,
    /// What is known of jobs' commands.
    pub(super) fates: Fates,
}

/// By how much threads that parse, render and write yield to those that answer.
const BACKGROUND_NICE: i32 = 5;

thread_local! {
    static YIELDS: Cell<bool> = const { Cell::new(false) };
}

/// Has this thread yield from here on. It may start no process, which would inherit that.
pub(super) fn in_background() {
    if !YIELDS.replace(true) {
        // Where it may not, it competes.
        let _ = rustix::process::setpriority_process(None, BACKGROUND_NICE);
    }
}

impl Shared {
    /// Has a thread of the pool do what takes long: 60 MB of text are parsed or rendered in a
    /// second, in which a connection's thread would wait for a core as long as this one may have it
    /// at a time.
    ///
    /// # Errors
    /// When too much waits already.
    pub(super) fn in_background(
        &self,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), PoolFull> {
        let task = self.pool.submit(Waker::new(|| {}), move || {
            in_background();
            work();
        });
        task.map(drop)
    }

    /// What becomes of the commands of a task whose job runs, as of this tree; of `/`, that
    /// commands have taken all places for long.
    pub(super) fn why(&self, tree: &Snapshot, path: &str) -> Option<String> {
        match path {
            "/" => self.spawner.taken_up(),
            path => self.fates.why(&self.spawner, tree, path),
        }
    }

    /// Why who asks may not, by the users as they are now.
    pub(super) fn refusal(&self, request: &Request) -> Option<String> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        access.check(request).err()
    }

    /// Answers. What is long is counted from here on, and written by the pool.
    pub(super) fn answer(&self, slot: &Slot, reply: Reply) {
        let bytes = reply.text_bytes();
        if bytes <= SMALL_BYTES {
            return slot.put(Answer::Reply(reply));
        }
        let mut held = Held::none(&self.answers);
        if !held.grow(bytes) {
            return slot.put(Answer::Reply(self.answers.refusal()));
        }
        self.later(None, slot, move |answers| {
            written(answers, |out, has_room| {
                reply.write(out);
                drop((reply, held));
                has_room(out.len())
            })
        });
    }

    /// Has the pool, or that of scripts, make an answer, whose memory is counted, unless its client
    /// has gone by then.
    pub(super) fn later(
        &self,
        scripts: Option<&TaskPool>,
        slot: &Slot,
        make: impl FnOnce(&Arc<Memory>) -> Answer + Send + 'static,
    ) {
        self.put_later(scripts, slot, move |slot, answers| slot.put(make(answers)));
    }

    /// The same of an answer that is put where it is made.
    pub(super) fn put_later(
        &self,
        scripts: Option<&TaskPool>,
        slot: &Slot,
        put: impl FnOnce(Slot, &Arc<Memory>) + Send + 'static,
    ) {
        let (late, answers) = (slot.clone(), Arc::clone(&self.answers));
        let work = move || {
            if late.has_taker() {
                put(late, &answers);
            }
        };
        let submitted = match scripts {
            Some(scripts) => scripts.submit(Waker::new(|| {}), work).map(drop),
            None => self.in_background(work),
        };
        if submitted.is_err() {
            slot.put(Answer::Reply(Reply::error("too many large answers at once: try again")));
        }
    }

    /// Answers a ping, for which the owner isn't needed: it says that the server can be reached,
    /// also while that is busy.
    pub(super) fn ping(&self, request: &Request) -> Reply {
        self.pings.fetch_add(1, Ordering::Relaxed);
        let at_us = unix_us();
        self.log.add(Category::Message, at_us, &request.line());
        match self.refusal(request) {
            None => Reply::OK,
            Some(why) => {
                self.log.add(Category::Error, at_us, &why);
                Reply::Error(why)
            }
        }
    }
}

/// An answer that `write` writes; it asks whether there is memory for what it has written, and says
/// whether all is.
pub(super) fn written(
    answers: &Arc<Memory>,
    write: impl FnOnce(&mut Vec<u8>, &mut dyn FnMut(usize) -> bool) -> bool,
) -> Answer {
    let (mut bytes, mut held) = (Vec::new(), Held::none(answers));
    let mut has_room = |bytes| bytes <= SMALL_BYTES || held.reach(bytes);
    match write(&mut bytes, &mut has_room) {
        true => Answer::Bytes(Bytes::from_owner(Rendered::held(bytes, held))),
        false => Answer::Reply(answers.refusal()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::environment::Environment;
    use crate::server::flush::LogFlush;
    use std::sync::mpsc::channel;

    #[test]
    fn what_a_client_that_has_gone_asked_for_is_not_made() {
        let home = tempfile::tempdir().expect("a folder");
        let environment = Environment::new(home.path(), 3141, 1, |_| None).expect("a home");
        let log = Log::open(home.path().join("a.log"), LogFlush::default()).expect("open");
        let shared = Shared {
            owner: channel().0,
            access: RwLock::new(Access::read(&environment).expect("no users")),
            log,
            pings: AtomicU32::new(0),
            pool: TaskPool::new("test", 1, 3).expect("a thread"),
            max_message: 1,
            memory: Memory::new(1),
            answers: Memory::new(1),
            followers: Memory::new(1),
            silence: Duration::ZERO,
            spawner: Arc::new(Spawner::start(1).expect("a thread")),
            opened: Opened::new(1),
            fates: Fates::default(),
        };
        let (go_on, waits) = channel::<()>();
        let busy = shared.in_background(move || assert!(waits.recv().is_err(), "none is sent"));
        busy.expect("there is room");
        let (made, is_made) = channel();
        let (tell, told) = channel();
        let gone = Slot::new(Waker::new(|| {}));
        let there = Slot::new(Waker::new(move || tell.send(()).expect("the test waits")));
        for (name, slot) in [("gone", &gone), ("there", &there)] {
            let made = made.clone();
            shared.later(None, slot, move |_| {
                made.send(name).expect("the test waits");
                Answer::Reply(Reply::OK)
            });
        }
        drop((gone, made));
        drop(go_on);
        assert_eq!(is_made.iter().collect::<Vec<_>>(), ["there"]);
        told.recv().expect("it is answered once the answer is made");
        assert!(there.take().is_some());
    }
}
