//! `--check`: what expressions, limits and `autorestore` name and isn't there, in ecFlow's words.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::parts::{Effect, Parts, Told};
use crate::model::{Attribute, Condition, From, Kind, NodeId, Operand, Program, Snapshot};
use crate::protocol::Reply;
use crate::server::log::Category;

/// What was found: what is wrong, and what is to be known.
#[derive(Default)]
struct Found {
    errors: String,
    warnings: String,
}

/// Checks the nodes at these paths, or all suites.
pub(super) fn check(parts: &mut Parts<'_>, tree: &Snapshot, paths: &[String]) -> Told {
    let mut missing = String::new();
    let mut all = Vec::new();
    for path in paths {
        match tree.find(path) {
            Some(id) => all.push(id),
            None => {
                let line = format!("Check: Could not find node at path {path}");
                parts.effects.push(Effect::Log(Category::Error, line));
                // Writing to a string can't fail.
                let _ = writeln!(missing, "PathsCmd:Check: Could not find node at path '{path}'");
            }
        }
    }
    if paths.is_empty() {
        all.push(NodeId::ROOT);
    }
    let tree = tree.clone();
    Told::Later(Box::new(move || {
        let mut warnings = String::new();
        for id in all {
            let found = of_node(&tree, id);
            if !found.errors.is_empty() {
                return Reply::Text(format!("{}\n{}", found.errors, found.warnings));
            }
            warnings.push_str(&found.warnings);
        }
        if missing.is_empty() { Reply::Text(warnings) } else { Reply::Error(missing) }
    }))
}

fn of_node(tree: &Snapshot, id: NodeId) -> Found {
    let mut found = Found::default();
    for at in tree.walk(id).filter(|at| tree.node(*at).kind != Kind::Alias) {
        let attributes = || tree.node(at).attributes.iter();
        for word in ["complete", "trigger"] {
            for one in attributes().filter(|one| one.word() == word) {
                if let Attribute::Trigger(condition) | Attribute::Complete(condition) = one {
                    expression(tree, at, word, condition, &mut found.errors);
                }
            }
        }
        limits(tree, at, &mut found.warnings);
        for one in attributes() {
            if let Attribute::AutoRestore(paths) = one {
                restored(tree, at, paths.iter().map(|path| &**path), &mut found.errors);
            }
        }
    }
    found
}

/// A node as messages name it.
pub(super) fn shown(tree: &Snapshot, id: NodeId) -> String {
    format!("{}:{}", tree.node(id).kind.shout(), tree.path(id))
}

fn expression(tree: &Snapshot, id: NodeId, word: &str, condition: &Condition, errors: &mut String) {
    let Some(program) = condition.expression.program.as_ref() else { return };
    let text = condition.expression.text();
    if let Err(why) = references(&From { tree, node: id }, program, (word, &text)) {
        errors.push_str(&why);
    }
}

/// Whether all is there that an expression names.
///
/// # Errors
/// What is not.
pub(super) fn references(
    from: &From<'_>,
    program: &Program,
    (word, text): (&str, &str),
) -> Result<(), String> {
    let Some(why) = program.operands().find_map(|operand| missing(from, operand)) else {
        return Ok(());
    };
    let at = shown(from.tree, from.node);
    Err(format!(
        "Error: Expression node tree references failed for '{word} {text}' at {at}\n {why}"
    ))
}

fn missing(from: &From<'_>, operand: &Operand) -> Option<String> {
    let tree = from.tree;
    match (operand, from.find(operand)) {
        (Operand::Upward(_), Some(_)) | (Operand::Node(_) | Operand::Flag(..), Some(_)) => None,
        (Operand::Flag(path, _), _) if *path == "/" => None,
        (Operand::Upward(name), None) => {
            let at = shown(tree, from.node);
            Some(format!(" Could not find variable {name} on node {at} OR any of its parent nodes"))
        }
        (Operand::Variable(path, name), Some(id)) => {
            let at = shown(tree, id);
            let kinds = "event, meter, variable, repeat, generated variable, limit or queue";
            tree.named(id, name).is_none().then(|| {
                format!(
                    "From expression Variable {path}:{name} the referenced node is {at}\nCould not \
                     find {kinds} of name('{name}') on node {at}\n"
                )
            })
        }
        (Operand::Node(path) | Operand::Flag(path, _) | Operand::Variable(path, _), None) => {
            Some(no_node(tree, from.node, path))
        }
    }
}

fn no_node(tree: &Snapshot, from: NodeId, path: &str) -> String {
    let at = tree.path(from);
    if path.starts_with('/') {
        return format!(": Could not find referenced node, using absolute path '{path}\n");
    }
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        ["..", ..] => format!("Unrecognised path {path} for Node {at}\n"),
        _ if tree.node(from).kind == Kind::Suite => {
            "Parent empty. Could not find referenced node\n".to_owned()
        }
        [name] | [".", name] => {
            format!(
                "Could not find node '{name}' from node {at} . Expected '{name}' to be a sibling.\n"
            )
        }
        [".", names @ ..] | names => {
            format!("Could not find node '{}/' from node {at}\n", names.join("/"))
        }
    }
}

fn limits(tree: &Snapshot, id: NodeId, warnings: &mut String) {
    let node = tree.node(id);
    let at = format!("{} {}", node.kind.shout(), tree.path(id));
    for one in node.attributes.iter() {
        let Attribute::InLimit(one) = one else { continue };
        let mut text = "inlimit ".to_owned();
        text.push_str(if one.node_only { "-n " } else { "" });
        text.push_str(if one.submission { "-s " } else { "" });
        if !one.path.is_empty() {
            let _ = write!(text, "{}:", one.path);
        }
        text.push_str(&one.name);
        if one.tokens != 1 {
            let _ = write!(text, " {}", one.tokens);
        }
        let _ = match (tree.limit_of(id, one), one.path.is_empty()) {
            (Some(limit), _) if one.tokens > limit.max => write!(
                warnings,
                "Warning: {at} has a {text} reference\n with value '{}' which exceeds '{}' \
                 defined on the Limit\n",
                one.tokens, limit.max
            ),
            (Some(_), _) => Ok(()),
            (None, true) => writeln!(
                warnings,
                "Warning: {at} has a {text}, which cannot be found on the parent nodes"
            ),
            (None, false) => match tree.find_from(id, &one.path) {
                None => writeln!(warnings, "Warning: {at} has a {text}, which cannot be found"),
                Some(holder) => {
                    let (kind, path) = (tree.node(holder).kind.shout(), tree.path(holder));
                    let name = &one.name;
                    write!(
                        warnings,
                        "Warning: {at} has a {text} :The referenced {kind} '{path}' does not \
                         define the limit {name}\n\n"
                    )
                }
            },
        };
    }
}

fn restored<'a>(
    tree: &Snapshot,
    id: NodeId,
    paths: impl Iterator<Item = &'a str>,
    errors: &mut String,
) {
    let at = format!("Error: autorestore on node {}", tree.node(id).kind.shout());
    let mut seen = BTreeSet::new();
    for path in paths {
        let _ = match tree.find_from(id, path) {
            None => writeln!(errors, "{at} references a path '{path}' which cannot be found"),
            Some(found) if tree.node(found).kind.is_job() => write!(
                errors,
                "{at} references a node '{path}' which is a task. restore only works with suites \
                 or family nodes"
            ),
            Some(found) if !seen.insert(found) => {
                write!(errors, "{at}, duplicate references to node '{path}'")
            }
            Some(_) => Ok(()),
        };
    }
}
