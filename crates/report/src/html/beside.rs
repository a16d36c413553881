//! Two runs side by side: their conditions, and each metric at each point. Nothing is judged here:
//! runs at different times differ by the host as well.

use findings::{Summary, TargetSummary, differences};
use judge::Metric;
use maud::{Markup, html};

use super::budget::{Budget, clipped, fit};
use super::names;
use super::names::shown as shown_as;
use super::page::{moment, page, page_budget, table};
use super::served::ledger_nav;
use crate::conclusion::conclusion;
use crate::number::ratio;

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
    let row = |name: &str, of: &dyn Fn(&Summary) -> String| {
        let (a, b) = (of(a), of(b));
        let differ = a != b;
        html! { tr.parted[differ] {
            th scope="row" { (name) } td.wrap { (fit(&a, 1_000)) } td.wrap { (fit(&b, 1_000)) }
        } }
    };
    let settings = |one: &Summary| {
        let all = one.run.settings.iter().map(|(key, value)| format!("{key} = {value}"));
        all.collect::<Vec<_>>().join(", ")
    };
    let names = [a, b].map(|one| format!("run {}", one.id));
    let body = html! { tbody {
        tr {
            th scope="row" { "started" }
            @for one in [a, b] {
                td { a href=(format!("/runs/{}", one.id)) { (moment(&one.run.started_at)) } }
            }
        }
        (row("suite", &|one| one.suite.title.clone()))
        (row("its text", &|one| one.suite.hash.chars().take(12).collect()))
        (row("set beside it", &settings))
        (row("primary metric", &|one| one.run.primary_metric.clone()))
        (row("state", &|one| one.run.state.word().to_owned()))
        (row("loadline", &|one| one.run.version.clone()))
        (row("note", &|one| one.run.note.clone().unwrap_or_default()))
    } };
    html! {
        (table("Both runs", &[("", "fact"), ("", &names[0]), ("", &names[1])], &body))
        dl.said { @for one in [a, b] {
            dt { "run " (one.id) } dd { (fit(&conclusion(one).join(" "), 4_000)) }
        } }
    }
}

/// Facts of host and build that may move figures and aren't the same.
fn apart(a: &Summary, b: &Summary) -> Markup {
    let found = differences(&a.fingerprint.json, &b.fingerprint.json);
    let names = [a, b].map(|one| format!("run {}", one.id));
    let words = |text: &str| if text.is_empty() { "unseen".to_owned() } else { text.to_owned() };
    html! {
        h3 { "Host and build" }
        @if found.is_empty() {
            p { "No fact that is known to move figures differs." }
        } @else {
            (table("Facts that differ", &[("", "fact"), ("", &names[0]), ("", &names[1])], &html! {
                tbody { @for one in found { tr.parted {
                    th scope="row" { (one.name) }
                    td.wrap { (clipped(&words(&one.a))) } td.wrap { (clipped(&words(&one.b))) }
                } } }
            }))
        }
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
    let row = |(label, name): &(String, String)| {
        let (of_a, of_b) = (value(a, label, name, metric), value(b, label, name, metric));
        html! { tr {
            th scope="row" { (clipped(label)) } td { (clipped(name)) }
            @for one in [of_a, of_b] { td.n { (said(one, metric)) } }
            td.n { (quotient(of_a, of_b)) }
        } }
    };
    let shown = rows.iter().take(MAX_ROWS);
    let over = rows.len() - shown.len();
    let (shown, more) = budget.list(shown.map(row));
    let names = [a, b].map(|one| format!("run {}", one.id));
    let ratio = format!("{} ÷ {}", b.id, a.id);
    let columns =
        [("", "point"), ("", "target"), ("n", &*names[0]), ("n", &names[1]), ("n", &ratio)];
    html! {
        @if rows.is_empty() { p { "Neither run has a point yet." } }
        @else {
            (table("Point by point", &columns, &html! { tbody { (shown) } }))
        }
        @if over + more > 0 {
            p.note {
                (over + more) " more rows have no room here: "
                code { "loadline compare --runs " (b.id) " " (a.id) } " has all of them."
            }
        }
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

fn said(value: Option<f64>, metric: &Metric) -> String {
    value.map_or_else(|| "–".to_owned(), shown_as(metric))
}

fn quotient(a: Option<f64>, b: Option<f64>) -> String {
    let found = a.zip(b).filter(|(a, _)| *a > 0.0);
    found.map_or_else(|| "–".to_owned(), |(a, b)| format!("{}×", ratio(b / a)))
}
