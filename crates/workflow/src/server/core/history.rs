//! What users have done to nodes, as `--edit_history` shows it.

use super::parts::Parts;
use crate::model::{Flag, Rules};
use crate::protocol::Request;

/// Adds a command to the history of a path.
pub(super) fn remember(parts: &Parts<'_>, rules: &mut Rules<'_>, request: &Request, path: &str) {
    let Some(id) = rules.tree.find(path) else { return };
    let stamp = crate::server::log::stamp(parts.at_us / 1_000_000);
    let line = match path {
        "/" => request.line(),
        path => request.line_of(path),
    };
    rules.tree.add_history(path, &format!("MSG:{stamp} {line}"));
    rules.alter_flag(id, Flag::Message, true);
}
