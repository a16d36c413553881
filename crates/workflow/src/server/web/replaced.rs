//! Definitions by which a node replaces one that is there: what `alter` has no word for.

use super::fault::Fault;
use crate::definition::{Style, print_node};
use crate::model::{NodeId, Snapshot};

/// The head of clients' definitions, in which what triggers name may lie elsewhere.
const HEAD: &str = "#5.9.2\ndefs_state NET cal_count:0\n";

/// What becomes of a node's own lines.
pub(super) enum Edit {
    /// A line is added.
    Add(String),
    /// The lines of a keyword are replaced by one.
    Change(String, String),
    /// The lines of a keyword go.
    Delete(String),
}

impl Edit {
    fn line(&self) -> Option<&str> {
        match self {
            Self::Add(line) | Self::Change(_, line) => Some(line),
            Self::Delete(_) => None,
        }
    }

    fn removes(&self, keyword: &str) -> bool {
        match self {
            Self::Add(_) => false,
            Self::Change(word, _) | Self::Delete(word) => word == keyword,
        }
    }
}

/// A definition that has a node with these words below the node `above`, and nothing else.
pub(super) fn around(tree: &Snapshot, above: NodeId, node: &str) -> String {
    let mut path: Vec<NodeId> = tree.upwards(above).collect();
    path.reverse();
    let mut text = HEAD.to_owned();
    for id in &path {
        let node = tree.node(*id);
        text.push_str(&format!("{} {}\n", node.kind.word(), node.name));
    }
    text.push_str(node);
    if !node.ends_with('\n') {
        text.push('\n');
    }
    for id in path.iter().rev() {
        text.push_str(&format!("end{}\n", tree.node(*id).kind.word()));
    }
    text
}

/// The definition of a node whose own lines are edited.
///
/// # Errors
/// When what is added is more than a line.
pub(super) fn edited(tree: &Snapshot, id: NodeId, edit: &Edit) -> Result<String, Fault> {
    if edit.line().is_some_and(|line| line.contains(['\n', '\r'])) {
        return Err(Fault::bad("a line break in an attribute", "leave it out"));
    }
    let whole = print_node(tree, id, Style::Defs, true);
    let mut text = String::with_capacity(whole.len() + 80);
    let mut is_own = true;
    for (place, line) in whole.lines().enumerate() {
        let keyword = line.split_whitespace().next().unwrap_or_default();
        is_own &= place == 0
            || !matches!(keyword, "family" | "task" | "endsuite" | "endfamily" | "endtask");
        if place > 0 && is_own && edit.removes(keyword) {
            continue;
        }
        text.push_str(line);
        text.push('\n');
        if place == 0
            && let Some(line) = edit.line()
        {
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(match tree.node(id).parent {
        Some(above) if above != NodeId::ROOT => around(tree, above, &text),
        _ => HEAD.to_owned() + &text,
    })
}
