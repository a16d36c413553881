//! Requirements in words: the outcome, the figure, the room that is left to its limit, and what
//! it is judged by.

use findings::{RequirementSummary, Summary};
use judge::Unit;
use ledger::{RequirementOutcome, RequirementRow};

use crate::escape::one_line;
use crate::number::{plain, ratio, value_of, whole_percent};
use crate::phrases::many;

/// From this many times the limit on, the factor is shown and no percentage.
const MAX_ROOM: f64 = 9.0;

/// The outcome of a requirement.
pub(crate) fn outcome(outcome: RequirementOutcome) -> &'static str {
    match outcome {
        RequirementOutcome::Held => "held",
        RequirementOutcome::Broken => "broken",
        RequirementOutcome::CantTell => "can't tell",
    }
}

/// The requirements of one point.
pub(crate) fn at_point(
    summary: &Summary,
    point: usize,
) -> impl Iterator<Item = &RequirementSummary> {
    summary.requirements.iter().filter(move |one| one.point == point)
}

/// The figure, its room, and what has to be known beside: `45.2 ms (55 % room)`, `445 ms (345 %
/// over; broken in 3 of 12 rounds)`, `unseen (no round of ours counts)`.
pub(crate) fn figure(row: &RequirementRow) -> String {
    let value = value(row);
    let beside: Vec<String> = room(row).into_iter().chain(beside(row)).collect();
    match beside.is_empty() {
        true => value,
        false => format!("{value} ({})", beside.join("; ")),
    }
}

/// What has to be known beside the figure: broken and disturbed rounds, why it can't be told.
pub(crate) fn beside(row: &RequirementRow) -> Vec<String> {
    let reason = row.reason.as_deref().map(one_line);
    [broken_in(row), disturbed(row), reason].into_iter().flatten().collect()
}

/// The figure alone, with its unit.
pub(crate) fn value(row: &RequirementRow) -> String {
    let Some(value) = row.value else { return "unseen".to_owned() };
    match row.unit.as_deref().and_then(Unit::of_word) {
        Some(unit) => value_of(value, unit),
        None => plain(value),
    }
}

/// `55 % room`, `345 % over` an upper limit, `12 % short` of a lower one, `600× the limit`.
pub(crate) fn room(row: &RequirementRow) -> Option<String> {
    let (room, bound, value) = (row.room?, row.bound, row.value?);
    let limits = row.expression.contains('<');
    Some(match room {
        room if room.abs() > MAX_ROOM && value / bound >= 1.0 => {
            format!("{}× the limit", ratio(value / bound))
        }
        room if room >= 0.0 => format!("{} room", whole_percent(room)),
        room if limits => format!("{} over", whole_percent(-room)),
        room => format!("{} short", whole_percent(-room)),
    })
}

fn broken_in(row: &RequirementRow) -> Option<String> {
    let (broken, rounds) = (row.broken_in, row.rounds);
    let words = format!("broken in {broken} of {}", many(rounds as usize, "round"));
    (broken > 0 && rounds > 1).then_some(words)
}

fn disturbed(row: &RequirementRow) -> Option<String> {
    let (disturbed, rounds) = (row.disturbed, row.rounds);
    let words = format!("{disturbed} of {} disturbed", many(rounds as usize, "round"));
    // Counts of nothing are exact in any round.
    let matters = row.room.is_some() && row.reason.is_none();
    (disturbed > 0 && matters).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(expression: &str, value: f64, bound: f64, room: f64) -> RequirementRow {
        RequirementRow {
            expression: expression.to_owned(),
            value: Some(value),
            outcome: RequirementOutcome::Held,
            bound,
            unit: Some("ns".to_owned()),
            room: Some(room),
            rounds: 12,
            ..RequirementRow::default()
        }
    }

    #[test]
    fn room_is_a_percentage_of_the_limit_or_how_many_times_it() {
        let said = |expression, value, bound, part| room(&row(expression, value, bound, part));
        let some = |words: &str| Some(words.to_owned());
        assert_eq!(said("latency.p99 < 100ms", 45e6, 100e6, 0.55), some("55 % room"));
        assert_eq!(said("latency.p99 < 100ms", 445e6, 100e6, -3.45), some("345 % over"));
        assert_eq!(said("rate_per_s >= 100/s", 88.0, 100.0, -0.12), some("12 % short"));
        assert_eq!(said("rate_per_s >= 100/s", 6e4, 100.0, 599.0), some("600× the limit"));
        assert_eq!(said("latency.p99 < 1ms", 2e9, 1e6, -1999.0), some("2000× the limit"));
    }

    #[test]
    fn rounds_that_broke_it_alone_and_disturbed_ones_are_counted() {
        let mut row = row("latency.p99 < 100ms", 45e6, 100e6, 0.55);
        assert_eq!((broken_in(&row), disturbed(&row)), (None, None));
        (row.broken_in, row.disturbed) = (1, 5);
        assert_eq!(broken_in(&row).unwrap(), "broken in 1 of 12 rounds");
        assert_eq!(disturbed(&row).unwrap(), "5 of 12 rounds disturbed");
        row.reason = Some("5 of 12 rounds were disturbed".to_owned());
        assert_eq!(disturbed(&row), None, "the reason has it already");
    }
}
