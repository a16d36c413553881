//! Long texts that several clients are sent at a time, made once for all: many take the whole tree
//! anew at the same change. The one that was sent last is kept for others for a while.

use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::message::Message;
use super::slot::{Memory, Numbers, Rendered};
use crate::definition::Style;
use crate::model::NodeId;
use crate::protocol::Header;

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

/// A text, which lives for as long as clients wait for it or are sent it: made by the first of them
/// for all, or refused to all for want of memory.
#[derive(Default)]
pub(super) struct Made(OnceLock<Option<Rendered>>);

impl Made {
    /// The text, which `write` appends where no one has; who comes meanwhile waits.
    pub(super) fn bytes(
        self: &Arc<Self>,
        answers: &Arc<Memory>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Bytes> {
        let made = self.0.get_or_init(|| {
            let mut bytes = Vec::new();
            write(&mut bytes);
            Rendered::counted(bytes, answers)
        });
        made.as_ref().map(|_| Bytes::from_owner(Sent(Arc::clone(self))))
    }
}

/// A text on its way to a client.
struct Sent(Arc<Made>);

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.0.0.get().and_then(Option::as_ref).map_or(&[], |made| &made.bytes)
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
            if !matches!(made.0.get(), Some(None)) {
                return made;
            }
        }
        known.map(|at| self.all.swap_remove(at));
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
    use super::*;
    use crate::server::slot::Held;

    const WHOLE: Of = Of::Node(NodeId::ROOT, Style::Net);

    fn long(out: &mut Vec<u8>) {
        out.resize(100_000, b'x');
    }

    #[test]
    fn a_text_is_made_and_counted_once_for_as_long_as_someone_is_sent_it() {
        let (made, answers) = (Arc::new(Made::default()), Memory::new(200_000));
        let first = made.bytes(&answers, long).expect("there is memory");
        let again = made.bytes(&answers, |_| panic!("it is made")).expect("it");
        assert!(again.len() == 100_000 && again.as_ptr() == first.as_ptr());
        let other = Arc::new(Made::default());
        assert!(other.bytes(&answers, long).is_some());
        let refused = Arc::new(Made::default());
        assert!(refused.bytes(&answers, long).is_none());
        assert!(refused.bytes(&answers, |_| panic!("it is refused to all who wait")).is_none());
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
        assert!(refused.bytes(&Memory::new(1), long).is_none());
        let retried = texts.of(key, WHOLE);
        assert!(!Arc::ptr_eq(&refused, &retried) && texts.all.len() == 1);
        drop(retried);
        texts.of(key, Of::Node(NodeId::ROOT, Style::Migrate));
        assert_eq!(texts.all.len(), 1, "of what no one is sent nothing is left");
    }

    #[test]
    fn a_text_that_is_kept_makes_room() {
        let answers = Memory::new(1_000_000);
        let text = Arc::new(Made::default()).bytes(&answers, long).expect("there is memory");
        assert!(answers.keep(&text));
        drop(text);
        assert!(Held::none(&answers).grow(900_000));
        assert!(Held::none(&answers).grow(1_000_000), "it is dropped for others");
        for (bytes, is_kept) in [(1_000, false), (250_000, true), (250_001, false)] {
            assert_eq!(answers.keep(&Bytes::from(vec![0; bytes])), is_kept, "{bytes}");
        }
    }
}
