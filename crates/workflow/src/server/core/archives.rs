//! `--archive` and `--restore`, and what comes of archives.

use std::collections::BTreeSet;

use super::filings::{Filing, READING, WRITING, archive_file};
use super::history::remember;
use super::parts::{
    ARCHIVED, Due, Effect, Key, MOVED, NOT_ARCHIVED, NOT_MOVED, Parts, RESTORED, Told,
};
use super::{plug, text};
use crate::model::{Flag, Kind, NodeId, Restoring, Rules, Snapshot, State, Tree, ZombieType};
use crate::protocol::{Reply, Request};
use crate::server::log::Category;

/// Why a node, or all of them, can't be taken away: jobs below it run.
pub(super) fn check_idle(tree: &Snapshot, of: Option<NodeId>) -> Result<(), String> {
    let mut why = String::new();
    for state in [State::Active, State::Submitted] {
        let is_it = |id: &NodeId| {
            let node = tree.node(*id);
            node.kind == Kind::Task && node.state == state
        };
        let mut running = tree.walk(of.unwrap_or(NodeId::ROOT)).filter(is_it);
        if let Some(first) = running.next() {
            let (count, word, path) = (running.count() + 1, state.word(), tree.path(first));
            why.push_str(&format!(" There are {count} {word} tasks. First : {path}\n"));
        }
    }
    if why.is_empty() {
        return Ok(());
    }
    let what = match of {
        None => "Cannot delete all nodes.".to_owned(),
        Some(id) => {
            let (kind, path) = (tree.node(id).kind.shout(), tree.path(id));
            format!("Cannot delete node {kind}:{path}")
        }
    };
    let force = "Please use the 'force' option to bypass this check, at the expense of creating";
    Err(format!("{what}\n{why}{force} zombies\n"))
}

/// Notes the jobs that run below a node as zombies: a user takes their tasks away.
pub(super) fn add_zombies(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    of: NodeId,
    command: &'static str,
) {
    let runs = |id: &NodeId| {
        let node = rules.tree.node(*id);
        node.kind.is_job() && matches!(node.state, State::Active | State::Submitted)
    };
    let running: Vec<NodeId> = rules.tree.walk(of).filter(runs).collect();
    for id in running {
        let (path, job) = (rules.tree.path(id), rules.tree.node(id).job());
        let rule = rules.tree.zombie_rule(&path, ZombieType::User);
        if parts.zombies.add_user(&path, &job, parts.at_us, (command, rule)) {
            rules.alter_flag(id, Flag::Zombie, true);
        }
    }
}

/// Says that a node isn't there, to the log at once, and to the client with the answer.
fn missing(parts: &mut Parts<'_>, due: &mut Due, word: &str, path: &str) {
    let line = format!("{word}: Could not find node at path {path}");
    parts.effects.push(Effect::Log(Category::Error, line));
    due.errors.push_str(&format!("PathsCmd:{word}: Could not find node at path '{path}'\n"));
}

/// Archives nodes; those that are below others of them are not archived by themselves.
pub(super) fn archive(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    (paths, force): (&[String], bool),
) -> Result<Told, String> {
    if paths.is_empty() {
        return Err("No paths specified for archive".to_owned());
    }
    let mut due = Due::default();
    let mut all = Vec::new();
    for path in paths {
        match rules.tree.find(path).filter(|id| *id != NodeId::ROOT) {
            Some(id) => all.push(id),
            None => missing(parts, &mut due, "ARCHIVE", path),
        }
    }
    let named: BTreeSet<NodeId> = all.iter().copied().collect();
    all.retain(|id| {
        let is_below = rules.tree.upwards(*id).skip(1).any(|above| named.contains(&above));
        !rules.tree.node(*id).kind.is_job() && !is_below
    });
    for id in all {
        let path = rules.tree.path(id);
        if parts.filings.written.contains_key(&path) || parts.filings.read.contains_key(&path) {
            return Err(format!("{path} is being archived or restored: try again"));
        }
        if force {
            add_zombies(parts, rules, id, "archive");
        } else {
            check_idle(rules.tree, Some(id))?;
        }
        remember(parts, rules, request, &path);
        if rules.tree.node(id).first_child.is_some() {
            rules.archive(id);
            due.all.push(Key::of_filing(path, WRITING));
        }
    }
    Ok(Told::Made(due))
}

/// Has the archives of nodes read.
pub(super) fn restore(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    paths: &[String],
) -> Result<Told, String> {
    if paths.is_empty() {
        return Err("No paths specified for restore".to_owned());
    }
    let mut due = Due::default();
    for path in paths {
        let Some(id) = rules.tree.find(path).filter(|id| *id != NodeId::ROOT) else {
            missing(parts, &mut due, "RESTORE", path);
            continue;
        };
        let node = rules.tree.node(id);
        if node.kind.is_job() {
            continue;
        }
        let refused = match (node.flags.has(Flag::Archived), node.first_child.is_some()) {
            (true, false) => None,
            (true, true) => Some("Container already has children ?"),
            (false, _) => Some("ecf::Flag::ARCHIVED not set"),
        };
        if let Some(why) = refused {
            return Err(format!("NodeContainer::restore() Node {path} can't restore, {why}"));
        }
        let path = rules.tree.path(id);
        remember(parts, rules, request, &path);
        rules.ask_restore(id, Restoring::Same);
        due.all.push(Key::of_filing(path, READING));
    }
    Ok(Told::Made(due))
}

/// Has the checkpoint read, where there are no suites.
pub(super) fn restore_checkpoint(parts: &mut Parts<'_>, rules: &Rules<'_>) -> Told {
    let why = if rules.tree.server().state != crate::model::ServerState::Halted {
        "Cannot restore from checkpt the server must be halted first"
    } else if rules.tree.suites().next().is_some() {
        "Cannot restore from checkpt the server suites must be deleted first"
    } else {
        parts.filings.read.insert("/".to_owned(), Restoring::Same);
        let filing = super::filings::reading(rules.tree, parts.environment, "/");
        parts.effects.push(Effect::File(filing));
        let all = vec![Key::of_filing("/".to_owned(), READING)];
        return Told::Made(Due { all, ..Due::default() });
    };
    Told::Reply(Reply::error(why))
}

/// Takes what came of an archive.
pub(super) fn filed(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    (code, path, text): (u8, &str, &str),
    parsed: Option<Box<Tree>>,
) {
    if let MOVED | NOT_MOVED = code {
        let done = if code == MOVED { Ok(()) } else { Err(text) };
        return plug::moved(parts, rules, path, done);
    }
    let id = rules.tree.find(path).filter(|id| {
        let node = rules.tree.node(*id);
        node.flags.has(Flag::Archived) && node.first_child.is_none()
    });
    let done = match (code, id) {
        (ARCHIVED, _) => {
            parts.filings.written.remove(path);
            Ok(())
        }
        (NOT_ARCHIVED, id) => {
            let archived = parts.filings.written.remove(path);
            let how = parts.filings.read.get(path).copied().unwrap_or(Restoring::Same);
            let back = id.zip(archived).map_or(Ok(()), |(id, archived)| {
                rules.unarchive(id, &archived, how).map_err(|why| why.to_string())
            });
            back.and_then(|()| Err(format!("{path} is not archived: {text}")))
        }
        (RESTORED, Some(id)) => {
            let how = parts.filings.read.remove(path).unwrap_or(Restoring::Same);
            let tree = parsed.map_or_else(|| text::read_archive(text), |tree| Ok(*tree));
            let done = tree.and_then(|tree| match tree.find(path) {
                None => Err(format!("the archive of {path} has no such node")),
                Some(node) => rules.restore(id, (&tree, node), how).map_err(|why| why.to_string()),
            });
            if done.is_ok() {
                let file = archive_file(rules.tree, parts.environment, path);
                parts.effects.push(Effect::File(Filing::Remove(file)));
            }
            done
        }
        (RESTORED, None) => {
            parts.filings.read.remove(path);
            Ok(())
        }
        _ => {
            parts.filings.read.remove(path);
            Err(text.to_owned())
        }
    };
    if let Err(why) = done {
        parts.effects.push(Effect::Log(Category::Error, why));
    }
}
