//! The tables of BENCHMARKS.md: one row per result, each read from a page of docs/benchmarks; and
//! the goals that are not met, each with its reason.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::document::{block, commit_of, write};
use crate::peers::{Table, read as table};
use crate::process::repository;

/// The document, and the name of the table's block.
const DOCUMENT: &str = "BENCHMARKS.md";
const BLOCK: &str = "bench:overview";

/// The most rows of a table: one screen.
const MAX_ROWS: usize = 40;

/// The tables: a page belongs to the one by which its name begins, others to the lab.
const SERVICES: [(&str, &str); 6] = [
    ("cache", "Cache"),
    ("records", "Records"),
    ("conditions", "Conditions"),
    ("workflow", "Workflow"),
    ("rpc", "Rpc"),
    ("", "The lab"),
];

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
    /// Why the goal isn't met.
    reason: Option<String>,
    #[serde(flatten)]
    figure: Figure,
}

/// The place of a figure on its page.
#[derive(Deserialize)]
#[serde(untagged)]
enum Figure {
    Ratio { point: String, peer: String, metric: String },
    Median { point: String, step: String },
    Value { before: String, after: String },
    More { point: String, less: String, column: String },
    Times { point: String, over: String, column: String },
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
    for (prefix, name) in SERVICES {
        let count = result.iter().filter(|entry| entry.service() == name).count();
        if count > MAX_ROWS {
            bail!("{ENTRIES} has {count} rows of \"{prefix}\"; {MAX_ROWS} are one screen");
        }
    }
    Ok(result)
}

/// The tables as Markdown, and what is missed.
fn text() -> Result<String> {
    let (peers, entries) = (table(&repository())?, entries()?);
    let (mut text, mut missed) = (String::new(), String::new());
    for (_, name) in SERVICES {
        text.push_str(&format!(
            "### {name}\n\n\
             | work | figure | Loadline ÷ peer [95 %] | verdict | peer | goal | commit |\n\
             |---|---|--:|---|---|---|---|\n"
        ));
        for entry in entries.iter().filter(|entry| entry.service() == name) {
            entry.add_to(&mut text, &mut missed, &peers)?;
        }
        text.push('\n');
    }
    text.push_str("### Goals that are not met\n\n");
    text.push_str(if missed.is_empty() { "None.\n" } else { &missed });
    Ok(text)
}

/// Whether a figure such as `at most 0.35× [0.34, 0.36]` or `29.4 ms` keeps a goal such as
/// `≤ 0.25×` or `< 10 ms`, of the same unit; `None` where they can't be compared.
fn is_met(figure: &str, goal: &str) -> Option<bool> {
    let (sign, bound) = goal.split_once(' ')?;
    let (bound, figure) = (number(bound)?, number(figure)?);
    match sign {
        "≤" => Some(figure <= bound),
        "<" => Some(figure < bound),
        "≥" => Some(figure >= bound),
        ">" => Some(figure > bound),
        _ => None,
    }
}

/// Bytes of one.
const MIB: f64 = 1_048_576.0;

/// The first number of a text, in its base unit.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(|sign: char| !sign.is_ascii_digit()).replace(',', "");
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let units = [
        ("ns", 1e-9),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("k/s", 1e3),
        ("M/s", 1e6),
        ("KiB", 1_024.0),
        ("MiB", MIB),
        ("GiB", 1_024.0 * MIB),
    ];
    let found = units.iter().find(|(name, _)| unit.trim_start().starts_with(name));
    Some(digits.parse::<f64>().ok()? * found.map_or(1.0, |(_, factor)| *factor))
}

impl Entry {
    /// The table that it belongs to.
    fn service(&self) -> &'static str {
        let found = SERVICES.iter().find(|(prefix, _)| self.page.starts_with(prefix));
        found.map_or("", |(_, name)| name)
    }

    /// Adds its row, and what is missed.
    fn add_to(&self, text: &mut String, missed: &mut String, peers: &Table) -> Result<()> {
        let page = format!("docs/benchmarks/{}.md", self.page);
        let document = fs::read_to_string(repository().join(&page)).context(page.clone())?;
        let figures = block(&document, &format!("bench:{}", self.page)).context(page.clone())?;
        // A page that is not measured yet has no rows.
        if figures.trim().is_empty() {
            return Ok(());
        }
        let Some(Shown { figure, verdict }) = self.read(figures) else {
            bail!("{page} has no figure for \"{}\": mend its row in {ENTRIES}", self.work)
        };
        let (metric, peer) = match &self.figure {
            Figure::Ratio { peer, metric, .. } => (&metric[..], versioned(peer, peers)),
            Figure::Median { step, .. } => (&step[..], String::new()),
            Figure::Value { .. } => ("", String::new()),
            Figure::More { column, .. } | Figure::Times { column, .. } => {
                (&column[..], String::new())
            }
        };
        let (work, goal) = (&self.work, &self.goal);
        let is_met = is_met(&figure, goal) != Some(false);
        let shown = if is_met { goal.clone() } else { format!("**{goal}**") };
        let commit = commit_of(figures).unwrap_or_default();
        text.push_str(&format!(
            "| [{work}]({page}) | {metric} | {figure} | {verdict} | {peer} | {shown} | {commit} |\n"
        ));
        if !is_met {
            let reason = self.reason.as_deref().unwrap_or("No reason is known.");
            missed.push_str(&format!("- {work}: {figure}, goal {goal}. {reason}\n"));
        }
        Ok(())
    }

    /// Returns the figure from the block of its page.
    fn read(&self, figures: &str) -> Option<Shown> {
        match &self.figure {
            Figure::Median { point, step } => median(figures, point, step),
            Figure::Value { before, after } => {
                let line = figures.lines().find_map(|line| {
                    let rest = &line[line.find(&before[..])? + before.len()..];
                    rest.strip_suffix(&after[..])
                })?;
                // Of `held, 240 ns` the value.
                let value = line.rsplit(", ").next().unwrap_or(line);
                Some(Shown { figure: value.to_owned(), verdict: String::new() })
            }
            Figure::More { point, less, column } => {
                let more = own(figures, point, column)? - own(figures, less, column)?;
                let figure = format!("{:.2} MiB", more.max(0.0) / MIB);
                Some(Shown { figure, verdict: String::new() })
            }
            Figure::Times { point, over, column } => {
                let times = own(figures, point, column)? / own(figures, over, column)?;
                Some(Shown { figure: format!("{times:.2}×"), verdict: String::new() })
            }
            Figure::Ratio { point, peer, metric } => from_row(figures, point, peer, metric)
                .or_else(|| from_text(figures, point, peer, metric)),
        }
    }
}

/// What a page's table has in a column of Loadline's row at a point, in its base unit.
fn own(figures: &str, point: &str, column: &str) -> Option<f64> {
    let rows = figures.lines().filter(|line| line.starts_with("| "));
    let mut rows = rows.map(|row| row.split('|').collect::<Vec<_>>());
    let head = rows.find(|cells| cells.get(1).is_some_and(|name| name.trim() == "point"))?;
    let at = head.iter().position(|name| name.trim() == column)?;
    let row = rows.find(|cells| cells[1].contains(point) && cells[2].trim() == "loadline")?;
    number(row.get(at)?)
}

/// The median of what a step of the program's own took, from a page as the terminal shows it.
fn median(figures: &str, point: &str, step: &str) -> Option<Shown> {
    let figures = unfolded(figures);
    let lines = figures.lines().skip_while(|line| !line.contains(point));
    let name = format!("loadline: {step} ");
    let own = lines.into_iter().find_map(|line| line.trim_start().strip_prefix(&name))?;
    let (_, rest) = own.split_once("median ")?;
    let figure = rest.split("  ").next()?.trim().to_owned();
    Some(Shown { figure, verdict: String::new() })
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
/// Where there are several peers, each verdict names its own.
fn from_text(figures: &str, point: &str, peer: &str, metric: &str) -> Option<Shown> {
    let figures = unfolded(figures);
    let lines = figures.lines().skip_while(|line| !line.contains(point));
    let (than, against) = (format!(" than {peer}, "), format!(" against {peer}, "));
    let is_others = |line: &str| {
        let names_one = line.contains(" than ") || line.contains(" against ");
        names_one && !line.contains(&than) && !line.contains(&against)
    };
    // The lines of a point stand further in than itself.
    let inside = |line: &&str| line.is_empty() || line.starts_with(' ');
    for line in lines.skip(1).take_while(inside).filter(|line| !is_others(line)) {
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
        "ecflow" => "ecflow-server",
        name => name,
    };
    let programs = peers.peer.iter().map(|peer| (&peer.package, &peer.version));
    let python = peers.python.iter().map(|peer| (&peer.package, &peer.version));
    let found = programs.chain(python).find(|(one, _)| *one == package);
    found.map_or(target.to_owned(), |(_, version)| format!("{name} {version}"))
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
    fn goals_are_compared_with_figures_of_any_unit() {
        assert_eq!(is_met("at most 0.35× [0.34, 0.36]", "≤ 0.25×"), Some(false));
        assert_eq!(is_met("1,200× [1, 2]", "≥ 20×"), Some(true));
        assert_eq!(is_met("29.4 ms", "< 10 ms"), Some(false));
        assert_eq!(is_met("940 µs", "< 10 ms"), Some(true));
        assert_eq!(is_met("38.9k/s (679 % room)", "≥ 5,000/s"), Some(true));
        assert_eq!(is_met("no figure", "≥ 20×"), None);
        let text = "load 1 conns ·\n    depth 1\n  loadline: jobs_answer          min 63.8 ms   \
            median 72.4 ms   mean 69.5 ms\n";
        assert_eq!(median(text, "depth 1", "jobs_answer").unwrap().figure, "72.4 ms");
        assert_eq!(is_met("2.70 MiB", "≤ 8 MiB"), Some(true));
        assert_eq!(is_met("0.01 GiB", "≤ 8 MiB"), Some(false));
    }

    #[test]
    fn a_point_is_compared_with_another_one_of_the_same_page() {
        let figures = "| point | target | p99 | memory |\n|---|---|--:|--:|\n\
            | readers 0 · | loadline | 978 µs | 17.2 MiB |\n\
            | readers 0 · | tonic | 1,090 µs | 4.32 MiB |\n\
            | readers 1 · | tonic | 1.31 ms | 7.86 MiB |\n\
            | readers 1 · | loadline | ~1.06 ms | 19.9 MiB |\n";
        let read = |figure: &str| {
            let keys = "page = \"a\"\nwork = \"b\"\ngoal = \"c\"\npoint = \"readers 1\"\n";
            let entry: Entry = toml::from_str(&format!("{keys}{figure}")).unwrap();
            entry.read(figures).map(|shown| shown.figure)
        };
        let more = read("less = \"readers 0\"\ncolumn = \"memory\"");
        assert_eq!(more.as_deref(), Some("2.70 MiB"));
        let times = read("over = \"readers 0\"\ncolumn = \"p99\"");
        assert_eq!(times.as_deref(), Some("1.08×"));
        assert_eq!(read("over = \"readers 9\"\ncolumn = \"p99\""), None);
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
        let shown = from_text(text, "get 1", "peer", "p50").unwrap();
        assert_eq!((&shown.figure[..], &shown.verdict[..]), ("2× [1, 2]", "better"));
        assert_eq!(from_text(text, "get 1", "peer", "cpu").unwrap().verdict, "worse");
        let folded = "get 1 · closed ·\n    valid 5/5\n  verdict: a worse, cpu 2× [1, 3]\n  \
            beside: rate 1× [1, 1] same ·\n          p50 2×\n          [1, 2] better\n";
        let shown = from_text(folded, "get 1 · closed ·", "peer", "p50").unwrap();
        assert_eq!((&shown.figure[..], &shown.verdict[..]), ("2× [1, 2]", "better"));
        let several = "get 1\n  verdict: a worse than one, p50 2× [1, 3]\n  \
            verdict: can't tell (unseen) against other, p50 3× [1, 4]\n";
        let shown = from_text(several, "get 1", "other", "p50").unwrap();
        assert_eq!((&shown.figure[..], &shown.verdict[..]), ("3× [1, 4]", "can't tell (unseen)"));
        let row = "| get 1 | peer | 1 | can't tell (invalid trials): rate 1.2× in one round |\n";
        assert_eq!(from_row(row, "get 1", "peer", "rate").unwrap().figure, "1.2× in one round");
    }
}
