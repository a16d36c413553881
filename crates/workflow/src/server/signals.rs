//! Kill and status commands: they have places of their own, so that jobs whose commands hang can be
//! ended. One that waits is started for the job only that it was asked for.

use super::core::Submission;
use super::keyed_queue::KeyedQueue;

/// The most of each kind that run at once.
pub(super) const MOST_RUNNING: usize = 32;

/// Where as many of each kind wait for those, further ones are refused.
pub(super) const MOST_WAITING: usize = 100_000;

/// The most of those that wait that are looked at, at a time.
const LOOKS: usize = 64;

/// The commands of one kind.
#[derive(Default)]
pub(super) struct Signals {
    running: usize,
    /// By path: one for the task's own job, and one for each zombie of that path, by its process.
    waiting: KeyedQueue<(String, Option<String>), Job>,
}

/// The job that a command is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) try_no: i32,
    pub(super) password: String,
    /// Empty where it isn't known.
    pub(super) process: String,
}

/// What has come of looking at those that wait.
pub(super) struct Looked<T> {
    /// Those that are started now, which have their places.
    pub(super) starts: Vec<T>,
    /// Those that are not: the path, and whether it was for a zombie.
    pub(super) gone: Vec<(String, bool)>,
    /// Whether there may be more to look at.
    pub(super) has_more: bool,
}

impl Signals {
    /// Takes a command, and gives it back where it has a place; else it waits, in place of one that
    /// waits for the same task.
    pub(super) fn add(&mut self, submission: Submission) -> Option<Submission> {
        if self.running < MOST_RUNNING && self.waiting.is_empty() {
            self.running += 1;
            return Some(submission);
        }
        let Submission { path, try_no, password, process, is_for_zombie, .. } = submission;
        let zombie = is_for_zombie.then(|| process.clone());
        self.waiting.add((path, zombie), Job { try_no, password, process });
        None
    }

    /// One has ended.
    pub(super) fn over(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Looks at some of those that have waited for longest, for as long as there are places: what
    /// `meant` starts for a path and a job.
    pub(super) fn look<T>(&mut self, meant: impl Fn(&str, &Job) -> Option<T>) -> Looked<T> {
        let mut looked = Looked { starts: Vec::new(), gone: Vec::new(), has_more: false };
        for _ in 0..LOOKS {
            if self.running >= MOST_RUNNING {
                return looked;
            }
            let Some(((path, zombie), job)) = self.waiting.pop() else { return looked };
            match meant(&path, &job) {
                Some(start) => {
                    self.running += 1;
                    looked.starts.push(start);
                }
                None => looked.gone.push((path, zombie.is_some())),
            }
        }
        looked.has_more = true;
        looked
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether further ones are refused.
    pub(super) fn is_full(&self) -> bool {
        self.waiting() >= MOST_WAITING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::core::CommandKind;

    fn kill(path: &str, process: &str, is_for_zombie: bool) -> Submission {
        Submission {
            kind: CommandKind::Kill,
            path: path.to_owned(),
            is_alias: false,
            try_no: 1,
            password: "p".to_owned(),
            process: process.to_owned(),
            is_for_zombie,
            number: 0,
            scope: crate::script::Scope::default(),
            edited: None,
        }
    }

    /// All places are taken.
    fn full() -> Signals {
        let mut signals = Signals::default();
        for _ in 0..MOST_RUNNING {
            assert!(signals.add(kill("/s/x", "", false)).is_some(), "there is a place");
        }
        signals
    }

    #[test]
    fn of_thousands_that_are_not_meant_any_more_a_few_are_looked_at_at_a_time() {
        let mut signals = full();
        for number in 0..LOOKS + 1 {
            assert!(signals.add(kill(&format!("/s/t{number}"), "", false)).is_none());
        }
        signals.over();
        let looked = signals.look(|_, _| None::<()>);
        assert_eq!((looked.gone.len(), looked.has_more), (LOOKS, true));
        // One that comes meanwhile waits behind the others.
        assert!(signals.add(kill("/s/y", "", false)).is_none());
        let looked = signals.look(|path, _| Some(path.to_owned()));
        assert_eq!((looked.starts, looked.has_more), (vec![format!("/s/t{LOOKS}")], false));
        assert_eq!(signals.waiting(), 1);
    }

    #[test]
    fn those_that_wait_go_in_the_order_of_time_one_for_each_task_and_one_for_its_zombie() {
        let mut signals = full();
        let asked = [("/s/b", "", false), ("/s/a", "", false), ("/s/b", "7", false)];
        for (path, process, is_for_zombie) in asked.into_iter().chain([("/s/b", "9", true)]) {
            assert!(signals.add(kill(path, process, is_for_zombie)).is_none());
        }
        (0..MOST_RUNNING).for_each(|_| signals.over());
        let looked = signals.look(|path, job| Some((path.to_owned(), job.process.clone())));
        let meant = [("/s/b", "7"), ("/s/a", ""), ("/s/b", "9")];
        assert_eq!(
            looked.starts,
            meant.map(|(path, process)| (path.to_owned(), process.to_owned()))
        );
        assert!(looked.gone.is_empty() && !looked.has_more);
    }
}
