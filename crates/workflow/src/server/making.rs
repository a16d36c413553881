//! Jobs and scripts of aliases that other threads make. Of a task one is made at a time: a second
//! job would write the same files.

use std::collections::{HashMap, VecDeque};

use super::core::{CommandKind, Submission};

/// Tasks for which something is made, now or as soon as a thread has time, each with the queue of
/// what is made next for it: of jobs only the last one is still the task's own.
#[derive(Default)]
pub(super) struct Making(HashMap<String, VecDeque<Box<Submission>>>);

/// When something is made.
#[derive(Debug)]
pub(super) enum When {
    Now(Box<Submission>),
    /// Behind what is being made; a job that waited for that is not made any more.
    Later(Option<Box<Submission>>),
}

impl Making {
    /// Adds what is to be made, submitted later than all that was added for its task.
    pub(super) fn add(&mut self, submission: Box<Submission>) -> When {
        let Some(behind) = self.0.get_mut(&submission.path) else {
            self.0.insert(submission.path.clone(), VecDeque::new());
            return When::Now(submission);
        };
        let is_job = |one: &Submission| one.kind == CommandKind::Job;
        let replaced = behind.iter().position(|one| is_job(&submission) && is_job(one));
        let older = replaced.and_then(|at| behind.remove(at));
        behind.push_back(submission);
        When::Later(older)
    }

    /// Returns what is made now, as what was made for a task is over.
    pub(super) fn next(&mut self, path: &str) -> Option<Box<Submission>> {
        let next = self.0.get_mut(path)?.pop_front();
        if next.is_none() {
            self.0.remove(path);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kind: CommandKind, password: &str) -> Box<Submission> {
        Box::new(Submission {
            kind,
            path: "/s/t".to_owned(),
            is_alias: false,
            try_no: 1,
            password: password.to_owned(),
            process: String::new(),
            is_for_zombie: false,
            number: 0,
            scope: crate::script::Scope::default(),
            edited: None,
        })
    }

    #[test]
    fn of_a_task_one_is_made_at_a_time_and_of_jobs_that_wait_the_last() {
        let mut making = Making::default();
        let job = |password| one(CommandKind::Job, password);
        assert!(matches!(making.add(job("a")), When::Now(now) if now.password == "a"));
        assert!(matches!(making.add(job("b")), When::Later(None)));
        assert!(matches!(making.add(one(CommandKind::Script, "c")), When::Later(None)));
        assert!(matches!(making.add(job("d")), When::Later(Some(older)) if older.password == "b"));
        for (path, next) in [("/s/x", None), ("/s/t", Some("c")), ("/s/t", Some("d"))] {
            assert_eq!(making.next(path).map(|one| one.password).as_deref(), next);
        }
        assert!(making.next("/s/t").is_none());
        assert!(matches!(making.add(job("e")), When::Now(_)));
    }
}
