//! Nodes as rows: what a list of them shows.

use serde::Serialize;

use super::attributes::{Made, One};
use crate::model::{Attribute, NodeId, Snapshot};

/// A node in a list.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    name: &'a str,
    /// In lists of nodes of several parents.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    kind: &'static str,
    /// What it shows: its state, or suspended.
    state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    flags: String,
    #[serde(rename = "try", skip_serializing_if = "is_zero")]
    try_no: i32,
    /// Whether there are nodes below it.
    more: bool,
    /// Values that jobs set: labels, meters, events that are set, the repeat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    says: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl<'a> Row<'a> {
    /// The row of a node among its siblings.
    pub(super) fn of(tree: &'a Snapshot, id: NodeId) -> Self {
        let node = tree.node(id);
        Self {
            name: &node.name,
            path: None,
            kind: node.kind.word(),
            state: node.displayed().word(),
            flags: node.flags.to_string(),
            try_no: node.try_no(),
            more: node.first_child.is_some(),
            says: node.attributes.iter().filter_map(Attribute::says).collect(),
        }
    }

    /// The row of a node, with its path.
    pub(super) fn with_path(tree: &'a Snapshot, id: NodeId) -> Self {
        Self { path: Some(tree.path(id)), ..Self::of(tree, id) }
    }
}

/// All attributes of a node with their types, those that it makes behind them.
pub(super) fn attributes(tree: &Snapshot, id: NodeId) -> Vec<serde_json::Value> {
    let own = tree.node(id).attributes.iter();
    let own = own.map(|attribute| serde_json::to_value(One { tree, attribute, is_typed: true }));
    let made = super::attributes::made(tree, id);
    let made = made.iter().map(|variable| serde_json::to_value(Made { variable, is_typed: true }));
    own.chain(made).filter_map(Result::ok).collect()
}
