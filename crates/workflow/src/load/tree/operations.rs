//! The steps.

use load::{Kind, Operation};

/// One row a step: what the code calls it, and what the lab knows of it.
macro_rules! steps {
    ($($step:ident $name:literal $kind:ident $doc:literal)*) => {
        /// A step.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Step {
            $($step),*
        }

        /// All of them, in the order of the lab's table.
        pub(super) const STEPS: [Step; COUNT] = [$(Step::$step),*];

        /// What the lab knows of them.
        pub(super) static OPERATIONS: [Operation; COUNT] =
            [$(Operation::new($name, Kind::$kind, $doc)),*];

        const COUNT: usize = [$($name),*].len();
    };
}

steps! {
    Load "load" Write "Loads the definition of `scale`."
    Restart "restart" Write "Has the server run."
    Begin "begin" Write "Begins all suites; no task is free to run."
    Evaluate "evaluate" Write "Has all dependencies evaluated: none is met."
    CheckPoint "checkpoint" Write "Has a checkpoint written; its nodes are counted."
    CheckPointBusy "checkpoint-busy" Write
        "The same while the first tasks of pairs end one after another."
    CheckPointFull "checkpoint-full" Write
        "The same where its file finds no room: it has to be refused."
    Rest "rest" Read "Waits for two seconds, by which time kept texts are given back."
    Get "get" Read "Takes the definition; every node has to be in it."
    SyncFull "sync-full" Read "Takes all that a client that follows needs."
    SyncCold "sync-cold" Read "The same for a client that has nothing yet."
    Sync "sync" Read "Takes what has changed since the last of these."
    Resync "resync" Read "The same, behind a step that has changed each task."
    Suspend "suspend" Write "Suspends each task by its path, in one request."
    Resume "resume" Write "Resumes each task by its path, in one request."
    Force "force" Write "Forces all suites complete, with all below them."
    Requeue "requeue" Write "Queues all suites anew."
    Commands "commands" Write "`commands` mixed commands, each with a sync."
    Delete "delete" Write "Deletes all suites."
    LoadJobs "load-jobs" Write "Loads a suite of `jobs` tasks with a script."
    Jobs "jobs" Write "Begins it; each job's command has to run once."
    LoadPairs "load-pairs" Write "Loads and begins pairs of tasks."
    Dependent "dependent" Write "Ends a task until the one behind it is submitted."
    LoadReleased "load-released" Write "Loads and begins tasks that wait for one."
    Release "release" Write "Ends that one, until all `released` are submitted."
    Replace "replace" Write "Replaces the last suite by the same, triggers and all."
    GetText "get-text" Read "Takes the whole tree as text, in this program's protocol if spoken."
    GetBinary "get-binary" Read "The same as binary."
    SyncText "sync-text" Read "Takes what has changed since the last sync, so as text."
    SyncBinary "sync-binary" Read "The same as binary."
    Level0 "level-0" Read "Takes the server alone, as binary."
    Level1 "level-1" Read "Takes the suites."
    Level2 "level-2" Read "Takes the suites and their children."
    Level3 "level-3" Read "Takes three levels of nodes."
    GetAtOnce "get-at-once" Read "The same as get by eight clients at once, until the last has it."
    SyncFullAtOnce "sync-full-at-once" Read "The same as sync-full by eight."
    Pushed "pushed" Write "Changes a task, 20 times, until another client that follows has it."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_a_name_each() {
        let names: std::collections::BTreeSet<_> = OPERATIONS.iter().map(|one| &one.name).collect();
        assert_eq!((names.len(), STEPS.len()), (COUNT, COUNT));
        assert_eq!(OPERATIONS[Step::Level3 as usize].name, "level-3");
    }
}
