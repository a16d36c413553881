//! Scripts and the jobs that are made of them, as ecFlow's `EcfFile` makes them: where a task's
//! script is ([`locate`]), its includes, and its variables.
//!
//! Nothing here reads a file by itself: [`Files`] does, so that every rule is tested without any.
//! Scripts are bytes; only what is looked up has to be text.

mod edit;
mod include;
mod job;
mod locate;
mod scope;
mod substitute;

use std::io;

pub use edit::{edit, pre_process, pre_process_own};
pub use include::MAX_DEPTH;
pub use job::{Job, Source, job, manual};
pub use locate::{Located, Origin, locate, may_be_printed};
pub use scope::{Level, Scope, Scopes};
pub use substitute::substitute;

/// The most bytes of a job, and of one file that it is made of.
pub const MAX_JOB_BYTES: usize = 16 << 20;

/// What scripts are read from.
pub trait Files {
    /// A file's bytes, at most [`MAX_JOB_BYTES`].
    ///
    /// # Errors
    /// When it can't be read, or is larger.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Whether there is something at a path.
    fn exists(&self, path: &str) -> bool;

    /// Whether there is a directory at a path.
    fn is_directory(&self, path: &str) -> bool;

    /// What a command of the shell prints.
    ///
    /// # Errors
    /// When it can't be run, fails, or prints too much.
    fn output(&self, command: &str) -> io::Result<Vec<u8>>;
}

/// The script's lines, without their ends; the last may lack one.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

/// Bytes as a message shows them.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

/// Words between blanks.
fn token(line: &[u8], number: usize) -> Option<&[u8]> {
    let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    words.filter(|word| !word.is_empty()).nth(number)
}

/// The first character of ECF_MICRO or `%ecfmicro`, as bytes: `£` has two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Micro(Vec<u8>);

impl Micro {
    /// The mark of a scope.
    fn of(scope: &Scope, path: &str) -> Result<Self, String> {
        let mark = scope.user("ECF_MICRO").unwrap_or("%");
        if mark.chars().count() != 1 {
            return Err(format!(
                "EcfFile::EcfFile: Node {path} is referencing a invalid ECF_MICRO variable(' \
                 {mark}). ECF_MICRO when overridden, must be a single character."
            ));
        }
        Ok(Self(mark.as_bytes().to_vec()))
    }

    /// The mark that a line `%ecfmicro &` says.
    fn of_line(line: &[u8], script: &str) -> Result<Self, String> {
        match token(line, 1) {
            None => Err(format!("ecfmicro does not have a replacement character, in {script}")),
            Some(mark) if mark.len() > 2 => Err(format!(
                "Expected ecfmicro replacement to be a single character, but found '{}' {} in \
                 file : {script}",
                shown(mark),
                mark.len()
            )),
            Some(mark) => Ok(Self(mark.to_vec())),
        }
    }

    /// Where it is first in a line.
    fn find(&self, line: &[u8]) -> Option<usize> {
        memchr::memmem::find(line, &self.0)
    }

    /// Whether a line begins with it and a word, as directives do.
    fn begins(&self, line: &[u8], word: &str) -> bool {
        line.strip_prefix(&self.0[..]).is_some_and(|rest| rest.starts_with(word.as_bytes()))
    }

    /// How many of them count: not those in comments of the shell.
    fn count(&self, line: &[u8]) -> usize {
        if line.first() == Some(&b'#') {
            return 0;
        }
        let count = memchr::memmem::find_iter(line, &self.0).count();
        match line.iter().rposition(|byte| *byte == b'#') {
            Some(comment) if count % 2 != 0 => {
                memchr::memmem::find_iter(&line[..comment], &self.0).count()
            }
            _ => count,
        }
    }
}

#[cfg(test)]
mod tests;
