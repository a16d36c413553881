//! Errors of definitions: where, what, and what to do about it.

use std::fmt;

/// Why a definition can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionError {
    /// The file, as it was named by the reader.
    pub file: String,
    /// The line, from 1; 0 where it is no line's fault.
    pub line: usize,
    /// What is wrong, with the value.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "; {}", self.fix) }
    }
}

impl std::error::Error for DefinitionError {}

/// What is wrong with a line, before it is known which line it is.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) fix: String,
}

pub(super) type Read<T> = Result<T, Box<Fault>>;

/// A fault with its advice.
pub(super) fn fault(message: impl Into<String>, fix: impl Into<String>) -> Box<Fault> {
    Box::new(Fault { message: message.into(), fix: fix.into() })
}

/// What is left out of a value in a message that would be too long.
pub(super) fn short(value: &str) -> String {
    const LIMIT: usize = 120;
    let mut shown = String::new();
    for (place, one) in value.chars().enumerate() {
        if place == LIMIT {
            shown.push('…');
            break;
        }
        // What can't be seen is named: the end of a line of another system, the mark of Unicode.
        if one.is_control() || one == '\u{feff}' {
            shown.extend(one.escape_default());
        } else {
            shown.push(one);
        }
    }
    shown
}
