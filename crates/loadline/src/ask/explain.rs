//! `loadline explain`: what a word of suites and reports means, from the glossary and the tables of
//! metrics and limits.

use std::process::ExitCode;

use judge::limits::{LIMITS, Limit};
use judge::{Direction, METRICS, Metric};

use super::markdown;
use crate::exit::Failure;
use crate::out;

/// A word of a limit's name explains it from as many letters on.
const LEAST_LETTERS: usize = 4;

/// The words and their meanings.
const GLOSSARY: &str = include_str!("../../docs/glossary.md");

/// The columns of the ledger, which say what each metric is.
const COLUMNS: &str = include_str!("../../docs/ledger.md");

/// Arguments of `loadline explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline explain slice
  loadline explain send lag
  loadline explain latency.p99
  loadline explain one server thread")]
pub(crate) struct ExplainArgs {
    /// A word of suites or reports, or the name of a metric or a limit; without one all are listed
    word: Vec<String>,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let text = match args.word.join(" ").trim() {
        "" => format!(
            "{}\n\nMetrics: {}\n\nLimits: {}\n",
            listed(words().into_iter().map(|word| word.name)),
            listed(METRICS.iter().map(|metric| &*metric.suite)),
            listed(LIMITS.iter().map(|limit| limit.name))
        ),
        word => explained(word).map_err(Failure::Usage)?,
    };
    out::print(markdown::wrapped(&text, markdown::width()))?;
    Ok(ExitCode::SUCCESS)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// A word of the glossary.
struct Word {
    name: &'static str,
    /// All words of its row, which the meaning may be of together.
    row: &'static str,
    meaning: &'static str,
}

/// The rows of the glossary's table, one for each word in bold.
fn words() -> Vec<Word> {
    let rows = GLOSSARY.lines().filter_map(|line| {
        let row = line.strip_prefix("| **")?.strip_suffix(" |")?;
        let (names, meaning) = row.split_once("** | ")?;
        Some(names.split(", ").map(move |name| Word { name, row: names, meaning }))
    });
    rows.flatten().collect()
}

/// The words of the glossary, the metrics and the limits that occur in a text, each with its
/// meaning; empty where none does.
pub(crate) fn glossary(text: &str) -> String {
    let text = text.to_lowercase();
    let mut rows: Vec<(Vec<&str>, &str)> = Vec::new();
    for Word { name, meaning, .. } in words() {
        match rows.last_mut().filter(|(_, known)| *known == meaning) {
            _ if !occurs(&text, &name.to_lowercase()) => {}
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], meaning)),
        }
    }
    let is_row = |metric: &&Metric| rows.iter().any(|(names, _)| names.contains(&&*metric.suite));
    let metrics = METRICS.iter().filter(|metric| occurs(&text, &metric.suite) && !is_row(metric));
    let metrics = metrics.map(|metric| format!("- {}\n", of_metric(metric)));
    let rows = rows.iter().map(|(names, said)| format!("- **{}**: {said}\n", names.join(", ")));
    let said = limits_in(&text);
    let is_named = |limit: &&Limit| occurs(&said, &limit.name.to_lowercase());
    let limits = LIMITS.iter().filter(is_named).map(|limit| format!("- {}\n", of_limit(limit)));
    let all: String = rows.chain(metrics).chain(limits).collect();
    match all.is_empty() {
        true => all,
        false => format!("\n{}", markdown::wrapped(&all, markdown::width())),
    }
}

/// What a text says of limits: a line each, however it is wrapped.
fn limits_in(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut said, mut begun) = (String::new(), None);
    for line in text.lines() {
        if line.contains("limit: ") {
            begun = Some(indent(line));
            said.push('\n');
        } else if begun.is_none_or(|at| indent(line) <= at) {
            begun = None;
            continue;
        }
        said.push(' ');
        said.push_str(line.trim());
    }
    said
}

/// Whether a text has this word as a whole, in the singular or the plural.
fn occurs(text: &str, word: &str) -> bool {
    let is_sign = !word.contains(char::is_alphanumeric);
    let is_part =
        |letter: Option<char>| !is_sign && letter.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let behind = &text[at + word.len()..];
        let behind = behind.strip_prefix('s').filter(|_| !word.ends_with('s')).unwrap_or(behind);
        !is_part(text[..at].chars().next_back()) && !is_part(behind.chars().next())
    })
}

/// What a word means.
///
/// # Errors
/// The nearest words where there is none of this name.
fn explained(word: &str) -> Result<String, String> {
    let asked = word.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    for known in words() {
        if is_same(known.name, &asked) {
            found.push(format!("**{}**: {}", known.row, known.meaning));
        }
    }
    let named = |metric: &&Metric| {
        let names = [Some(&*metric.suite), Some(&*metric.json), metric.sql];
        names.into_iter().flatten().any(|name| name == asked)
    };
    let mut metrics: Vec<&Metric> = METRICS.iter().filter(named).collect();
    if metrics.is_empty() {
        // A word that is explained already is a metric's name only where it is its last part.
        let is_part = |metric: &&Metric| match found.is_empty() {
            true => metric.suite.split('.').any(|part| part == asked),
            false => metric.suite.rsplit('.').next() == Some(asked.as_str()),
        };
        metrics = METRICS.iter().filter(is_part).collect();
    }
    found.extend(metrics.into_iter().map(of_metric));
    let is_asked = |limit: &&Limit| is_same(limit.name, &asked) || is_same(limit.code, &asked);
    found.extend(LIMITS.iter().filter(is_asked).map(of_limit));
    if found.is_empty() && asked.chars().count() >= LEAST_LETTERS {
        let has_word = |limit: &&Limit| limit.name.split(' ').any(|word| is_same(word, &asked));
        found.extend(LIMITS.iter().filter(has_word).map(of_limit));
    }
    if found.is_empty() {
        let own = words();
        let known = own.iter().map(|known| known.name);
        let known = known.chain(METRICS.iter().map(|metric| &*metric.suite));
        let near = nearest(&asked, known.chain(LIMITS.iter().map(|limit| limit.name)), 3);
        let near = match near.is_empty() {
            true => "`loadline explain` lists the words".to_owned(),
            false => format!("near it: {}", near.join(", ")),
        };
        return Err(format!("there is no word \"{word}\"; {near}"));
    }
    Ok(format!("{}\n", found.join("\n\n")))
}

/// Whether `asked` is this word, in the singular or the plural, with its apostrophe or without.
fn is_same(name: &str, asked: &str) -> bool {
    let bare = |text: &str| {
        let text = text.to_lowercase().replace(['\'', '’'], "").replace('_', " ");
        text.trim_end_matches('s').to_owned()
    };
    bare(name) == bare(asked)
}

fn of_metric(metric: &Metric) -> String {
    let better = match metric.direction {
        Direction::HigherIsBetter => "higher is better",
        Direction::LowerIsBetter => "lower is better",
    };
    let meaning = metric.sql.and_then(column).map(|text| format!(" {text};")).unwrap_or_default();
    let column = metric.sql.map(|sql| format!(", in the ledger `{sql}`")).unwrap_or_default();
    let (suite, json, unit) = (&metric.suite, &metric.json, metric.unit.word());
    format!("**{suite}**:{meaning} a metric in {unit}, {better}; in JSON `{json}`{column}")
}

fn of_limit(limit: &Limit) -> String {
    let Limit { name, condition, advice, code, .. } = limit;
    format!("**{name}**: a limit, named where {condition}; {advice}; in JSON `{code}`")
}

/// What the ledger's page says of a column, of the view `trials` first.
fn column(name: &str) -> Option<&'static str> {
    let quoted = format!("`{name}`");
    let of_trials = COLUMNS.find("### `trials`").or_else(|| COLUMNS.find("`trials`")).unwrap_or(0);
    let rows = COLUMNS[of_trials..].lines().chain(COLUMNS.lines());
    let mut rows = rows.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.find_map(|row| {
        let (names, meaning) = row.split_once(" | ")?;
        names.split(", ").any(|known| known == quoted).then_some(meaning)
    })
}

/// The known words that `asked` was most likely meant to be, the nearest first, `most` of them.
pub(crate) fn nearest<'a>(
    asked: &str,
    known: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let distance = |name: &'a str| (strsim::damerau_levenshtein(asked, name), name);
    let near = |(distance, name): &(usize, &str)| {
        *distance <= 1 + name.len() / 3 || (asked.len() > 2 && name.contains(asked))
    };
    let mut found: Vec<(usize, &str)> = known.map(distance).filter(near).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_every_metric_is_explained_from_its_one_source() {
        let words = words();
        assert!(words.len() > 30, "{} words", words.len());
        for word in &words {
            assert!(explained(word.name).unwrap().contains(word.meaning), "{}", word.name);
        }
        for metric in METRICS {
            let said = explained(&metric.suite).unwrap();
            assert!(said.contains(metric.unit.word()), "{said}");
        }
        for limit in LIMITS {
            for name in [limit.name, limit.code] {
                assert!(explained(name).unwrap().contains(limit.condition), "{name}");
            }
        }
        assert!(explained("Slices").unwrap().contains("**slice**"));
        assert!(explained("cant_tell").unwrap().contains("**can't tell**"));
        assert!(explained("little's law").unwrap().contains("throughput"));
        assert!(explained("peak").unwrap().contains("memory"));
        // What stands in reports.
        for word in [
            "grade",
            "unseen",
            "closed",
            "depth",
            "measured again",
            "beside",
            "p99.9",
            "steps",
            "bursts",
            "trace",
            "open loop",
            "short-lived or unseen",
            "other programs",
            "kernel",
            "wall_ns",
            "~",
        ] {
            let said = explained(word).unwrap();
            let (head, _) = said.split_once("**: ").unwrap();
            assert!(head[2..].split(", ").any(|one| one == word), "{said}");
        }
        assert!(explained("rung").unwrap().starts_with("**ladder, rung**: a ladder's rungs are"));
        assert!(explained("listen queue").unwrap().contains("backlog"));
        let said = explained("p99").unwrap();
        assert!(said.contains("latency.p99") && said.contains("staleness.p99"), "{said}");
        let said = explained("latency.p99").unwrap();
        assert!(said.contains("from the scheduled time on"), "{said}");
    }

    #[test]
    fn the_words_of_a_text_are_found_whole_and_in_the_plural() {
        let said = glossary("cache/get · 5 rounds, verdict: better, latency.p99 0.8×; sliced\n");
        for word in ["round", "verdict", "latency", "latency.p99"] {
            assert!(said.contains(&format!("- **{word}**: ")), "{word}: {said}");
        }
        assert!(!said.contains("**slice**") && !said.contains("**latency.p999**"), "{said}");
        let said = glossary("limit: a: one server thread: it runs 98 % of the time\n");
        assert!(said.contains("- **one server thread**: a limit"), "{said}");
        let wrapped = "  limit: loadline: something (first in 4 of 4 rounds); also one\n         \
                       server thread in 1 of 4\n  one generator thread is no limit here\n";
        let said = glossary(wrapped);
        assert!(said.contains("- **one server thread**: a limit"), "{said}");
        assert!(!said.contains("generator thread"), "{said}");
        assert_eq!(glossary("17\n"), "");
        assert!(glossary("1.55k/s ±10 %\n").contains("- **±**: half the width"));
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_nearest() {
        let said = explained("slise").unwrap_err();
        assert!(said.contains("near it: slice"), "{said}");
        let said = explained("latency.p98").unwrap_err();
        assert!(said.contains("latency.p9"), "{said}");
        assert!(explained("xyzzyxyzzy").unwrap_err().contains("lists the words"));
    }
}
