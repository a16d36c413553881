//! What waits until the journal has what came before it: answers, and commands to be started.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use journal::Progress;

/// Something that is done once a record is durable.
type Then = Box<dyn FnOnce(Result<(), String>) + Send>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(u64, bool, Then)>,
    acknowledged: u64,
    /// Why nothing is acknowledged: for as long as the disk is full, or for good.
    stalled: Option<String>,
    has_failed: bool,
}

/// What waits, in order.
#[derive(Default)]
pub(super) struct Pending(Mutex<Queue>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent between any two calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `then` once all records through `number` are durable, or can never be. What only
    /// `reads` doesn't wait while the disk is full.
    pub(super) fn after(
        &self,
        number: u64,
        reads: bool,
        then: impl FnOnce(Result<(), String>) + Send + 'static,
    ) {
        let mut queue = self.lock();
        let is_stalled = queue.stalled.is_some();
        if number <= queue.acknowledged || (reads && is_stalled) {
            drop(queue);
            return then(Ok(()));
        }
        if let Some(why) = queue.stalled.clone().filter(|_| queue.has_failed) {
            drop(queue);
            return then(Err(why));
        }
        queue.waiting.push_back((number, reads, Box::new(then)));
    }

    /// Takes what the journal reports, on the journal's thread.
    pub(super) fn progress(&self, progress: Progress) {
        let (due, result) = match progress {
            Progress::Acknowledged(number) => (self.through(number), Ok(())),
            Progress::Stalled(error) => (self.stall(error.to_string(), false), Ok(())),
            Progress::Resumed => {
                self.lock().stalled = None;
                (Vec::new(), Ok(()))
            }
            Progress::Failed(error) => {
                let reads = self.stall(error.to_string(), true);
                reads.into_iter().for_each(|then| then(Ok(())));
                (self.through(u64::MAX), Err(error.to_string()))
            }
        };
        for then in due {
            then(result.clone());
        }
    }

    fn through(&self, number: u64) -> Vec<Then> {
        let mut queue = self.lock();
        if number != u64::MAX {
            queue.acknowledged = number;
        }
        let count = queue.waiting.iter().take_while(|(one, ..)| *one <= number).count();
        queue.waiting.drain(..count).map(|(_, _, then)| then).collect()
    }

    /// Notes that nothing is acknowledged, and returns what only reads.
    fn stall(&self, why: String, for_good: bool) -> Vec<Then> {
        let mut queue = self.lock();
        queue.stalled = Some(why);
        queue.has_failed |= for_good;
        let waiting = std::mem::take(&mut queue.waiting);
        let (reads, others): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, reads, _)| *reads);
        queue.waiting = others.into();
        reads.into_iter().map(|(_, _, then)| then).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Pending;
    use journal::{Error, Progress};
    use std::sync::mpsc::channel;

    #[test]
    fn what_waits_is_done_in_order_and_reads_pass_a_full_disk() {
        let pending = Pending::default();
        let (sender, receiver) = channel();
        let after = |number, reads, name: &'static str| {
            let sender = sender.clone();
            pending.after(number, reads, move |result| {
                sender.send((name, result.is_ok())).expect("the test waits");
            });
        };
        after(1, false, "first");
        after(2, false, "second");
        after(2, true, "read");
        after(0, true, "early");
        pending.progress(Progress::Acknowledged(1));
        pending.progress(Progress::Stalled(Error::Closed));
        after(2, true, "read while full");
        after(3, false, "third");
        pending.progress(Progress::Resumed);
        pending.progress(Progress::Acknowledged(2));
        pending.progress(Progress::Failed(Error::Closed));
        after(4, false, "fourth");
        let all: Vec<_> = receiver.try_iter().collect();
        let meant = [
            ("early", true),
            ("first", true),
            ("read", true),
            ("read while full", true),
            ("second", true),
            ("third", false),
            ("fourth", false),
        ];
        assert_eq!(all, meant);
    }
}
