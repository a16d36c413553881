//! `--get` and `--migrate`: the text of all, or of a node.

use super::parts::Told;
use super::text::{self, TreeText};
use crate::model::{NodeId, Tree};
use crate::protocol::{NodeCommand, Reply};

/// Answers a client that asks for the text of all, or of a node.
pub(super) fn get(tree: &Tree, command: NodeCommand, path: &str) -> Told {
    let style = if command == NodeCommand::Migrate { text::MIGRATE } else { text::NET };
    if path.is_empty() {
        return Told::Text(TreeText::new(tree, NodeId::ROOT, style, Reply::Definition));
    }
    match tree.find(path).filter(|id| *id != NodeId::ROOT) {
        None => Told::Reply(Reply::error(text::no_node(path))),
        Some(id) => Told::Text(TreeText::new(tree, id, style, Reply::Node)),
    }
}
