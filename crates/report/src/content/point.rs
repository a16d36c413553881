//! One point: its targets, the verdicts, and every caveat.

use std::collections::BTreeMap;

use findings::{Compared, FindingSummary, PointSummary, Summary};
use judge::{Interval, Unit, Verdict};
use ledger::{RequirementOutcome, Validity};

use super::bytes::difference;
use super::samples::samples;
use super::target::{name, targets};
use super::{advice, limits, notes};
use crate::document::{
    Block, Cell, Depth, Drawing, EVERYWHERE, Line, PAGE, Role, Sheet, TEXT, Table,
    number as figures, verdict, words,
};
use crate::names;
use crate::number::{self, count, duration, in_one_unit, ratio, ratio_within, whole_percent};
use crate::phrases::{self, interval, role_of};
use crate::requirements;

/// From this difference of logarithms on, all answers together that say the opposite of the rounds
/// are named: a tenth.
const OTHERWISE_FROM: f64 = 0.1;

/// Wrong answers shown per trial; the rest are counted.
const FINDINGS_SHOWN: usize = 3;

/// Everything of one point.
pub(crate) fn point(summary: &Summary, index: usize) -> Vec<Block> {
    let mut blocks = vec![targets(summary, index).into(), samples(summary, index)];
    blocks.extend(notes::blocks(summary, index));
    // A ladder's verdicts stand together.
    if summary.contest.is_some() || summary.rungs.is_empty() {
        blocks.push(verdicts(summary, index).into());
        blocks.extend(comparisons(summary, index));
        blocks.push(Block::from(besides(summary, index)).on(TEXT));
        blocks.push(otherwise_pooled(summary, index).into());
    }
    blocks.push(limits::lines(summary, index).into());
    blocks.push(advice::lines(summary, index).into());
    blocks.push(requirements(summary, index).into());
    blocks.extend(carried(summary, index).map(Block::from));
    blocks.push(spoiled(summary, index).into());
    blocks.push(wrong_answers(summary, index).into());
    blocks
}

/// Its rounds and slices: `5 rounds × 5 s in 500 ms slices · valid 4/5, disturbed 1`.
pub(crate) fn measured(summary: &Summary, index: usize) -> Line {
    let point = &summary.points[index];
    let PointSummary { rounds, valid_rounds, .. } = point;
    let many = phrases::many(*rounds, "round");
    let measured = point.measured_ns.map_or_else(String::new, |ns| format!(" × {}", span(ns)));
    let slices = point.slice_ns.map_or_else(String::new, |ns| format!(" in {} slices", span(ns)));
    let role = if valid_rounds == rounds { Role::Plain } else { Role::Unsure };
    let again: usize = point.targets.iter().map(|one| one.slices_measured_again).sum();
    let again = match again {
        0 => String::new(),
        again => format!("; {} measured again", phrases::many(again, "slice")),
    };
    let line = Line::from(format!("{many}{measured}{slices} · "));
    line.and(role, phrases::valid_rounds(point)).then(again)
}

/// A length of time that a suite asked for: measured to the nanosecond, meant in round figures.
fn span(ns: u64) -> String {
    let ms = (ns as f64 / 1e6).round();
    let tenths = (ms / 100.0).round();
    match ms {
        ms if ms < 1.0 => duration(ns as f64),
        ms if ms < 1000.0 => format!("{ms} ms"),
        _ => format!("{} s", tenths / 10.0),
    }
}

/// The verdicts of the primary metric, one line per other target.
fn verdicts(summary: &Summary, index: usize) -> Vec<Line> {
    let primary: Vec<&Compared> = summary.comparisons_at(index).filter(|one| one.primary).collect();
    let mut lines = Vec::new();
    for compared in &primary {
        let [subject, other] = [compared.a, compared.b].map(|one| &summary.targets[one].name);
        let behind = |word: &str| match primary.len() {
            1 => String::new(),
            _ => format!(" {word} {other}"),
        };
        let within = whole_percent(summary.run.same_within);
        let words = match compared.verdict {
            Verdict::Better => format!("{subject} better{}", behind("than")),
            Verdict::Worse => format!("{subject} worse{}", behind("than")),
            Verdict::Same if primary.len() == 1 => format!("same within ±{within}"),
            Verdict::Same => format!("{subject} same{} within ±{within}", behind("as")),
            Verdict::CantTell { why, .. } => {
                format!("can't tell ({}){}", why.words(), behind("against"))
            }
        };
        let metric = match &*compared.metric.suite {
            "rate_per_s" => String::new(),
            name => format!("{name} "),
        };
        let advice = match compared.verdict {
            Verdict::CantTell { more_rounds: Some(more), .. } => {
                format!(" · about {} would tell", phrases::many(more as usize, "more round"))
            }
            _ => String::new(),
        };
        let line = Line::from("verdict: ").and(role_of(compared.verdict), words);
        lines.push(line.then(format!(", {metric}{}{advice}", interval(compared))));
        let likely = phrases::likely(summary, compared);
        lines.extend(likely.map(|words| Line::from(words + &behind("against")).deeper(Depth::One)));
    }
    lines
}

/// Every comparison of the point: ratio, interval and verdict, with the interval drawn; of a run
/// that is one comparison with the results of other methods, and on a terminal, too.
fn comparisons(summary: &Summary, index: usize) -> Vec<Block> {
    let all = summary.comparisons_at(index).filter_map(|one| Some((one, one.interval?)));
    let all: Vec<(&Compared, Interval)> = all.collect();
    let Some((first, _)) = all.first() else { return Vec::new() };
    let reach = reach(all.iter().map(|(_, interval)| interval));
    let confidence = number::confidence(first.confidence);
    let first = &summary.targets[0].name;
    let caption =
        format!("{first} ÷ the other, with {confidence} intervals over rounds; the line is 1");
    let mut sheet = Sheet::of(caption, all)
        .primary(|(one, _)| one.primary)
        .with(words("against").on(PAGE), |(one, _)| name(summary, one.b))
        .with(words("metric"), |(one, _)| {
            Cell::from(names::metric(&one.metric).into_owned()).terminal_text(&*one.metric.suite)
        });
    if summary.contest.is_some() {
        for target in [0, 1] {
            let name = summary.targets.get(target).map_or("", |one| &one.name);
            sheet = sheet.with(figures(format!("median of {name}")), |(one, _)| {
                let (a, b) = one.medians?;
                Some(in_one_unit([a, b], one.metric.unit)[target].clone())
            });
        }
    }
    sheet = sheet
        .with(figures(format!("ratio [{confidence}]")), |(one, interval)| {
            format!("{}{}", phrases::bound(one), within(interval))
        })
        .with(words("interval").on(PAGE), |(_, one)| drawn(*one, reach));
    if summary.contest.is_some() {
        sheet =
            sheet.with(figures("of medians"), |(one, _)| one.medians.map(|(a, b)| ratio(a / b)));
    }
    let table = sheet.with(verdict("verdict"), |(one, _)| judged(summary, one)).table();
    let forms = if summary.contest.is_some() { EVERYWHERE } else { PAGE };
    let caveat = "The primary metric carries the verdict. The others are compared each for itself, \
                  without correction for their number.";
    vec![
        Block::from(table).on(forms),
        Block::from(vec![Line::with_role(Role::Dim, caveat)]).on(PAGE),
        program_sizes(summary).into_iter().collect::<Vec<Line>>().into(),
    ]
}

/// `1.02× [1.01, 1.03]`; one round has no interval.
fn within(interval: &Interval) -> String {
    match interval.high.is_finite() {
        true => ratio_within(interval.ratio, interval.low, interval.high),
        false => format!("{}×", ratio(interval.ratio)),
    }
}

/// The verdict of a comparison in its role.
fn judged(summary: &Summary, one: &Compared) -> Line {
    let words = match (one.primary, one.bound) {
        (true, _) => phrases::verdict(one.verdict, Some(summary.run.same_within)),
        (false, Some(_)) if matches!(one.verdict, Verdict::CantTell { .. }) => {
            "a bound (generator-bound)".to_owned()
        }
        (false, _) => phrases::verdict_beside(one),
    };
    Line::with_role(role_of(one.verdict), words + &phrases::likely_beside(one))
}

/// The extent of these intervals from 1, on the logarithmic scale.
pub(super) fn reach<'a>(all: impl Iterator<Item = &'a Interval>) -> f64 {
    let ends = all.flat_map(|one| [one.low, one.high]);
    let ends = ends.filter(|end| end.is_finite() && *end > 0.0);
    ends.map(|end| end.ln().abs()).fold(0.05_f64, f64::max)
}

/// An interval as a page draws it.
pub(super) fn drawn(one: Interval, reach: f64) -> Line {
    let Interval { ratio, low, high, .. } = one;
    Line::default().drawn(Some(Drawing::Interval { ratio, low, high, reach }))
}

/// The sizes of the two programs of a run that is one comparison.
fn program_sizes(summary: &Summary) -> Option<Line> {
    summary.contest.as_ref()?;
    let bytes = |target: usize| {
        let facts = summary.facts.get(target)?;
        let fact = facts.iter().find(|(name, _)| name == "program_bytes")?;
        fact.1.parse::<f64>().ok().filter(|bytes| *bytes > 0.0)
    };
    let (a, b) = (bytes(0)?, bytes(1)?);
    let [ours, theirs] = in_one_unit([a, b], Unit::Bytes);
    let words = format!("program's size: {ours} against {theirs}, {}×", ratio(a / b));
    Some(Line::from(words).printed_once())
}

/// The verdicts of the secondary metrics.
fn besides(summary: &Summary, index: usize) -> Vec<Line> {
    let others = summary.points[index].targets.iter().map(|one| one.target);
    let others: Vec<usize> = others.filter(|target| *target > 0).collect();
    let mut lines = Vec::new();
    for other in others.iter().filter(|_| summary.contest.is_none()) {
        let compared = summary.comparisons_at(index);
        let compared = compared.filter(|one| !one.primary && one.b == *other);
        let shown: Vec<&Compared> = compared.filter(|one| one.interval.is_some()).collect();
        if shown.is_empty() {
            continue;
        }
        let said = |one: &&Compared| {
            let words = format!("{} {} ", one.metric.suite, phrases::plain_interval(one));
            let words = (words + &phrases::verdict_beside(one)).trim_end().to_owned();
            words + &phrases::likely_beside(one)
        };
        let mut words = shown.iter().map(said).collect::<Vec<_>>().join(" · ");
        if let Some(note) = phrases::bound_note(summary, &shown) {
            words.push_str(&format!(" ({note})"));
        }
        let against = match others.len() {
            1 => String::new(),
            _ => format!(" {}", summary.targets[*other].name),
        };
        lines.push(Line::with_role(Role::Dim, format!("beside{against}: {words}")));
    }
    lines
}

/// Where all answers taken together say the opposite of the rounds: figures in tables are of all
/// answers, ratios of rounds.
fn otherwise_pooled(summary: &Summary, index: usize) -> Vec<Line> {
    let line = |one: &Compared| {
        let interval = one.interval.filter(|_| one.metric.unit == Unit::Nanoseconds)?;
        let of = |target| summary.points[index].of_target(target)?.figures.value(&one.metric);
        let (a, b) = (of(one.a)?, of(one.b)?);
        let differs = (a / b).ln() * interval.ratio.ln() < 0.0
            && (a / b / interval.ratio).ln().abs() > OTHERWISE_FROM;
        let [a, b] = in_one_unit([a, b], one.metric.unit);
        let words = format!(
            "{} is {a} against {b} in all answers together, and {}× round by round: rounds differ \
             more than the targets",
            one.metric.suite,
            ratio(interval.ratio)
        );
        differs.then(|| Line::with_role(Role::Unsure, words))
    };
    summary.comparisons_at(index).filter_map(line).collect()
}

fn requirements(summary: &Summary, index: usize) -> Vec<Line> {
    let line = |requirement: &findings::RequirementSummary| {
        let row = &requirement.row;
        let role = match row.outcome {
            RequirementOutcome::Held => Role::Good,
            RequirementOutcome::Broken => Role::Bad,
            RequirementOutcome::CantTell => Role::Unsure,
        };
        Line::from(format!("require {}: ", row.expression))
            .and(role, requirements::outcome(row.outcome))
            .then(format!(", {}", requirements::figure(row)))
    };
    requirements::at_point(summary, index).map(line).collect()
}

/// Which of the named loads each target carries, and how many times: a row each, a column a target.
/// What follows a colon in a load's name is how it compares with others.
pub(crate) fn carried(summary: &Summary, index: usize) -> Option<Table> {
    let here: Vec<_> = summary.carried.iter().filter(|(point, ..)| *point == index).collect();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (_, _, row) in &here {
        let load = (&row.name[..], &row.expression[..]);
        names.extend((!names.contains(&load)).then_some(load));
    }
    let caption = "Which loads each server carries, and how many times";
    let parts = |name: &'_ str| -> (String, Option<String>) {
        let parts = name.split_once(": ").map(|(name, ratio)| (name.into(), Some(ratio.into())));
        parts.unwrap_or((name.into(), None))
    };
    let has_ratios = names.iter().any(|(name, _)| parts(name).1.is_some());
    let sheet = Sheet::of(caption, names)
        .with(words("load"), |(name, _)| Line::with_role(Role::Strong, parts(name).0));
    let sheet = match has_ratios {
        true => sheet.with(words("ratio"), |(name, _)| parts(name).1.map(Line::from)),
        false => sheet,
    };
    let sheet = sheet.with(words("carried where"), |(_, expression)| *expression);
    let of_target = |target: usize, load: &str| -> Option<Line> {
        let (.., row) = here.iter().find(|(_, other, row)| *other == target && row.name == load)?;
        let role = match row.outcome {
            RequirementOutcome::Held => Role::Good,
            RequirementOutcome::Broken => Role::Bad,
            RequirementOutcome::CantTell => Role::Unsure,
        };
        let word = match row.outcome {
            RequirementOutcome::Held => "carried",
            RequirementOutcome::Broken => "not carried",
            RequirementOutcome::CantTell => "can't tell",
        };
        let times = row.times.map_or(String::new(), |times| format!(", {}×", ratio(times)));
        Some(Line::with_role(role, word).then(times))
    };
    let targets = 0..summary.targets.len();
    let measured = targets.filter(|target| here.iter().any(|(_, other, _)| other == target));
    let sheet = measured.fold(sheet, |sheet, target| {
        let name = summary.targets[target].name.clone();
        sheet.with(words(name), move |(load, _)| of_target(target, load))
    });
    (!here.is_empty()).then(|| sheet.table())
}

/// What disturbed and invalidated trials.
fn spoiled(summary: &Summary, index: usize) -> Vec<Line> {
    let line = |(validity, words): (Validity, String)| {
        let role = if validity == Validity::Invalid { Role::Bad } else { Role::Unsure };
        Line::with_role(role, validity.word()).then(format!(": {words}")).printed_once()
    };
    crate::grade::lines(summary, index).into_iter().map(line).collect()
}

/// The first wrong answers and refusals of each trial, with their bytes.
fn wrong_answers(summary: &Summary, index: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let trials = &summary.trials;
    let mut by_trial: BTreeMap<usize, Vec<&FindingSummary>> = BTreeMap::new();
    for one in summary.findings.iter().filter(|one| trials[one.trial].point == index) {
        by_trial.entry(one.trial).or_default().push(one);
    }
    for (index, here) in by_trial {
        let trial = &trials[index];
        let name = &summary.targets[trial.target].name;
        let wrong = trial.row.wrong + trial.row.wrong_outside;
        let what = match (wrong, trial.row.refused) {
            // Those that refuse what prepares a target are in no count, nor those before the
            // measured time: what is here beyond the wrong answers is one.
            (0, _) => "refusals",
            (_, 0) if here.len() as u64 <= wrong => "wrong answers",
            _ => "wrong answers and refusals",
        };
        let title = format!("{what} of {name}, round {}:", trial.round);
        lines.push(Line::with_role(Role::Bad, title));
        for FindingSummary { row, .. } in here.iter().take(FINDINGS_SHOWN) {
            let at = duration(row.at_ns as f64);
            let words = format!("{} {} at {at}: {}", row.operation, row.key, row.note);
            lines.push(Line::from(words).deeper(Depth::One));
            // Of a program that failed there are none to compare.
            if !(row.expected.is_empty() && row.received.is_empty()) {
                let bytes = difference(&row.expected, &row.received).into_iter();
                lines.extend(bytes.map(|line| Line::from(line).deeper(Depth::Two).preformatted()));
            }
        }
        let known = (wrong + trial.row.refused).max(here.len() as u64);
        let rest = known - here.len().min(FINDINGS_SHOWN) as u64;
        if rest > 0 {
            lines.push(Line::from(format!("and {} more", count(rest))).deeper(Depth::One));
        }
    }
    lines
}
