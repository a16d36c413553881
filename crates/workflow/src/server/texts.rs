//! Long texts that several clients are sent at a time, made once for all: many take the whole tree
//! anew at the same change. The one that was sent last is kept for others for a while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::message::Message;
use super::slot::{Memory, Numbers, Rendered};
use crate::definition::Style;
use crate::model::NodeId;
use crate::protocol::{Header, Reply};

/// How long a text is kept after it was sent last: those who all take it anew at one change come
/// within this time.
pub(super) const KEPT: Duration = Duration::from_secs(1);

/// What a text is of.
#[derive(PartialEq)]
pub(super) enum Of {
    /// A node, of which the root stands for all, in JSON.
    Node(NodeId, Style),
    /// What those who come with this header, and have nothing yet, are sent first.
    First(Header),
}

/// A text, or what is answered in its place.
pub(super) type Text = Result<Bytes, Reply>;

/// Called with a text.
type Then = Box<dyn FnOnce(Text) + Send>;

/// A text, which lives for as long as clients wait for it or are sent it: made by the first of them
/// for all, or refused to all for want of memory or by a bug.
#[derive(Default)]
pub(super) struct Made {
    text: OnceLock<Result<Rendered, Reply>>,
    /// While a thread makes it: what it does then for those who have come meanwhile.
    waiting: Mutex<Option<Vec<Then>>>,
}

impl Made {
    fn waiting(&self) -> MutexGuard<'_, Option<Vec<Then>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_refused(&self) -> bool {
        matches!(self.text.get(), Some(Err(_)))
    }

    /// The text, once it is made.
    fn bytes(self: &Arc<Self>) -> Text {
        match self.text.get() {
            Some(Ok(_)) => Ok(Bytes::from_owner(Sent(Arc::clone(self)))),
            Some(Err(reply)) => Err(reply.clone()),
            None => Err(broken()),
        }
    }

    /// Has `then` called with the text, which `write` appends where no one has; where another
    /// thread is at that, this one doesn't wait for it.
    pub(super) fn then(
        self: &Arc<Self>,
        answers: &Arc<Memory>,
        write: impl FnOnce(&mut Vec<u8>),
        then: impl FnOnce(Text) + Send + 'static,
    ) {
        let mut waiting = self.waiting();
        if self.text.get().is_none() {
            if let Some(others) = &mut *waiting {
                return others.push(Box::new(then));
            }
            *waiting = Some(Vec::new());
            drop(waiting);
            let made = catch_unwind(AssertUnwindSafe(|| {
                let mut bytes = Vec::new();
                write(&mut bytes);
                Rendered::counted(bytes, answers).ok_or_else(|| answers.refusal())
            }));
            // A panic has been printed; those who wait are refused.
            let _ = self.text.set(made.unwrap_or_else(|_| Err(broken())));
            waiting = self.waiting();
        }
        let others = waiting.take().unwrap_or_default();
        drop(waiting);
        let first: Then = Box::new(then);
        for then in std::iter::once(first).chain(others) {
            // One that panics, which is printed, leaves the others answered.
            let _ = catch_unwind(AssertUnwindSafe(|| then(self.bytes())));
        }
    }
}

/// The answer where the text can't be made.
fn broken() -> Reply {
    Reply::error(
        "the server made an error and has no answer: look into its messages, and report it",
    )
}

/// A text on its way to a client.
struct Sent(Arc<Made>);

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.0.text.get().and_then(|text| text.as_ref().ok()).map_or(&[], Rendered::as_ref)
    }
}

/// The texts that clients wait for or are sent.
#[derive(Default)]
pub(super) struct Texts {
    key: Key,
    all: Vec<(Of, Weak<Made>)>,
}

/// What is another one whenever a text is: the number of requests and the like that have changed
/// something, and the tree's own.
type Key = (u64, Numbers);

impl Texts {
    /// A text, made or still to be made.
    pub(super) fn of(&mut self, key: Key, of: Of) -> Arc<Made> {
        let is_same = std::mem::replace(&mut self.key, key) == key;
        self.all.retain(|(_, made)| is_same && made.strong_count() > 0);
        let known = self.all.iter().position(|(known, _)| *known == of);
        if let Some(made) = known.and_then(|at| self.all[at].1.upgrade()) {
            // One that was refused is tried again for those who come now.
            if !made.is_refused() {
                return made;
            }
        }
        if let Some(at) = known {
            self.all.swap_remove(at);
        }
        let made = Arc::default();
        self.all.push((of, Arc::downgrade(&made)));
        made
    }
}

/// Keeps a text that a client is given for others, for a while.
pub(super) fn keep(text: &Bytes, answers: &Memory, owner: &Sender<Message>) {
    if answers.keep(text) {
        // Its thread reads until the owner's end.
        let _ = owner.send(Message::Kept);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::server::slot::Held;

    const WHOLE: Of = Of::Node(NodeId::ROOT, Style::Net);

    fn long(out: &mut Vec<u8>) {
        out.resize(100_000, b'x');
    }

    /// The text, made here.
    fn text(
        made: &Arc<Made>,
        answers: &Arc<Memory>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Bytes> {
        let (send, receive) = channel();
        made.then(answers, write, move |text| send.send(text).expect("the test waits"));
        receive.try_recv().expect("it is called at once").ok()
    }

    #[test]
    fn who_waits_is_answered_though_one_before_or_the_text_breaks_off() {
        let (made, answers) = (Arc::new(Made::default()), Memory::new(200_000));
        let (send, receive) = channel();
        let write = |out: &mut Vec<u8>| {
            made.then(&answers, |_| panic!("it is being made"), |_| panic!("on purpose"));
            let send = send.clone();
            let last = move |text: Text| send.send(text.is_ok()).expect("the test waits");
            made.then(&answers, |_| panic!("it is being made"), last);
            long(out);
        };
        made.then(&answers, write, |_| panic!("on purpose"));
        assert_eq!(receive.try_recv(), Ok(true));
        let said = |made: &Arc<Made>, write: fn(&mut Vec<u8>)| {
            let (send, receive) = channel();
            made.then(&answers, write, move |text| send.send(text).expect("the test waits"));
            match receive.try_recv() {
                Ok(Err(Reply::Error(why))) => why,
                _ => String::new(),
            }
        };
        let (broken, refused) = (Arc::default(), Arc::default());
        assert!(said(&broken, |_| panic!("on purpose")).contains("the server made an error"));
        let longer = |out: &mut Vec<u8>| out.resize(300_000, b'x');
        assert!(said(&refused, longer).contains("--send-memory"));
    }

    #[test]
    fn who_comes_while_a_text_is_made_is_given_it_by_the_thread_that_makes_it() {
        let (made, answers) = (Arc::new(Made::default()), Memory::new(200_000));
        let (send, receive) = channel();
        let late = send.clone();
        let write = |out: &mut Vec<u8>| {
            made.then(
                &answers,
                |_| panic!("it is being made"),
                move |text| {
                    late.send(("late", text)).expect("the test waits");
                },
            );
            assert!(receive.try_recv().is_err(), "it doesn't wait here");
            long(out);
        };
        made.then(&answers, write, move |text| {
            send.send(("first", text)).expect("the test waits");
        });
        let all: Vec<_> = receive.iter().collect();
        assert_eq!([all[0].0, all[1].0], ["first", "late"]);
        assert!(all.iter().all(|(_, text)| text.as_ref().is_ok_and(|text| text.len() == 100_000)));
        let broken = Arc::new(Made::default());
        assert!(text(&broken, &answers, |_| panic!("on purpose")).is_none());
        assert!(text(&broken, &answers, long).is_none(), "it is refused to all who wait");
    }

    #[test]
    fn a_text_is_made_and_counted_once_for_as_long_as_someone_is_sent_it() {
        let (made, answers) = (Arc::new(Made::default()), Memory::new(200_000));
        let first = text(&made, &answers, long).expect("there is memory");
        let again = text(&made, &answers, |_| panic!("it is made")).expect("it");
        assert!(again.len() == 100_000 && again.as_ptr() == first.as_ptr());
        let other = Arc::new(Made::default());
        assert!(text(&other, &answers, long).is_some());
        let refused = Arc::new(Made::default());
        assert!(text(&refused, &answers, long).is_none());
        assert!(text(&refused, &answers, |_| panic!("it is refused to all who wait")).is_none());
        drop((made, first));
        assert!(!Held::none(&answers).grow(1), "one is sent it still");
        drop(again);
        assert!(Held::none(&answers).grow(100_000));
    }

    #[test]
    fn those_who_ask_at_a_time_share_a_text_until_something_changes() {
        let mut texts = Texts::default();
        let first = texts.of((1, (1, 1)), WHOLE);
        let same = texts.of((1, (1, 1)), WHOLE);
        assert!(Arc::ptr_eq(&first, &same));
        let migrated = texts.of((1, (1, 1)), Of::Node(NodeId::ROOT, Style::Migrate));
        assert!(!Arc::ptr_eq(&first, &migrated));
        for key in [(1, (2, 1)), (2, (2, 1))] {
            assert!(!Arc::ptr_eq(&first, &texts.of(key, WHOLE)));
        }
        let key = (2, (2, 1));
        let refused = texts.of(key, WHOLE);
        assert!(text(&refused, &Memory::new(1), long).is_none());
        let retried = texts.of(key, WHOLE);
        assert!(!Arc::ptr_eq(&refused, &retried) && texts.all.len() == 1);
        drop(retried);
        texts.of(key, Of::Node(NodeId::ROOT, Style::Migrate));
        assert_eq!(texts.all.len(), 1, "of what no one is sent nothing is left");
    }

    #[test]
    fn a_text_that_is_kept_makes_room() {
        let answers = Memory::new(1_000_000);
        let kept = text(&Arc::default(), &answers, long).expect("there is memory");
        assert!(answers.keep(&kept));
        drop(kept);
        assert!(Held::none(&answers).grow(900_000));
        assert!(Held::none(&answers).grow(1_000_000), "it is dropped for others");
        for (bytes, is_kept) in [(1_000, false), (250_000, true), (250_001, false)] {
            assert_eq!(answers.keep(&Bytes::from(vec![0; bytes])), is_kept, "{bytes}");
        }
    }
}
