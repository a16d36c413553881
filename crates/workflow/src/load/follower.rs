//! A client that follows one server: its numbers, and the labels of tasks as it was sent them.

use std::sync::{Mutex, PoisonError};

use super::numbers::Numbers;

/// What the client has; all slots of a target share it.
#[derive(Debug, Default)]
pub(super) struct Follower(Mutex<Has>);

#[derive(Debug, Default)]
struct Has {
    numbers: Numbers,
    /// The version of each task's label; 0 while it is unknown.
    labels: Vec<u32>,
}

impl Follower {
    /// A client that has nothing of this number of tasks.
    pub(super) fn of(tasks: u64) -> Self {
        let labels = vec![0; usize::try_from(tasks).unwrap_or(0)];
        Self(Mutex::new(Has { numbers: Numbers::default(), labels }))
    }

    /// The numbers that it has.
    pub(super) fn numbers(&self) -> Numbers {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).numbers
    }

    /// Takes an answer with these numbers, unless it has a later one: an answer has everything
    /// since numbers that the client once had. Returns the version of a task's label then.
    pub(super) fn take(
        &self,
        numbers: Numbers,
        labels: impl Iterator<Item = (u64, u32)>,
        key: u64,
    ) -> Option<u32> {
        let mut has = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers == has.numbers || numbers.follow(has.numbers) {
            has.numbers = numbers;
            for (key, version) in labels {
                if let Some(place) = has.labels.get_mut(key as usize) {
                    *place = version;
                }
            }
        }
        has.labels.get(key as usize).copied().filter(|version| *version > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_older_than_what_it_has_changes_nothing() {
        let follower = Follower::of(2);
        let at = |state| Numbers { state, modify: 1 };
        assert_eq!(follower.take(at(5), [(0, 1), (1, 1)].into_iter(), 1), Some(1));
        assert_eq!(follower.take(at(7), [(1, 3), (9, 9)].into_iter(), 1), Some(3));
        assert_eq!(follower.take(at(6), [(1, 2)].into_iter(), 1), Some(3));
        assert_eq!((follower.numbers(), follower.take(at(7), [].into_iter(), 0)), (at(7), Some(1)));
        assert_eq!(Follower::of(0).take(at(1), [(0, 1)].into_iter(), 0), None);
    }
}
