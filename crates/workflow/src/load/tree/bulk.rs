//! Steps about all nodes: the request, and whether what came of it is right.

use std::time::{Duration, Instant};

use super::super::numbers::Numbers;
use super::super::requests::{command, sync};
use super::exchange::text;
use super::known::State;
use super::made::Made;
use super::names::Names;
use super::operations::Step;
use super::site::{Result, Site, wrong};
use crate::protocol::{
    Command, NodeCommand, PathsCommand, Requeue, ServerCommand, SyncAnswer, SyncKind,
    read_sync_answer,
};

/// The request of a step about all nodes.
pub(super) fn request(step: Step, made: &Made, state: &State) -> Vec<u8> {
    let paths = |command| Command::Paths { command, paths: made.tasks.clone(), force: false };
    command(match step {
        Step::Load => return made.load.clone(),
        Step::Replace => return made.replace.clone(),
        Step::Restart => Command::Server(ServerCommand::Restart),
        Step::Begin => Command::Begin { suite: String::new(), force: false },
        Step::Evaluate => Command::Server(ServerCommand::EvaluateAll),
        Step::CheckPoint | Step::CheckPointBusy | Step::CheckPointFull => {
            Command::CheckPoint { mode: 3, interval: 0, alarm: 0 }
        }
        Step::Get | Step::GetAtOnce => Command::Node(NodeCommand::Get, String::new()),
        Step::SyncFull | Step::SyncFullAtOnce => return sync(SyncKind::Full, Numbers::default()),
        Step::SyncCold => return sync(SyncKind::Changes, Numbers::default()),
        Step::Suspend => paths(PathsCommand::Suspend),
        Step::Resume => paths(PathsCommand::Resume),
        Step::Force => forced(made.suites.clone()),
        Step::Requeue => requeued(made.suites.clone()),
        Step::Delete => Command::Delete { paths: Vec::new(), force: true },
        _ => return sync(SyncKind::Changes, state.numbers),
    })
}

fn forced(paths: Vec<String>) -> Command {
    let word = "complete".to_owned();
    Command::Force { paths, word, recursive: true, repeats_to_last: false }
}

fn requeued(paths: Vec<String>) -> Command {
    Command::Requeue { paths, option: Requeue::Force }
}

/// Whether what came of a step is right; what else was measured goes to `figures`.
pub(super) fn check(
    step: Step,
    made: &Made,
    (site, state): (&mut Site, &mut State),
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<()> {
    let last = made.suites.last().map_or("", String::as_str);
    let task = made.tasks.last().map_or("", String::as_str);
    match step {
        Step::Get | Step::SyncFull | Step::SyncCold => return taken(step, site, state, figures),
        Step::Sync | Step::Resync => {
            let numbers = synced(site, state, figures)?;
            state.synced(numbers);
            return Ok(());
        }
        _ => super::exchange::agreed(&site.answer)?,
    }
    state.has_changed |= step != Step::Evaluate;
    match step {
        Step::Load => state.names = state.names + made.names,
        Step::Begin | Step::Evaluate => site.hold_state("state", last, "queued")?,
        Step::Replace => {
            site.query("state", task, "")?;
        }
        Step::Suspend => {
            site.hold_state("dstate", task, "suspended")?;
            state.suspended(true, made.tasks.len());
        }
        Step::Resume => {
            if site.query("dstate", task, "")? == "suspended" {
                return wrong(format!("{task} is suspended after it was resumed"));
            }
            state.suspended(false, made.tasks.len());
        }
        Step::Force => site.hold_state("state", last, "complete")?,
        Step::Requeue => site.hold_state("state", last, "queued")?,
        Step::Delete => {
            (state.names, state.is_suspended) = (Names::default(), false);
            if let Ok(found) = site.query("state", last, "") {
                return wrong(format!("{last} is {found} after it was deleted"));
            }
        }
        _ => {}
    }
    Ok(())
}

/// A text with the whole tree: each node has to be in it.
fn taken(
    step: Step,
    site: &mut Site,
    state: &mut State,
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<()> {
    figures.push(("answer_bytes", site.answer.len() as f64));
    let begun = Instant::now();
    let text = text(&site.answer)?;
    let tree = crate::definition::parse(&text, "answer").map_err(|why| why.to_string())?;
    figures.push(("decode_ns", begun.elapsed().as_nanos() as f64));
    let begun = Instant::now();
    drop(tree);
    figures.push(("destroy_ns", begun.elapsed().as_nanos() as f64));
    hold_names(Names::of(&text), state.names, "the answer")?;
    if step != Step::Get {
        state.synced(Numbers::of(&text));
    }
    Ok(())
}

/// Whether an answer's nodes are those that should be there.
pub(super) fn hold_names(found: Names, expected: Names, whose: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (found.nodes, expected.nodes);
    wrong(format!("{whose} has {found} nodes, not the {expected} that should be there"))
}

/// The answer to a sync: its numbers go on where something was changed.
fn synced(site: &Site, state: &State, figures: &mut Vec<(&'static str, f64)>) -> Result<Numbers> {
    figures.push(("answer_bytes", site.answer.len() as f64));
    let begun = Instant::now();
    let synced = read_sync_answer(&site.answer).map_err(|why| why.to_string())?;
    figures.push(("decode_ns", begun.elapsed().as_nanos() as f64));
    match &synced {
        SyncAnswer::Whole(text) => hold_names(Names::of(text), state.names, "the answer")?,
        SyncAnswer::Since { nodes, .. } => {
            figures.push(("nodes", nodes.len() as f64));
            state.hold_nodes(nodes.len() as u64)?;
        }
        SyncAnswer::Refused(_) => {}
    }
    let numbers = Numbers::of_sync(&synced)?;
    let before = state.numbers;
    if numbers.follow(before) || (numbers == before && !state.has_changed) {
        return Ok(numbers);
    }
    let changed = if state.has_changed { "something" } else { "nothing" };
    wrong(format!("numbers {numbers:?} after {before:?}, and {changed} was changed"))
}

/// The file of a checkpoint: another one than before, with each node in it.
pub(super) fn checkpoint(
    (site, before): (&Site, Option<(u64, i64, i64)>),
    state: &State,
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<()> {
    let path = &site.check_file;
    if before.is_some() && site.check_file_number() == before {
        return wrong(format!("{} is the one that was there before", path.display()));
    }
    let file = std::fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
    figures.push(("file_bytes", file.len() as f64));
    hold_names(Names::of(&file), state.names, "the checkpoint")
}

/// Mixed commands, each about one task and followed by a sync, as a user's window does it. Returns
/// how long all of them took.
pub(super) fn commands(
    count: u64,
    made: &Made,
    site: &mut Site,
    state: &mut State,
) -> Result<Duration> {
    let mut took = Duration::ZERO;
    let tasks = made.tasks.len() as u64;
    for number in 0..count {
        // Four commands a task; tasks evenly over the tree.
        let place = (number / 4).wrapping_mul(7_919) % tasks.max(1);
        let paths = vec![made.tasks[place as usize].clone()];
        let simple = |command| Command::Paths { command, paths: paths.clone(), force: false };
        let asked = command(match number % 4 {
            0 => simple(PathsCommand::Suspend),
            1 => forced(paths.clone()),
            2 => requeued(paths.clone()),
            _ => simple(PathsCommand::Resume),
        });
        took += site.tell(&asked)?;
        // A task that is complete by default is not changed by each of them.
        state.has_changed = number % 4 == 0;
        let sync = request(Step::Sync, made, state);
        took += site.ask(&sync)?;
        let numbers = synced(site, state, &mut Vec::new())?;
        state.synced(numbers);
    }
    Ok(took)
}
