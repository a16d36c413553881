//! What users load and replace, and what came of jobs.

use crate::model::{Flag, Kind, NodeId, Rules, State, Tree};
use crate::protocol::{Body, Command, Request};
use crate::server::log::Category;

use super::check::shown;
use super::parts::{
    Definition, Effect, JOB_FAILED, KILL_FAILED, NO_SCRIPT, NOT_MADE, NOT_STARTED, Parts,
    SCRIPT_NOT_WRITTEN, SLOW, STATUS_FAILED, WRITTEN,
};

/// How many lines that are passed over in a definition are logged at most.
const MOST_WARNINGS: usize = 10;

/// Reads the definition of a request that has one; on any thread.
pub(in crate::server) fn read_definition(request: &Request) -> Option<Definition> {
    match &request.body {
        Body::User(_, Command::Load { definition, .. } | Command::Replace { definition, .. }) => {
            Some(read(definition))
        }
        _ => None,
    }
}

fn read(text: &str) -> Definition {
    let parsed = crate::definition::parse(text, "the definition").map_err(|why| why.to_string())?;
    if let Some(too_long) = parsed.too_long {
        return Err(too_long.to_string());
    }
    let mut tree = parsed.tree;
    tree.index_all();
    Ok((Box::new(tree), parsed.warnings))
}

/// The definition of a request, read before or now. What is passed over in it is logged.
fn definition(parts: &mut Parts<'_>, text: &str) -> Result<Box<Tree>, String> {
    let (tree, warnings) = parts.definition.take().unwrap_or_else(|| read(text))?;
    let lines = warnings.iter().take(MOST_WARNINGS).map(|one| format!("passed over: {one}"));
    parts.effects.extend(lines.map(|line| Effect::Log(Category::Warning, line)));
    Ok(tree)
}

/// Adds the suites of a definition. Returns their names.
pub(super) fn load(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    text: &str,
    force: bool,
) -> Result<Vec<String>, String> {
    let new = definition(parts, text)?;
    let names = new.suites().map(|suite| new.node(suite).name.to_string()).collect();
    rules.take(*new, force).map_err(|why| why.to_string())?;
    Ok(names)
}

/// Puts a node of a definition in place of the one at its path.
pub(super) fn replace(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    path: &str,
    text: &str,
    (creates, force): (bool, bool),
) -> Result<(), String> {
    let new = &*definition(parts, text)?;
    let node = new
        .find(path)
        .filter(|id| *id != NodeId::ROOT)
        .ok_or_else(|| format!("ReplaceNodeCmd: Can not find node {path} in the definition"))?;
    let (above, _) = path.rsplit_once('/').unwrap_or_default();
    let old = rules.tree.find(path);
    if let Some(old) = old.filter(|_| !force) {
        let runs = |id: &NodeId| {
            let node = rules.tree.node(*id);
            node.kind.is_job() && matches!(node.state, State::Active | State::Submitted)
        };
        let count = rules.tree.walk(old).filter(runs).count();
        if count > 0 {
            return Err(format!(
                "Cannot replace node {} because it has {count} tasks which are active or \
                 submitted\nPlease use the 'force' option to bypass this check, at the expense of \
                 creating zombies\n",
                shown(rules.tree, old)
            ));
        }
    }
    let parent = match rules.tree.find(above) {
        Some(parent) => parent,
        None if above.is_empty() => NodeId::ROOT,
        None if creates => {
            return Err(format!("ReplaceNodeCmd: making {above} is not served yet"));
        }
        None => return Err(format!("ReplaceNodeCmd: there is no node {above}")),
    };
    let place = old.and_then(|old| rules.tree.children(parent).position(|id| id == old));
    let was_begun = old.is_some_and(|old| rules.tree.node(old).is_begun);
    if let Some(old) = old {
        rules.delete(old);
    }
    let id = rules.plug(new, node, parent, place).map_err(|why| why.to_string())?;
    if parent != NodeId::ROOT {
        rules.begin_below(id);
    }
    if was_begun && parent == NodeId::ROOT {
        let name = path.trim_start_matches('/');
        rules.begin(name, true).map_err(|why| why.to_string())?;
    }
    Ok(())
}

/// Takes what came of a task's command.
pub(super) fn outcome(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    (code, (try_no, password)): (u8, (i32, &str)),
    path: &str,
    text: &str,
) {
    let Some(id) = rules.tree.find(path) else { return };
    let job = rules.tree.node(id).job();
    // Another job may have the same try, after a requeue. One that is complete has no password.
    let is_other = ![&*job.password, password].contains(&"") && job.password != *password;
    if job.try_no != try_no || is_other {
        return;
    }
    let state = rules.tree.node(id).state;
    let flag = match code {
        WRITTEN => {
            let blank = if text.is_empty() { "" } else { " " };
            let line = format!(" submitted: {path}{blank}{text}");
            return parts.effects.push(Effect::Log(Category::Change, line));
        }
        SLOW => {
            parts.effects.push(Effect::Log(Category::Warning, text.to_owned()));
            return rules.alter_flag(id, Flag::Threshold, true);
        }
        SCRIPT_NOT_WRITTEN => {
            parts.effects.push(Effect::Log(Category::Error, text.to_owned()));
            if rules.tree.node(id).kind == Kind::Alias {
                rules.delete(id);
            }
            return;
        }
        NO_SCRIPT => Flag::NoScript,
        NOT_MADE => Flag::EditFailed,
        NOT_STARTED | JOB_FAILED => Flag::JobCommandFailed,
        KILL_FAILED => Flag::KillCommandFailed,
        STATUS_FAILED => Flag::StatusCommandFailed,
        _ => return,
    };
    let (said, reason) = said(code, path, text);
    parts.effects.push(Effect::Log(Category::Error, said));
    let is_job = !matches!(code, KILL_FAILED | STATUS_FAILED);
    if is_job && !matches!(state, State::Complete | State::Active) {
        rules.job_failed(id, flag, &reason);
        return;
    }
    rules.alter_flag(id, flag, true);
    if is_job {
        // The job has reported all the same.
        rules.alter_flag(id, Flag::Zombie, true);
    }
}

/// What the log and a user get to read of a job that could not be made or started, and the reason
/// why its task is aborted, in ecFlow's words.
pub(in crate::server) fn said(code: u8, path: &str, text: &str) -> (String, String) {
    let made = "Submittable::submit_job_only: Job creation failed for task";
    match code {
        NO_SCRIPT => {
            let location = "Submittable::submit_job_only: Script location failed for task";
            (format!("{location} {path} :\n{text}\n"), text.to_owned())
        }
        NOT_MADE => {
            let both = format!("{made} {path} : \n   {text}\n");
            (both.clone(), both)
        }
        NOT_STARTED => {
            let why =
                format!(" Job creation failed for task {path} could not create child process.");
            (format!("{text}{why}"), why)
        }
        _ => (text.to_owned(), text.to_owned()),
    }
}
