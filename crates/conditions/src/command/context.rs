//! How a command asks, and prints. Control plane.

use serde_json::{Value as Json, json};
use service::out;

use crate::client::Client;

/// What is typed, or a file, that can't be used: exit code 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadInput(pub(super) String);

/// How a command asks, and prints.
pub(super) struct Context {
    pub(super) client: Client,
    pub(super) json: bool,
}

impl Context {
    /// Prints a line of JSON, or text.
    pub(super) fn print(&self, json: &Json, text: &str) -> anyhow::Result<()> {
        match self.json {
            true => out::print(format!("{json}\n"))?,
            false if text.is_empty() => {}
            false => out::print(format!("{}\n", text.trim_end_matches('\n')))?,
        }
        Ok(())
    }

    /// Prints an answer. Where its lists are all empty, a note says of what, beside the results.
    ///
    /// # Errors
    /// When it has none of the first name: it is another server's.
    pub(super) fn print_lists(
        &self,
        answer: &Json,
        lists: &[&str],
        text: &str,
        none: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        lists.first().map_or(Ok(()), |first| has(answer, first))?;
        self.print(answer, text)?;
        let is_empty = |list: &&str| answer[*list].as_array().is_none_or(Vec::is_empty);
        if !self.json && lists.iter().all(is_empty) {
            out::note(none());
        }
        Ok(())
    }

    /// Prints the revision of a change.
    pub(super) fn made(&self, revision: u64) -> anyhow::Result<()> {
        let json = json!({ "schema": 1, "revision": revision });
        self.print(&json, &format!("revision {revision}"))
    }
}

/// Text without what a terminal obeys: control characters, and those that turn the direction.
pub(super) fn printable(text: &str) -> String {
    let is_obeyed =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Refuses an answer without such a list: it is another server's.
pub(super) fn has(answer: &Json, list: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        answer[list].is_array(),
        "the answer has no list of {list}: is this the server?"
    );
    Ok(())
}
