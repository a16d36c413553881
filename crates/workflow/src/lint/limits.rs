//! Limits: those that aren't there, have no room, are used by no node, or are held by nodes that
//! don't run.

use std::collections::HashSet;

use super::finding::{Finding, Level, at};
use crate::definition::Examined;
use crate::model::{Attribute, From, InLimit, NodeId, Operand, Snapshot, State};
use base::many;

/// The inlimits of a node, with their places among them.
fn inlimits(tree: &Snapshot, id: NodeId) -> impl Iterator<Item = (usize, &InLimit)> {
    let all = tree.node(id).attributes.iter().filter_map(|attribute| match attribute {
        Attribute::InLimit(inlimit) => Some(inlimit),
        _ => None,
    });
    all.enumerate()
}

fn named(inlimit: &InLimit) -> String {
    if inlimit.path.is_empty() {
        inlimit.name.to_string()
    } else {
        format!("{}:{}", inlimit.path, inlimit.name)
    }
}

/// Inlimits whose limit isn't there: ecFlow loads them, and they hold nothing back.
pub(super) fn references(examined: &Examined) -> Vec<Finding> {
    let tree: &Snapshot = &examined.tree;
    let externs = &tree.server().externs;
    let mut found = Vec::new();
    for id in tree.walk(NodeId::ROOT) {
        for (place, inlimit) in inlimits(tree, id) {
            let name = named(inlimit);
            if tree.limit_of(id, inlimit).is_some() || externs.contains(name.as_str()) {
                continue;
            }
            let text = format!("inlimit {name}: there is no such limit, so nothing is held back");
            let fix = "add the limit, correct the path, or state it at the top: extern PATH:NAME";
            let kind = (Level::Warning, "no-limit");
            found.push(at(examined, kind, (id, "inlimit", place), (text, fix)));
        }
    }
    found
}

/// An inlimit that takes more tokens than its limit has.
pub(super) fn without_room(examined: &Examined, id: NodeId, place: usize) -> Finding {
    let tree: &Snapshot = &examined.tree;
    let inlimit = inlimits(tree, id).nth(place).map(|(_, inlimit)| inlimit);
    let (name, tokens, max) = inlimit.map_or_else(Default::default, |inlimit| {
        let max = tree.limit_of(id, inlimit).map_or(0, |limit| limit.max);
        (named(inlimit), inlimit.tokens, max)
    });
    let takes = many(tokens, "token");
    let text = format!("inlimit {name} takes {takes} of a limit of {max}: there is never room");
    let fix = "raise the limit, or take fewer tokens";
    at(examined, (Level::Error, "limit-without-room"), (id, "inlimit", place), (text, fix))
}

/// Limits that no inlimit takes tokens of, and no expression names.
pub(super) fn unused(examined: &Examined) -> Vec<Finding> {
    let tree: &Snapshot = &examined.tree;
    let mut used: HashSet<(NodeId, &str)> = HashSet::new();
    for id in tree.walk(NodeId::ROOT) {
        for (_, inlimit) in inlimits(tree, id) {
            used.extend(tree.limit_node(id, inlimit).map(|at| (at, inlimit.name.as_str())));
        }
        let from = From { tree, node: id };
        for (program, _) in super::reach::programs(tree, id) {
            for operand in program.operands() {
                if let Operand::Variable(_, name) | Operand::Upward(name) = operand {
                    used.extend(from.find(operand).map(|at| (at, name.as_str())));
                }
            }
        }
    }
    let mut found = Vec::new();
    for (id, place, limit) in limits(tree) {
        if !used.contains(&(id, limit.name.as_str())) {
            let text = format!("limit {} is used by no inlimit of this definition", limit.name);
            let fix = "drop it, unless suites elsewhere use it";
            let kind = (Level::Warning, "unused-limit");
            found.push(at(examined, kind, (id, "limit", place), (text, fix)));
        }
    }
    found
}

fn limits(tree: &Snapshot) -> impl Iterator<Item = (NodeId, usize, &crate::model::Limit)> {
    tree.walk(NodeId::ROOT).flat_map(move |id| {
        let all = tree.node(id).attributes.iter().filter_map(|attribute| match attribute {
            Attribute::Limit(limit) => Some(limit),
            _ => None,
        });
        all.enumerate().map(move |(place, limit)| (id, place, limit))
    })
}

/// Tokens that are held by nodes that don't run: nothing gives them back. Only texts with states
/// have them.
pub(super) fn stuck(examined: &Examined) -> Vec<Finding> {
    let tree: &Snapshot = &examined.tree;
    let runs = |id: NodeId| {
        let mut all = tree.walk(id).map(|id| tree.node(id).state);
        all.any(|state| matches!(state, State::Submitted | State::Active))
    };
    let mut found = Vec::new();
    for (id, place, limit) in limits(tree) {
        for holder in limit.holders.iter().flat_map(|all| all.iter()) {
            let state = match tree.find(holder) {
                Some(at) if runs(at) => continue,
                Some(at) => tree.node(at).displayed().word(),
                None => "not there",
            };
            let name = &limit.name;
            let text = format!(
                "limit {name}: {holder} holds tokens of it and is {state}, so that nothing gives \
                 them back"
            );
            let path = tree.path(id);
            let fix = format!("ecflow_client --alter=delete limit_path {name} {holder} {path}");
            let kind = (Level::Error, "limit-held");
            found.push(at(examined, kind, (id, "limit", place), (text, fix)));
        }
    }
    found
}
