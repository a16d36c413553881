//! A suite error: what is wrong, where it stands, and what would be right.

use std::ops::Range;
use std::path::Path;

use miette::{Diagnostic, NamedSource, SourceSpan};

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
}

impl SuiteError {
    /// The suggestion, to hand on to another error.
    pub(crate) fn help_text(&self) -> Option<String> {
        self.help.clone()
    }
}

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
        // The printer fails at columns from 65,536 on, and nobody reads such lines.
        let is_readable = self.text.lines().all(|line| line.len() <= LONGEST_LINE_BYTES);
        let shown = span.clone().filter(|_| is_readable);
        if shown.is_none() && !self.text.is_empty() {
            let line = |span: Range<usize>| {
                let before = self.text.bytes().take(span.start);
                format!(":{}", 1 + before.filter(|byte| *byte == b'\n').count())
            };
            message = format!("{}{}: {message}", self.name, span.map(line).unwrap_or_default());
        }
        Box::new(SuiteError {
            message,
            help,
            source_code: NamedSource::new(&self.name, self.text.clone()).with_language("TOML"),
            span: shown.map(|span| SourceSpan::new(span.start.into(), span.len().max(1))),
        })
    }

    /// An error about the value at a dotted key, such as `workload.keys.count`.
    pub(crate) fn error_at(
        &self,
        key: &str,
        message: impl std::fmt::Display,
        help: Option<String>,
    ) -> Box<SuiteError> {
        self.error(self.span_of(key), format!("{key}: {message}"), help)
    }

    /// An error about a workload, with the nearest known key as the suggestion.
    pub(crate) fn spec_error(&self, error: &load::SpecError) -> Box<SuiteError> {
        self.error_at(&error.key, &error.message, suggestion(&error.message))
    }

    /// An error that the TOML reader found, with the nearest known key as the suggestion.
    pub(crate) fn toml_error(&self, error: &toml::de::Error) -> Box<SuiteError> {
        let message = error.message().to_owned();
        let help = suggestion(&message);
        self.error(error.span(), message, help)
    }

    /// Where the value at a dotted key stands, or the longest part of its path that exists.
    fn span_of(&self, key: &str) -> Option<Range<usize>> {
        let document = toml::de::DeTable::parse(&self.text).ok()?;
        let mut table = document.get_ref();
        let mut found = table.get("sweep").and_then(|sweep| swept_span(sweep.get_ref(), key));
        if found.is_some() {
            return found;
        }
        let mut path = key.split('.').peekable();
        while let Some(part) = path.next() {
            // What is required or derived has names with dots of their own, such as latency.p99.
            let whole = || [&[part], &path.clone().collect::<Vec<_>>()[..]].concat().join(".");
            let Some(value) = table.get(part) else {
                return table.get(whole().as_str()).map(toml::Spanned::span).or(found);
            };
            found = Some(value.span());
            match value.get_ref() {
                toml::de::DeValue::Table(inner) => table = inner,
                toml::de::DeValue::Array(items) => {
                    // `clients.connections` with a single group, `target.NAME.command` with names.
                    let wanted = path.peek().copied().unwrap_or_default();
                    let named = |item: &&toml::Spanned<toml::de::DeValue<'_>>| {
                        let name =
                            item.get_ref().get("name").and_then(|name| name.get_ref().as_str());
                        name == Some(wanted)
                    };
                    let item = items.iter().find(named);
                    if item.is_some() {
                        path.next();
                    }
                    let Some(item) = item.or(items.first()) else { break };
                    found = Some(item.span());
                    let toml::de::DeValue::Table(inner) = item.get_ref() else { break };
                    table = inner;
                }
                _ => break,
            }
        }
        found
    }
}

/// Where a key is swept, if it is: `clients.pipeline` for `clients.NAME.pipeline`.
fn swept_span(sweep: &toml::de::DeValue<'_>, key: &str) -> Option<Range<usize>> {
    let ends = |key: &str| {
        let (first, last) = (key.split('.').next(), key.split('.').next_back());
        (first.map(str::to_owned), last.map(str::to_owned))
    };
    let toml::de::DeValue::Table(sweep) = sweep else { return None };
    let (_, values) = sweep.iter().find(|(swept, _)| ends(swept.get_ref()) == ends(key))?;
    Some(values.span())
}

/// Reads "unknown field `x`, expected one of `a`, `b`" and suggests the nearest.
fn suggestion(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown"))?;
    nearest(unknown, quoted).map(|name| format!("did you mean `{name}`?"))
}

/// The known name that `unknown` was most likely meant to be, if any is near enough.
pub(crate) fn nearest<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min()
        .map(|(_, name)| name)
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
    fn the_nearest_known_key_is_suggested() {
        let message = "unknown field `conections`, expected one of `name`, `connections`";
        assert_eq!(suggestion(message).as_deref(), Some("did you mean `connections`?"));
        assert_eq!(suggestion("invalid type: `conections`"), None);
        assert_eq!(nearest("zzzzzz", ["name", "cpus"]), None);
    }

    #[test]
    fn a_dotted_key_is_found_in_tables_and_named_groups() {
        let text =
            "[[clients]]\nname = 'a'\npipeline = 1\n[[clients]]\nname = 'b'\npipeline = 22\n";
        let source = Source::new(Path::new("s.toml"), text.to_owned());
        assert_eq!(&text[source.span_of("clients.b.pipeline").unwrap()], "22");
        assert_eq!(&text[source.span_of("clients.pipeline").unwrap()], "1");
        assert_eq!(source.span_of("nowhere.at.all"), None);
        let text = "[require]\nwrong = '= 0'\n'latency.p99' = 'soon'\n";
        let source = Source::new(Path::new("s.toml"), text.to_owned());
        assert_eq!(&text[source.span_of("require.latency.p99").unwrap()], "'soon'");
    }
}
