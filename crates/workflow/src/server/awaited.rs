//! Clients that wait until what they have asked for is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::core::{
    ARCHIVED, Due, Key, MOVED, NOT_ARCHIVED, NOT_MOVED, NOT_RESTORED, RESTORED, SCRIPT_NOT_WRITTEN,
    SCRIPT_WRITTEN, SLOW, WRITTEN, said,
};
use super::shared::Shared;
use super::slot::Slot;
use crate::protocol::Reply;

/// One of them.
struct Client {
    slot: Slot,
    left: usize,
    due: Due,
}

/// All of them by number, and who waits for what.
pub(super) struct Awaited {
    shared: Arc<Shared>,
    clients: BTreeMap<u64, Client>,
    waiting: BTreeMap<Key, Vec<u64>>,
    last: u64,
}

impl Awaited {
    /// None yet.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, clients: BTreeMap::new(), waiting: BTreeMap::new(), last: 0 }
    }

    /// Answers this client once all is made, or can't be.
    pub(super) fn add(&mut self, mut due: Due, slot: Slot) {
        let all = std::mem::take(&mut due.all);
        self.last += 1;
        let left = all.len();
        for key in all {
            self.waiting.entry(key).or_default().push(self.last);
        }
        let client = Client { slot, left, due };
        match left {
            0 => client.answer(&self.shared),
            _ => drop(self.clients.insert(self.last, client)),
        }
    }

    /// Who waits for one waits for others, too, that have come of it.
    pub(super) fn follow(&mut self, key: &Key, others: Vec<Key>) {
        let Some(numbers) = self.waiting.get(key).cloned() else { return };
        for number in &numbers {
            if let Some(client) = self.clients.get_mut(number) {
                client.left += others.len();
            }
        }
        for key in others {
            self.waiting.entry(key).or_default().extend(&numbers);
        }
    }

    /// Takes what came of one.
    pub(super) fn ended(&mut self, key: &Key, code: u8, text: &str) {
        // A warning: whether the job is made comes next.
        if code == SLOW {
            return;
        }
        let waiting = self.waiting.remove(key);
        for number in waiting.into_iter().flatten() {
            let Some(client) = self.clients.get_mut(&number) else { continue };
            client.left -= 1;
            match code {
                WRITTEN | SCRIPT_WRITTEN | ARCHIVED | RESTORED | MOVED => {}
                _ if client.due.is_lenient => {}
                SCRIPT_NOT_WRITTEN | NOT_ARCHIVED | NOT_RESTORED | NOT_MOVED => {
                    client.due.errors.push_str(text);
                }
                _ => {
                    client.due.errors.push_str(client.due.before);
                    client.due.errors.push_str(&said(code, &key.path, text).0);
                }
            }
            if client.left == 0
                && let Some(client) = self.clients.remove(&number)
            {
                client.answer(&self.shared);
            }
        }
    }
}

impl Client {
    fn answer(self, shared: &Shared) {
        let errors = self.due.errors;
        let reply = if errors.is_empty() { Reply::OK } else { Reply::Error(errors) };
        shared.answer(&self.slot, reply);
    }
}
