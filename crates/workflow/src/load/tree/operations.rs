//! The steps.

use load::{Kind, Operation};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Load,
    Restart,
    Begin,
    Evaluate,
    CheckPoint,
    CheckPointBusy,
    Get,
    SyncFull,
    SyncCold,
    Sync,
    Suspend,
    Resume,
    Force,
    Requeue,
    Commands,
    Delete,
    LoadJobs,
    Jobs,
    LoadPairs,
    Dependent,
    LoadReleased,
    Release,
    Replace,
}

/// All of them; the lab's table has the same order.
pub(super) const STEPS: [Step; OPERATIONS.len()] = [
    Step::Load,
    Step::Restart,
    Step::Begin,
    Step::Evaluate,
    Step::CheckPoint,
    Step::CheckPointBusy,
    Step::Get,
    Step::SyncFull,
    Step::SyncCold,
    Step::Sync,
    Step::Suspend,
    Step::Resume,
    Step::Force,
    Step::Requeue,
    Step::Commands,
    Step::Delete,
    Step::LoadJobs,
    Step::Jobs,
    Step::LoadPairs,
    Step::Dependent,
    Step::LoadReleased,
    Step::Release,
    Step::Replace,
];

/// What the lab knows of them.
pub(super) static OPERATIONS: [Operation; 23] = [
    Operation::new("load", Kind::Write, "Loads the definition of `scale`."),
    Operation::new("restart", Kind::Write, "Has the server run."),
    Operation::new("begin", Kind::Write, "Begins all suites; no task is free to run."),
    Operation::new("evaluate", Kind::Write, "Has all dependencies evaluated: none is met."),
    Operation::new("checkpoint", Kind::Write, "Has a checkpoint written; its nodes are counted."),
    Operation::new(
        "checkpoint-busy",
        Kind::Write,
        "The same while the first tasks of pairs end one after another.",
    ),
    Operation::new("get", Kind::Read, "Takes the definition; every node has to be in it."),
    Operation::new("sync-full", Kind::Read, "Takes all that a client that follows needs."),
    Operation::new("sync-cold", Kind::Read, "The same for a client that has nothing yet."),
    Operation::new("sync", Kind::Read, "Takes what has changed since the last of these."),
    Operation::new("suspend", Kind::Write, "Suspends each task by its path, in one request."),
    Operation::new("resume", Kind::Write, "Resumes each task by its path, in one request."),
    Operation::new("force", Kind::Write, "Forces all suites complete, with all below them."),
    Operation::new("requeue", Kind::Write, "Queues all suites anew."),
    Operation::new("commands", Kind::Write, "`commands` mixed commands, each with a sync."),
    Operation::new("delete", Kind::Write, "Deletes all suites."),
    Operation::new("load-jobs", Kind::Write, "Loads a suite of `jobs` tasks with a script."),
    Operation::new("jobs", Kind::Write, "Begins it; each job's command has to run once."),
    Operation::new("load-pairs", Kind::Write, "Loads and begins pairs of tasks."),
    Operation::new("dependent", Kind::Write, "Ends a task until the one behind it is submitted."),
    Operation::new("load-released", Kind::Write, "Loads and begins tasks that wait for one."),
    Operation::new("release", Kind::Write, "Ends that one, until all `released` are submitted."),
    Operation::new(
        "replace",
        Kind::Write,
        "Replaces the last suite by the same, triggers and all.",
    ),
];
