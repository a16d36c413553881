//! What is found: how bad it is, where, and what to do about it.

use crate::definition::{DefinitionError, Examined};
use crate::model::NodeId;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// It can't be loaded, or part of it never runs.
    Error,
    /// It may be meant so.
    Warning,
}

impl Level {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Something that is wrong, where, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What kind of thing is wrong.
    pub rule: &'static str,
    /// The line, from 1; 0 where it is no line's fault.
    pub line: usize,
    /// The node; empty where it is no node's.
    pub path: String,
    /// What is wrong, with the value.
    pub text: String,
    /// What to do about it.
    pub fix: String,
}

impl Finding {
    pub(super) fn of_fault(level: Level, rule: &'static str, fault: &DefinitionError) -> Self {
        let DefinitionError { line, message, fix, .. } = fault;
        let (text, fix) = (message.clone(), fix.clone());
        Self { level, rule, line: *line, path: String::new(), text, fix }
    }
}

/// Puts findings into the order of their lines.
pub fn sort(found: &mut [Finding]) {
    found.sort_by(|a, b| (a.line, a.level, &a.text).cmp(&(b.line, b.level, &b.text)));
}

/// A finding at an attribute of a node.
pub(super) fn at(
    examined: &Examined,
    (level, rule): (Level, &'static str),
    (node, word, place): (NodeId, &'static str, usize),
    (text, fix): (String, impl Into<String>),
) -> Finding {
    let line = examined.line(node, word, place);
    let path = examined.tree.path(node);
    Finding { level, rule, line, path, text, fix: fix.into() }
}
