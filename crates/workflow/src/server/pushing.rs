//! How the owner sends what changes to those who follow. Who was slow is sent all that has changed
//! since, at once: each has at most one answer that it has not taken. What several lack is made
//! once for all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use wire::wake_together;

use super::clock::KEPT;
use super::core::Told;
use super::followers::{First, Follower, Made};
use super::log::{Category, unix_us};
use super::owner::Owner;
use super::shared::written;
use super::slot::{Answer, Memory, Slot};
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
        let numbers = self.core.numbers();
        let write = match self.core.cut(header) {
            Told::Cut(write) => write,
            Told::Reply(reply) => return put(&slots, &reply),
            _ => return,
        };
        let made = self.made(header);
        let (late, answers) = (slots.clone(), Arc::clone(&self.shared.answers));
        let work = move || match changes(&made, &answers, write) {
            Some(bytes) => wake_together(|| {
                late.iter().for_each(|slot| slot.put(Answer::Changes(bytes.clone(), numbers)));
            }),
            None => put(&late, &answers.refusal()),
        };
        if self.shared.in_background(work).is_err() {
            put(&slots, &Reply::error("too many large answers at once: follow again"));
        }
    }

    /// Where the answer to a header is put for others: to that of those who come and have nothing
    /// yet, for as long as nothing changes.
    fn made(&mut self, header: &Header) -> Made {
        if header.portions.iter().any(|one| one.known.is_some()) {
            return Made::default();
        }
        let key = (self.core.change_no(), self.core.numbers());
        self.clock.forget = Some(Instant::now() + KEPT);
        match &self.first {
            Some(first) if first.key == key && first.header == *header => Made::clone(&first.made),
            _ => {
                let made = Made::default();
                let first = First { key, header: header.clone(), made: Made::clone(&made) };
                let old = self.first.replace(first);
                // One that finds no room drops it here.
                let _ = self.shared.in_background(move || drop(old));
                made
            }
        }
    }
}

/// The answer, which is made where no one has made it yet; `None` where there is no memory for it.
fn changes(
    made: &Mutex<Option<Bytes>>,
    answers: &Arc<Memory>,
    write: impl FnOnce(&mut Vec<u8>) -> bool,
) -> Option<Bytes> {
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    if made.is_none() {
        let mut has_news = false;
        let answer = written(answers, |out, has_room| {
            has_news = write(out);
            has_room(out.len())
        });
        let Answer::Bytes(bytes) = answer else { return None };
        *made = Some(if has_news { bytes } else { Bytes::new() });
    }
    made.clone()
}

fn put(slots: &[Slot], reply: &Reply) {
    wake_together(|| slots.iter().for_each(|slot| slot.put(Answer::Reply(reply.clone()))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_those_who_come_are_sent_is_made_once_and_counted_once() {
        let (made, answers) = (Made::default(), Memory::new(200_000));
        let text = |out: &mut Vec<u8>| {
            out.extend_from_slice(&[b'x'; 100_000]);
            true
        };
        let first = changes(&made, &answers, text).expect("there is memory");
        for _ in 0..3 {
            let again = changes(&made, &answers, |_| panic!("it is made")).expect("it");
            assert_eq!(again.as_ptr(), first.as_ptr());
        }
        let other = changes(&Made::default(), &answers, text);
        assert!(other.is_some() && changes(&Made::default(), &answers, text).is_none());
        let no_news = changes(&Made::default(), &answers, |_| false);
        assert_eq!(no_news.as_deref(), Some(&b""[..]));
    }
}
