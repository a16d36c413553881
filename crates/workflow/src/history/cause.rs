//! What runs waited for, where a definition says it: the chain of triggers that ended last, and
//! limits.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::Run;
use crate::model::{Attribute, From, InLimit, NodeId, Snapshot};

/// The chain of runs that ended last: each waited, by its trigger or those of the nodes above it,
/// for the end of the one before. The first to run comes first.
#[must_use]
pub fn critical<'a>(tree: &Snapshot, runs: &'a [Run]) -> Vec<&'a Run> {
    let mut chain: Vec<&Run> = Vec::new();
    let mut next = runs.iter().filter(|run| run.end.is_some()).max_by_key(|run| run.end);
    while let Some(run) = next {
        chain.push(run);
        let Some(id) = tree.find(&run.path) else { break };
        let awaited: Vec<String> = awaited(tree, id).iter().map(|id| tree.path(*id)).collect();
        let is_before = |one: &&Run| {
            let is_awaited = awaited.iter().any(|path| {
                let rest = one.path.strip_prefix(path.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            // Seconds are whole: what ends and what it lets start may have the same.
            is_awaited
                && one.end.is_some_and(|end| end <= run.submitted)
                && one.submitted <= run.submitted
                && !chain.iter().any(|known| std::ptr::eq(*known, *one))
        };
        next = runs.iter().filter(is_before).max_by_key(|one| one.end);
    }
    chain.reverse();
    chain
}

/// The nodes that the triggers of a node, and of those above it, name.
fn awaited(tree: &Snapshot, id: NodeId) -> HashSet<NodeId> {
    let mut found = HashSet::new();
    for at in tree.upwards(id) {
        for attribute in tree.node(at).attributes.iter() {
            let Attribute::Trigger(condition) = attribute else { continue };
            let Some(program) = &condition.expression.program else { continue };
            let from = From { tree, node: at };
            found.extend(program.operands().filter_map(|operand| from.find(operand)));
        }
    }
    // A node that names one around it doesn't wait for that one's end.
    for around in tree.upwards(id) {
        found.remove(&around);
    }
    found
}

/// How a limit was used.
#[derive(Serialize, Debug, PartialEq, Eq, Clone)]
pub struct LimitUse {
    /// The node that has it, and its name: `/s:disk`.
    pub limit: String,
    /// Its tokens.
    pub max: i32,
    /// The most that runs held at once.
    pub most: i32,
    /// How long runs held all of them, in seconds.
    pub full: i64,
    /// How long runs held any, in seconds.
    pub used: i64,
}

/// How limits were used by runs that have ended, by the definition's inlimits: the fullest first.
#[must_use]
pub fn limits(tree: &Snapshot, runs: &[Run]) -> Vec<LimitUse> {
    let mut changes: HashMap<(NodeId, &str), Vec<(i64, i32)>> = HashMap::new();
    for run in runs {
        let (Some(id), Some(end)) = (tree.find(&run.path), run.end) else { continue };
        for (at, inlimit) in inlimits(tree, id) {
            let Some(holder) = tree.limit_node(at, inlimit) else { continue };
            let until = if inlimit.submission { run.active.unwrap_or(end) } else { end };
            let all = changes.entry((holder, &inlimit.name)).or_default();
            all.push((run.submitted, inlimit.tokens));
            all.push((until, -inlimit.tokens));
        }
    }
    let mut found: Vec<LimitUse> = Vec::new();
    for ((holder, name), mut all) in changes {
        let Some(max) = tree.limit(holder, name).map(|limit| limit.max) else { continue };
        // What is given back in a second is taken again in the same.
        all.sort_unstable();
        let limit = format!("{}:{name}", tree.path(holder));
        let mut one = LimitUse { limit, max, most: 0, full: 0, used: 0 };
        let (mut held, mut since) = (0, 0);
        for (at, tokens) in all {
            one.used += if held > 0 { at - since } else { 0 };
            one.full += if held >= max && held > 0 { at - since } else { 0 };
            (held, since) = (held + tokens, at);
            one.most = one.most.max(held);
        }
        found.push(one);
    }
    found.sort_by(|a, b| (b.full, b.used, &a.limit).cmp(&(a.full, a.used, &b.limit)));
    found
}

/// The inlimits of a node, and of those above it, by which a task takes tokens.
fn inlimits(tree: &Snapshot, id: NodeId) -> impl Iterator<Item = (NodeId, &InLimit)> {
    tree.upwards(id).flat_map(move |at| {
        tree.node(at).attributes.iter().filter_map(move |attribute| match attribute {
            // Of `-n` the node itself takes them, once for all below it.
            Attribute::InLimit(inlimit) if at == id || !inlimit.node_only => Some((at, inlimit)),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    fn run(path: &str, submitted: i64, end: i64) -> Run {
        let path = path.to_owned();
        Run { path, submitted, active: Some(submitted + 1), end: Some(end), state: "complete" }
    }

    #[test]
    fn the_chain_that_ended_last_and_the_use_of_limits_are_found() {
        let text = "suite s\n limit l 2\n inlimit l\n task a\n task b\n task c\n trigger a == \
                    complete\n family f\n trigger c == complete and b == complete\n task d\n \
                    endfamily\nendsuite\n";
        let tree = parse(text, "x.def").expect("a definition").tree;
        let runs = [
            run("/s/a", 0, 10),
            run("/s/b", 0, 12),
            run("/s/c", 10, 20),
            run("/s/f/d", 20, 30),
            run("/s/gone", 0, 5),
        ];
        let chain: Vec<&str> = critical(&tree, &runs).iter().map(|run| run.path.as_str()).collect();
        assert_eq!(chain, ["/s/a", "/s/c", "/s/f/d"]);
        let meant = LimitUse { limit: "/s:l".to_owned(), max: 2, most: 2, full: 12, used: 30 };
        assert_eq!(limits(&tree, &runs), [meant]);
        assert!(critical(&tree, &[]).is_empty() && limits(&tree, &[]).is_empty());
    }
}
