//! `--query`: one value of one node.

use crate::model::{Attribute, Found, From, NodeId, Snapshot};
use crate::server::slot::SMALL_BYTES;

use super::check;
use super::children::program;
use super::text::no_node;

/// Whether the answer to a query is a long one, for another thread.
pub(super) fn is_long(tree: &Snapshot, kind: &str, path: &str, name: &str) -> bool {
    let Some(id) = tree.find(path) else { return false };
    let bytes = match kind {
        "label" => tree.node(id).attributes.iter().find_map(|one| match one {
            Attribute::Label(label) if label.name == *name => {
                let has_new = !label.new_value.is_empty();
                Some(if has_new { label.new_value.len() } else { label.value.len() })
            }
            _ => None,
        }),
        "variable" => {
            // What is made at a node is short, and hides what lies above.
            let found = tree.upwards(id).find_map(|id| {
                let own = tree.own_variable(id, name).map(Some);
                own.or_else(|| tree.made_variable(id, name).map(|_| None))
            });
            found.unwrap_or_else(|| tree.server_variable(name)).map(|text| text.len())
        }
        _ => None,
    };
    bytes.is_some_and(|bytes| bytes > SMALL_BYTES)
}

/// Answers a query.
///
/// # Errors
/// When there is no such node or attribute, or the expression is none.
pub(super) fn query(tree: &Snapshot, kind: &str, path: &str, name: &str) -> Result<String, String> {
    let id = tree.find(path).ok_or_else(|| no_node(path))?;
    let node = tree.node(id);
    if id == NodeId::ROOT && kind != "state" {
        let only = "The only valid query for the server is 'state'";
        return Err(format!("QueryCmd: {only}, i.e. ecflow_client --query state /"));
    }
    let missing = || match kind {
        "variable" => format!(
            "QueryCmd: Cannot find variable, repeat or generated var' of name {name} on node \
             {path} or its parents"
        ),
        "limit" | "limit_max" => format!("QueryCmd: Could not find limit {name}"),
        "repeat" => format!("QueryCmd: Cannot find repeat on node {path}"),
        _ => format!("QueryCmd: Cannot find {kind} {name} on node {path}"),
    };
    let attributes = || node.attributes.iter();
    let found = match kind {
        "state" => Some(node.state.word().to_owned()),
        "dstate" => Some(node.displayed().word().to_owned()),
        "event" => attributes().find_map(|one| match one {
            Attribute::Event(event) if event.is_called(name) => {
                Some(if event.value { "set" } else { "clear" }.to_owned())
            }
            _ => None,
        }),
        "meter" => attributes().find_map(|one| match one {
            Attribute::Meter(meter) if meter.name == *name => Some(meter.value.to_string()),
            _ => None,
        }),
        "label" => attributes().find_map(|one| match one {
            Attribute::Label(label) if label.name == *name => {
                let has_new = !label.new_value.is_empty();
                Some(if has_new { &label.new_value } else { &label.value }.to_string())
            }
            _ => None,
        }),
        "limit" | "limit_max" => attributes().find_map(|one| match one {
            Attribute::Limit(limit) if limit.name == *name => {
                Some(if kind == "limit" { limit.value } else { limit.max }.to_string())
            }
            _ => None,
        }),
        "repeat" => match (tree.repeat(id), name) {
            (None, _) => None,
            (Some(repeat), "") => Some(repeat.over.text()),
            (Some(repeat), "next") => Some(repeat.over.text_beside(1)),
            (Some(repeat), "prev") => Some(repeat.over.text_beside(-1)),
            (Some(_), other) => {
                return Err(format!(
                    "QueryCmd: invalid repeat attribute expected next | prev but found {other}"
                ));
            }
        },
        "variable" => tree.variable(id, name),
        "trigger" => {
            let of = From { tree, node: id };
            let program = program(name)?;
            check::references(&of, &program, ("trigger", name))
                .map_err(|why| format!("QueryCmd: {why}"))?;
            return Ok(program.holds(&of).to_string());
        }
        _ => tree
            .named(id, name)
            .filter(|one| one.found != Found::Limit)
            .map(|one| one.number.to_string()),
    };
    found.ok_or_else(missing)
}
