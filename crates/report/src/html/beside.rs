//! Two runs side by side: their conditions, and each metric at each point. Nothing is judged here:
//! runs at different times differ by the host as well.

use findings::{Summary, TargetSummary, differences};
use judge::Metric;
use maud::{Markup, html};

use super::budget::{Budget, clipped, fit};
use super::page::{page, page_budget, rest_in};
use super::render::{table, within};
use super::served::ledger_nav;
use crate::conclusion::conclusion;
use crate::document::{Line, Role, Sheet, number, words, wrapped};
use crate::names::{self, shown as shown_as};
use crate::number::{moment, ratio};

/// The most rows of a table.
const MAX_ROWS: usize = 500;

/// Two runs of any suites, side by side.
pub fn beside(a: &Summary, b: &Summary) -> String {
    let rows = rows(a, b);
    let mut budget = page_budget();
    let facts = budget.settle(html! { (facts(a, b)) (apart(a, b)) }, "What they were has no room.");
    let metrics = metrics(a, b);
    let share = budget.left() / metrics.len().max(1);
    let tables = metrics.into_iter().map(|metric| {
        let table = values(a, b, metric, &rows, budget.share(share));
        html! { section { h2 { (names::metric(metric)) } (table) } }
    });
    let contents = html! {
        (ledger_nav(None))
        header {
            p.kind { span { "Loadline" } }
            h1 { "Run " (a.id) " beside run " (b.id) }
            p.note {
                "These figures were measured at different times, so that a difference may be the "
                "host's. " code { "loadline compare --runs " (b.id) " " (a.id) }
                " says what can be told from them."
            }
        }
        main {
            section { h2 { "What they were" } (facts) }
            @for table in tables { (table) }
        }
    };
    page(&format!("Run {} beside run {}", a.id, b.id), None, &contents).into_string()
}

fn facts(a: &Summary, b: &Summary) -> Markup {
    let settings = |one: &Summary| {
        let all = one.run.settings.iter().map(|(key, value)| format!("{key} = {value}"));
        all.collect::<Vec<_>>().join(", ")
    };
    type Fact = fn(&Summary) -> String;
    let rows: [(&str, Fact); 6] = [
        ("suite", |one| one.suite.title.clone()),
        ("its text", |one| one.suite.hash.chars().take(12).collect()),
        ("primary metric", |one| one.run.primary_metric.clone()),
        ("state", |one| one.run.state.word().to_owned()),
        ("loadline", |one| one.run.version.clone()),
        ("note", |one| one.run.note.clone().unwrap_or_default()),
    ];
    let mut all = vec![("set beside it", settings(a), settings(b))];
    all.extend(rows.map(|(name, of)| (name, of(a), of(b))));
    let started = [a, b].map(|one| moment(&one.run.started_at));
    html! {
        (both("Both runs", (a, b), all))
        dl.said { @for (one, started) in [a, b].into_iter().zip(started) {
            dt { a href=(format!("/runs/{}", one.id)) { "run " (one.id) } " of " (started) }
            dd { (fit(&conclusion(one).join(" "), 4_000)) }
        } }
    }
}

/// Facts by name, of both runs; those that differ stand out.
fn both(caption: &str, (a, b): (&Summary, &Summary), facts: Vec<(&str, String, String)>) -> Markup {
    let role = |(_, a, b): &(&str, String, String)| if a == b { Role::Plain } else { Role::Unsure };
    let sheet = Sheet::of(caption, facts)
        .with(words("fact"), |(name, ..)| *name)
        .with(wrapped(format!("run {}", a.id)), |one| Line::with_role(role(one), &one.1))
        .with(wrapped(format!("run {}", b.id)), |one| Line::with_role(role(one), &one.2));
    table(&sheet.table())
}

/// Facts of host and build that may move figures and aren't the same.
fn apart(a: &Summary, b: &Summary) -> Markup {
    let found = differences(&a.fingerprint.json, &b.fingerprint.json);
    let words = |text: String| if text.is_empty() { "unseen".to_owned() } else { text };
    let facts = found.into_iter().map(|one| (one.name, words(one.a), words(one.b))).collect();
    let table = both("Facts that differ", (a, b), facts);
    html! {
        h3 { "Host and build" }
        @if table.0.is_empty() { p { "No fact that is known to move figures differs." } }
        (table)
    }
}

/// The primary metrics first, then those that most people ask for, where either run saw them.
fn metrics<'a>(a: &'a Summary, b: &'a Summary) -> Vec<&'a Metric> {
    let asked = [
        a.run.primary_metric.as_str(),
        b.run.primary_metric.as_str(),
        "rate_per_s",
        "latency.p50",
        "latency.p99",
        "server.cpu_ns_per_op",
    ];
    let named = |name: &str| a.metrics.named(name).or_else(|| b.metrics.named(name));
    let mut found: Vec<&Metric> = Vec::new();
    for metric in asked.into_iter().filter_map(named) {
        let is_new = found.iter().all(|one| one.suite != metric.suite);
        let mut targets = [a, b].into_iter().flat_map(|run| &run.points).flat_map(|p| &p.targets);
        if is_new && targets.any(|one| shown(one, metric).is_some()) {
            found.push(metric);
        }
    }
    found
}

/// Labels of a point and names of a target that either run has, in the order of the first.
fn rows(a: &Summary, b: &Summary) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for run in [a, b] {
        for point in &run.points {
            for one in &point.targets {
                let row = (point.row.label.clone(), run.targets[one.target].name.clone());
                if known.insert(row.clone()) {
                    rows.push(row);
                }
            }
        }
    }
    rows
}

fn values(
    a: &Summary,
    b: &Summary,
    metric: &Metric,
    rows: &[(String, String)],
    mut budget: Budget,
) -> Markup {
    let of = |run: &Summary, (label, name): &(String, String)| value(run, label, name, metric);
    let shown = shown_as(metric);
    let sheet = Sheet::of("Point by point", rows.iter().take(MAX_ROWS))
        .with(words("point"), |row| clipped(&row.0).into_owned())
        .with(words("target"), |row| clipped(&row.1).into_owned())
        .with(number(format!("run {}", a.id)), |row| of(a, row).map(shown))
        .with(number(format!("run {}", b.id)), |row| of(b, row).map(shown))
        .with(number(format!("{} ÷ {}", b.id, a.id)), |row| quotient(of(a, row), of(b, row)));
    let (table, more) = within(&sheet.table(), &mut budget);
    let more = more + rows.len().saturating_sub(MAX_ROWS);
    html! {
        @if rows.is_empty() { p { "Neither run has a point yet." } }
        (table)
        (rest_in(more, "rows", &format!("loadline compare --runs {} {}", b.id, a.id)))
    }
}

/// The results of the target of that name at the point of that label.
fn value(run: &Summary, label: &str, name: &str, metric: &Metric) -> Option<f64> {
    let target = run.targets.iter().position(|one| one.name == name)?;
    let point = run.points.iter().find(|point| point.row.label == label)?;
    shown(point.of_target(target)?, metric)
}

/// A target's metric over its valid trials taken as one.
fn shown(target: &TargetSummary, metric: &Metric) -> Option<f64> {
    if target.valid_trials == 0 { None } else { target.figures.value(metric) }
}

fn quotient(a: Option<f64>, b: Option<f64>) -> Option<String> {
    let found = a.zip(b).filter(|(a, _)| *a > 0.0);
    found.map(|(a, b)| format!("{}×", ratio(b / a)))
}
