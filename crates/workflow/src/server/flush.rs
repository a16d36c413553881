//! `--log-flush`: the kinds of the log's lines, and when they are written to its file.

use std::str::FromStr;

/// What a line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// A request.
    Message,
    /// A change of state.
    Change,
    /// An error.
    Error,
    /// A warning.
    Warning,
}

impl Category {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Message => "MSG",
            Self::Change => "LOG",
            Self::Error => "ERR",
            Self::Warning => "WAR",
        }
    }
}

/// What the lines of a category wait for, from the earliest to the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Until {
    /// Nothing: a write of its own for each line.
    Write,
    /// The end of the request, of the minute or of the job that caused them.
    Command,
    /// What comes within 2 ms of the end of the requests that were there at once.
    Group,
    /// A checkpoint.
    Checkpoint,
    /// An error or a warning.
    Error,
}

/// What the lines of each category wait for. They stay in order: a line that is written takes with
/// it all that waited before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFlush {
    message: Until,
    change: Until,
}

impl Default for LogFlush {
    fn default() -> Self {
        Self { message: Until::Group, change: Until::Group }
    }
}

impl LogFlush {
    /// What a line waits for. Errors and warnings wait for nothing.
    pub(super) const fn of(&self, category: Category) -> Until {
        match category {
            Category::Message => self.message,
            Category::Change => self.change,
            Category::Error | Category::Warning => Until::Write,
        }
    }
}

/// `UNTIL` for all lines, or `message=UNTIL`, `change=UNTIL`, or both with a comma between them.
impl FromStr for LogFlush {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut flush = Self::default();
        for part in text.split(',') {
            match part.split_once('=') {
                None => {
                    let until = until(part)?;
                    (flush.message, flush.change) = (until, until);
                }
                Some(("message", word)) => flush.message = until(word)?,
                Some(("change", word)) => flush.change = until(word)?,
                Some((other, _)) => {
                    return Err(format!(
                        "{other:?} is no kind of lines: message (requests) or change (of states); \
                         errors and warnings are written at once"
                    ));
                }
            }
        }
        Ok(flush)
    }
}

fn until(word: &str) -> Result<Until, String> {
    Ok(match word {
        "write" => Until::Write,
        "command" => Until::Command,
        "group" => Until::Group,
        "checkpoint" => Until::Checkpoint,
        "error" => Until::Error,
        _ => {
            return Err(format!("{word:?} has to be write, command, group, checkpoint or error"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Category, LogFlush, Until};

    #[test]
    fn lines_wait_for_what_their_category_names_and_errors_for_nothing() {
        let of = |text: &str| {
            let flush: LogFlush = text.parse().expect(text);
            [Category::Message, Category::Change, Category::Error].map(|line| flush.of(line))
        };
        assert_eq!(of("command"), [Until::Command, Until::Command, Until::Write]);
        assert_eq!(of("change=error"), [Until::Group, Until::Error, Until::Write]);
        assert_eq!(
            of("change=checkpoint,message=write"),
            [Until::Write, Until::Checkpoint, Until::Write]
        );
        for (text, found) in [("", "\"\""), ("line", "\"line\""), ("error=write", "\"error\"")] {
            let why = text.parse::<LogFlush>().expect_err(text);
            assert!(why.starts_with(found), "{why}");
        }
    }
}
