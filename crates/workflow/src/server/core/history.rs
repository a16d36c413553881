//! What users have done to nodes, as `--edit_history` shows it.

use super::parts::Parts;
use crate::model::{Date, Flag, NodeId, Rules};
use crate::protocol::Request;

/// Adds a command to the history of a path.
pub(super) fn remember(parts: &Parts<'_>, rules: &mut Rules<'_>, request: &Request, path: &str) {
    if let Some(id) = rules.tree.find(path) {
        Line::new(parts, request).remember(rules, path, id);
    }
}

/// Whether a line of a history is of this day or a later one; one without a stamp is.
pub(super) fn is_since(line: &str, first: Date) -> bool {
    let date = line.split_once(']').and_then(|(stamp, _)| stamp.rsplit_once(' '));
    let parts = date.map(|(_, date)| date.splitn(3, '.').map(str::parse::<i32>));
    let parts: Option<Vec<i32>> = parts.and_then(|parts| parts.collect::<Result<_, _>>().ok());
    let date = match parts.as_deref() {
        Some([day, month, year]) => Date::new(*year, *month, *day),
        _ => None,
    };
    date.is_none_or(|date| date >= first)
}

/// The line of a request in the histories of its paths, of which it may have hundreds of thousands.
pub(super) struct Line<'a> {
    request: &'a Request,
    /// What is before the line's text.
    stamp: String,
    /// The line's text before and behind the path; `None` where it isn't clear where that is.
    around: Option<(String, String)>,
    text: String,
}

impl<'a> Line<'a> {
    pub(super) fn new(parts: &Parts<'_>, request: &'a Request) -> Self {
        // No line has it but for a text that a user gives.
        const PLACE: char = '\u{1}';
        let line = request.line_of(PLACE.encode_utf8(&mut [0; 1]));
        let around = match line.split_once(PLACE) {
            Some((before, behind)) if !behind.contains(PLACE) => {
                Some((before.to_owned(), behind.to_owned()))
            }
            _ => None,
        };
        let stamp = format!("MSG:{} ", crate::server::log::stamp(parts.at_us / 1_000_000));
        Self { request, stamp, around, text: String::new() }
    }

    /// Adds it to the history of a path, whose node this is.
    pub(super) fn remember(&mut self, rules: &mut Rules<'_>, path: &str, id: NodeId) {
        // A path is found that has more slashes than it needs.
        let own;
        let path = if path.contains("//") || path.len() > 1 && path.ends_with('/') {
            own = rules.tree.path(id);
            &own
        } else {
            path
        };
        let Self { request, stamp, around, text } = self;
        text.clone_from(stamp);
        match (path, around) {
            ("/", _) => text.push_str(&request.line()),
            (path, Some((before, behind))) => {
                for part in [before, path, behind] {
                    text.push_str(part);
                }
            }
            (path, None) => text.push_str(&request.line_of(path)),
        }
        rules.tree.add_history(path, text);
        rules.alter_flag(id, Flag::Message, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_that_are_older_than_a_day() {
        let first = Date::new(2026, 11, 22).expect("a date");
        let line = |stamp: &str| is_since(&format!("MSG:[13:56:09 {stamp}] --suspend /s"), first);
        assert!(line("22.11.2026") && line("1.1.2027") && line("1.2") && line("no date"));
        assert!(!line("21.11.2026") && is_since("MSG", first));
    }
}
