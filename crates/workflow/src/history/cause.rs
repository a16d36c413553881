//! What the definition says that runs wait for and take: the nodes that triggers name, and limits.

use std::collections::BTreeSet;

use crate::model::{Attribute, From, InLimit, Kind, NodeId, Snapshot};

/// What one task takes of a limit for as long as it runs.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Token {
    /// The task.
    pub path: String,
    /// The node that has the limit, and its name: `/s:disk`.
    pub limit: String,
    /// How many.
    pub tokens: i32,
    /// Whether they are given back once the job is active.
    pub is_submission: bool,
}

/// Each task with the nodes whose end it waits for, by its own trigger and those of the nodes above
/// it.
pub fn awaited(tree: &Snapshot) -> impl Iterator<Item = (String, String)> {
    let all = tasks(tree).map(|id| (tree.path(id), awaited_by(tree, id)));
    all.flat_map(move |(path, ids)| ids.into_iter().map(move |id| (path.clone(), tree.path(id))))
}

fn tasks(tree: &Snapshot) -> impl Iterator<Item = NodeId> {
    tree.walk(NodeId::ROOT).filter(|id| tree.node(*id).kind == Kind::Task)
}

fn awaited_by(tree: &Snapshot, id: NodeId) -> BTreeSet<NodeId> {
    let mut found = BTreeSet::new();
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

/// What each task takes of which limits.
pub fn tokens(tree: &Snapshot) -> impl Iterator<Item = Token> {
    tasks(tree).flat_map(move |id| {
        inlimits(tree, id).filter_map(move |(at, inlimit)| {
            let holder = tree.limit_node(at, inlimit)?;
            Some(Token {
                path: tree.path(id),
                limit: format!("{}:{}", tree.path(holder), inlimit.name),
                tokens: inlimit.tokens,
                is_submission: inlimit.submission,
            })
        })
    })
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

/// The limits, with how many tokens each has.
pub fn limits(tree: &Snapshot) -> impl Iterator<Item = (String, i32)> {
    tree.walk(NodeId::ROOT).flat_map(move |id| {
        tree.node(id).attributes.iter().filter_map(move |attribute| match attribute {
            Attribute::Limit(limit) => {
                Some((format!("{}:{}", tree.path(id), limit.name), limit.max))
            }
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    #[test]
    fn what_tasks_wait_for_and_take_is_found_above_them_too() {
        let text = "suite s\n limit l 2\n inlimit l\n task a\n task b\n task c\n trigger a == \
                    complete\n family f\n trigger c == complete and /s == queued\n inlimit -s \
                    nope\n inlimit -n /s:l 2\n task d\n endfamily\nendsuite\n";
        let tree = parse(text, "x.def").expect("a definition").tree;
        let awaited: Vec<_> = awaited(&tree).collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(awaited, [pair("/s/c", "/s/a"), pair("/s/f/d", "/s/c")]);
        let token = |path: &str| Token {
            path: path.to_owned(),
            limit: "/s:l".to_owned(),
            tokens: 1,
            is_submission: false,
        };
        let meant = ["/s/a", "/s/b", "/s/c", "/s/f/d"].map(token);
        assert_eq!(tokens(&tree).collect::<Vec<_>>(), meant);
        assert_eq!(limits(&tree).collect::<Vec<_>>(), [("/s:l".to_owned(), 2)]);
    }
}
