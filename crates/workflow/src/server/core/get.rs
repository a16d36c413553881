//! `--get` and `--migrate`: the text of all, or of a node.

use super::parts::{Parts, Told};
use super::text;
use crate::model::{NodeId, Tree};
use crate::protocol::{NodeCommand, Reply};

/// Answers a client that asks for the text of all, or of a node.
pub(super) fn get(parts: &mut Parts<'_>, tree: &Tree, command: NodeCommand, path: &str) -> Told {
    let style = if command == NodeCommand::Migrate { text::MIGRATE } else { text::NET };
    if path.is_empty() {
        let source = parts.whole(tree, style);
        return Told::Later(Box::new(|| Reply::Definition(source)));
    }
    match tree.find(path).filter(|id| *id != NodeId::ROOT) {
        None => Told::Reply(Reply::error(text::no_node(path))),
        // It is printed at once, and waits behind no one's long ones.
        Some(id) if text::is_short(tree, id) => {
            Told::Reply(Reply::Node(text::short_node(tree, id, style)))
        }
        Some(id) => {
            let source = text::node(tree.snapshot(), id, style, parts.escaped(tree, (path, style)));
            Told::Later(Box::new(|| Reply::Node(source)))
        }
    }
}
