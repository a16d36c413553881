//! The state of a run as lines of text, for a pipe or a log: a line when the run begins, one a
//! round with each target's figure, and every note.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use lab::run::{RunEvent, TargetStatus};
use ledger::Validity;
use report::one_line;

use super::published::Published;
use super::state::{Side, State};

/// The most columns of a line, unless a name is longer.
const WIDTH: usize = 100;

/// The interval of lines about how far a target is prepared.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// A run's progress in lines.
pub(super) struct Lines {
    state: State,
    began: Instant,
    /// The last line about an activity.
    last: String,
    /// When a line last said how far a target is prepared.
    told: Option<Duration>,
    /// The kinds of reasons that were printed, by target.
    reasons: HashSet<(usize, String)>,
}

impl Lines {
    pub(super) fn begin(state: State) -> Self {
        let (last, reasons) = (String::new(), HashSet::new());
        Self { state, began: Instant::now(), last, told: None, reasons }
    }

    /// The lines to be printed about this event, the long ones on several.
    pub(super) fn show(&mut self, event: &RunEvent<'_>, published: &mut Published) -> Vec<String> {
        let at = self.began.elapsed();
        let lines = self.at(at, event);
        published.write(&self.state, at);
        lines.iter().map(|line| report::wrapped(line)).collect()
    }

    /// The same `at` this time of the run.
    fn at(&mut self, at: Duration, event: &RunEvent<'_>) -> Vec<String> {
        self.state.fold(at, event);
        match event {
            RunEvent::Note(text) => text.lines().map(one_line).collect(),
            RunEvent::Activity(_) => self.activity(at).into_iter().collect(),
            RunEvent::Preparing { .. } => self.preparing(at).into_iter().collect(),
            RunEvent::RoundEnds(statuses) => self.round(at, statuses),
            RunEvent::StaysDisturbed { rounds, causes } => {
                let help = report::HELP_FOR_SUITES;
                report::stays_disturbed(*rounds, causes, help).lines().map(one_line).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What is done outside of rounds, and that the first round has begun.
    fn activity(&mut self, at: Duration) -> Option<String> {
        let state = &self.state;
        let point = one_line(&state.point);
        let line = match state.round {
            0 => format!("{point}  {}", one_line(&state.activity)),
            // Every round that has ended has its own line.
            _ if state.done > 0.0 || self.last.contains("  round ") => return None,
            round => {
                let (left, is_least) = state.left(at);
                let least = if is_least { "at least " } else { "" };
                format!("{point}  round {round}, {least}{} left", seconds(left))
            }
        };
        let is_new = line != self.last;
        line.clone_into(&mut self.last);
        is_new.then_some(line)
    }

    /// How far a target is prepared, now and then.
    fn preparing(&mut self, at: Duration) -> Option<String> {
        let is_due = self.told.is_none_or(|told| at.saturating_sub(told) >= TELL_EVERY);
        is_due.then(|| {
            self.told = Some(at);
            format!("  {}", one_line(&self.state.activity))
        })
    }

    /// Each target's figure of a round that has ended; every reason for which one doesn't count is
    /// printed once.
    fn round(&mut self, at: Duration, statuses: &[TargetStatus]) -> Vec<String> {
        let head = format!("{}  round {}", one_line(&self.state.point), self.state.round);
        let (left, is_least) = self.state.left(at);
        let left = if is_least { String::new() } else { format!(" · {} left", seconds(left)) };
        let side = |status: &TargetStatus| self.state.targets.get(status.target);
        let figures: Vec<String> =
            statuses.iter().filter_map(|status| Some(self.figure(side(status)?, status))).collect();
        let all = format!("{head}: {}{left}", figures.join(" · "));
        let mut lines = if all.chars().count() <= WIDTH {
            vec![all]
        } else {
            let each = figures.into_iter().map(|figure| format!("  {figure}"));
            [format!("{head}{left}")].into_iter().chain(each).collect()
        };
        for status in statuses {
            let name = self.state.targets.get(status.target).map(|side| one_line(&side.name));
            let reason = report::validity_note(status.validity, &status.why);
            let Some((reason, name)) = reason.zip(name) else { continue };
            let grade = match status.validity {
                Validity::Valid => String::new(),
                grade => format!(" is {}", grade.word()),
            };
            if self.reasons.insert((status.target, status.kind_of_reason())) {
                lines.push(format!("  {name}{grade}: {}", one_line(&reason)));
            }
        }
        lines
    }

    /// `memcached 430k/s, p99 91.0 µs (disturbed)`.
    fn figure(&self, side: &Side, status: &TargetStatus) -> String {
        let name = one_line(&side.name);
        let primary = &self.state.primary;
        // Beside what programs report of themselves, how long they ran would be taken for its tail.
        let is_reported = primary.sql.is_none();
        let p99 = status.p50_p99_ns.filter(|_| !is_reported && primary.suite != "latency.p99");
        let p99 =
            p99.map_or(String::new(), |(_, p99)| format!(", p99 {}", report::duration(p99 as f64)));
        let grade = match status.validity {
            Validity::Valid => String::new(),
            grade => format!(" ({})", grade.word()),
        };
        let value = match status.primary {
            _ if status.rate_ns == 0 => "nothing measured".to_owned(),
            None => format!("{} unseen", primary.suite),
            Some(value) if primary.suite == "rate_per_s" => report::rate(value),
            Some(value) => format!("{} {}", primary.suite, report::value_of(value, primary.unit)),
        };
        format!("{name} {value}{p99}{grade}")
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use findings::Why;
    use lab::drive::Counts;
    use lab::run::Activity;
    use ledger::{Cause, CauseKind};

    use super::super::tests::begun;
    use super::*;

    fn ended(target: usize, rate: f64, swapped: Option<f64>) -> TargetStatus {
        let cause = swapped.map(|pages| Cause::new(CauseKind::Swap, pages));
        TargetStatus {
            target,
            validity: swapped.map_or(Validity::Valid, |_| Validity::Disturbed),
            why: cause.map(Why::Disturbed).into_iter().collect(),
            counts: Counts::default(),
            rate_ns: 1,
            primary: Some(rate),
            p50_p99_ns: Some((20_000, 84_000)),
            busy: None,
            limit: None,
        }
    }

    #[test]
    fn every_round_has_a_line_with_figures_and_every_reason_is_printed_once() {
        let mut lines = Lines::begin(begun(&["loadline", "memcached"]));
        let mut all = Vec::new();
        for round in 1..=2 {
            let at = Duration::from_secs(10 * u64::from(round));
            let left = (round > 1).then(|| Duration::from_secs(45));
            for words in ["measuring loadline, slice 1 of 9", "round over"] {
                let done = f64::from(round - 1) * 0.2;
                let activity = Activity { point: "cache/get", round, words, done, left };
                all.extend(lines.at(at, &RunEvent::Activity(activity)));
            }
            let swapped = Some(f64::from(round) * 20.0);
            let statuses = [ended(0, 5.2e5, None), ended(1, 4.3e5, swapped)];
            all.extend(lines.at(at, &RunEvent::RoundEnds(&statuses)));
        }
        let figures = "loadline 520k/s, p99 84.0 µs · memcached 430k/s, p99 84.0 µs (disturbed)";
        assert!(all[0].starts_with("cache/get  round 1, at least "), "{all:?}");
        let wanted = [
            format!("cache/get  round 1: {figures}"),
            "  memcached is disturbed: the host swapped 20 pages".to_owned(),
            // With the time that is left it would be too long for one line.
            "cache/get  round 2 · 45 s left".to_owned(),
            "  loadline 520k/s, p99 84.0 µs".to_owned(),
            "  memcached 430k/s, p99 84.0 µs (disturbed)".to_owned(),
        ];
        assert_eq!(all[1..], wanted);
        let unmeasured = TargetStatus { rate_ns: 0, ..ended(0, 0.0, None) };
        let long = lines.at(Duration::ZERO, &RunEvent::RoundEnds(&[unmeasured]));
        assert!(long[0].contains("loadline nothing measured"), "{long:?}");
        assert_eq!(lines.at(Duration::ZERO, &RunEvent::Note("one\ntwo")), ["one", "two"]);
        let causes = [("memcached", vec![Cause::new(CauseKind::Swap, 40.0)])];
        let stays = RunEvent::StaysDisturbed { rounds: 3, causes: &causes };
        let said = lines.at(Duration::ZERO, &stays);
        assert_eq!(
            said[..2],
            ["the last 3 rounds were disturbed:", "  memcached: the host swapped 40 pages"]
        );
    }

    #[test]
    fn how_far_a_target_is_prepared_is_told_now_and_then() {
        let mut lines = Lines::begin(begun(&["loadline", "postgres-gist"]));
        let mut told = |seconds, begun| {
            let event = RunEvent::Preparing { target: "postgres-gist", begun, parts: 10_002 };
            lines.at(Duration::from_secs(seconds), &event)
        };
        assert_eq!(told(1, 400), ["  preparing postgres-gist, 400 of 10,002 parts"]);
        assert!(told(2, 900).is_empty());
        assert_eq!(told(6, 4_000), ["  preparing postgres-gist, 4,000 of 10,002 parts"]);
    }
}
