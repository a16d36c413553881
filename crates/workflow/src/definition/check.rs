//! References of a definition: what expressions and `autorestore` name has to be there, or be
//! stated `extern`.

use super::error::DefinitionError;
use crate::model::{Attribute, Binary, Condition, From, Kind, NodeId, Operand, Snapshot, Step};

/// Where an attribute with references was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) node: NodeId,
    /// Its keyword.
    pub(super) word: &'static str,
    pub(super) line: usize,
}

/// The references that lead nowhere; of one expression the first.
pub(super) fn all<'a>(
    tree: &'a Snapshot,
    places: &'a [Place],
    file: &'a str,
) -> impl Iterator<Item = DefinitionError> {
    places.iter().filter_map(move |place| {
        let (message, fix) = wrong(tree, place)?;
        let (file, fix) = (file.to_owned(), fix.to_owned());
        Some(DefinitionError { file, line: place.line, message, fix })
    })
}

const EXTERN: &str = "correct the path, or state it at the top: extern PATH";

/// What is wrong with the references of an attribute.
fn wrong(tree: &Snapshot, place: &Place) -> Option<(String, &'static str)> {
    let id = place.node;
    for attribute in tree.node(id).attributes.iter().filter(|one| one.word() == place.word) {
        match attribute {
            Attribute::Trigger(condition) | Attribute::Complete(condition) => {
                let found = self::condition(tree, id, attribute.word(), condition);
                if found.is_some() {
                    return found;
                }
            }
            Attribute::AutoRestore(paths) => {
                let mut seen = std::collections::HashSet::new();
                for path in paths.iter() {
                    let found = tree.find_from(id, path);
                    if found.is_some_and(|id| !seen.insert(id)) {
                        let message = format!("autorestore: {path} is there twice");
                        return Some((message, "drop one of them"));
                    }
                    let found = found.map(|id| tree.node(id).kind);
                    let is_stated = tree.server().externs.contains(path.as_str());
                    match found {
                        None if !is_stated => {
                            return Some((format!("autorestore: there is no node {path}"), EXTERN));
                        }
                        Some(Kind::Task | Kind::Alias) => {
                            let message = format!("autorestore: {path} is a task");
                            return Some((message, "name a suite or family"));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// What is wrong with the references of an expression.
pub(super) fn condition(
    tree: &Snapshot,
    id: NodeId,
    word: &str,
    condition: &Condition,
) -> Option<(String, &'static str)> {
    let from = From { tree, node: id };
    let program = condition.expression.program.as_ref()?;
    let text = || condition.expression.text();
    if let Some(missing) = program.operands().find_map(|operand| missing(&from, operand)) {
        let at = format!("{}:{}", tree.node(id).kind.shout(), tree.path(id));
        return Some((format!("'{word} {}' at {at}: {missing}", text()), EXTERN));
    }
    let divides = divides_by_zero(&program.steps);
    divides.then(|| (format!("'{}' divides by zero", text()), "use another divisor"))
}

/// What an operand names that isn't there.
fn missing(from: &From<'_>, operand: &Operand) -> Option<String> {
    let tree = from.tree;
    let externs = &tree.server().externs;
    match operand {
        Operand::Upward(name) => {
            let own = format!("{}:{name}", tree.path(from.node));
            let is_there = from.find(operand).is_some() || externs.contains(own.as_str());
            (!is_there).then(|| format!("no node upwards has '{name}'"))
        }
        Operand::Flag(path, _) if *path == "/" => None,
        Operand::Node(path) | Operand::Flag(path, _) => {
            let is_there = from.find(operand).is_some() || externs.contains(path.as_str());
            (!is_there).then(|| format!("there is no node '{path}'"))
        }
        Operand::Variable(path, name) => {
            let is_stated = |path: &str| externs.contains(format!("{path}:{name}").as_str());
            let Some(id) = from.find(operand) else {
                return (!is_stated(path)).then(|| format!("there is no node '{path}'"));
            };
            if tree.named(id, name).is_some() || is_stated(path) || is_stated(&tree.path(id)) {
                return None;
            }
            let kinds = "event, meter, variable, repeat, limit or queue";
            Some(format!("{} has no {kinds} '{name}'", tree.path(id)))
        }
    }
}

fn divides_by_zero(steps: &[Step]) -> bool {
    steps.windows(2).any(|pair| {
        let divides = [Binary::Divide, Binary::Modulo].map(Step::Binary).contains(&pair[1]);
        divides && pair[0] == Step::Integer(0)
    })
}
