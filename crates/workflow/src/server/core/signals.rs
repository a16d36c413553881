//! Jobs that are asked for their status, killed, or decided on as zombies.

use crate::model::{Flag, Kind, NodeId, Rules, State, Tree, ZombieAction};

use super::parts::{CommandKind, Effect, Parts, Submission, submission};
use super::zombies::Zombies;
use crate::script::substitute;
use crate::server::log::Category;
use base::many;

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
                kill_zombie(parts, rules, id, &process);
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
    // A kill is not refused there: no job runs.
    if let Some(suite) = suite.filter(|suite| !suite.is_begun && kind == CommandKind::Status) {
        let (path, suite) = (rules.tree.path(id), &suite.name);
        return Err(format!("Status failed. For {path} The suite {suite} must be 'begun' first"));
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
    let mut refused = Vec::new();
    for task in tasks {
        let start = submission(rules.tree, task, kind);
        let (failed, asked) = match kind {
            CommandKind::Kill => (Flag::KillCommandFailed, Flag::Killed),
            _ => (Flag::StatusCommandFailed, Flag::Status),
        };
        let why = refusal(rules.tree, task, &start);
        rules.alter_flag(task, failed, why.is_some());
        match why {
            Some(why) => refused.push(why),
            None => {
                rules.alter_flag(task, asked, true);
                parts.effects.push(Effect::Start(Box::new(start)));
            }
        }
    }
    // ecFlow's server breaks off at the first; here all others are asked, too.
    let more = refused.len().saturating_sub(NAMED);
    refused.truncate(NAMED);
    if more > 0 {
        refused.push(format!("and so of {}", many(more, "further task")));
    }
    if refused.is_empty() { Ok(()) } else { Err(refused.join("\n")) }
}

/// How many tasks whose commands can't be started are named.
const NAMED: usize = 10;

/// Why a kill or status command can't be started for a task's own job, in ecFlow's words.
fn refusal(tree: &Tree, id: NodeId, start: &Submission) -> Option<String> {
    let Submission { kind, path, scope, .. } = start;
    let (who, active) = match kind {
        CommandKind::Kill => ("Submittable::kill", ""),
        _ => ("Submittable::status", "ACTIVE "),
    };
    let name = kind.variable();
    if tree.node(id).state == State::Active && tree.node(id).job().rid.is_empty() {
        let what = "Generated variable ECF_RID is empty for";
        return Some(format!("{who}: {what} {active}task {path}"));
    }
    let command = scope.user(name).unwrap_or_default();
    if command.is_empty() {
        return Some(format!("{who}: {name} not defined, for task {path}"));
    }
    let micro = scope.user("ECF_MICRO").unwrap_or("%");
    if substitute(command.as_bytes(), scope, &[], micro.as_bytes()).is_none() {
        let what = format!("Variable substitution failed for {name}({command})");
        return Some(format!("{who}: {what} on task {path}"));
    }
    None
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

/// Starts ECF_KILL_CMD for a zombie of a task. Where its process isn't known, that of the task's
/// own job is taken, as ecFlow does, unless that is not active yet: then there is none.
pub(super) fn kill_zombie(parts: &mut Parts<'_>, rules: &mut Rules<'_>, id: NodeId, process: &str) {
    if process.is_empty() && rules.tree.node(id).state == State::Submitted {
        let path = rules.tree.path(id);
        let why = format!("the zombie of {path} is not killed: its process isn't known");
        parts.effects.push(Effect::Log(Category::Warning, why));
        return;
    }
    kill(parts, rules, id, process);
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
