//! The cost of one operation: a column per target, and the first one's difference from each other.

use findings::{CallCost, CallFigures, Cost, Mean, Summary, calls, costs};
use judge::Unit;

use crate::document::{Block, Cell, Line, Role, Row, Table, number, words};
use crate::number::{Scale, duration, percent};
use crate::phrases::unseen;

/// Calls rarer than this per operation are left to JSON.
const MIN_SHOWN: f64 = 0.001;

/// The cost of one operation at one point; empty where nothing was seen.
pub(crate) fn cost(summary: &Summary, point: usize) -> Vec<Block> {
    let seen = costs(summary, point);
    let seen = seen.iter().filter(|cost| cost.targets.iter().any(Option::is_some));
    let mut rows: Vec<Vec<String>> = seen.map(figure).collect();
    let mut counted = false;
    for (of_generator, words) in [(false, "calls of the server"), (true, "calls of the load")] {
        let all = calls(summary, point, of_generator);
        if !all.is_empty() {
            rows.push(vec![words.to_owned()]);
            counted = true;
        }
        for call in all {
            let often = |figures: &CallFigures| figures.calls >= MIN_SHOWN;
            if call.targets.iter().flatten().any(often) {
                rows.push(made_by_each(&call));
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let names = || summary.targets.iter().map(|target| target.name.clone());
    let others = names().skip(1).map(|other| format!("less {other}"));
    let columns = std::iter::once(words("cost of one operation"));
    let columns = columns.chain(names().chain(others).map(number)).collect();
    let row = |cells: Vec<String>| Row {
        cells: cells.into_iter().map(Cell::from).collect(),
        ..Row::default()
    };
    let rows = rows.into_iter().map(row).collect();
    let caption = "What one operation costs".to_owned();
    let uncounted = (!counted).then(|| "system calls were not counted: run with --cost".to_owned());
    let further = uncounted.into_iter().chain(floors(summary));
    let further = further.map(|words| Line::with_role(Role::Dim, words)).collect::<Vec<_>>();
    vec![Table { caption, columns, rows, has_head: true }.into(), further.into()]
}

fn figure(cost: &Cost) -> Vec<String> {
    let means = cost.targets.iter().chain(&cost.differences).flatten();
    let unit = Unit::of_word(cost.row.unit).unwrap_or(Unit::Count);
    let scale = Scale::of(unit, means.map(|mean| mean.mean.abs()));
    let number = |value: f64| match unit {
        Unit::Nanoseconds | Unit::Bytes => scale.show(value),
        _ => rounded(value),
    };
    let value = |mean: &Mean, sign: &str| {
        let half = mean.half_width.map_or(String::new(), |half| format!(" ±{}", number(half)));
        format!("{sign}{}{half}", number(mean.mean.abs()))
    };
    let mut cells = vec![cost.row.name.to_owned()];
    for (mean, sampling) in cost.targets.iter().zip(&cost.sampling) {
        // With one round the uncertainty of ticks remains.
        let mean = mean.map(|mean| {
            let half_width = mean.half_width.into_iter().chain(*sampling).reduce(f64::max);
            Mean { half_width, ..mean }
        });
        cells.push(unseen(mean.map(|mean| value(&mean, ""))));
    }
    for difference in cost.differences.iter().skip(1) {
        let sign = |mean: &Mean| if mean.mean < 0.0 { "−" } else { "+" };
        cells.push(unseen(difference.map(|one| value(&one, sign(&one)))));
    }
    cells
}

/// Three digits, and no more than three decimals.
fn rounded(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// Each target's number of a call, and the first one's difference from each other.
fn made_by_each(call: &CallCost) -> Vec<String> {
    let cells = call.targets.iter().map(|one| unseen(one.map(made)));
    let differences = (1..call.targets.len()).map(|other| {
        let words = |difference: f64| {
            let sign = if difference < 0.0 { "−" } else { "+" };
            format!("{sign}{}", rounded(difference.abs()))
        };
        unseen(call.difference(other).map(words))
    });
    [format!("  {}", call.name)].into_iter().chain(cells).chain(differences).collect()
}

/// `1.02 (0.500 failed), 62 %`.
fn made(figures: CallFigures) -> String {
    let failed = match figures.errors >= MIN_SHOWN {
        true => format!(" ({} failed)", rounded(figures.errors)),
        false => String::new(),
    };
    format!("{}{failed}, {}", rounded(figures.calls), percent(figures.share))
}

/// The floors of an operation on this host.
fn floors(summary: &Summary) -> Option<String> {
    let floor = |row: &ledger::FloorRow| {
        format!("{} {}", row.name.replace('_', " "), duration(row.value_ns))
    };
    let mut all: Vec<String> = summary.floors.iter().map(floor).collect();
    let pauses = summary.trials.iter().filter_map(|trial| trial.usage.longest_pause_ns);
    let pause = pauses.reduce(f64::max).map(|ns| format!("longest pause {}", duration(ns)));
    all.extend(pause.filter(|_| !summary.floors.is_empty()));
    (!all.is_empty()).then(|| format!("this host's floors: {}", all.join(", ")))
}

#[test]
fn small_numbers_keep_three_decimals_and_large_ones_three_digits() {
    assert_eq!([123.4, 12.34, 1.234, 0.1234].map(rounded), ["123", "12.3", "1.23", "0.123"]);
    let figures = CallFigures { calls: 1.0, errors: 0.5, share: 0.25 };
    assert_eq!(made(figures), "1.00 (0.500 failed), 25 %");
}
