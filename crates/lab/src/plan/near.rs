//! Names that somebody may have meant.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base::FileError;

/// The known name that `unknown` was most likely meant to be, if any is near enough: one that
/// it shortens, else one that is spelt alike.
pub(crate) fn nearest<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // All its letters in order: `conns` of `connections`.
    let shortens = |name: &str| {
        let mut letters = name.chars();
        unknown.len() > 2
            && unknown.starts_with(&name[..name.ceil_char_boundary(1)])
            && unknown.chars().all(|letter| letters.any(|other| other == letter))
    };
    known
        .into_iter()
        .map(|name| (!shortens(name), strsim::damerau_levenshtein(unknown, name), name))
        .filter(|(is_other, distance, name)| !is_other || *distance <= 1 + name.len() / 3)
        .min()
        .map(|(_, _, name)| name)
}

/// All known names, the nearest first: those that hold or continue what was written, then those
/// that are spelt alike.
pub(crate) fn nearest_first<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let distance = |name: &str| {
        let is_part = !unknown.is_empty() && (name.contains(unknown) || unknown.contains(name));
        (!is_part, strsim::damerau_levenshtein(unknown, name))
    };
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_by_key(|name| distance(name));
    names
}

/// What metrics are called elsewhere.
const METRICS_ELSEWHERE: &[(&str, &str)] = &[
    ("throughput", "rate_per_s"),
    ("rps", "rate_per_s"),
    ("qps", "rate_per_s"),
    ("tps", "rate_per_s"),
    ("ops", "rate_per_s"),
    ("memory", "server.rss_bytes"),
    ("timeouts", "missing"),
    ("rejected", "refused"),
    ("error_rate", "errors"),
    ("failures", "errors"),
];

/// All metrics as a list for a message, the nearest to `unknown` first.
pub(crate) fn metrics_listed<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let elsewhere = METRICS_ELSEWHERE.iter().find(|(name, _)| *name == unknown);
    nearest_first(elsewhere.map_or(unknown, |(_, name)| *name), known).join(", ")
}

/// Why no suite can be read at `path`, and which file may have been meant.
pub(crate) fn unread(path: &Path, error: &FileError) -> (String, Option<String>) {
    let FileError::Unread { why, .. } = error else { return (error.to_string(), None) };
    let what = match why.kind() {
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::IsADirectory => "it is a directory, and a suite is a file",
        _ => return (error.to_string(), None),
    };
    let help = match suite_near(path) {
        Some(near) => format!("did you mean {}?", near.display()),
        None => "`loadline new` prints suites to begin with, and `loadline try` needs none".into(),
    };
    (format!("{}: {what}", path.display()), Some(help))
}

/// The suite that `path` was most likely meant to be: beside it, in it, or in `suites` there.
fn suite_near(path: &Path) -> Option<PathBuf> {
    let name = path.file_stem()?.to_string_lossy();
    let folder = match path.parent() {
        _ if path.is_dir() => path,
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let suites = [folder.to_owned(), folder.join("suites")].into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    });
    let is_suite = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    let stem = |path: PathBuf| Some((path.file_stem()?.to_string_lossy().into_owned(), path));
    let mut suites: Vec<_> = suites.filter(is_suite).filter_map(stem).collect();
    suites.sort();
    let near = nearest(&name, suites.iter().map(|(stem, _)| stem.as_str()))?;
    let (_, path) = suites.iter().find(|(stem, _)| stem == near)?;
    Some(path.strip_prefix(".").unwrap_or(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_is_not_there_is_answered_with_one_that_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("suites")).unwrap();
        for name in ["mine.toml", "suites/tour.toml", "suites/notes.md"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let near = |name: &str| suite_near(&folder.path().join(name));
        assert_eq!(near("mine"), Some(folder.path().join("mine.toml")));
        assert_eq!(near("tuor.toml"), Some(folder.path().join("suites/tour.toml")));
        assert_eq!(near("something"), None);
    }

    #[test]
    fn the_nearest_name_is_suggested_and_leads_the_list() {
        assert_eq!(nearest("conections", ["name", "connections"]), Some("connections"));
        assert_eq!(nearest("conns", ["connect", "connections"]), Some("connections"));
        assert_eq!(nearest("zzzzzz", ["name", "cpus"]), None);
        assert_eq!(nearest_first("p99", ["rate", "latency.p99"]), ["latency.p99", "rate"]);
        let listed = metrics_listed("throughput", ["latency.p99", "rate_per_s"]);
        assert_eq!(listed, "rate_per_s, latency.p99");
    }
}
