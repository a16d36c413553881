//! Steps in this program's own protocol: trees by encoding and by level. A server that doesn't
//! speak it is asked for all in ecFlow's, and the answer is cut by the client.

use std::time::{Duration, Instant};

use super::super::numbers::Numbers;
use super::super::requests::sync;
use super::bulk::{self, hold_names};
use super::exchange::text;
use super::known::State;
use super::made::Made;
use super::names::Names;
use super::operations::Step;
use super::site::{Result, Site, wrong};
use crate::binary;
use crate::definition::{parse, parse_kept};
use crate::model::{ALL_LEVELS, Marks, NodeId, Portion, Snapshot};
use crate::protocol::{Encoding, Header, SyncKind};

/// What is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// So many levels.
    Levels(u32),
    /// What has changed since the last sync.
    Changes,
}

/// What a step takes, and how it is written; none of other steps.
pub(super) const fn taken(step: Step) -> Option<(Taken, Encoding)> {
    Some(match step {
        Step::GetText => (Taken::Levels(ALL_LEVELS), Encoding::Text),
        Step::GetBinary => (Taken::Levels(ALL_LEVELS), Encoding::Binary),
        Step::SyncText => (Taken::Changes, Encoding::Text),
        Step::SyncBinary => (Taken::Changes, Encoding::Binary),
        Step::Level0 => (Taken::Levels(0), Encoding::Binary),
        Step::Level1 => (Taken::Levels(1), Encoding::Binary),
        Step::Level2 => (Taken::Levels(2), Encoding::Binary),
        Step::Level3 => (Taken::Levels(3), Encoding::Binary),
        _ => return None,
    })
}

/// The request of such a step.
pub(super) fn request((taken, encoding): (Taken, Encoding), site: &Site, state: &State) -> Vec<u8> {
    if !site.is_own {
        return match taken {
            Taken::Changes => sync(SyncKind::Changes, state.numbers),
            Taken::Levels(_) => sync(SyncKind::Full, Numbers::default()),
        };
    }
    let (levels, known) = match taken {
        Taken::Levels(levels) => (levels, None),
        Taken::Changes => (ALL_LEVELS, state.numbers.pair()),
    };
    let portions = vec![Portion { path: "/".to_owned(), levels, known }];
    let mut request = Vec::new();
    Header { encoding, follow: None, wants_states: false, portions }.write(&mut request);
    request.extend(sync(SyncKind::Changes, Numbers::default()));
    request
}

/// Does such a step: how long the answer takes, what it costs the server, and what it brings.
pub(super) fn take(
    step: Step,
    what: (Taken, Encoding),
    made: &Made,
    (site, state): (&mut Site, &mut State),
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<Duration> {
    let request = request(what, site, state);
    let before = site.process.cpu_ns();
    let took = site.ask(&request)?;
    site.process.settle();
    let cpu_ns = site.process.cpu_ns().saturating_sub(before);
    figures.push(("cpu_ns", cpu_ns as f64));
    if !site.is_own && what.0 == Taken::Changes {
        bulk::check(Step::Sync, made, (site, state), figures)?;
        return Ok(took);
    }
    figures.push(("answer_bytes", site.answer.len() as f64));
    let begun = Instant::now();
    let (tree, marks) = decoded(site, what.0)?;
    figures.push(("decode_ns", begun.elapsed().as_nanos() as f64));
    match what.0 {
        Taken::Changes => changed(&tree, &marks, state, figures)?,
        Taken::Levels(levels) => {
            let found = Names::of_tree(&tree);
            if levels == ALL_LEVELS {
                hold_names(found, state.names, "the answer")?;
                let levels = [0, 1, 2, 3].map(|levels| at_levels(&tree, levels));
                state.levels = Some((found, levels));
            } else {
                let known = state.levels.filter(|(whole, _)| *whole == state.names);
                let expected = known.and_then(|(_, all)| all.get(levels as usize).copied());
                let Some(expected) = expected else {
                    return wrong(format!("{step:?}: do get-text or get-binary before"));
                };
                hold_names(found, expected, "the answer")?;
            }
        }
    }
    let begun = Instant::now();
    drop(tree);
    figures.push(("destroy_ns", begun.elapsed().as_nanos() as f64));
    Ok(took)
}

/// The names of a tree's first levels.
fn at_levels(tree: &Snapshot, levels: u32) -> Names {
    let mut walk = tree.walk(NodeId::ROOT);
    let mut seen = Vec::new();
    while let Some(id) = walk.next() {
        let depth = tree.upwards(id).count() as u32;
        if depth > 0 {
            seen.push((tree.node(id).kind.word(), &*tree.node(id).name));
        }
        if depth >= levels {
            walk.skip_below(id);
        }
    }
    Names::of_nodes(seen)
}

/// What was answered, as a tree.
fn decoded(site: &Site, taken: Taken) -> Result<(Snapshot, Marks)> {
    match site.encoding {
        Some(Encoding::Binary) => {
            let read = binary::read(&site.answer).map_err(|why| why.to_string())?;
            Ok((read.tree.snapshot(), read.marks))
        }
        Some(Encoding::Text) => {
            let text = std::str::from_utf8(&site.answer).map_err(|why| why.to_string())?;
            let parsed = parse_kept(text, "answer").map_err(|why| why.to_string())?;
            Ok((parsed.tree.snapshot(), parsed.marks))
        }
        None => {
            let text = text(&site.answer)?;
            let tree = parse(&text, "answer").map_err(|why| why.to_string())?.tree;
            let Taken::Levels(levels) = taken else { return wrong("it is no answer to a sync") };
            let whole = Portion { path: "/".to_owned(), levels, known: None };
            Ok(tree.wanted(&[whole])?.cut(&tree))
        }
    }
}

/// What has changed: the numbers go on, and each node that comes is one of the tree.
fn changed(
    tree: &Snapshot,
    marks: &Marks,
    state: &mut State,
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<()> {
    let is_new = |id: &NodeId| !marks.get(id).is_some_and(|mark| mark.is_bare);
    let nodes = tree.walk(NodeId::ROOT).filter(is_new).count() as u64;
    figures.push(("nodes", nodes as f64));
    let numbers =
        Numbers { state: tree.state_change_no().into(), modify: tree.modify_change_no().into() };
    let before = state.numbers;
    let is_right = numbers.follow(before) || (numbers == before && !state.has_changed);
    if !is_right || state.has_changed && nodes == 0 {
        let changed = if state.has_changed { "something" } else { "nothing" };
        return wrong(format!(
            "{nodes} nodes and the numbers {numbers:?} after {before:?}, and {changed} was changed"
        ));
    }
    state.hold_nodes(nodes)?;
    state.synced(numbers);
    Ok(())
}
