//! Jobs that are asked for their status, killed, or decided on as zombies.

use crate::model::{Flag, Kind, NodeId, Rules, State, Tree, ZombieAction};

use super::parts::{CommandKind, Effect, Parts, Submission, submission};
use super::zombies::Zombies;

/// Decides what becomes of the zombies of these paths: of one job, or of each path's.
pub(super) fn zombies(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    (process, password): (&str, &str),
    paths: &[String],
    action: ZombieAction,
) -> Result<(), String> {
    if process.is_empty() && password.is_empty() {
        for path in paths {
            let task = rules.tree.find(path).filter(|id| rules.tree.node(*id).kind == Kind::Task);
            let job = task.map(|id| rules.tree.node(id).job());
            let killed = parts.zombies.decide_by_path(path, job.as_ref(), action)?;
            if let (Some(process), Some(id)) = (killed, task) {
                kill(parts, rules, id, &process);
            }
        }
        return Ok(());
    }
    let [path] = paths else {
        return Err("ZombieCmd: process_or_remote_id and password cannot be used when multiple \
                    paths are specified. Please specify a single path"
            .to_owned());
    };
    parts.zombies.decide(path, (process, password), action);
    Ok(())
}

/// Starts ECF_KILL_CMD or ECF_STATUS_CMD for the tasks of a node.
pub(super) fn shell(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    id: NodeId,
    kind: CommandKind,
) -> Result<(), String> {
    let suite = rules.tree.suite(id).map(|suite| rules.tree.node(suite));
    if let Some(suite) = suite.filter(|suite| !suite.is_begun) {
        let what = if kind == CommandKind::Kill { "Kill" } else { "Status" };
        let (path, suite) = (rules.tree.path(id), &suite.name);
        return Err(format!("{what} failed. For {path} The suite {suite} must be 'begun' first"));
    }
    let runs = |id: &NodeId| {
        let node = rules.tree.node(*id);
        node.kind.is_job() && matches!(node.state, State::Submitted | State::Active)
    };
    if kind == CommandKind::Status && rules.tree.node(id).kind.is_job() && !runs(&id) {
        rules.alter_flag(id, Flag::StatusCommandFailed, true);
        let path = rules.tree.path(id);
        return Err(format!(
            "Submittable::status: To use status command on a *single* node({path}) it must be \
             active or submitted"
        ));
    }
    let tasks: Vec<NodeId> = rules.tree.walk(id).filter(runs).collect();
    for task in tasks {
        if kind == CommandKind::Kill {
            kill(parts, rules, task, "");
        } else {
            rules.alter_flag(task, Flag::Status, true);
            let start = submission(rules.tree, task, kind);
            parts.effects.push(Effect::Start(Box::new(start)));
        }
    }
    Ok(())
}

/// What starts ECF_KILL_CMD or ECF_STATUS_CMD, which has waited, for a job that is still the task's
/// own, with this try and password and in this process, where it was known; or for a zombie.
pub(super) fn signal(
    tree: &Tree,
    zombies: &Zombies,
    kind: CommandKind,
    (path, process): (&str, &str),
    job: (i32, &str),
) -> Option<Submission> {
    let id = tree.find(path).filter(|id| tree.node(*id).kind.is_job())?;
    let runs = matches!(tree.node(id).state, State::Submitted | State::Active);
    let is_same = process.is_empty() || *tree.node(id).job().rid == *process;
    if runs && is_same && is_own(tree, id, job) {
        return Some(submission(tree, id, kind));
    }
    zombies.has(path, process).then(|| of_zombie(tree, id, kind, process))
}

/// Whether a job, by its try and password, is the task's own.
pub(super) fn is_own(tree: &Tree, id: NodeId, (try_no, password): (i32, &str)) -> bool {
    let job = tree.node(id).job();
    job.try_no == try_no && *job.password == *password
}

/// What starts a command for a zombie of a task, with this process.
fn of_zombie(tree: &Tree, id: NodeId, kind: CommandKind, process: &str) -> Submission {
    let mut start = submission(tree, id, kind);
    start.scope.set("ECF_RID", process);
    process.clone_into(&mut start.process);
    start.is_for_zombie = true;
    start
}

/// Starts ECF_KILL_CMD for a job of a task: its own one, or the zombie with this process.
pub(super) fn kill(parts: &mut Parts<'_>, rules: &mut Rules<'_>, id: NodeId, process: &str) {
    rules.alter_flag(id, Flag::Killed, true);
    let start = match process {
        "" => submission(rules.tree, id, CommandKind::Kill),
        _ => of_zombie(rules.tree, id, CommandKind::Kill, process),
    };
    parts.effects.push(Effect::Start(Box::new(start)));
}
