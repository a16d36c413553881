//! How the owner sends texts of the tree to those who ask for them, and what changes to those who
//! follow. Who was slow is sent all that has changed since, at once: each has at most one answer
//! that it has not taken. What several lack is made once for all.

use std::sync::Arc;

use bytes::Bytes;
use wire::wake_together;

use super::core::{TreeText, Write};
use super::followers::Follower;
use super::log::{Category, unix_us};
use super::owner::Owner;
use super::slot::{Answer, Memory, Numbers, Slot};
use super::texts::{Made, Of, keep};
use crate::protocol::{Header, Reply};

impl Owner {
    /// Takes a client that follows; one that comes anew is logged and counted as all requests are.
    pub(super) fn follow(&mut self, header: Header, follower: Follower, is_new: bool) {
        if is_new && let Err(why) = self.admit(&follower.request, false) {
            return follower.slot.put(Answer::Reply(Reply::Error(why)));
        }
        let most = self.shared.followers.most;
        self.followers.add(header, follower, most);
    }

    /// Has those who follow sent what has changed.
    pub(super) fn push(&mut self) {
        for (header, followers) in self.followers.take_behind(self.core.numbers()) {
            self.send_changes(&header, followers);
        }
    }

    fn send_changes(&mut self, header: &Header, mut followers: Vec<Follower>) {
        followers.retain(|one| match self.shared.refusal(&one.request) {
            _ if !one.slot.has_taker() => false,
            None => true,
            Some(why) => {
                self.say(unix_us(), Category::Error, &why);
                one.slot.put(Answer::Reply(Reply::Error(why)));
                false
            }
        });
        let slots: Vec<Slot> = followers.into_iter().map(|one| one.slot).collect();
        if slots.is_empty() {
            return;
        }
        let write = match self.core.cut(header) {
            Ok(write) => write,
            Err(reply) => return put(&slots, &reply),
        };
        let numbers = self.core.numbers();
        // Those who come, and have nothing yet, are sent the same until something changes.
        let is_first = header.portions.iter().all(|one| one.known.is_none());
        let made = if is_first {
            self.texts.of((self.core.change_no(), numbers), Of::First(header.clone()))
        } else {
            Arc::default()
        };
        let (late, answers) = (slots.clone(), Arc::clone(&self.shared.answers));
        let owner = self.shared.owner.clone();
        let work = move || {
            let of_first = Arc::clone(&answers);
            send(late, (&made, write), &answers, numbers, move |changes| {
                if is_first {
                    keep(changes, &of_first, &owner);
                }
            });
        };
        if self.shared.in_background(work).is_err() {
            put(&slots, &Reply::error("too many large answers at once: follow again"));
        }
    }

    /// Sends a text: at once where it is a node's and short, so that it waits behind no one's long
    /// ones.
    pub(super) fn send_text(&mut self, text: TreeText, slot: &Slot) {
        if let Some(reply) = text.short() {
            return slot.put(Answer::Reply(reply));
        }
        let (numbers, (id, style)) = text.of();
        let made = self.texts.of((self.core.change_no(), numbers), Of::Node(id, style));
        let owner = self.shared.owner.clone();
        self.shared.put_later(None, slot, move |slot, answers| {
            let (source, reply) = text.made();
            let late = Arc::clone(answers);
            made.then(
                answers,
                |out| source.write(out),
                move |text| {
                    let text = match text {
                        Ok(text) => text,
                        Err(why) => return slot.put(Answer::Reply(why)),
                    };
                    keep(&text, &late, &owner);
                    let around = reply.around(text.len());
                    slot.put(Answer::Around(text, around));
                },
            );
        });
    }
}

/// Sends those who are still there what has changed, which `write` appends where it isn't made yet,
/// nothing where it would be no news; `sent` is called with it.
fn send(
    mut slots: Vec<Slot>,
    (made, write): (&Arc<Made>, Write),
    answers: &Arc<Memory>,
    numbers: Numbers,
    sent: impl FnOnce(&Bytes) + Send + 'static,
) {
    slots.retain(Slot::has_taker);
    if slots.is_empty() {
        return;
    }
    let write = |out: &mut Vec<u8>| {
        if !write(out) {
            out.clear();
        }
    };
    made.then(answers, write, move |changes| match changes {
        Ok(bytes) => {
            wake_together(|| {
                slots.iter().for_each(|slot| slot.put(Answer::Changes(bytes.clone(), numbers)));
            });
            sent(&bytes);
        }
        Err(why) => put(&slots, &why),
    });
}

fn put(slots: &[Slot], reply: &Reply) {
    wake_together(|| slots.iter().for_each(|slot| slot.put(Answer::Reply(reply.clone()))));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use wire::Waker;

    use super::*;

    #[test]
    fn who_is_there_is_sent_what_is_news_and_for_who_has_gone_nothing_is_made() {
        let (made, answers) = (Arc::default(), Memory::new(1 << 20));
        let [there, gone] = [(); 2].map(|()| Slot::new(Waker::new(|| {})));
        let send = |slot: Slot, made: &Arc<Made>, write: fn(&mut Vec<u8>) -> bool| {
            let (tell, told) = channel();
            let sent = move |bytes: &Bytes| tell.send(bytes.clone()).expect("the test waits");
            super::send(vec![slot], (made, Box::new(write)), &answers, (1, 1), sent);
            told.try_recv().ok()
        };
        let late = gone.clone();
        drop(gone);
        assert!(send(late, &made, |_| panic!("no one takes it")).is_none());
        let sent = send(there.clone(), &made, |out| {
            out.push(b'x');
            true
        });
        assert_eq!(sent.as_deref(), Some(&b"x"[..]));
        assert!(matches!(there.take(), Some(Answer::Changes(bytes, (1, 1))) if bytes == "x"));
        let again = send(there.clone(), &made, |_| panic!("it is made"));
        assert_eq!(again, sent);
        let nothing = send(there.clone(), &Arc::default(), |out| {
            out.push(b'x');
            false
        });
        assert_eq!(nothing.as_deref(), Some(&b""[..]));
    }
}
