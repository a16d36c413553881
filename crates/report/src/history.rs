//! The history of a suite in words: as text and as JSON.

use findings::{History, MIN_RUNS, PastFigure, PointHistory};
use serde_json::{Value, json};

use crate::contest::change;
use crate::document::{Cell, Line, Role, Sheet, Table, number, verdict, words};
use crate::escape::one_line;
use crate::json::SCHEMA;
use crate::names;
use crate::number::{moment, value_of};
use crate::phrases::many;
use crate::text::Paint;
use crate::wrap::wrapped;

/// The last changes in a sentence each, or that there is none.
pub(crate) fn sentences(history: &History) -> Vec<String> {
    let (name, target) = (&history.metric.suite, &history.target);
    let mut lines = Vec::new();
    for series in &history.series {
        let Some(last) = series.changes.last() else { continue };
        let word = if history.is_worse(last) { "worse" } else { "better" };
        let (before, after) = (&series.runs[last.index - 1], &series.runs[last.index]);
        lines.push(format!(
            "{target} became {word} at {}: {name} {} since run {} ({}), after {} of {}.",
            one_line(&series.point),
            change(last.after / last.before),
            after.id,
            range(before, after),
            last.index,
            many(series.runs.len(), "run")
        ));
    }
    if !lines.is_empty() {
        return lines;
    }
    let most = history.series.iter().map(|series| series.runs.len()).max().unwrap_or(0);
    if most < MIN_RUNS {
        let more = match history.without_figure {
            0 => String::new(),
            1 => format!("; 1 more has no valid round of {target}"),
            more => format!("; {more} more have no valid round of {target}"),
        };
        return vec![format!(
            "It can't be told whether {target} changed: {} on this kind of host {} too few, \
             it takes {MIN_RUNS}{more}.",
            many(most, "run"),
            if most == 1 { "is" } else { "are" }
        )];
    }
    vec![format!("{target} did not change in {} by {name}.", many(most, "run"))]
}

/// The history for a terminal.
pub fn history_text(history: &History) -> String {
    let mut text = format!(
        "{}  {} of {}\n",
        one_line(&history.title),
        history.metric.suite,
        one_line(&history.target)
    );
    text.push_str(&format!("  host  {}\n", one_line(&history.host)));
    if history.elsewhere > 0 {
        let runs = many(history.elsewhere, "run");
        text.push_str(&format!("  {runs} on other hosts left out\n"));
    }
    if history.without_figure > 0 {
        let runs = many(history.without_figure, "run");
        text.push_str(&format!("  {runs} without a valid round left out\n"));
    }
    for series in &history.series {
        let settings = match settings_words(series) {
            settings if settings.is_empty() => String::new(),
            settings => format!("  {settings}"),
        };
        let point = one_line(&series.point);
        text.push_str(&format!("\n{point}{settings}\n"));
        let mut runs = figures(history, series);
        runs.rows.reverse();
        text.push_str(&crate::text::table(&runs, Paint::new(false)));
    }
    text.push('\n');
    for line in sentences(history) {
        text.push_str(&format!("{}\n", one_line(&line)));
    }
    wrapped(&text)
}

/// The runs of a series, the newest first.
pub(crate) fn figures(history: &History, series: &PointHistory) -> Table {
    let changed = |index: usize| {
        let found = series.changes.iter().find(|change| change.index == index)?;
        let (role, word) = match history.is_worse(found) {
            true => (Role::Bad, "worse"),
            false => (Role::Good, "better"),
        };
        Some(Line::with_role(role, format!("{word}: {}", change(found.after / found.before))))
    };
    let metric = names::metric(&history.metric).to_lowercase();
    Sheet::of("The newest run first", series.runs.iter().enumerate().rev())
        .with(number("run"), |(_, run)| {
            Cell::from(run.id.to_string()).link(Some(format!("/runs/{}", run.id)))
        })
        .with(words("started"), |(_, run)| moment(&run.started_at))
        .with(words("commit"), |(_, run)| run.commit.as_deref().map(|one| short(one).to_owned()))
        .with(number(metric), |(_, run)| value_of(run.figure, history.metric.unit))
        .with(verdict("changed"), |(index, _)| changed(*index).unwrap_or_default())
        .table()
}

/// The same for programs.
pub fn history_json(history: &History) -> Value {
    let series = |series: &PointHistory| {
        let runs = series.runs.iter().map(|run| {
            json!({
                "run": run.id,
                "started_at": run.started_at,
                "commit": run.commit,
                "figure": run.figure,
            })
        });
        let changes = series.changes.iter().map(|change| {
            let (before, after) = (&series.runs[change.index - 1], &series.runs[change.index]);
            json!({
                "verdict": if history.is_worse(change) { "worse" } else { "better" },
                "before": change.before,
                "after": change.after,
                "ratio": change.after / change.before,
                "p_value": change.p_value,
                "last_run": before.id,
                "first_run": after.id,
                "last_commit": before.commit,
                "first_commit": after.commit,
            })
        });
        json!({
            "point": series.point,
            "settings": series.settings,
            "runs": runs.collect::<Vec<_>>(),
            "changes": changes.collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": SCHEMA,
        "suite": history.title,
        "target": history.target,
        "metric": history.metric.json,
        "host": history.host,
        "elsewhere": history.elsewhere,
        "without_figure": history.without_figure,
        "series": history.series.iter().map(series).collect::<Vec<_>>(),
        "conclusion": sentences(history).join(" "),
    })
}

/// Settings beside the suite's text: `clients.pipeline = 1`; empty when nothing was.
pub(crate) fn settings_words(series: &PointHistory) -> String {
    let pairs: Vec<(String, String)> = serde_json::from_str(&series.settings).unwrap_or_default();
    let words = pairs.iter().map(|(key, value)| format!("{key} = {value}"));
    one_line(&words.collect::<Vec<_>>().join(", "))
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// `a1b2c3d4e5..0123456789`, or the runs where commits are unknown.
fn range(before: &PastFigure, after: &PastFigure) -> String {
    match (&before.commit, &after.commit) {
        (Some(before), Some(after)) if before != after => {
            format!("{}..{}", short(before), short(after))
        }
        (Some(before), Some(_)) => format!("both sides are commit {}", short(before)),
        _ => format!("after run {}", before.id),
    }
}
