//! A suite error: what is wrong, where it stands, and what would be right.

use std::ops::Range;
use std::path::Path;

use miette::{Diagnostic, NamedSource, SourceSpan};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use super::near::nearest;
use super::wording::{self, Worded};

/// A suite that can't be run. Printed with its file, line and column, and a suggestion.
#[derive(Debug, Diagnostic, thiserror::Error)]
#[error("{message}")]
pub struct SuiteError {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    source_code: NamedSource<String>,
    #[label("here")]
    span: Option<SourceSpan>,
    /// Further mistakes of the same suite.
    others: Vec<SuiteError>,
}

impl SuiteError {
    /// Each mistake by itself, in the order of the suite.
    pub fn apart(mut self) -> Vec<Self> {
        let others = std::mem::take(&mut self.others);
        std::iter::once(self).chain(others).collect()
    }

    /// The same with further mistakes behind it, each once.
    pub(crate) fn with(mut self: Box<Self>, mut other: Self) -> Box<Self> {
        let behind = std::mem::take(&mut other.others);
        for one in std::iter::once(other).chain(behind) {
            let is_known = |known: &Self| known.message == one.message && known.span == one.span;
            let known = one.message == self.message && one.span == self.span;
            if !known && !self.others.iter().any(is_known) && self.others.len() + 1 < MOST_MISTAKES
            {
                self.others.push(one);
            }
        }
        self
    }
}

/// The most mistakes that an error names: the first ones may be the cause of the others.
const MOST_MISTAKES: usize = 10;

/// Where lines are longer, an error names the line instead of showing it.
const LONGEST_LINE_BYTES: usize = 4_096;

/// The text of a suite with its name, for pointing into it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &Path, text: String) -> Self {
        Self { name: path.display().to_string(), text }
    }

    /// An error about the whole file or the place that `span` names.
    pub(crate) fn error(
        &self,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Box<SuiteError> {
        let mut message = message.into();
        // The printer fails at columns from 65,536 on.
        let is_readable = self.text.lines().all(|line| line.len() <= LONGEST_LINE_BYTES);
        let shown = span.clone().filter(|_| is_readable);
        if shown.is_none() && !self.text.is_empty() {
            let line = |span: Range<usize>| {
                let before = self.text.bytes().take(span.start);
                format!(":{}", 1 + before.filter(|byte| *byte == b'\n').count())
            };
            message = format!("{}{}: {message}", self.name, span.map(line).unwrap_or_default());
        }
        let source = NamedSource::new(printable(&self.name), printable(&self.text));
        Box::new(SuiteError {
            message: printable(&message),
            help: help.map(|help| printable(&help)),
            source_code: source.with_language("TOML"),
            span: shown.map(|span| SourceSpan::new(span.start.into(), span.len().max(1))),
            others: Vec::new(),
        })
    }

    /// An error about the value at a dotted key, such as `workload.keys.count`; of several tables
    /// by their name or number, `target.NAME.cpus` or `target[1].cpus`.
    pub(crate) fn error_at(
        &self,
        key: &str,
        message: impl std::fmt::Display,
        help: Option<String>,
    ) -> Box<SuiteError> {
        // A name that is refused may have lines.
        let written = wording::without_indices(key).replace("..", ".").replace('\n', "?");
        self.error(self.span_of(key), format!("{written}: {message}"), help)
    }

    /// An error about a key of `[sweep]`: its name, not its values.
    pub(crate) fn error_at_swept(
        &self,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Box<SuiteError> {
        let document = DeTable::parse(&self.text).ok();
        let sweep = document.as_ref().and_then(|document| document.get_ref().get("sweep"));
        let span = sweep.and_then(|sweep| key_span(sweep.get_ref(), key));
        self.error(span.or_else(|| self.span_of("sweep")), message, help)
    }

    /// An error about a workload, in words, with the nearest known key as the suggestion.
    pub(crate) fn spec_error(&self, error: &load::SpecError) -> Box<SuiteError> {
        let Worded { message, help } = wording::worded(&error.key, &error.message);
        self.error_at(&error.key, message, help)
    }

    /// Reads the text as `T`, which refuses keys that it doesn't know. Names every mistake that
    /// can be found without guessing what was meant by another.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Box<SuiteError>> {
        if self.text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
            let name =
                if self.text.is_empty() { format!("{}: ", self.name) } else { String::new() };
            let message = format!("{name}there is nothing in it: write what to measure");
            return Err(self.error(None, message, Some(wording::smallest_suite())));
        }
        let mut text = self.text.clone();
        let mut found: Vec<Box<SuiteError>> = Vec::new();
        while found.len() < MOST_MISTAKES {
            let (path, error) = match read_at::<T>(&text) {
                Ok(value) if found.is_empty() => return Ok(value),
                Ok(_) => break,
                Err(at) => at,
            };
            // What was taken out before is not missing.
            let is_followed = path.is_none() || error.message().starts_with("missing field");
            if !found.is_empty() && is_followed {
                break;
            }
            found.push(self.worded(path.as_deref(), &error));
            let entry = error.span().and_then(|span| entry_at(&text, &span));
            let Some(entry) = entry.filter(|_| path.is_some()) else { break };
            let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
            let blanks: String =
                text.as_bytes()[entry.clone()].iter().copied().map(blank).collect();
            text.replace_range(entry, &blanks);
        }
        found.sort_by_key(|error| error.span.map(|span| span.offset()));
        let all = found.into_iter().reduce(|first, other| first.with(*other));
        Err(all.unwrap_or_else(|| self.error(None, "it can't be read", None)))
    }

    /// What the reader of TOML found at a path, in words.
    fn worded(&self, path: Option<&str>, error: &toml::de::Error) -> Box<SuiteError> {
        let path = path.unwrap_or_default();
        let Worded { message, help } = wording::worded(path, error.message());
        let key = wording::without_indices(path);
        let is_named = error.message().starts_with("unknown") || key.is_empty() || key == ".";
        let message = if is_named { message } else { format!("{key}: {message}") };
        self.error(error.span(), message, help)
    }

    /// Where the value at a dotted key stands, or the longest part of its path that exists.
    fn span_of(&self, key: &str) -> Option<Range<usize>> {
        let document = DeTable::parse(&self.text).ok()?;
        let table = document.get_ref();
        let swept = table.get("sweep").and_then(|sweep| swept_span(sweep.get_ref(), key));
        swept.or_else(|| span_in_table(table, key))
    }
}

/// Reads `text` as `T`; where it is TOML but no `T`, the path of what is wrong comes with it.
fn read_at<T: DeserializeOwned>(text: &str) -> Result<T, (Option<String>, toml::de::Error)> {
    let reader = toml::Deserializer::parse(text).map_err(|error| (None, error))?;
    serde_path_to_error::deserialize(reader)
        .map_err(|error| (Some(error.path().to_string()), error.into_inner()))
}

/// The value at a path below a table, or the longest part of it that exists.
fn span_in_table(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    // What is required or derived has names with dots of their own, such as latency.p99.
    if let Some(value) = table.get(path) {
        return Some(value.span());
    }
    let ends = path.char_indices().filter(|(_, c)| ".[".contains(*c)).map(|(at, _)| at);
    let known = ends.into_iter().find_map(|at| Some((table.get(&path[..at])?, &path[at..])));
    known.map(|(value, rest)| span_in(value, without_dot(rest)))
}

/// What follows a dot, if one is first.
fn without_dot(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

fn span_in(value: &Spanned<DeValue<'_>>, path: &str) -> Range<usize> {
    match value.get_ref() {
        DeValue::Table(table) => span_in_table(table, path).unwrap_or(value.span()),
        DeValue::Array(items) => {
            let numbered = path.strip_prefix('[').and_then(|path| path.split_once(']'));
            let numbered = numbered.and_then(|(number, rest)| {
                Some((items.get(number.parse::<usize>().ok()?)?, without_dot(rest)))
            });
            // `target.NAME.command`; names may have dots. `clients.connections` of the first group.
            let named = items.iter().filter_map(|item| {
                let DeValue::Table(table) = item.get_ref() else { return None };
                let rest = path.strip_prefix(table.get("name")?.get_ref().as_str()?)?;
                (rest.is_empty() || rest.starts_with('.')).then_some((item, rest))
            });
            let found = numbered.or_else(|| named.min_by_key(|(_, rest)| rest.len()));
            let found = found.or_else(|| Some((items.first()?, path)));
            found.map_or(value.span(), |(item, rest)| span_in(item, without_dot(rest)))
        }
        _ => value.span(),
    }
}

/// Where a key is swept, if it is: `clients.pipeline` for `clients.NAME.pipeline` or
/// `clients[0].pipeline`.
fn swept_span(sweep: &DeValue<'_>, key: &str) -> Option<Range<usize>> {
    let ends = |key: &str| {
        let (first, last) = (key.split(['.', '[']).next(), key.split('.').next_back());
        (first.map(str::to_owned), last.map(str::to_owned))
    };
    let DeValue::Table(sweep) = sweep else { return None };
    let (_, values) = sweep.iter().find(|(swept, _)| ends(swept.get_ref()) == ends(key))?;
    Some(values.span())
}

/// Where a dotted key stands, written with or without quotes.
fn key_span(value: &DeValue<'_>, key: &str) -> Option<Range<usize>> {
    let DeValue::Table(table) = value else { return None };
    table.iter().find_map(|(name, value)| match key.strip_prefix(&**name.get_ref()) {
        Some("") => Some(name.span()),
        Some(rest) => key_span(value.get_ref(), rest.strip_prefix('.')?),
        None => None,
    })
}

/// The smallest entry, from its key to the end of its value, that holds `span` and no tables.
fn entry_at(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    fn within(table: &DeTable<'_>, span: &Range<usize>) -> Option<Range<usize>> {
        table.iter().find_map(|(name, value)| {
            let tables: Vec<&DeTable<'_>> = match value.get_ref() {
                DeValue::Table(table) => vec![table],
                DeValue::Array(items) => items.iter().filter_map(table_of).collect(),
                _ => Vec::new(),
            };
            let inner = tables.iter().find_map(|table| within(table, span));
            let (key, value) = (name.span(), value.span());
            let holds = key == *span || (value.start <= span.start && span.end <= value.end);
            inner.or_else(|| (tables.is_empty() && holds).then_some(key.start..value.end))
        })
    }
    fn table_of<'t, 'i>(item: &'t Spanned<DeValue<'i>>) -> Option<&'t DeTable<'i>> {
        match item.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        }
    }
    let entry = within(DeTable::parse(text).ok()?.get_ref(), span)?;
    // In a table on one line the comma goes with it.
    let behind = &text[entry.end..];
    let comma = behind.trim_start_matches([' ', '\t']).starts_with(',');
    let more = if comma { behind.find(',').map_or(0, |at| at + 1) } else { 0 };
    Some(entry.start..entry.end + more)
}

/// The text without control characters that a terminal obeys; every byte keeps its place.
pub(super) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() && c.len_utf8() == 1 => '?',
        c if c.is_control() => '¿',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_place_or_in_a_long_line_names_the_file() {
        let text = format!("a = 1\nb = {}", "[1],".repeat(30_000));
        let source = Source::new(Path::new("s.toml"), text);
        let said = |error: Box<SuiteError>| format!("{:?}", miette::Report::new(*error));
        let long = said(source.error(Some(100_000..100_001), "wrong", None));
        assert!(long.contains("s.toml:2: wrong") && long.len() < 100, "{long}");
        assert!(said(source.error(None, "wrong", None)).contains("s.toml: wrong"));
    }

    #[test]
    fn a_dotted_key_is_found_in_tables_and_named_or_numbered_groups() {
        let text =
            "[[clients]]\nname = 'a'\npipeline = 1\n[[clients]]\nname = 'b.2'\npipeline = 22\n";
        let source = Source::new(Path::new("s.toml"), text.to_owned());
        let at = |key: &str| source.span_of(key).map(|span| &text[span]);
        assert_eq!(at("clients.b.2.pipeline"), Some("22"));
        assert_eq!(at("clients[1].pipeline"), Some("22"));
        assert_eq!(at("clients.b.2.name"), Some("'b.2'"));
        assert_eq!(at("clients.pipeline"), Some("1"));
        let nameless = Source::new(Path::new("s.toml"), text.replace("b.2", ""));
        assert_eq!(&nameless.text[nameless.span_of("clients..name").unwrap()], "''");
        assert_eq!(at("nowhere.at.all"), None);
        let text = "[require]\nwrong = '= 0'\n'latency.p99' = 'soon'\n[sweep]\nclients.x = [1]\n";
        let source = Source::new(Path::new("s.toml"), text.to_owned());
        assert_eq!(&text[source.span_of("require.latency.p99").unwrap()], "'soon'");
        let swept = source.error_at_swept("clients.x", "no", None).span.unwrap();
        assert_eq!(&text[swept.offset()..][..swept.len()], "x");
    }

    #[test]
    fn several_mistakes_are_named_at_once_each_at_its_place() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Suite {
            _number: u32,
            _list: Vec<u32>,
            _name: String,
        }
        let text = "_number = 'x'\n_lst = [1]\n_list = [1]\n_name = 'a'\n";
        let source = Source::new(Path::new("s.toml"), text.to_owned());
        let error = source.read::<Suite>().unwrap_err();
        let place = |error: &SuiteError| {
            let span = error.span.unwrap();
            text[span.offset()..][..span.len()].to_owned()
        };
        assert_eq!(place(&error), "'x'");
        assert_eq!(error.others.iter().map(place).collect::<Vec<_>>(), ["_lst"]);
        let all = "_number = 'x'\n";
        let source = Source::new(Path::new("s.toml"), all.to_owned());
        assert!(source.read::<Suite>().unwrap_err().others.is_empty(), "nothing is guessed");
    }

    #[test]
    fn no_escape_sequence_reaches_the_terminal() {
        let source = Source::new(Path::new("s.toml"), "a = \u{1b}[31m\u{9b}\n".to_owned());
        let error = source.error(Some(4..5), "what is \u{1b}?", Some("\u{7}".to_owned()));
        let said = format!("{:?}", miette::Report::new(*error)).replace("\u{1b}[", "");
        assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
    }
}
