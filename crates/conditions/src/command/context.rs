//! How a command asks, and prints. Control plane.

use serde_json::{Value as Json, json};
use service::out;

use crate::client::Client;

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

    /// Prints the revision of a change.
    pub(super) fn made(&self, revision: u64) -> anyhow::Result<()> {
        let json = json!({ "schema": 1, "revision": revision });
        self.print(&json, &format!("revision {revision}"))
    }
}

/// A number with its noun: `1 object`, `2 objects`.
pub(super) fn many(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
