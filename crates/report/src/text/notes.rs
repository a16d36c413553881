//! Notes under the targets of a point, where they apply: groups of
//! clients, overload, failed starts, drift, events, figures that calls measured themselves.

use findings::{BetweenSlices, PointSummary, StreamFigures, Summary, TargetSummary, event_kinds};
use judge::Unit;

use super::paint::{Paint, Role};
use crate::escape::one_line;
use crate::number::{Scale, bytes_per_s, count, duration, in_one_unit, percent, plain, thousands};
use crate::phrases::{call_figure, event_words, many, named_latency};
use crate::wrap::table;

/// The lines of one point.
pub(super) fn lines(summary: &Summary, index: usize, paint: Paint) -> Vec<String> {
    let point = &summary.points[index];
    let name = |target: &TargetSummary| one_line(&summary.targets[target.target].name);
    let mut lines = Vec::new();
    for target in &point.targets {
        let mut notes = Vec::new();
        notes.extend(overload(target).map(|words| (Role::Bad, words)));
        notes.extend(starts(target).map(|words| (Role::Bad, words)));
        notes.extend(misses(summary, target).map(|words| (Role::Unsure, words)));
        notes.extend(warm_up(summary, index, target));
        notes.extend(ceilings(summary, index, target).map(|words| (Role::Dim, words)));
        notes.extend(between_slices(summary, index, target).map(|words| (Role::Unsure, words)));
        notes.extend(drift(target).map(|words| (Role::Unsure, words)));
        notes.extend(little(summary, index, target).map(|words| (Role::Unsure, words)));
        notes.extend(modes(summary, index, target).map(|words| (Role::Unsure, words)));
        let whose = if point.targets.len() == 1 { String::new() } else { name(target) + " " };
        let line = |(role, words): (Role, String)| {
            format!("  {}", paint.text(role, &format!("{whose}{words}")))
        };
        lines.extend(notes.into_iter().map(line));
    }
    for kind in event_kinds(summary, Some(index)) {
        let whose = match point.targets.len() {
            1 => String::new(),
            _ => one_line(&summary.targets[kind.target].name) + " ",
        };
        let role = if kind.failed > 0 { Role::Bad } else { Role::Dim };
        let words = format!("{whose}event {}", one_line(&event_words(&kind)));
        lines.push(format!("  {}", paint.text(role, &words)));
    }
    for target in &point.targets {
        lines.extend(values(target).into_iter().map(|line| format!("  {}: {line}", name(target))));
        lines.extend(counters(target).map(|line| format!("  {} counted {line}", name(target))));
    }
    lines
}

/// The share of this host's bandwidth that a target with large values has reached.
fn ceilings(summary: &Summary, index: usize, target: &TargetSummary) -> Option<String> {
    let moved = target.figures.bytes_per_s?;
    let mut usages =
        summary.trials.iter().filter(|trial| trial.point == index).map(|trial| &trial.usage);
    let (loopback, copied) =
        usages.find_map(|usage| Some((usage.loopback_bytes_per_s?, usage.copy_bytes_per_s?)))?;
    let of = |ceiling: f64| format!("{} of the {}", percent(moved / ceiling), bytes_per_s(ceiling));
    let doubt = match moved > loopback {
        true => "; what the loopback carries was measured at a worse moment",
        false => "",
    };
    let (loopback, copied) = (of(loopback), of(copied));
    Some(format!(
        "moves {loopback} that the loopback carries, {copied} that one thread copies{doubt}"
    ))
}

/// `used 12 % of a core outside its slices, while the others were measured`.
fn between_slices(summary: &Summary, index: usize, target: &TargetSummary) -> Option<String> {
    let seen = BetweenSlices::of(summary, index, target.target)?;
    seen.is_worth_naming().then(|| {
        format!(
            "used {} of a core outside its slices, while others were measured; [rounds] between = \
             \"stop\" stops it there",
            percent(seen.cores())
        )
    })
}

/// A line per group of clients of each target, where there are several.
pub(super) fn groups_of(summary: &Summary, point: &PointSummary) -> Vec<String> {
    let rows = point.targets.iter().flat_map(|target| {
        let name = one_line(&summary.targets[target.target].name);
        let rows = groups(target).into_iter().chain(stream_groups(target));
        rows.map(move |(clients, figures)| {
            let mut cells = vec![format!("{name}/{}", one_line(clients))];
            cells.extend(figures);
            cells
        })
    });
    table(&rows.collect::<Vec<_>>(), 2, str::to_owned)
}

type Group<'a> = (&'a str, Vec<String>);

/// Each group of clients, when there is more than one.
fn groups(target: &TargetSummary) -> Vec<Group<'_>> {
    if target.groups.len() < 2 {
        return Vec::new();
    }
    let all = || target.groups.iter();
    let scale = |of: fn(&findings::GroupFigures) -> Option<u64>| {
        Scale::of(Unit::Nanoseconds, all().filter_map(of).map(|ns| ns as f64))
    };
    let requests = |group: &findings::GroupFigures| {
        group.latency.count as f64 * 1e9 / target.measured_ns as f64
    };
    let rates = Scale::of(Unit::PerSecond, all().map(requests));
    let p50 = scale(|group| group.latency.p50_ns);
    let p99 = scale(|group| group.latency.p99_ns);
    let lag = scale(|group| group.lag.p99_ns);
    let figures = |group: &findings::GroupFigures| {
        let mut cells = vec![
            format!("{} requests", rates.show(requests(group))),
            named_latency("p50", group.latency.p50_ns, false, p50),
            named_latency("p99", group.latency.p99_ns, false, p99),
        ];
        cells.extend(group.lag.p99_ns.map(|ns| named_latency("lag p99", Some(ns), false, lag)));
        cells
    };
    all().map(|group| (&*group.clients, figures(group))).collect()
}

/// Each group of clients that subscribes, when there is another group.
fn stream_groups(target: &TargetSummary) -> Vec<Group<'_>> {
    if target.stream_groups.len() + target.groups.len() < 2 {
        return Vec::new();
    }
    let all = || target.stream_groups.iter();
    let rates = Scale::of(Unit::PerSecond, all().filter_map(|(_, one)| one.updates_per_s));
    let ages = all().filter_map(|(_, one)| one.staleness.p50_ns).map(|ns| ns as f64);
    let ages = Scale::of(Unit::Nanoseconds, ages);
    let figures = |one: &StreamFigures| {
        let (least, streams) = (count(one.least_updates), many(one.streams as usize, "stream"));
        let mut cells = vec![
            format!("{} updates", rates.show(one.updates_per_s.unwrap_or(0.0))),
            format!("{} missed, least {least} of {streams}", count(one.missed)),
        ];
        let stale = one.staleness.p50_ns;
        cells.extend(stale.map(|ns| named_latency("stale p50", Some(ns), false, ages)));
        cells
    };
    all().map(|(clients, one)| (&**clients, figures(one))).collect()
}

/// `overloaded: 100k/s offered, 81.2k/s answered, backlog 12,000`.
fn overload(target: &TargetSummary) -> Option<String> {
    let overloaded = target.overloaded_trials;
    let usable = target.valid_trials + target.disturbed_trials;
    if overloaded == 0 {
        return None;
    }
    let rounds = match overloaded == usable {
        true => String::new(),
        false => format!(" in {overloaded} of {usable} rounds"),
    };
    let figures = &target.figures;
    let both = [figures.offered_per_s, figures.rate_per_s];
    let scale = Scale::of(Unit::PerSecond, both.into_iter().flatten());
    let mut parts = Vec::new();
    parts.extend(figures.offered_per_s.map(|rate| format!("{} offered", scale.show(rate))));
    parts.extend(figures.rate_per_s.map(|rate| format!("{} answered", scale.show(rate))));
    parts.extend(figures.backlog_most.map(|most| format!("backlog {}", thousands(most))));
    Some(format!("overloaded{rounds}: {}", parts.join(", ")))
}

/// `not stationary in 2 of 5 rounds: …`, or after how long it was, where warm-ups waited for it.
fn warm_up(summary: &Summary, index: usize, target: &TargetSummary) -> Option<(Role, String)> {
    let here = summary
        .trials_at(index)
        .map(|(_, trial)| trial)
        .filter(|trial| trial.target == target.target && trial.row.stationary.is_some());
    let trials: Vec<_> = here.collect();
    let after = |trial: &&findings::TrialSummary| trial.row.steady_after_ns;
    let (all, longest) = (trials.len(), trials.iter().filter_map(after).max());
    match trials.iter().filter(|trial| trial.row.stationary == Some(false)).count() {
        0 => {
            let words =
                format!("steady within {} of its warm-up's start", duration(longest? as f64));
            Some((Role::Dim, words))
        }
        never => {
            let words = format!(
                "not stationary in {never} of {all} rounds: throughput and p99 did not settle in \
                 the warm-up; what is measured still changes"
            );
            Some((Role::Unsure, words))
        }
    }
}

/// `1.20 M misses: evictions, with 512 MiB of keys and values in 64 MiB of memory`.
fn misses(summary: &Summary, target: &TargetSummary) -> Option<String> {
    let data = one_line(summary.overfull(target.target)?);
    let missed = target.figures.misses.max(target.wrong_of_all);
    (missed > 0).then(|| format!("{} misses: evictions, with {data}", count(missed)))
}

/// `2 of 10 starts failed`.
fn starts(target: &TargetSummary) -> Option<String> {
    let (failed, all) = (target.failed_starts, target.trials);
    (failed > 0).then(|| format!("{failed} of {} failed", many(all, "start")))
}

/// `drift: the last third of slices is 4.1 % slower`.
fn drift(target: &TargetSummary) -> Option<String> {
    let drift = target.drift.filter(findings::Drift::is_found)?;
    let change = drift.interval.ratio - 1.0;
    let way = if change < 0.0 { "slower" } else { "faster" };
    Some(format!("drift: the last third of slices is {} {way}", percent(change.abs())))
}

/// `Little's law is broken in 2 rounds: 8.1 of 16 requests were under way in one`.
fn little(summary: &Summary, point: usize, target: &TargetSummary) -> Option<String> {
    let here = |one: &&findings::LawViolation| {
        let trial = &summary.trials[one.trial];
        trial.point == point && trial.target == target.target
    };
    let found: Vec<&findings::LawViolation> = summary.littles_law.iter().filter(here).collect();
    let first = found.first()?;
    let rounds = many(found.len(), "round");
    Some(format!(
        "Little's law is broken in {rounds}: by rate × latency {} of {} requests were under way; \
         time passes that no latency counts, or a figure is wrong",
        plain(first.seen),
        plain(first.slots)
    ))
}

/// `two modes of rate_per_s: 1.01M/s in 10 rounds, 0.15M/s in 5; …`.
fn modes(summary: &Summary, point: usize, target: &TargetSummary) -> Option<String> {
    let here = |one: &&findings::ModesSummary| one.point == point;
    let found = summary.modes.iter().filter(here).find(|one| one.target == target.target)?;
    let [better, worse] = found.better_first();
    let unit = found.metric.unit;
    let (mut better_rounds, mut worse_rounds) = (found.modes.low_count, found.modes.high_count);
    if better == found.modes.high {
        std::mem::swap(&mut better_rounds, &mut worse_rounds);
    }
    let [better, worse] = in_one_unit([better, worse], unit);
    Some(format!(
        "two modes of {}: {better} in {}, {worse} in {worse_rounds}; its mean is neither. Pin both \
         sides with `cpus`, or find what differs",
        found.metric.suite,
        many(better_rounds, "round"),
    ))
}

/// `wall_s  min 1.2 · median 1.3 · mean 1.3 · max 1.5 of 20`.
fn values(target: &TargetSummary) -> Vec<String> {
    let names = target.values.iter().map(|one| call_figure(&one.name).0.chars().count());
    let width = names.max().unwrap_or(0);
    let line = |one: &findings::ValueFigures| {
        let (name, said) = call_figure(&one.name);
        format!(
            "{name:<width$}  min {} · median {} · mean {} · max {} of {}",
            said(one.min),
            said(one.median),
            said(one.mean),
            said(one.max),
            count(one.count),
        )
    };
    target.values.iter().map(line).collect()
}

/// Number of counters in the text; `--json` has all.
const MAX_COUNTERS: usize = 6;

/// `cmd_get 1.00 · get_hits 1.00 · bytes_read 31.0 per operation, and 12 more in --json`: those
/// that grew most often with an operation, as far as one can be notes from a setting or a clock.
fn counters(target: &TargetSummary) -> Option<String> {
    let mut grew: Vec<(&str, f64)> = target
        .counters
        .iter()
        .filter_map(|one| Some((&one.name[..], one.per_op?)))
        .filter(|(_, per_op)| *per_op >= 0.001)
        .collect();
    // Counters near one per operation are the most telling.
    grew.sort_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
    let shown = grew.iter().take(MAX_COUNTERS);
    let shown: Vec<_> =
        shown.map(|(name, per_op)| format!("{} {}", one_line(name), plain(*per_op))).collect();
    if shown.is_empty() {
        return None;
    }
    let more = target.counters.len() - shown.len();
    let more = if more > 0 { format!("; {more} more in --json") } else { String::new() };
    Some(format!("per operation {}{more}", shown.join(" · ")))
}
