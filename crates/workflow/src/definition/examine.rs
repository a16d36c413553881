//! Reading a definition for whoever checks it: past what is wrong, and with the line of everything.

use std::collections::HashMap;

use super::error::DefinitionError;
use super::line::split;
use super::reader::{Reader, Style};
use crate::model::{NodeId, Tree};

/// The most faults that are looked for.
const FAULTS_LIMIT: usize = 1000;

/// A definition, what is wrong with it, and where everything stands.
#[derive(Debug, Default)]
pub struct Examined {
    /// The tree, as far as it could be read.
    pub tree: Tree,
    /// What the text was printed as.
    pub style: Style,
    /// What ecFlow's parser refuses, by line.
    pub faults: Vec<DefinitionError>,
    /// Whether all lines could be read, so that references were looked at.
    pub is_read: bool,
    /// Lines that were passed over, in texts of other versions' servers.
    pub warnings: Vec<DefinitionError>,
    lines: HashMap<(NodeId, &'static str), Vec<usize>>,
}

impl Examined {
    /// The line of a node's attribute: of the one of this place among those with its keyword. The
    /// node's own line where there is none.
    #[must_use]
    pub fn line(&self, node: NodeId, word: &'static str, place: usize) -> usize {
        let lines = self.lines.get(&(node, word));
        let line = lines.and_then(|lines| lines.get(place).or_else(|| lines.first()));
        line.copied().unwrap_or_else(|| self.node_line(node))
    }

    /// The line with which a node begins.
    #[must_use]
    pub fn node_line(&self, node: NodeId) -> usize {
        self.lines.get(&(node, NODE)).and_then(|lines| lines.first()).copied().unwrap_or(0)
    }
}

/// What a node's own line is kept as.
const NODE: &str = "";

/// The keywords whose lines are kept.
const WORDS: [&str; 8] =
    ["trigger", "complete", "limit", "inlimit", "date", "time", "repeat", "cron"];

/// Reads a definition. Behind a line that can't be read it goes on with the next: what a node has
/// that can't be where it is, or called so, is read all the same. References are checked where all
/// lines could be read.
#[must_use]
pub fn examine(text: &str, file: &str) -> Examined {
    let mut reader = Reader::new(text, file);
    let mut examined = Examined::default();
    let mut words = Vec::with_capacity(64);
    while let Some(line) = reader.lines.next() {
        split(line, &mut words);
        let Some(keyword) = words.first().copied() else { continue };
        let number = reader.lines.number;
        if let Err(fault) = reader.line(line, &mut words) {
            examined.faults.push(reader.error(*fault));
            reader.lines.number = number;
            // The fault may be an expression's of the node before: the line is read again then.
            split(line, &mut words);
            let begins_or_ends = is_structure(keyword);
            if begins_or_ends && let Err(fault) = reader.line(line, &mut words) {
                let second = reader.error(*fault);
                if examined.faults.last() != Some(&second) {
                    examined.faults.push(second);
                }
                // An end too many ends nothing.
                let is_end = keyword.starts_with("end");
                if !is_end && reader.begin_elsewhere(&words).is_err() {
                    break;
                }
                reader.lines.number = number;
            }
            if examined.faults.len() >= FAULTS_LIMIT {
                break;
            }
        }
        if let Some(node) = reader.node {
            let known = if is_structure(keyword) {
                (!keyword.starts_with("end")).then_some(NODE)
            } else {
                WORDS.into_iter().find(|word| *word == keyword)
            };
            if let Some(word) = known {
                examined.lines.entry((node, word)).or_default().push(number);
            }
        }
    }
    if let Err(fault) = reader.finish() {
        examined.faults.push(reader.error(*fault));
    }
    let Reader { tree, style, warnings, places, file, .. } = reader;
    examined.is_read = examined.faults.is_empty();
    if examined.is_read && !style.is_persistent() {
        examined.faults.extend(super::check::all(&tree, &places, file).take(FAULTS_LIMIT));
        examined.faults.sort_by_key(|fault| fault.line);
    }
    Examined { tree, style, warnings, ..examined }
}

fn is_structure(keyword: &str) -> bool {
    let keyword = keyword.strip_prefix("end").unwrap_or(keyword);
    matches!(keyword, "suite" | "family" | "task" | "alias")
}

#[cfg(test)]
mod tests {
    use super::examine;

    #[test]
    fn all_faults_are_found_with_their_lines() {
        let text = "suite s\n task a\n  meter m 5 1\n  trigger b ==\n task b\n  limit l x\n\
                    endsuite\n";
        let examined = examine(text, "x.def");
        let lines: Vec<usize> = examined.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [3, 4, 6], "{:?}", examined.faults);
        assert!(examined.tree.find("/s/b").is_some());
        let text = "suite s\n task a\n  trigger x == complete\n task b\n  complete y == complete\n";
        let lines: Vec<usize> = examine(text, "x").faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [3, 5]);
        let examined = examine("suite s\n task a\n task a\n task b\n", "x");
        assert_eq!(examined.faults.len(), 1, "{:?}", examined.faults);
        assert_eq!(examined.faults[0].line, 3);
        // Behind nodes that can't be called so or be there, and ends too many.
        let wrong = "  time 25:00\n";
        for before in [
            "suite s\n task a\n task a\n",
            "suite s\n family f\n endfamily\n endfamily\n task a\n",
            "suite s\nendsuite\nsuite s\n task a\n",
            "suite s\nendsuite\nendsuite\nsuite t\n task a\n",
            "suite s\nsuite t\n task a\n",
            "suite s\n task a\nendsuite\ntask b\n",
            "suite s\n task ../a\n",
            "suite s\n family\n  task a\n",
        ] {
            let text = format!("{before}{wrong} task a\n{wrong} task b\n{wrong}");
            let found = examine(&text, "x").faults;
            let times = found.iter().filter(|fault| fault.message.contains("25:00")).count();
            assert!(times == 3 && found.len() > times, "{before}: {found:?}");
        }
    }

    #[test]
    fn attributes_and_nodes_have_their_lines() {
        let text = "suite s\n limit a 1\n limit b 2\n family f\n  inlimit b\n  task t\n";
        let examined = examine(text, "x.def");
        assert!(examined.faults.is_empty());
        let find = |path: &str| examined.tree.find(path).expect("a node");
        assert_eq!(examined.line(find("/s"), "limit", 1), 3);
        assert_eq!(examined.line(find("/s/f"), "inlimit", 0), 5);
        assert_eq!(examined.line(find("/s/f/t"), "trigger", 0), 6);
    }
}
