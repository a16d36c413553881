//! The table of BENCHMARKS.md: one row per result, each read from a page of docs/benchmarks.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::document::{block, commit_of, write};
use crate::peers::{Table, read as table};
use crate::process::repository;

/// The document, and the name of the table's block.
const DOCUMENT: &str = "BENCHMARKS.md";
const BLOCK: &str = "bench:overview";

/// The most rows: one screen.
const MAX_ROWS: usize = 40;

/// The rows of the table.
const ENTRIES: &str = "docs/benchmarks/overview.toml";

/// All rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    result: Vec<Entry>,
}

/// One row of the table; the head of the file explains each key.
#[derive(Deserialize)]
struct Entry {
    page: String,
    work: String,
    goal: String,
    #[serde(flatten)]
    figure: Figure,
}

/// The place of a figure on its page.
#[derive(Deserialize)]
#[serde(untagged)]
enum Figure {
    Ratio { point: String, peer: String, metric: String },
    Value { before: String, after: String },
}

/// A figure as the table shows it.
struct Shown {
    figure: String,
    verdict: String,
}

/// Writes the table from the pages as they are.
pub(super) fn update() -> Result<()> {
    write(DOCUMENT, BLOCK, &text()?)
}

fn entries() -> Result<Vec<Entry>> {
    let text = fs::read_to_string(repository().join(ENTRIES)).context(ENTRIES)?;
    let Entries { result } = toml::from_str(&text).context(ENTRIES)?;
    if result.len() > MAX_ROWS {
        bail!("{ENTRIES} has {} rows; {MAX_ROWS} are one screen", result.len());
    }
    Ok(result)
}

/// The table as Markdown.
fn text() -> Result<String> {
    let peers = table(&repository())?;
    let mut text = String::from(
        "| work | figure | Loadline ÷ peer [95 %] | verdict | peer | goal | commit |\n\
         |---|---|--:|---|---|---|---|\n",
    );
    for entry in entries()? {
        let page = format!("docs/benchmarks/{}.md", entry.page);
        let document = fs::read_to_string(repository().join(&page)).context(page.clone())?;
        let figures = block(&document, &format!("bench:{}", entry.page)).context(page.clone())?;
        // A page that is not measured yet has no rows.
        if figures.trim().is_empty() {
            continue;
        }
        let Some(shown) = entry.read(figures) else {
            bail!("{page} has no figure for \"{}\": mend its row in {ENTRIES}", entry.work)
        };
        let (metric, peer) = match &entry.figure {
            Figure::Ratio { peer, metric, .. } => (&metric[..], versioned(peer, &peers)),
            Figure::Value { .. } => ("", String::new()),
        };
        text.push_str(&format!(
            "| [{}]({page}) | {metric} | {} | {} | {peer} | {} | {} |\n",
            entry.work,
            shown.figure,
            shown.verdict,
            entry.goal,
            commit_of(figures).unwrap_or_default()
        ));
    }
    Ok(text)
}

impl Entry {
    /// Returns the figure from the block of its page.
    fn read(&self, figures: &str) -> Option<Shown> {
        match &self.figure {
            Figure::Value { before, after } => {
                let line = figures.lines().find_map(|line| {
                    let rest = &line[line.find(&before[..])? + before.len()..];
                    rest.strip_suffix(&after[..])
                })?;
                // Of `held, 240 ns` the value.
                let value = line.rsplit(", ").next().unwrap_or(line);
                Some(Shown { figure: value.to_owned(), verdict: String::new() })
            }
            Figure::Ratio { point, peer, metric } => {
                from_row(figures, point, peer, metric).or_else(|| from_text(figures, point, metric))
            }
        }
    }
}

/// A ratio from a page with a table: the last cell of the row of that point and target.
fn from_row(figures: &str, point: &str, peer: &str, metric: &str) -> Option<Shown> {
    let rows = figures.lines().filter(|line| line.starts_with("| "));
    let cell = rows.into_iter().find_map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let is_it = cells.get(1)?.contains(point) && cells.get(2)?.trim() == peer;
        // Markdown escapes what would be a sign of its own.
        is_it.then(|| cells[cells.len() - 2].trim().replace('\\', ""))
    })?;
    let (_, rest) = cell.split_once(": ")?;
    Some(Shown { figure: after(rest, metric)?, verdict: word(&cell) })
}

/// A ratio from a page as the terminal shows it: the lines `verdict` and `beside` of that point.
fn from_text(figures: &str, point: &str, metric: &str) -> Option<Shown> {
    let figures = unfolded(figures);
    let lines = figures.lines().skip_while(|line| !line.contains(point));
    for line in lines.take_while(|line| !line.is_empty()) {
        let Some((name, rest)) = line.trim_start().split_once(": ") else { continue };
        let mut parts = rest.split(" · ").filter(|part| part.contains(metric));
        if let Some(part) = parts.find(|_| name == "verdict" || name == "beside") {
            return Some(Shown { figure: after(part, metric)?, verdict: word(part) });
        }
    }
    None
}

/// The text with each line on one: what goes on a line stands further in than the lines of a point.
fn unfolded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let bare = line.trim_start();
        match line.len() - bare.len() > 2 && !out.is_empty() {
            true => out.push_str(&format!(" {bare}")),
            false => out.push_str(&format!("\n{line}")),
        }
    }
    out
}

/// The ratio behind a metric's name, up to the end of its interval, which one round doesn't have.
fn after(text: &str, metric: &str) -> Option<String> {
    const ONE: &str = " in one round";
    let rest = &text[text.find(metric)? + metric.len()..];
    let end = rest.find(']').map(|at| at + 1);
    let end = end.or_else(|| rest.find(ONE).map(|at| at + ONE.len()))?;
    Some(rest[..end].trim().to_owned())
}

/// The verdict in a phrase that names targets and figures, too.
fn word(phrase: &str) -> String {
    if let Some(start) = phrase.find("can't tell") {
        let end =
            phrase[start..].find(')').map_or(start + "can't tell".len(), |end| start + end + 1);
        let unclear = &phrase[start..end];
        return match phrase[end..].split_once("likely ") {
            Some((_, likely)) => {
                unclear.replace("can't tell", &format!("likely {}", first(likely)))
            }
            None => unclear.to_owned(),
        };
    }
    first(phrase).to_owned()
}

/// The first word of a verdict in a phrase.
fn first(phrase: &str) -> &'static str {
    let known = ["better", "worse", "same"];
    let found = known.into_iter().filter_map(|word| Some((phrase.find(word)?, word)));
    found.min().map_or("", |(_, word)| word)
}

/// A peer with the version that `peers/peers.toml` states.
fn versioned(target: &str, peers: &Table) -> String {
    let name = target.split('-').next().unwrap_or(target);
    let package = match name {
        "pvxs" => "pvxslibs",
        "redis" => "redis-server",
        "memcaslap" => "libmemcached-tools",
        "postgres" => "postgresql-15",
        name => name,
    };
    let programs = peers.peer.iter().map(|peer| (&peer.package, &peer.version));
    let python = peers.python.iter().map(|peer| (&peer.package, &peer.version));
    let found = programs.chain(python).find(|(one, _)| *one == package);
    found.map_or(name.to_owned(), |(_, version)| format!("{name} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_is_that_of_its_pages() {
        let document = fs::read_to_string(repository().join(DOCUMENT)).unwrap();
        let table = text().unwrap();
        assert_eq!(block(&document, BLOCK).unwrap(), table, "cargo xtask bench --overview");
    }

    #[test]
    fn ratios_are_read_from_tables_and_from_the_terminals_text() {
        let row = "| get 1 | peer | 1 | a can't tell (unseen): rate at least 7.7× [7, 8] |\n";
        let shown = from_row(row, "get 1", "peer", "rate").unwrap();
        assert_eq!(
            (&shown.figure[..], &shown.verdict[..]),
            ("at least 7.7× [7, 8]", "can't tell (unseen)")
        );
        let row = "| get 1 | peer | 1 | can't tell (disturbed rounds): rate 2× [1, 3], 1 of 5 \
            rounds disturbed; likely a better, 2× [1, 4]; 1 of 5 rounds disturbed |\n";
        let shown = from_row(row, "get 1", "peer", "rate").unwrap();
        let (figure, verdict) = ("2× [1, 3]", "likely better (disturbed rounds)");
        assert_eq!((&shown.figure[..], &shown.verdict[..]), (figure, verdict));
        let text = "get 1\n  verdict: a worse, cpu 2× [1, 3]\n  \
            beside: rate 1× [1, 1] same · p50 2× [1, 2] better\n";
        let shown = from_text(text, "get 1", "p50").unwrap();
        assert_eq!((&shown.figure[..], &shown.verdict[..]), ("2× [1, 2]", "better"));
        assert_eq!(from_text(text, "get 1", "cpu").unwrap().verdict, "worse");
        let folded = "get 1 · closed ·\n    valid 5/5\n  verdict: a worse, cpu 2× [1, 3]\n  \
            beside: rate 1× [1, 1] same ·\n          p50 2×\n          [1, 2] better\n";
        let shown = from_text(folded, "get 1 · closed ·", "p50").unwrap();
        assert_eq!((&shown.figure[..], &shown.verdict[..]), ("2× [1, 2]", "better"));
        let row = "| get 1 | peer | 1 | can't tell (invalid trials): rate 1.2× in one round |\n";
        assert_eq!(from_row(row, "get 1", "peer", "rate").unwrap().figure, "1.2× in one round");
    }
}
