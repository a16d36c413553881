//! Notes under the targets of a point, where they apply: groups of
//! clients, overload, failed starts, drift, events, figures that calls measured themselves.

use findings::{
    BetweenSlices, CONNECTIONS_BROKEN, GroupFigures, PointSummary, StreamFigures, StretchFigures,
    Summary, TargetSummary, ValueFigures, event_kinds,
};
use judge::Unit;

use crate::document::{
    Block, Cell, Line, NamedFigure, Role, Sheet, Table, named, number, words, wrapped,
};
use crate::number::{Scale, bytes_per_s, count, duration, in_one_unit, percent, plain, thousands};
use crate::phrases::{call_figure, event_words, many, unseen};
use crate::schedule::{has_parts, part};

/// The tables and lines under the targets of a point.
pub(super) fn blocks(summary: &Summary, index: usize) -> Vec<Block> {
    let point = &summary.points[index];
    let counted = point.targets.iter().filter_map(|target| counters(summary, target));
    let counted: Vec<Line> = counted.collect();
    vec![
        groups(summary, point).into(),
        stream_groups(summary, point).into(),
        stretches(summary, point).into(),
        lines(summary, index).into(),
        values(summary, point).into(),
        counted.into(),
    ]
}

fn lines(summary: &Summary, index: usize) -> Vec<Line> {
    let point = &summary.points[index];
    let whose = |target: usize| match point.targets.len() {
        1 => String::new(),
        _ => summary.targets[target].name.clone() + " ",
    };
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
        let whose = whose(target.target);
        let line = |(role, words): (Role, String)| Line::with_role(role, format!("{whose}{words}"));
        lines.extend(notes.into_iter().map(|note| line(note).printed_once()));
    }
    for kind in event_kinds(summary, Some(index)) {
        let role = if kind.failed > 0 { Role::Bad } else { Role::Dim };
        let words = format!("{}event {}", whose(kind.target), event_words(&kind));
        lines.push(Line::with_role(role, words).printed_once());
    }
    lines
}

/// The share of this host's bandwidth that a target with large values has reached.
fn ceilings(summary: &Summary, index: usize, target: &TargetSummary) -> Option<String> {
    let moved = target.figures.bytes_per_s?;
    let trials = summary.trials.iter().filter(|trial| trial.point == index);
    let usages = trials.map(|trial| &trial.usage);
    let both = usages.filter_map(|one| Some((one.loopback_bytes_per_s?, one.copy_bytes_per_s?)));
    let (loopback, copied): (Vec<f64>, Vec<f64>) = both.unzip();
    let least = |of: &[f64]| of.iter().copied().min_by(f64::total_cmp);
    let most = |of: &[f64]| of.iter().copied().max_by(f64::total_cmp);
    let of = |ceilings: &[f64]| {
        let (least, most) = (least(ceilings)?, most(ceilings)?);
        let spread = match bytes_per_s(least) == bytes_per_s(most) {
            true => String::new(),
            false => format!("{} to ", bytes_per_s(least)),
        };
        Some(format!("{} of the {spread}{}", percent(moved / most), bytes_per_s(most)))
    };
    let doubt = match moved > most(&loopback)? {
        true => "; what the loopback carries was measured at a worse moment",
        false => "",
    };
    let (loopback, copied) = (of(&loopback)?, of(&copied)?);
    Some(format!(
        "moves {loopback} that the loopback carries, {copied} that one thread copies{doubt}"
    ))
}

/// `used 12 % of a core outside its slices, while the others were measured`.
fn between_slices(summary: &Summary, index: usize, target: &TargetSummary) -> Option<String> {
    let seen = BetweenSlices::of(summary, index, target.target)?;
    let mut facts = summary.facts.get(target.target).into_iter().flatten();
    let advice = match facts.any(|(name, _)| name == "started") {
        true => "; what was started before the run may serve others, too",
        false => "; [rounds] between = \"stop\" stops it there",
    };
    seen.is_worth_naming().then(|| {
        let cores = percent(seen.cores());
        format!("used {cores} of a core outside its slices, while others were measured{advice}")
    })
}

/// Each group of clients of the targets that have several.
fn groups(summary: &Summary, point: &PointSummary) -> Table {
    let several = point.targets.iter().filter(|one| one.groups.len() > 1);
    let groups = several.flat_map(|target| target.groups.iter().map(move |one| (target, one)));
    let rate = |(target, one): &(&TargetSummary, &GroupFigures)| {
        Some(one.latency.count as f64 * 1e9 / target.rate_ns as f64)
    };
    let ns = |of: fn(&GroupFigures) -> Option<u64>| {
        move |(_, one): &(&TargetSummary, &GroupFigures)| of(one).map(|ns| ns as f64)
    };
    Sheet::of("Groups of clients", groups)
        .with(words("group"), |(target, one)| clients(summary, target, &one.clients))
        .figures(number("requests"), Unit::PerSecond, rate, |_, rate| {
            Cell::from(rate.clone()).terminal_text(format!("{} requests", unseen(rate)))
        })
        .figures(named("p50"), Unit::Nanoseconds, ns(|one| one.latency.p50_ns), |_, one| {
            unseen(one)
        })
        .figures(named("p99"), Unit::Nanoseconds, ns(|one| one.latency.p99_ns), |_, one| {
            unseen(one)
        })
        .figures(named("lag p99"), Unit::Nanoseconds, ns(|one| one.lag.p99_ns), |_, lag| lag)
        .without_head()
}

fn clients(summary: &Summary, target: &TargetSummary, clients: &str) -> Cell {
    format!("{}/{clients}", summary.targets[target.target].name).into()
}

/// Each group of clients that subscribes, where there is another group.
fn stream_groups(summary: &Summary, point: &PointSummary) -> Table {
    let has_several = |one: &&TargetSummary| {
        !one.stream_groups.is_empty() && one.stream_groups.len() + one.groups.len() > 1
    };
    let groups = point.targets.iter().filter(has_several);
    let groups =
        groups.flat_map(|target| target.stream_groups.iter().map(move |one| (target, one)));
    let age = |(_, (_, one)): &(&TargetSummary, &(String, StreamFigures))| {
        one.staleness.p50_ns.map(|ns| ns as f64)
    };
    Sheet::of("Groups that subscribe", groups)
        .with(words("group"), |(target, (name, _))| clients(summary, target, name))
        .figures(
            number("updates"),
            Unit::PerSecond,
            |(_, (_, one))| one.updates_per_s,
            |_, rate| Cell::from(rate.clone()).terminal_text(format!("{} updates", unseen(rate))),
        )
        .with(number("missed"), |(_, (_, one))| format!("{} missed", count(one.missed)))
        .with(number("least"), |(_, (_, one))| {
            let (least, streams) = (count(one.least_updates), many(one.streams as usize, "stream"));
            format!("least {least} of {streams}")
        })
        .figures(named("stale p50"), Unit::Nanoseconds, age, |_, age| age)
        .without_head()
}

/// Each rate of several, or each tenth of a trace.
fn stretches(summary: &Summary, point: &PointSummary) -> Table {
    let parts = point.targets.iter().filter(|one| has_parts(one));
    let parts = parts.flat_map(|target| target.stretches.iter().map(move |one| (target, one)));
    type Part<'a> = (&'a TargetSummary, &'a StretchFigures);
    let whose = |(target, one): &Part<'_>| {
        let has_groups = target.stretches.iter().any(|other| other.clients != one.clients);
        let name = (point.targets.len() > 1).then(|| &summary.targets[target.target].name[..]);
        let whose: Vec<&str> =
            name.into_iter().chain(has_groups.then_some(&one.clients[..])).collect();
        if whose.is_empty() { String::new() } else { whose.join("/") + " " }
    };
    let of = |(target, one): &Part<'_>| {
        target.stretches.iter().filter(|other| other.clients == one.clients).count()
    };
    let rate = |name: &'static str| {
        move |_: &Part<'_>, rate: Option<String>| {
            Cell::from(rate.clone()).terminal_text(format!("{} {name}", unseen(rate)))
        }
    };
    let some = |number: u64, what: &str| (number > 0).then(|| format!("{} {what}", count(number)));
    Sheet::of("Parts of the schedule", parts)
        .with(words("part"), |one| format!("{}{}", whose(one), part(one.1, of(one))))
        .figures(number("due"), Unit::PerSecond, |(_, one)| one.offered_per_s, rate("due"))
        .figures(
            number("answered meanwhile"),
            Unit::PerSecond,
            |(_, one)| one.answered_per_s,
            rate("answered"),
        )
        .figures(
            named("p50"),
            Unit::Nanoseconds,
            |(_, one)| Some(one.latency?.p50_ns? as f64),
            |_, ns| ns,
        )
        .figures(
            named("p99"),
            Unit::Nanoseconds,
            |(_, one)| Some(one.latency?.p99_ns? as f64),
            |_, ns| ns,
        )
        .with(number("wrong"), |(_, one)| some(one.wrong, "wrong"))
        .with(number("refused"), |(_, one)| some(one.refused, "refused"))
        .with(number("missing"), |(_, one)| some(one.missing, "missing"))
        .with(words("kept up"), |(_, one)| {
            let rounds = match one.overloaded_trials == one.trials {
                true => String::new(),
                false => format!(" in {} of {}", one.overloaded_trials, many(one.trials, "round")),
            };
            let what = if one.shortfall() > 0.0 { "fell behind" } else { "was catching up" };
            (one.overloaded_trials > 0)
                .then(|| Line::with_role(Role::Bad, format!("{what}{rounds}")))
        })
        .without_head()
}

/// `overloaded: 100k/s offered, 81.2k/s answered, backlog 12,000`; of several rates that at which
/// it was most.
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
    let worst = StretchFigures::worst(&target.stretches);
    let both = match &worst {
        Some((one, _)) => [one.offered_per_s, one.answered_per_s],
        None => [figures.offered_per_s, figures.rate_per_s],
    };
    let place = match &worst {
        Some((one, all)) if all.len() > 1 => format!(" in {}", part(one, all.len())),
        _ => String::new(),
    };
    let scale = Scale::of(Unit::PerSecond, both.into_iter().flatten());
    let mut parts = Vec::new();
    let [offered, answered] = both;
    parts.extend(offered.map(|rate| format!("{} offered", scale.show(rate))));
    parts.extend(answered.map(|rate| format!("{} answered", scale.show(rate))));
    parts.extend(figures.backlog_most.map(|most| format!("backlog {}", thousands(most))));
    Some(format!("overloaded{rounds}{place}: {}", parts.join(", ")))
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
    let data = summary.overfull(target.target)?;
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

/// Figures that calls measured themselves: `wall_s  min 1.2  median 1.3  mean 1.3  max 1.5  of 20`.
fn values(summary: &Summary, point: &PointSummary) -> Table {
    let all = point.targets.iter().flat_map(|target| {
        // It stands beside the answers.
        let shown = target.values.iter().filter(|one| one.name != CONNECTIONS_BROKEN);
        shown.map(move |one| (&summary.targets[target.target].name, one))
    });
    let parts: [NamedFigure<ValueFigures, f64>; 4] = [
        ("min", |one| one.min),
        ("median", |one| one.median),
        ("mean", |one| one.mean),
        ("max", |one| one.max),
    ];
    let sheet = Sheet::of("Figures that calls measured themselves", all)
        .with(words("figure"), |(name, one)| format!("{name}: {}", call_figure(&one.name).0));
    let sheet = parts.into_iter().fold(sheet, |sheet, (name, of)| {
        sheet.with(named(name), |(_, one)| call_figure(&one.name).1(of(one)))
    });
    let values = |(_, one): &(&String, &ValueFigures)| {
        Cell::from(count(one.count)).terminal_text(format!("of {}", count(one.count)))
    };
    let sheet = sheet.with(number("values"), values);
    sheet.with(wrapped("in order"), |(_, one)| in_order(one)).without_head()
}

/// `62.2 ms · 63.1 ms · 79.8 ms`: each value, where there are few, but more than min and max say.
fn in_order(one: &ValueFigures) -> Cell {
    if one.in_order.len() < 3 || one.min == one.max {
        return Cell::default();
    }
    let shown = call_figure(&one.name).1;
    let all = one.in_order.iter().map(|value| shown(*value)).collect::<Vec<_>>().join(" · ");
    Cell::from(&all[..]).terminal_text(format!("in order {all}"))
}

/// Number of counters in the text; `--json` has all.
const MAX_COUNTERS: usize = 6;

/// `cmd_get 1.00 · get_hits 1.00 · bytes_read 31.0 per operation, and 12 more in --json`: those
/// that grew most often with an operation, as far as one can be notes from a setting or a clock.
fn counters(summary: &Summary, target: &TargetSummary) -> Option<Line> {
    let grew = target.counters.iter().filter_map(|one| Some((&one.name[..], one.per_op?)));
    let mut grew: Vec<(&str, f64)> = grew.filter(|(_, per_op)| *per_op >= 0.001).collect();
    // Counters near one per operation are the most telling.
    grew.sort_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
    let shown = grew.iter().take(MAX_COUNTERS);
    let shown: Vec<_> = shown.map(|(name, per_op)| format!("{name} {}", plain(*per_op))).collect();
    let more = match target.counters.len() - shown.len() {
        0 => String::new(),
        more => format!("; {more} more in --json"),
    };
    let name = &summary.targets[target.target].name;
    let words = format!("{name} counted per operation {}{more}", shown.join(" · "));
    (!shown.is_empty()).then(|| words.into())
}
