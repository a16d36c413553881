//! The targets of a point, a row each.

use findings::{Figures, Latency, Summary, TargetSummary};
use judge::{Metric, Unit};
use ledger::Validity;

use crate::document::{
    Cell, Column, EVERYWHERE, Line, MARKDOWN, NamedFigure, PAGE, Role, Sheet, TEXT_AND_PAGE, Table,
    named, number, verdict, words,
};
use crate::names;
use crate::number::{count, percent, plain, share};
use crate::phrases::{self, unseen, width};

/// The metrics that have a column in any case.
const SHOWN: &[&str] = &[
    "rate_per_s",
    "latency.p50",
    "latency.p90",
    "latency.p99",
    "latency.p999",
    "latency.max",
    "bytes_per_s",
    "hit_ratio",
    "wrong",
    "refused",
    "missing",
    "staleness.p50",
    "staleness.p99",
    "staleness.max",
    "missed",
    "server.cpu_ns_per_op",
    "server.rss_bytes",
    "generator.cpu_ns_per_op",
    "generator.busy",
];

/// Answers under which a p99 is marked as rough: a hundred should lie beyond it.
const MIN_P99_ANSWERS: u64 = 10_000;

/// A row for each target.
pub(crate) fn targets(summary: &Summary, index: usize) -> Table {
    let targets = &summary.points[index].targets;
    let is_graded = targets.iter().any(|one| !one.grade.is_clean());
    let rate = |one: &&TargetSummary| one.rate.map(|rate| rate.mean).or(one.figures.rate_per_s);
    let sheet = Sheet::of("Targets", targets)
        .with(words("target"), |one| name(summary, one.target))
        .with(words("grade"), |one| if is_graded { grade(one) } else { Cell::default() });
    let sheet =
        primary(sheet, summary).figures(number("rate"), Unit::PerSecond, rate, |one, figure| {
            match figure {
                _ if !is_measured(one) => "nothing was measured".into(),
                None => Cell::from("unseen").terminal_text("rate unseen"),
                Some(figure) => Cell::from(figure + &width(one.rate)),
            }
        });
    let sheet = latencies(streams(sheet), targets.iter().any(|one| one.figures.lag.count > 0));
    let bytes = |one: &Figures| one.bytes_per_s;
    let cpu = |one: &Figures| one.server.cpu_ns_per_op;
    let memory = |one: &Figures| one.server.rss_bytes.map(|bytes| bytes as f64);
    let load = |one: &Figures| one.generator.cpu_ns_per_op;
    sheet
        .figures(number("bytes"), Unit::BytesPerSecond, of(bytes), |_, figure| figure)
        .with(number("answers"), |one| is_measured(one).then(|| answers(one)))
        .figures(number("server CPU/op"), Unit::Nanoseconds, of(cpu), server)
        .with(number("bytes/op").on(MARKDOWN), |one| reported(one, "bytes_per_op"))
        .with(number("allocations/op").on(MARKDOWN), |one| reported(one, "allocations_per_op"))
        .figures(memory_column(summary), Unit::Bytes, of(memory), |_, figure| figure)
        .figures(
            number("generator CPU/op").on(TEXT_AND_PAGE),
            Unit::Nanoseconds,
            of(load),
            generator,
        )
        .with(words("version"), |one| version(summary, one.target))
        .with(verdict("verdict").on(MARKDOWN), |one| in_brief(summary, index, one.target))
        .without_head()
}

type Targets<'a> = Sheet<&'a TargetSummary>;

/// The column of memory: it is everywhere where verdicts are about memory, and of a ladder, whose
/// changes often buy one thing with it.
fn memory_column(summary: &Summary) -> Column {
    let is_primary = summary.primary().is_some_and(|metric| metric.suite == "server.rss_bytes");
    let is_everywhere = is_primary || !summary.rungs.is_empty();
    named("memory").on(if is_everywhere { EVERYWHERE } else { PAGE })
}

/// What an implementation in process says of its operations, which text lists by itself.
fn reported(one: &TargetSummary, name: &str) -> Option<String> {
    one.values.iter().find(|value| value.name == name).map(|value| plain(value.median))
}

fn of(of: impl Fn(&Figures) -> Option<f64>) -> impl Fn(&&TargetSummary) -> Option<f64> {
    move |one| of(&one.figures)
}

/// A target's name with its look.
pub(crate) fn name(summary: &Summary, target: usize) -> Cell {
    Cell::from(Line::with_role(Role::Strong, &summary.targets[target].name)).of_target(target)
}

/// What a target says that it is.
fn version(summary: &Summary, target: usize) -> Option<String> {
    let facts = summary.facts.get(target)?;
    facts.iter().find(|(name, _)| name == "version").map(|(_, version)| version.clone())
}

fn is_measured(one: &TargetSummary) -> bool {
    one.measured_ns > 0 || one.operations_of_all > 0
}

/// Whether there is more to show than that nothing was answered.
fn is_answered(one: &TargetSummary) -> bool {
    let figures = &one.figures;
    let any = figures.operations > 0 || figures.streams.is_some() || !figures.reported.is_empty();
    is_measured(one) && any
}

/// A metric of a target as the table has it: of the rate, and of the primary metric where that has
/// a column of its own, the mean of the rounds.
pub(crate) fn value(summary: &Summary, one: &TargetSummary, metric: &Metric) -> Option<f64> {
    let own = phrases::primary_unless(summary, SHOWN).filter(|own| own.suite == metric.suite);
    let mean = match own {
        Some(_) => one.primary,
        None if metric.suite == "rate_per_s" => one.rate,
        None => None,
    };
    mean.map(|mean| mean.mean).or_else(|| one.figures.value(metric))
}

/// What a target's figures are worth, in a word.
pub(crate) fn grade(one: &TargetSummary) -> Cell {
    let role = match one.grade.validity {
        Validity::Invalid => Role::Bad,
        _ if one.grade.is_clean() => Role::Good,
        _ => Role::Unsure,
    };
    Line::with_role(role, one.grade.word()).into()
}

/// The run's primary metric, where no other column has it.
fn primary<'a>(sheet: Targets<'a>, summary: &Summary) -> Targets<'a> {
    let Some(metric) = phrases::primary_unless(summary, SHOWN) else { return sheet };
    // Of streams, updates are the operations: one figure, under two names.
    let is_rate = |one: &TargetSummary| {
        let both = one.primary.zip(one.rate).map(|(primary, rate)| primary.mean / rate.mean);
        both.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-9)
    };
    let mean = |one: &&TargetSummary| {
        one.primary.map(|one| one.mean).or_else(|| one.figures.value(metric))
    };
    let column = number(names::metric(metric).to_lowercase());
    sheet.figures(column, metric.unit, mean, |one, figure| {
        match is_rate(one) || !is_answered(one) {
            true => Cell::default(),
            false => {
                let figure = unseen(figure) + &width(one.primary);
                Cell::from(figure.as_str()).terminal_text(format!("{} {figure}", metric.suite))
            }
        }
    })
}

/// The staleness of updates, and those that were missed.
fn streams(sheet: Targets<'_>) -> Targets<'_> {
    let ages: [NamedFigure<Latency, Option<u64>>; 3] = [
        ("stale p50", |one| one.p50_ns),
        ("stale p99", |one| one.p99_ns),
        ("stale max", |one| one.max_ns),
    ];
    let sheet = ages.into_iter().fold(sheet, |sheet, (name, age)| {
        let forms = if name == "stale max" { PAGE } else { TEXT_AND_PAGE };
        let of = |one: &&TargetSummary| Some(age(&one.figures.streams.as_ref()?.staleness)? as f64);
        sheet.figures(named(name).on(forms), Unit::Nanoseconds, of, |one, figure| {
            match &one.figures.streams {
                None => Cell::default(),
                Some(one) => {
                    let is_rough = name == "stale p99" && one.staleness.count < MIN_P99_ANSWERS;
                    Cell::from(rough(is_rough && figure.is_some()) + &unseen(figure))
                }
            }
        })
    });
    sheet.with(number("missed").on(TEXT_AND_PAGE), |one| {
        let streams = one.figures.streams.as_ref()?;
        let merged = match streams.merged {
            0 => String::new(),
            merged => format!(" ({} said)", count(merged)),
        };
        let fair = match streams.fairness.filter(|_| streams.streams > 1) {
            Some(fairness) => {
                format!(
                    ", fair {} over {}",
                    percent(fairness),
                    phrases::many(streams.streams as usize, "stream")
                )
            }
            None => String::new(),
        };
        Some(format!("{} missed{merged}{fair}", count(streams.missed)))
    })
}

fn rough(is_rough: bool) -> String {
    if is_rough { "~".to_owned() } else { String::new() }
}

fn latencies(sheet: Targets<'_>, has_lag: bool) -> Targets<'_> {
    let all: [NamedFigure<Figures, Option<u64>>; 6] = [
        ("p50", |one| one.latency.p50_ns),
        ("p90", |one| one.latency.p90_ns),
        ("p99", |one| one.latency.p99_ns),
        ("p99.9", |one| one.latency.p999_ns),
        ("max", |one| one.latency.max_ns),
        ("lag p99", |one| one.lag.p99_ns),
    ];
    all.into_iter().filter(|(name, _)| has_lag || *name != "lag p99").fold(sheet, |sheet, one| {
        let (name, ns) = one;
        let column = match name {
            "p50" | "p99" => named(name),
            "lag p99" => named(name).on(TEXT_AND_PAGE),
            _ => number(name).on(PAGE),
        };
        let ns = |one: &&TargetSummary| ns(&one.figures).map(|ns| ns as f64);
        sheet.figures(column, Unit::Nanoseconds, ns, |one, figure| {
            let Figures { latency, streams, .. } = &one.figures;
            if !is_answered(one) || (streams.is_some() && latency.count == 0) {
                return Cell::default();
            }
            let is_rough = name == "p99" && figure.is_some() && latency.count < MIN_P99_ANSWERS;
            Cell::from(rough(is_rough) + &unseen(figure))
        })
    })
}

fn answers(one: &TargetSummary) -> String {
    let hits = one.figures.hit_ratio.map(|hits| format!(", {} hits", share(hits)));
    phrases::answers(one) + &hits.unwrap_or_default()
}

fn server(one: &&TargetSummary, cpu: Option<String>) -> Cell {
    let kernel = one.figures.server.kernel_share();
    let kernel = kernel.map_or(String::new(), |share| format!(" ({} kernel)", percent(share)));
    match cpu {
        Some(cpu) => Cell::from(format!("{cpu}{kernel}"))
            .terminal_text(format!("server {cpu} CPU/op{kernel}")),
        None if is_answered(one) => Cell::from("unseen").terminal_text("server CPU unseen"),
        None => Cell::default(),
    }
}

fn generator(one: &&TargetSummary, cpu: Option<String>) -> Cell {
    let busy = one.figures.generator_busy.map(|busy| format!("{} busy", percent(busy)));
    match (cpu, busy) {
        _ if !is_answered(one) => Cell::default(),
        (Some(cpu), Some(busy)) => Cell::from(format!("{cpu} ({busy})"))
            .terminal_text(format!("generator {cpu} CPU/op ({busy})")),
        (Some(cpu), None) => {
            Cell::from(cpu.as_str()).terminal_text(format!("generator {cpu} CPU/op"))
        }
        (None, busy) => {
            let busy = unseen(busy);
            Cell::from(busy.as_str()).terminal_text(format!("generator {busy}"))
        }
    }
}

/// The verdict of the primary metric on the first target against this one, in a cell.
fn in_brief(summary: &Summary, index: usize, target: usize) -> Option<Line> {
    let one = summary.comparisons_at(index).find(|one| one.primary && one.b == target)?;
    let subject = &summary.targets[one.a].name;
    let likely = phrases::likely(summary, one).map_or(String::new(), |words| format!("; {words}"));
    let is_told = !matches!(one.verdict, judge::Verdict::CantTell { .. });
    let line = Line::from(if is_told { format!("{subject} ") } else { String::new() });
    let line = line.and(phrases::role_of(one.verdict), phrases::verdict(one.verdict, None));
    Some(line.then(format!(": {} {}{likely}", one.metric.suite, phrases::interval(one))))
}
