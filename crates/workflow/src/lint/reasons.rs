//! Why nodes never run: an expression that contradicts itself, a circle of nodes that wait for each
//! other, or something that nothing in the definition brings about.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::domain::{Domain, can_hold};
use super::finding::{Finding, Level, at};
use super::limits;
use super::reach::{Closed, Reach, is_task, programs};
use crate::definition::Examined;
use crate::model::{Attribute, Expression, From, NodeId, Operand, Program, Snapshot};

/// The most nodes below a family that are named as those for which it waits.
const BELOW_LIMIT: usize = 1000;
/// The longest text of an expression that is shown.
const TEXT_LIMIT: usize = 160;

/// The nodes for which each waits that never runs.
type Edges = HashMap<NodeId, Vec<NodeId>>;

/// Everything that never runs, once for each reason.
pub(super) fn findings(examined: &Examined, reach: &Reach<'_>) -> Vec<Finding> {
    let tree: &Snapshot = &examined.tree;
    let mut found = Vec::new();
    let mut waiting = Vec::new();
    for id in tree.walk(NodeId::ROOT).skip(1) {
        match reach.closed(id) {
            None => {}
            Some(Closed::Limit(place)) => found.push(limits::without_room(examined, id, place)),
            Some(Closed::Date) => {
                let text = "all of its dates have passed: it never runs".to_owned();
                let fix = "write a later date, * for any, or give the suite a clock of that time";
                let kind = (Level::Warning, "date-passed");
                found.push(at(examined, kind, (id, "date", 0), (text, fix)));
            }
            Some(Closed::Day) => {
                let text = "its date or day is none of its suite's hybrid clock, whose date stands \
                            still: it is completed without a run";
                let fix = "give the suite a real clock, or a date on which this runs";
                let word = if has(tree, id, "date") {
                    "date"
                } else if has(tree, id, "day") {
                    "day"
                } else {
                    "cron"
                };
                let kind = (Level::Warning, "date-passed");
                found.push(at(examined, kind, (id, word, 0), (text.to_owned(), fix)));
            }
            Some(Closed::Trigger) => match contradiction(examined, reach, id) {
                Some(finding) => found.push(finding),
                None => waiting.push(id),
            },
        }
    }
    let edges: Edges = waiting.iter().map(|id| (*id, blockers(tree, reach, *id))).collect();
    found.extend(circles(examined, &waiting, &edges));
    let roots = waiting.iter().filter(|id| edges[*id].is_empty());
    found.extend(unfulfilled(examined, reach, roots.copied()));
    found
}

fn has(tree: &Snapshot, id: NodeId, word: &str) -> bool {
    tree.node(id).attributes.iter().any(|one| one.word() == word)
}

fn trigger(tree: &Snapshot, id: NodeId) -> Option<(&Program, &Expression)> {
    tree.node(id).attributes.iter().find_map(|attribute| match attribute {
        Attribute::Trigger(one) => Some((one.expression.program.as_ref()?, &*one.expression)),
        _ => None,
    })
}

fn shown(expression: &Expression) -> String {
    let text = expression.text();
    match text.char_indices().nth(TEXT_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A trigger that can't hold whatever the nodes do.
fn contradiction(examined: &Examined, reach: &Reach<'_>, id: NodeId) -> Option<Finding> {
    let tree: &Snapshot = &examined.tree;
    let (program, expression) = trigger(tree, id)?;
    if can_hold(program, &|operand| reach.whole_domain(id, operand)) {
        return None;
    }
    let from = From { tree, node: id };
    let mut known = BTreeSet::new();
    for operand in program.operands() {
        let what = match (operand, reach.whole_domain(id, operand)) {
            (Operand::Variable(_, name) | Operand::Upward(name), Domain::Range(least, most)) => {
                format!("{name} is from {least} to {most}")
            }
            (Operand::Node(path), _) if from.find(operand) == Some(id) => {
                format!("{path} is this node, which is queued while it waits")
            }
            (Operand::Node(path), _)
                if from.find(operand).is_some_and(|at| tree.upwards(id).any(|up| up == at)) =>
            {
                format!("{path} is around this node, and not complete while it waits")
            }
            _ => continue,
        };
        known.insert(what);
    }
    let known: Vec<String> = known.into_iter().take(3).collect();
    let why = if known.is_empty() { String::new() } else { format!(" ({})", known.join("; ")) };
    let text = format!("trigger '{}' can never hold{why}", shown(expression));
    let fix = "correct the expression: its parts exclude each other, or a value that is compared \
               is never reached";
    // A node that is there to be completed by its rule may be held for ever.
    let level = if reach.can_complete_by_rule(id) { Level::Warning } else { Level::Error };
    Some(at(examined, (level, "never-true"), (id, "trigger", 0), (text, fix)))
}

/// The nodes whose own fault it is that this one's trigger never holds.
fn blockers(tree: &Snapshot, reach: &Reach<'_>, id: NodeId) -> Vec<NodeId> {
    let from = From { tree, node: id };
    let mut all = BTreeSet::new();
    for (program, _) in programs(tree, id).filter(|(_, is_trigger)| *is_trigger) {
        for operand in program.operands() {
            if reach.domain(id, operand) == reach.whole_domain(id, operand) {
                continue;
            }
            let Some(found) = from.find(operand).filter(|id| *id != NodeId::ROOT) else { continue };
            let above = tree.upwards(found).filter(|id| reach.closed(*id).is_some());
            let before = all.len();
            all.extend(above);
            if all.len() == before && matches!(operand, Operand::Node(_)) && !is_task(tree, found) {
                let below = tree.walk(found).filter(|id| reach.closed(*id).is_some());
                all.extend(below.take(BELOW_LIMIT));
            }
        }
    }
    all.into_iter().collect()
}

/// Circles of nodes that wait for each other; each node is in one finding at most.
fn circles(examined: &Examined, waiting: &[NodeId], edges: &Edges) -> Vec<Finding> {
    let tree: &Snapshot = &examined.tree;
    let candidates = on_circles(waiting, edges);
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for id in waiting.iter().filter(|id| candidates.contains(id)) {
        if told.contains(id) {
            continue;
        }
        let Some(circle) = shortest(*id, edges, &candidates) else { continue };
        told.extend(circle.iter().copied());
        let paths: Vec<String> = circle.iter().map(|id| tree.path(*id)).collect();
        let text = match paths.as_slice() {
            [only] => format!("{only} waits for itself, or for what is in it"),
            [first, rest @ ..] => {
                let rest: Vec<String> = rest.iter().chain([first]).cloned().collect();
                format!("{first} waits for {}", rest.join(", which waits for "))
            }
            [] => continue,
        };
        let fix = "take one of these triggers away, or let it wait for something else";
        found.push(at(examined, (Level::Error, "circle"), (*id, "trigger", 0), (text, fix)));
    }
    found
}

/// The nodes on circles, and between circles: what is left when ends are taken away.
fn on_circles(waiting: &[NodeId], edges: &Edges) -> BTreeSet<NodeId> {
    let mut left: BTreeSet<NodeId> = waiting.iter().copied().collect();
    let mut back: Edges = HashMap::new();
    for (from, all) in edges {
        for to in all.iter().filter(|to| left.contains(to)) {
            back.entry(*to).or_default().push(*from);
        }
    }
    let none = Vec::new();
    for (forward, backward) in [(edges, &back), (&back, edges)] {
        let count = |id: &NodeId| forward.get(id).unwrap_or(&none).len();
        let mut counts: HashMap<NodeId, usize> = left
            .iter()
            .map(|id| {
                let all = forward.get(id).unwrap_or(&none).iter();
                (*id, all.filter(|to| left.contains(to)).count().min(count(id)))
            })
            .collect();
        let mut ends: Vec<NodeId> =
            counts.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        while let Some(end) = ends.pop() {
            left.remove(&end);
            for before in backward.get(&end).unwrap_or(&none) {
                if let Some(count) = counts.get_mut(before).filter(|count| **count > 0) {
                    *count -= 1;
                    if *count == 0 {
                        ends.push(*before);
                    }
                }
            }
        }
    }
    left
}

/// The shortest way from a node back to it.
fn shortest(start: NodeId, edges: &Edges, within: &BTreeSet<NodeId>) -> Option<Vec<NodeId>> {
    let mut came: HashMap<NodeId, NodeId> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(id) = queue.pop_front() {
        for to in edges.get(&id).into_iter().flatten().filter(|to| within.contains(to)) {
            if *to == start {
                let mut way: Vec<NodeId> =
                    std::iter::successors(Some(id), |at| came.get(at).copied()).collect();
                way.reverse();
                return Some(way);
            }
            if !came.contains_key(to) {
                came.insert(*to, id);
                queue.push_back(*to);
            }
        }
    }
    None
}

/// What triggers wait for and nothing in the definition brings about: once for each thing.
fn unfulfilled(
    examined: &Examined,
    reach: &Reach<'_>,
    roots: impl Iterator<Item = NodeId>,
) -> Vec<Finding> {
    let tree: &Snapshot = &examined.tree;
    let mut groups: BTreeMap<String, (Finding, usize)> = BTreeMap::new();
    for id in roots {
        let from = From { tree, node: id };
        let Some((program, expression)) = trigger(tree, id) else { continue };
        let mut reasons = Vec::new();
        for operand in program.operands() {
            if reach.domain(id, operand) == reach.whole_domain(id, operand) {
                continue;
            }
            let found = from.find(operand).filter(|id| *id != NodeId::ROOT);
            reasons.extend(found.map(|found| reason(tree, reach, operand, found)));
        }
        reasons.dedup();
        let (level, rule, why, fix) = reasons.into_iter().min().unwrap_or_else(|| {
            let why = format!("nothing makes '{}' hold", shown(expression));
            (Level::Warning, "by-hand", why, BY_HAND)
        });
        match groups.get_mut(&why) {
            Some((_, more)) => *more += 1,
            None => {
                let text = format!("trigger '{}': {why}", shown(expression));
                let finding = at(examined, (level, rule), (id, "trigger", 0), (text, fix));
                groups.insert(why, (finding, 0));
            }
        }
    }
    let told = groups.into_values().map(|(mut finding, more)| {
        if more > 0 {
            let nodes = if more == 1 { "node waits" } else { "nodes wait" };
            finding.text.push_str(&format!(" ({more} more {nodes} for it)"));
        }
        finding
    });
    told.collect()
}

const BY_HAND: &str = "if an operator is to do that, all is well; otherwise correct the trigger";

/// Why an operand never has the value that would help.
fn reason(
    tree: &Snapshot,
    reach: &Reach<'_>,
    operand: &Operand,
    found: NodeId,
) -> (Level, &'static str, String, &'static str) {
    let path = tree.path(found);
    let has_cron =
        |id: NodeId| tree.node(id).attributes.iter().any(|one| matches!(one, Attribute::Cron(_)));
    match operand {
        Operand::Node(_) if !reach.completes(found) => {
            if let Some(cron) = tree.walk(found).find(|id| has_cron(*id)) {
                let why =
                    format!("{path} is never complete: a cron queues {} again", tree.path(cron));
                let fix = "wait for an event that the task sets, or use time instead of cron";
                return (Level::Error, "cron-never-complete", why, fix);
            }
            if !is_task(tree, found) && tree.node(found).first_child.is_none() {
                let why = format!("{path} has nothing in it that could run, so it stays queued");
                let fix = "give it a task, or defstatus complete";
                return (Level::Error, "empty-family", why, fix);
            }
            (Level::Warning, "by-hand", format!("{path} never gets there by itself"), BY_HAND)
        }
        Operand::Variable(_, name) | Operand::Upward(name) if !reach.runs(found) => {
            let why = format!("{path}:{name} stays as it is, for {path} never runs by itself");
            (Level::Warning, "by-hand", why, BY_HAND)
        }
        _ => (Level::Warning, "by-hand", format!("{path} never gets there by itself"), BY_HAND),
    }
}
