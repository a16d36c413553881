//! The tree as text, for clients and checkpoints.

use std::collections::HashSet;

use crate::definition::{
    END, Style, append_kept, is_name, parse, parse_kept, print_migrated, print_node,
    print_node_within, print_pieces,
};
use crate::model::{Archived, Instant, NodeId, Snapshot, Tree};
use crate::protocol::{Reply, Source};
use crate::server::environment::ECFLOW_VERSION;
use crate::server::slot::{Numbers, SMALL_BYTES};

/// Renders a text on another thread, and passes it on piece by piece.
pub(in crate::server) type Render = Box<dyn FnOnce(&mut dyn FnMut(&str)) + Send>;

pub(super) const NET: Style = Style::Net;
pub(super) const MIGRATE: Style = Style::Migrate;

/// The text of all, or of a node, for clients: made where it is sent, and once for all who ask for
/// it at a time.
pub(in crate::server) struct TreeText {
    tree: Snapshot,
    /// The root stands for all.
    id: NodeId,
    style: Style,
    reply: fn(Source) -> Reply,
}

impl TreeText {
    pub(super) fn new(tree: &Tree, id: NodeId, style: Style, reply: fn(Source) -> Reply) -> Self {
        Self { tree: tree.snapshot(), id, style, reply }
    }

    /// What it is the text of, in a tree with these numbers.
    pub(in crate::server) fn of(&self) -> (Numbers, (NodeId, Style)) {
        let numbers = (self.tree.state_change_no(), self.tree.modify_change_no());
        (numbers, (self.id, self.style))
    }

    /// The answer with the text of a node, where that is short.
    pub(in crate::server) fn short(&self) -> Option<Reply> {
        if self.id == NodeId::ROOT {
            return None;
        }
        let text = print_node_within(&self.tree, self.id, (self.style, true), SMALL_BYTES)?;
        Some((self.reply)(Source::from(text)))
    }

    /// The text, and the answer with it.
    pub(in crate::server) fn made(self) -> (Source, Reply) {
        let Self { tree, id, style, reply } = self;
        let source = Source::new(move |take| match id {
            NodeId::ROOT if style == MIGRATE => print_migrated(&tree, take),
            NodeId::ROOT => print_pieces(&tree, style, |_| true, take),
            _ => take(&print_node(&tree, id, style, true)),
        });
        (source.clone(), reply(source))
    }
}

/// Some suites, as a whole of their own.
pub(super) fn of_suites(tree: Snapshot, suites: &[String]) -> Source {
    let all = suites.iter().filter_map(|name| tree.child(NodeId::ROOT, name));
    let all: HashSet<NodeId> = all.collect();
    Source::new(move |take| print_pieces(&tree, NET, |id| all.contains(&id), take))
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

/// The last lines of a file, and behind them, where there are more, that it is cut, as ecFlow says
/// it. Behind the end of the last line counts one more, which is empty.
pub(super) fn last_lines(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let cut = most.checked_sub(1).and_then(|most| text.rmatch_indices('\n').nth(most));
    let Some((at, _)) = cut else { return text.into_owned() };
    format!(
        "{}\n# >>>>>>>> File truncated down to {most}. Truncated from the end of the file \
         <<<<<<<<<\n",
        &text[at + 1..]
    )
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

    /// The suite of a definition that has this task.
    fn suite(task: &str) -> (Tree, NodeId) {
        let text = format!("#5.9.2\ndefs_state MIGRATE\nsuite s\n  task t{task}\nendsuite\n");
        let tree = parse(&text, "t").expect("a definition").tree;
        let suite = tree.find("/s").expect("a suite");
        (tree, suite)
    }

    #[test]
    fn a_file_that_is_cut_says_so_and_one_that_fits_is_as_it_is() {
        let notice = |most: usize| {
            let what = format!("File truncated down to {most}. Truncated from the end of the file");
            format!("# >>>>>>>> {what} <<<<<<<<<\n")
        };
        let cut = |text: &str, most| last_lines(text.as_bytes(), most);
        for (text, most) in [("", 1), ("a", 1), ("a\nb", 2), ("a\nb\n", 3), ("\n", 2)] {
            assert_eq!(cut(text, most), text);
        }
        assert_eq!(cut("a\nb\n", 2), format!("b\n\n{}", notice(2)));
        assert_eq!(cut("a\nb\nc", 2), format!("b\nc\n{}", notice(2)));
        assert_eq!(cut("a\n", 1), format!("\n{}", notice(1)));
    }

    #[test]
    fn a_text_is_short_by_what_is_printed_of_it_and_no_more_is_printed() {
        let long = "v".repeat(SMALL_BYTES);
        let list = "'v' ".repeat(SMALL_BYTES / 4);
        let short = |task: &str| {
            let (tree, suite) = suite(task);
            TreeText::new(&tree, suite, NET, Reply::Node).short()
        };
        assert!(short(" # abort<: v>abort try:1").is_some());
        for task in [
            format!(" # abort<: {long}>abort try:1"),
            format!("\n edit V '{long}'"),
            format!("\n label l '{long}'"),
            format!("\n trigger /{long} == complete"),
            format!("\n repeat enumerated R {list}"),
            format!("\n repeat string R {list}"),
            format!("\n queue q {list}"),
            format!("\n generic g {list}"),
            format!("\n aviso --name a --listener '{long}'"),
            format!("\n mirror --name m --remote_path {long}"),
            format!("\n autorestore /{long}"),
            format!("\n cron -d {}1 10:00", "1,".repeat(SMALL_BYTES / 2)),
        ] {
            assert!(short(&task).is_none(), "{}", &task[..20]);
        }
        let (tree, suite) = suite(
            " # abort<: v>abort try:1\n edit V 'v'\n trigger 1 == 1\n repeat string R a b # 1\n \
             queue q a b\n cron -w 1,2 -d 3,L -m 4 10:00\n zombie user:fob:init,abort:7\n \
             limit l 2 # 1 /s/t\n label l 'v' # 'w'",
        );
        let whole = print_node(&tree, suite, NET, true);
        for most in 0..whole.len() {
            assert_eq!(print_node_within(&tree, suite, (NET, true), most), None);
        }
        let fits = print_node_within(&tree, suite, (NET, true), whole.len());
        assert_eq!(fits.as_ref(), Some(&whole));
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
