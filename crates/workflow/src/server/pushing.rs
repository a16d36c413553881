//! How the owner sends what changes to those who follow. Who was slow is sent all that has changed
//! since, at once: each has at most one answer that it has not taken. What several lack is made
//! once for all.

use std::sync::Arc;

use bytes::Bytes;
use wire::wake_together;

use super::core::Told;
use super::followers::Follower;
use super::log::{Category, unix_us};
use super::owner::Owner;
use super::shared::written;
use super::slot::{Answer, Slot};
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

    fn send_changes(&self, header: &Header, mut followers: Vec<Follower>) {
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
        let (late, answers) = (slots.clone(), Arc::clone(&self.shared.answers));
        let work = move || {
            let mut has_news = false;
            let answer = written(&answers, |out, has_room| {
                has_news = write(out);
                has_room(out.len())
            });
            match answer {
                Answer::Bytes(bytes) => {
                    let bytes = if has_news { bytes } else { Bytes::new() };
                    wake_together(|| {
                        late.iter()
                            .for_each(|slot| slot.put(Answer::Changes(bytes.clone(), numbers)));
                    });
                }
                _ => put(&late, &answers.refusal()),
            }
        };
        if self.shared.in_background(work).is_err() {
            put(&slots, &Reply::error("too many large answers at once: follow again"));
        }
    }
}

fn put(slots: &[Slot], reply: &Reply) {
    wake_together(|| slots.iter().for_each(|slot| slot.put(Answer::Reply(reply.clone()))));
}
