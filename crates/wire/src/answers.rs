//! Answers that complete out of order, sent in the order of their requests.

use std::collections::VecDeque;

use crate::Output;

/// A connection's answers in the order of its requests, for protocols with pipelining in which an
/// answer may have to wait: for a commit, a file, another server. Answers behind one that waits are
/// kept until it is complete.
///
/// Bounded: once it [is full](Self::is_full), the protocol leaves further requests in its input and
/// says so with [`Connection::wants_input`](crate::Connection::wants_input), so that the peer is
/// not read from. While it [isn't empty](Self::is_empty), answers are
/// [pending](crate::Connection::has_pending).
#[derive(Debug)]
pub struct Answers {
    /// Each answer from the first that waits on: `None` while it waits.
    queue: VecDeque<Option<Output>>,
    /// The number of the queue's first answer.
    first: u64,
    /// Bytes of the complete answers in the queue.
    kept_bytes: usize,
    max_answers: usize,
    max_bytes: usize,
}

/// Identifies an answer that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnswerId(u64);

impl Answers {
    /// No answers. It is full at `max_answers`, or when the complete ones behind one that waits
    /// have `max_bytes`.
    pub fn new(max_answers: usize, max_bytes: usize) -> Self {
        Self { queue: VecDeque::new(), first: 0, kept_bytes: 0, max_answers, max_bytes }
    }

    /// Whether no further request may be begun.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.max_answers || self.kept_bytes >= self.max_bytes
    }

    /// Whether no answer waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Answers the next request at once: `write` appends to `out`, or to what is kept behind an
    /// answer that waits.
    #[inline]
    pub fn put(&mut self, out: &mut Output, write: impl FnOnce(&mut Output)) {
        if self.queue.is_empty() {
            return write(out);
        }
        let mut answer = Output::new(usize::MAX);
        write(&mut answer);
        self.kept_bytes += answer.len();
        self.queue.push_back(Some(answer));
    }

    /// Reserves the next place for an answer that has to wait.
    pub fn defer(&mut self) -> AnswerId {
        self.queue.push_back(None);
        AnswerId(self.first + self.queue.len() as u64 - 1)
    }

    /// Completes a deferred answer: `write` appends it, and those behind it that are complete
    /// follow into `out`. Returns whether `id` waited; if not, nothing is written.
    pub fn complete(
        &mut self,
        id: AnswerId,
        out: &mut Output,
        write: impl FnOnce(&mut Output),
    ) -> bool {
        let index = id.0.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let Some(place) = index.and_then(|index| self.queue.get_mut(index)) else { return false };
        if place.is_some() {
            return false;
        }
        if index != Some(0) {
            let mut answer = Output::new(usize::MAX);
            write(&mut answer);
            self.kept_bytes += answer.len();
            *place = Some(answer);
            return true;
        }
        write(out);
        self.queue.pop_front();
        self.first += 1;
        while let Some(Some(_)) = self.queue.front() {
            let Some(Some(mut answer)) = self.queue.pop_front() else { break };
            self.first += 1;
            self.kept_bytes -= answer.len();
            answer.split_off(0).into_iter().for_each(|bytes| out.share(bytes));
        }
        debug_assert!(!self.queue.is_empty() || self.kept_bytes == 0, "bytes of no answer");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Answers;
    use crate::{Bytes, Output};
    use proptest::prelude::*;

    #[test]
    fn answers_keep_the_order_of_their_requests_and_the_limits_are_seen() {
        let (mut answers, mut out) = (Answers::new(3, 100), Output::new(1000));
        answers.put(&mut out, |out| out.put(b"1"));
        assert!(answers.is_empty(), "nothing waits for an answer that is sent");
        let (second, third) = (answers.defer(), answers.defer());
        answers.put(&mut out, |out| out.put(b"4"));
        assert!(answers.is_full(), "three wait");
        assert!(answers.complete(third, &mut out, |out| out.put(b"3")));
        assert!(!answers.complete(third, &mut out, |out| out.put(b"again")));
        assert_eq!(out.plain(), Some(&b"1"[..]));
        assert!(answers.complete(second, &mut out, |out| out.put(b"2")));
        assert!(!answers.complete(second, &mut out, |out| out.put(b"again")));
        assert_eq!((out.plain(), answers.is_empty()), (Some(&b"1234"[..]), true));
        let fifth = answers.defer();
        answers.put(&mut out, |out| out.share(Bytes::from(vec![0; 5000])));
        assert!(answers.is_full(), "5,000 bytes are kept");
        answers.complete(fifth, &mut out, |_| {});
        assert!(!answers.is_full() && out.len() == 5004);
    }

    proptest! {
        #[test]
        fn any_order_of_completion_gives_the_order_of_requests(
            deferred in prop::collection::vec(any::<bool>(), 1..40),
            order in prop::collection::vec(any::<prop::sample::Index>(), 40),
        ) {
            let (mut answers, mut out) = (Answers::new(100, 1 << 20), Output::new(1 << 20));
            let mut waiting = Vec::new();
            for (number, is_deferred) in deferred.iter().enumerate() {
                match is_deferred {
                    true => waiting.push((answers.defer(), number as u8)),
                    false => answers.put(&mut out, |out| out.put(&[number as u8])),
                }
            }
            let mut order = order.iter();
            while !waiting.is_empty() {
                let (id, number) =
                    waiting.swap_remove(order.next().expect("enough").index(waiting.len()));
                prop_assert!(answers.complete(id, &mut out, |out| out.put(&[number])));
            }
            prop_assert!(answers.is_empty());
            prop_assert_eq!(out.take(), (0..deferred.len() as u8).collect::<Vec<_>>());
        }
    }
}
