//! What users have done to nodes, as `--edit_history` shows it.

use super::parts::Parts;
use crate::model::{Flag, NodeId, Rules};
use crate::protocol::Request;

/// Adds a command to the history of a path.
pub(super) fn remember(parts: &Parts<'_>, rules: &mut Rules<'_>, request: &Request, path: &str) {
    if let Some(id) = rules.tree.find(path) {
        remember_at(parts, rules, request, (path, id));
    }
}

/// The same, where the node of the path is known.
pub(super) fn remember_at(
    parts: &Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    (path, id): (&str, NodeId),
) {
    // A request may name hundreds of thousands of paths.
    let stamp = parts.stamp.get_or_init(|| crate::server::log::stamp(parts.at_us / 1_000_000));
    let line = match path {
        "/" => request.line(),
        path => request.line_of(path),
    };
    rules.tree.add_history(path, &["MSG:", stamp, " ", &line].concat());
    rules.alter_flag(id, Flag::Message, true);
}
