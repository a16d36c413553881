//! Clients that are sent what changes, in this program's own protocol. They wait here for as long
//! as they have all; nothing is kept for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::slot::{Numbers, Slot};
use crate::protocol::{Header, Request};

/// A client that waits.
#[derive(Clone)]
pub(super) struct Follower {
    /// Who asks, which may be refused from now on.
    pub(super) request: Arc<Request>,
    pub(super) slot: Slot,
}

/// All that wait, by what they follow and have.
#[derive(Default)]
pub(super) struct Followers {
    waiting: BTreeMap<Header, Vec<Follower>>,
    count: usize,
    /// The tree's numbers when those that lack something were looked for last.
    seen: Numbers,
    /// Whether others have come since.
    has_new: bool,
}

impl Followers {
    /// Adds a client, of which there are at most this many. Those that have gone, whom no change
    /// has shown, make room.
    pub(super) fn add(&mut self, header: Header, follower: Follower, most: u64) {
        if self.count as u64 >= most {
            self.waiting.retain(|_, all| {
                all.retain(|one| one.slot.has_taker());
                !all.is_empty()
            });
            self.count = self.waiting.values().map(Vec::len).sum();
        }
        self.waiting.entry(header).or_default().push(follower);
        self.count += 1;
        self.has_new = true;
    }

    /// Takes out those that lack something of a tree with these numbers.
    pub(super) fn take_behind(&mut self, numbers: Numbers) -> BTreeMap<Header, Vec<Follower>> {
        if self.waiting.is_empty() || self.seen == numbers && !self.has_new {
            return BTreeMap::new();
        }
        (self.seen, self.has_new) = (numbers, false);
        let has_all =
            |header: &Header| header.portions.iter().all(|one| one.known == Some(numbers));
        let (waiting, behind) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(header, _)| has_all(header));
        self.waiting = waiting;
        self.count = self.waiting.values().map(Vec::len).sum();
        behind
    }
}

#[cfg(test)]
mod tests {
    use wire::Waker;

    use super::*;
    use crate::model::Portion;
    use crate::protocol::{Body, Command, Encoding, ServerCommand, User};

    fn header(path: &str, known: Numbers) -> Header {
        let portions = vec![Portion { path: path.to_owned(), levels: 1, known: Some(known) }];
        Header { encoding: Encoding::Binary, follow: Some(10), wants_states: false, portions }
    }

    fn follower() -> Follower {
        let body = Body::User(User::default(), Command::Server(ServerCommand::Ping));
        let request = Arc::new(Request { host: String::new(), body });
        Follower { request, slot: Slot::new(Waker::new(|| {})) }
    }

    #[test]
    fn who_lacks_something_is_taken_out_and_who_has_gone_makes_room() {
        let mut followers = Followers::default();
        let there = [follower(), follower(), follower()];
        followers.add(header("/a", (1, 1)), there[0].clone(), 4);
        followers.add(header("/a", (1, 1)), there[1].clone(), 4);
        followers.add(header("/b", (2, 1)), there[2].clone(), 4);
        let behind = followers.take_behind((2, 1));
        assert_eq!(behind.values().map(Vec::len).collect::<Vec<_>>(), [2]);
        assert!(followers.take_behind((2, 1)).is_empty());
        for number in 0..100 {
            followers.add(header(&format!("/{number}"), (2, 1)), follower(), 4);
            assert!(followers.count <= 4 && followers.waiting.len() <= 4);
        }
        followers.add(header("/c", (1, 1)), follower(), 4);
        assert_eq!(followers.take_behind((2, 1)).len(), 1, "one that comes late lacks something");
        assert!(followers.take_behind((2, 2)).contains_key(&header("/b", (2, 1))));
    }
}
