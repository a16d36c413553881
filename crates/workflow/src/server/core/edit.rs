//! `--edit_script`: a script as users see it, and the jobs and aliases that are made of what they
//! have edited.

use std::sync::Arc;

use super::alter::bad_name;
use super::history::remember;
use super::parts::{Due, Key, Parts, Told};
use super::text::no_node;
use super::unstarted::{Edited, MAX_EDITED_BYTES};
use crate::model::{Kind, NodeId, Rules, State};
use crate::protocol::{Edit, Reply, Request};
use crate::script::{Scope, Source, edit, locate, pre_process, pre_process_own};
use crate::server::disk::Disk;

/// What is asked.
pub(super) struct Asked<'a> {
    pub(super) edit: Edit,
    pub(super) path: &'a str,
    pub(super) lines: &'a [String],
    pub(super) variables: &'a [(String, String)],
    pub(super) alias: bool,
    pub(super) run: bool,
}

/// Carries it out.
pub(super) fn edit_script(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    asked: &Asked<'_>,
) -> Result<Told, String> {
    let path = asked.path;
    let found = rules.tree.find(path).filter(|id| *id != NodeId::ROOT);
    let id = found.ok_or_else(|| no_node(path))?;
    if !rules.tree.node(id).kind.is_job() {
        return Err(format!("EditScriptCmd failed. Cannot locate task or alias at path {path}"));
    }
    let (lines, variables) = (asked.lines.to_vec(), asked.variables.to_vec());
    match asked.edit {
        Edit::Edit | Edit::PreProcess | Edit::PreProcessFile => {
            Ok(shown(rules, id, asked.edit, lines))
        }
        Edit::Submit => {
            let edited = Edited::Run { lines: Vec::new(), variables };
            submit(parts, rules, request, (id, edited), "EditScriptCmd:: failed for submit: ")
        }
        Edit::SubmitFile if asked.alias && rules.tree.node(id).kind == Kind::Task => {
            create(parts, rules, request, id, asked)
        }
        Edit::SubmitFile => {
            let edited = Edited::Run { lines, variables };
            let before = "EditScriptCmd::SUBMIT_USER_FILE: failed : ";
            submit(parts, rules, request, (id, edited), before)
        }
    }
}

/// A script, or a user's text in its place, is made by another thread.
fn shown(rules: &Rules<'_>, id: NodeId, what: Edit, lines: Vec<String>) -> Told {
    let snapshot = rules.tree.snapshot();
    Told::of_script(rules.tree, id, move || {
        let (scope, path) = (Scope::of(&snapshot, id), snapshot.path(id));
        let text = locate(&Disk, &scope, &path).and_then(|script| {
            let own = (what == Edit::PreProcessFile).then_some(&lines[..]);
            let source = Source { node: &path, script: &script, lines: own, edited: &[] };
            match what {
                Edit::Edit => edit(&Disk, &scope, source),
                Edit::PreProcess => pre_process(&Disk, &scope, source),
                _ => pre_process_own(&Disk, &scope, source),
            }
        });
        match text {
            Ok(text) => Reply::Text(String::from_utf8_lossy(&text).into_owned()),
            Err(why) => Reply::Error(why),
        }
    })
}

/// Refuses what would have too much wait for being started.
fn check_room(parts: &Parts<'_>, edited: &Edited) -> Result<(), String> {
    if edited.bytes() <= parts.edit_room {
        return Ok(());
    }
    Err(format!(
        "EditScriptCmd: edited scripts of {MAX_EDITED_BYTES} bytes wait to be started: try again"
    ))
}

/// Keeps what a user gives until the job or script is made of it.
fn keep(parts: &mut Parts<'_>, path: String, edited: Edited) {
    parts.edit_room -= edited.bytes();
    parts.edited.insert(path, Arc::new(edited));
}

fn submit(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    (id, edited): (NodeId, Edited),
    before: &'static str,
) -> Result<Told, String> {
    let (state, path) = (rules.tree.node(id).state, rules.tree.path(id));
    if matches!(state, State::Active | State::Submitted) {
        let state = state.word();
        return Err(format!(
            "EditScriptCmd:: failed for submit: Node {path} is already {state} : "
        ));
    }
    check_room(parts, &edited)?;
    rules.submit_now(id);
    remember(parts, rules, request, &path);
    keep(parts, path, edited);
    let all = vec![Key::of_job(rules.tree, id)];
    Ok(Told::Made(Due { all, before, ..Due::default() }))
}

fn create(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    id: NodeId,
    asked: &Asked<'_>,
) -> Result<Told, String> {
    let task = rules.tree.path(id);
    if asked.lines.is_empty() {
        return Err(format!(
            "Task::add_alias: No .usr file contents specified. Alias creation failed for task \
             {task}"
        ));
    }
    let is_unfit = |c: char| c.is_whitespace() || c.is_control();
    let mut names = asked.variables.iter().map(|(name, _)| name);
    if let Some(name) = names.find(|name| name.is_empty() || name.contains(is_unfit)) {
        return Err(bad_name(name));
    }
    let edited = Edited::Create(asked.lines.to_vec());
    check_room(parts, &edited)?;
    let alias = rules.add_alias(id, asked.variables).map_err(|why| why.to_string())?;
    remember(parts, rules, request, &task);
    if asked.run {
        rules.submit_now(alias);
    }
    let path = rules.tree.path(alias);
    keep(parts, path, edited);
    let all = vec![Key::of_job(rules.tree, alias)];
    let before = "EditScriptCmd::SUBMIT_USER_FILE: failed for Alias : ";
    Ok(Told::Made(Due { all, before, ..Due::default() }))
}
