//! The tree as text, for clients and checkpoints.

use std::collections::HashSet;

use crate::definition::{
    END, Style, append_kept, is_name, parse, parse_kept, print_node, print_pieces,
};
use crate::model::{Archived, Attribute, Instant, NodeId, Snapshot, Tree};
use crate::protocol::{Escaped, Source};
use crate::server::environment::ECFLOW_VERSION;
use crate::server::slot::SMALL_BYTES;

/// Renders a text on another thread, and passes it on piece by piece.
pub(in crate::server) type Render = Box<dyn FnOnce(&mut dyn FnMut(&str)) + Send>;

pub(super) const NET: Style = Style::Net;
pub(super) const MIGRATE: Style = Style::Migrate;

/// About the bytes of a line without its value.
const LINE_BYTES: usize = 64;

/// The whole tree; `escaped` is its text, where it is made already.
pub(super) fn whole(tree: Snapshot, style: Style, escaped: Escaped) -> Source {
    Source::shared(move |take| print_pieces(&tree, style, |_| true, take), escaped)
}

/// Some suites, as a whole of their own.
pub(super) fn of_suites(tree: Snapshot, suites: &[String]) -> Source {
    let all = suites.iter().filter_map(|name| tree.child(NodeId::ROOT, name));
    let all: HashSet<NodeId> = all.collect();
    Source::new(move |take| print_pieces(&tree, NET, |id| all.contains(&id), take))
}

/// One node.
pub(super) fn node(tree: Snapshot, id: NodeId, style: Style, escaped: Escaped) -> Source {
    Source::shared(move |take| take(&print_node(&tree, id, style, true)), escaped)
}

/// The same, printed at once.
pub(super) fn short_node(tree: &Snapshot, id: NodeId, style: Style) -> Source {
    Source::from(print_node(tree, id, style, true))
}

/// Whether the text of a node is short, by the number of its attributes and the length of their
/// values.
pub(super) fn is_short(tree: &Snapshot, id: NodeId) -> bool {
    let mut bytes = 0;
    for id in tree.walk(id) {
        bytes += LINE_BYTES;
        for one in tree.node(id).attributes.iter() {
            bytes += LINE_BYTES
                + match one {
                    Attribute::Variable(variable) => variable.value.len(),
                    Attribute::Label(label) => label.value.len() + label.new_value.len(),
                    Attribute::Trigger(condition) | Attribute::Complete(condition) => {
                        condition.expression.parts.iter().map(|part| part.text.len()).sum()
                    }
                    Attribute::Limit(limit) => {
                        LINE_BYTES * limit.holders.as_ref().map_or(0, |holders| holders.len())
                    }
                    Attribute::Queue(queue) => LINE_BYTES * queue.steps.len(),
                    _ => 0,
                };
            if bytes > SMALL_BYTES {
                return false;
            }
        }
    }
    bytes <= SMALL_BYTES
}

/// One node as another server takes it.
pub(in crate::server) fn node_text(tree: &Snapshot, path: &str) -> String {
    tree.find(path).map_or_else(String::new, |id| print_node(tree, id, MIGRATE, false))
}

/// A checkpoint.
pub(super) fn checkpoint(tree: Snapshot) -> Render {
    Box::new(move |take| print_pieces(&tree, MIGRATE, |_| true, take))
}

/// Reads a checkpoint.
pub(super) fn read(text: &str) -> anyhow::Result<Tree> {
    Ok(parse(text, "the checkpoint").map_err(anyhow::Error::new)?.tree)
}

/// A time as ecFlow writes it: `2026-Nov-22 14:02:41`.
pub(super) fn instant(us: i64) -> String {
    Instant::seconds(us.div_euclid(1_000_000)).to_string()
}

/// Why there is no answer for a path, in ecFlow's words.
pub(super) fn no_node(path: &str) -> String {
    format!("Cannot find node at path '{path}' ")
}

/// The last lines of a file.
pub(super) fn last_lines(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines[lines.len().saturating_sub(most)..].concat()
}

/// The text of a node's archive: the node with all below it, and those above by name only.
pub(in crate::server) fn archive_text(archived: &Archived) -> String {
    let tree = &archived.before;
    let Some(id) = tree.find(&archived.path) else { return String::new() };
    let mut above: Vec<NodeId> = tree.upwards(id).skip(1).collect();
    above.reverse();
    let mut text = format!("#{ECFLOW_VERSION}\ndefs_state MIGRATE cal_count:0\n");
    for id in &above {
        let node = tree.node(*id);
        text.push_str(&format!("{} {}\n", node.kind.word(), node.name));
    }
    append_kept(tree, id, above.len(), &mut text);
    for id in above.iter().rev() {
        text.push_str(&format!("end{}\n", tree.node(*id).kind.word()));
    }
    text.push_str(END);
    text
}

/// Reads an archive or a checkpoint: values have all of their blanks.
pub(in crate::server) fn read_archive(text: &str) -> Result<Tree, String> {
    let tree = parse_kept(text, "the archive").map_err(|why| why.to_string())?.tree;
    let names = tree.walk(NodeId::ROOT).skip(1).map(|id| &tree.node(id).name);
    match names.into_iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("the archive: {:?} is no name of a node", name.as_str())),
        None => Ok(tree),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_short_by_all_that_it_has_below_it() {
        let text = |tasks: usize, value: usize| {
            let tasks: String = (0..tasks).map(|at| format!("  task t{at}\n")).collect();
            format!("suite s\n  family f\n{tasks}    edit V '{}'\nendsuite\n", "v".repeat(value))
        };
        for (tasks, value, is_expected) in
            [(10, 10, true), (1, SMALL_BYTES, false), (2000, 1, false)]
        {
            let tree = parse(&text(tasks, value), "t").expect("a definition").tree;
            let [suite, task] = ["/s", "/s/f/t0"].map(|path| tree.find(path).expect("a node"));
            assert_eq!(is_short(&tree, suite), is_expected);
            assert!(is_short(&tree, task) || tasks == 1, "it has none of the others' values");
        }
    }

    #[test]
    fn an_archive_is_read_with_the_values_that_it_was_written_of() {
        let text = "#5.9.2\ndefs_state MIGRATE\nsuite s\n  family f\n    edit V 'a  b'\n    \
                    edit W 'a #b'\n    edit X 'a\\nb'\n    edit Y 'a\\n \\\\n' # escaped\n    \
                    task t\n  endfamily\nendsuite\n";
        let before = parse_kept(text, "t").expect("a definition").tree.snapshot();
        let written = archive_text(&Archived { path: "/s/f".to_owned(), before });
        let tree = read_archive(&written).expect("an archive");
        let family = tree.find("/s/f").expect("a family");
        let values = ["V", "W", "X", "Y"].map(|name| tree.own_variable(family, name));
        let values = values.map(|value| value.map(|value| value.as_str()));
        assert_eq!(values, ["a  b", "a #b", "a\\nb", "a\n \\n"].map(Some));
        let refused = read_archive(&written.replace("task t", "task ../t"));
        assert!(refused.is_err_and(|why| why.contains("is no name")));
    }
}
