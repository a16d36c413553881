//! What `[rounds]` means: how often and how long, and whether any load has touched the data when
//! they are measured.

use base::units::{Share, Span};
use judge::Metrics;

use super::check::Result;
use super::error::Source;
use super::figures;
use super::suite::{
    BetweenSpec, DisturbedSpec, RestartSpec, RoundsSpec, SliceSpec, StateSpec, WarmUpSpec,
};
use super::sweep::Setting;
use super::types::{Point, Rounds, Target, TargetKind};
use crate::drive::{Arrivals, Clients};

/// A warm-up that ends when the load is steady takes at least so long, and at most.
const MIN_WARM_UP: Span = Span::from_ms(2_000);
const MAX_WARM_UP: Span = Span::from_ms(20_000);

/// The least time that is measured in a piece.
pub const MIN_MEASURE: Span = Span { ns: 10_000_000 };

/// The time that is measured, and in which pieces, unless a suite says otherwise.
const MEASURE: Span = Span::from_ms(5_000);
const SLICE: Span = Span::from_ms(500);

/// Rounds of a suite that doesn't say how many.
const MIN_ROUNDS: u32 = 5;
const MAX_ROUNDS: u32 = 50;

/// The least and the most rounds.
fn how_many(source: &Source, settings: &[Setting], spec: &RoundsSpec) -> Result<(u32, u32)> {
    let usual = spec.at_most.map_or(MIN_ROUNDS, |most| most.min(MIN_ROUNDS));
    let at_least = spec.at_least.unwrap_or(usual);
    let at_most = spec.at_most.unwrap_or(at_least.max(MAX_ROUNDS));
    if at_least == 0 || at_most < at_least {
        let message = format!("at least {at_least} and at most {at_most} rounds: no run is both");
        let help = "from 1 on, and at_most no lower than at_least".to_owned();
        let keys = ["rounds.at_least", "rounds.at_most"];
        // What the file says in its place is not what counts.
        return Err(match settings.iter().find(|(key, _)| keys.contains(&&key[..])) {
            Some((key, _)) => {
                source.error(None, format!("with --set {key}: {message}"), Some(help))
            }
            None => source.error_at(keys[0], message, Some(help)),
        });
    }
    Ok((at_least, at_most))
}

pub(super) fn resolve(
    source: &Source,
    settings: &[Setting],
    spec: &RoundsSpec,
    metrics: &Metrics,
    points: &[Point],
) -> Result<Rounds> {
    // Steps done again would not be done on a fresh target.
    let steps = points.iter().any(takes_steps);
    let is_cold = steps || spec.state == Some(StateSpec::Cold);
    if is_cold {
        check_cold(source, spec, steps, points)?;
    }
    let slice = match spec.slice {
        _ if is_cold => None,
        Some(SliceSpec::None) => None,
        Some(SliceSpec::Length(length)) => Some(length),
        None => Some(SLICE).filter(|slice| may_be_cut(points, *slice)),
    };
    let one_pass = points.iter().filter_map(end).max();
    let one_pass = one_pass.filter(|end| slice.is_none_or(|slice| slice >= *end));
    let measure = spec.measure.or(one_pass).unwrap_or(MEASURE);
    let too_short = |key: &str| {
        let help = "at least 10ms; shorter pieces measure the starting and stopping";
        source.error_at(key, "too short", Some(help.into()))
    };
    if measure < MIN_MEASURE {
        return Err(too_short("rounds.measure"));
    }
    if slice.is_some_and(|slice| slice < MIN_MEASURE) {
        return Err(too_short("rounds.slice"));
    }
    let slice = slice.filter(|slice| *slice < measure);
    let stops_between = spec.between == Some(BetweenSpec::Stop);
    if stops_between {
        check_stops(source, points)?;
    }
    check_events(source, points, (slice, measure))?;
    check_schedules(source, points, (slice, measure))?;
    let (warm_up, warm_up_most) = match spec.warm_up {
        _ if is_cold => (Span::default(), None),
        Some(WarmUpSpec::Fixed(Span { ns: 0 })) if spec.state == Some(StateSpec::Warm) => {
            let message = "warm data have been loaded before they are measured";
            let help = "give warm_up a time, or leave it out".to_owned();
            return Err(source.error_at("rounds.warm_up", message, Some(help)));
        }
        Some(WarmUpSpec::Fixed(length)) => (length, None),
        Some(WarmUpSpec::Detect) => (MIN_WARM_UP, Some(MAX_WARM_UP)),
        None => (Span::from_ms(500), None),
    };
    let (at_least, at_most) = how_many(source, settings, spec)?;
    let primary = figures::primary(source, metrics, spec.primary.as_deref(), points)?;
    Ok(Rounds {
        measure,
        slice,
        warm_up,
        warm_up_most,
        at_least,
        at_most,
        until: spec.until,
        same_within: spec.same_within.unwrap_or(Share { fraction: 0.02 }),
        is_cold,
        restart: spec.restart != Some(RestartSpec::Never),
        repeat_disturbed: spec.disturbed != Some(DisturbedSpec::Ignore),
        stops_between,
        primary,
        budget: spec.budget,
        sequence: None,
    })
}

/// Refuses to stop what the lab did not start.
fn check_stops(source: &Source, points: &[Point]) -> Result<()> {
    let mut targets = points.iter().flat_map(|point| &point.targets);
    let Some(target) = targets.find(|one| matches!(one.kind, TargetKind::Address(_))) else {
        return Ok(());
    };
    let message = format!("{} was not started by the lab, so it can't be stopped", target.name);
    let help = "leave between out, or give the target a command in place of its address";
    Err(source.error_at("rounds.between", message, Some(help.to_owned())))
}

/// Refuses an event that no slice is long enough for: a run in which it is missing shows nothing of
/// what was asked.
fn check_events(
    source: &Source,
    points: &[Point],
    (slice, measure): (Option<Span>, Span),
) -> Result<()> {
    let length = slice.unwrap_or(measure);
    let mut events = points.iter().flat_map(|point| &point.events);
    let Some(event) = events.find(|event| event.at >= length) else { return Ok(()) };
    let (piece, key) = piece(slice);
    let message = format!("\"{}\" never happens: a {piece} is over after {length}", event.name);
    let none = if slice.is_some() { "; \"none\" is one piece" } else { "" };
    let help = format!("let it begin earlier, or give {key} more time{none}");
    Err(source.error_at("event", message, Some(help)))
}

/// What is measured in one piece, and the key of its length.
fn piece(slice: Option<Span>) -> (&'static str, &'static str) {
    match slice {
        Some(_) => ("slice", "rounds.slice"),
        None => ("trial", "rounds.measure"),
    }
}

/// Whether slices of this length show what one piece would: a schedule that has an end would begin
/// anew with each.
fn may_be_cut(points: &[Point], slice: Span) -> bool {
    let mut groups = points.iter().flat_map(|point| &point.clients);
    let two_bursts = |period: Span| period.ns.saturating_mul(2) <= slice.ns;
    groups.all(|group| {
        let bursts = group.arrivals.bursts();
        group.arrivals.end().is_none() && bursts.is_none_or(|(period, _)| two_bursts(period))
    })
}

/// When the longest of a point's schedules that have an end is over.
fn end(point: &Point) -> Option<Span> {
    point.clients.iter().filter_map(|group| group.arrivals.end()).max()
}

/// Refuses a schedule whose end no slice reaches, as its last rates or arrivals would never be
/// seen, and one that ends before the slice does, as rates would be those of an idle time, too.
fn check_schedules(
    source: &Source,
    points: &[Point],
    (slice, measure): (Option<Span>, Span),
) -> Result<()> {
    let length = slice.unwrap_or(measure);
    check_bursts(source, points, (slice, measure))?;
    points.iter().try_for_each(|point| check_together(source, point))?;
    let ends = || points.iter().filter_map(end);
    let Some(end) = ends().find(|end| *end != length) else { return Ok(()) };
    let (piece, key) = piece(slice);
    let message = match end > length {
        true => format!("arrivals go on for {end}, and a {piece} is over after {length}"),
        false => format!("arrivals end after {end}, and a {piece} idles on until {length}"),
    };
    let help = match slice {
        Some(_) => "leave rounds.slice out: arrivals that end are measured in one piece".to_owned(),
        None if ends().any(|other| other != end) => {
            format!("give {key} {end}, and the arrivals of all points as long")
        }
        None => format!("leave {key} out, or give it {end}"),
    };
    Err(source.error_at(key, message, Some(help)))
}

/// Refuses rates one after another that end before another group's: they would idle on. A trace
/// ends when its last arrival comes, whenever that is.
fn check_together(source: &Source, point: &Point) -> Result<()> {
    let ends = || point.clients.iter().filter_map(|one| Some((one, one.arrivals.end()?)));
    let Some((last, most)) = ends().max_by_key(|(_, end)| end.ns) else { return Ok(()) };
    let is_short = |(group, end): &(&Clients, Span)| group.arrivals.is_of_rates() && *end < most;
    let Some((group, end)) = ends().find(is_short) else { return Ok(()) };
    let (name, other) = (&group.name, &last.name);
    let message = format!("steps of {name} end after {end}, and those of {other} go on for {most}");
    let help = format!("let the steps of {name} take {most} together, the last one longer");
    Err(source.error_at("clients", message, Some(help)))
}

/// Refuses a piece into which no two bursts fit: it may have no arrival at all, and doesn't show
/// whether a burst is worked off before the next comes.
fn check_bursts(
    source: &Source,
    points: &[Point],
    (slice, measure): (Option<Span>, Span),
) -> Result<()> {
    let groups = points.iter().flat_map(|point| &point.clients);
    for (period, step) in groups.filter_map(|group| group.arrivals.bursts()) {
        let two = Span { ns: period.ns.saturating_mul(2) };
        let (piece, key) = match step {
            Some(_) => ("step", "clients.arrivals"),
            None => piece(slice),
        };
        let length = step.or(slice).unwrap_or(measure);
        if two <= length {
            continue;
        }
        let message = format!("bursts come every {period}, and a {piece} is over after {length}");
        let more = match step {
            Some(_) => format!("let each step take {two} or more"),
            None => format!("give {key} {two} or more"),
        };
        let help = format!("two bursts have to fit: {more}, or let bursts come more often");
        return Err(source.error_at(key, message, Some(help)));
    }
    Ok(())
}

fn takes_steps(point: &Point) -> bool {
    point.clients.iter().any(|group| group.arrivals == Arrivals::Steps)
}

/// Refuses what would warm cold data.
fn check_cold(source: &Source, spec: &RoundsSpec, steps: bool, points: &[Point]) -> Result<()> {
    let wrong = |key: &str, message: String| {
        let help = Some(format!("leave {key} out"));
        Err(source.error_at(&format!("rounds.{key}"), message, help))
    };
    let what = if steps { "steps are" } else { "cold data are" };
    if spec.state == Some(StateSpec::Warm) {
        return wrong("state", format!("{what} done on a target that has just been started"));
    }
    if spec.warm_up.is_some_and(|warm_up| warm_up != WarmUpSpec::Fixed(Span::default())) {
        return wrong("warm_up", format!("{what} measured before any other load"));
    }
    if matches!(spec.slice, Some(SliceSpec::Length(_))) {
        let message = format!("{what} measured in one piece: after the first slice data are warm");
        return wrong("slice", message);
    }
    if spec.restart == Some(RestartSpec::Never) {
        return wrong("restart", format!("{what} measured on a fresh start: what runs on is warm"));
    }
    let runs_on =
        |target: &&Target| matches!(target.kind, TargetKind::Address(_) | TargetKind::InProcess);
    let mut targets = points.iter().flat_map(|point| &point.targets);
    match targets.find(runs_on).filter(|_| !steps) {
        None => Ok(()),
        Some(Target { name, .. }) => {
            wrong("state", format!("{name} is not started by the lab, so nothing makes it cold"))
        }
    }
}
