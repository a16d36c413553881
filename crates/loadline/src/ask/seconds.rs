//! A line of figures a second, on standard error.

use std::time::{Duration, Instant};

use lab::drive::{Figure, empty_histogram};
use lab::run::{RunEvent, SliceStats, TargetStatus};
use ledger::Histogram;
use report::{count, duration, one_line, rate};

use crate::out::note;

/// From one line to the next, at least.
const LINE: Duration = Duration::from_secs(1);

/// What helps where rounds stay disturbed; a suite can do more than a question.
const HELP: &str = "\
What helps: end what runs beside it. `loadline doctor` says what this host is good for. A suite can
keep cores for either side, or compare all the same: add --save mine.toml, and then
`loadline run mine.toml --set rounds.disturbed=ignore`.";

/// Columns of a side's name where there are two.
const NAME: usize = 12;

/// Columns of a line of text.
const COLUMNS: usize = 100;

/// The text in lines that fit a terminal, all but the first one indented.
pub(super) fn wrapped(text: &str) -> String {
    let options = textwrap::Options::new(COLUMNS).subsequent_indent("    ");
    textwrap::fill(text, options.break_words(false))
}

/// The figures since the last line.
pub(super) struct Seconds {
    sides: Vec<Side>,
    /// Whether each operation is a whole process.
    is_batch: bool,
    /// When measuring began.
    began: Option<Instant>,
    /// When the last line was printed, from then on.
    last: Option<Duration>,
    /// Reasons that were printed.
    said: Vec<(usize, String)>,
}

struct Side {
    name: String,
    rate_ns: u64,
    operations: u64,
    wrong: u64,
    refused: u64,
    missing: u64,
    latency: Histogram<u64>,
}

impl Seconds {
    pub(super) fn of(names: &[String], is_batch: bool) -> Self {
        let side = |name: &String| Side {
            name: name.clone(),
            rate_ns: 0,
            operations: 0,
            wrong: 0,
            refused: 0,
            missing: 0,
            latency: empty_histogram(),
        };
        let sides = names.iter().map(side).collect();
        Self { sides, is_batch, began: None, last: None, said: Vec::new() }
    }

    /// Takes what a run reports, and prints a line if a second is over.
    pub(super) fn progress(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Note(text) => text.lines().for_each(|line| note(wrapped(&one_line(line)))),
            RunEvent::SliceEnds(stats) => {
                self.add(stats);
                let slice = Duration::from_nanos(stats.duration_ns);
                let now = Instant::now();
                let began = *self.began.get_or_insert(now.checked_sub(slice).unwrap_or(now));
                if let Some(line) = self.line(began.elapsed()) {
                    note(line);
                }
            }
            RunEvent::RoundEnds(statuses) => self.reasons(statuses),
            RunEvent::StaysDisturbed { rounds, causes } => {
                let said = report::stays_disturbed(*rounds, causes, HELP);
                said.lines().for_each(|line| note(wrapped(&one_line(line))));
            }
            _ => {}
        }
    }

    fn add(&mut self, stats: &SliceStats) {
        let Some(side) = self.sides.get_mut(stats.target) else { return };
        side.rate_ns += stats.rate_ns;
        side.operations += stats.counts.operations;
        side.wrong += stats.counts.wrong;
        side.refused += stats.counts.refused;
        side.missing += stats.counts.missing;
        for (figure, counted) in &stats.times {
            if *figure == Figure::Latency {
                counted.add_to(&mut side.latency);
            }
        }
    }

    /// Why a round can't be compared, each reason once.
    fn reasons(&mut self, statuses: &[TargetStatus]) {
        for status in statuses {
            let reason = report::validity_note(status.validity, &status.why);
            let (Some(reason), Some(side)) = (reason, self.sides.get(status.target)) else {
                continue;
            };
            let kind = (status.target, status.kind_of_reason());
            if !self.said.contains(&kind) {
                self.said.push(kind);
                note(wrapped(&one_line(&format!("{}: {reason}", side.name))));
            }
        }
    }

    /// The line `at` this time of measuring: the first one as soon as a side was measured, the
    /// others if a second is over and every side was.
    fn line(&mut self, at: Duration) -> Option<String> {
        let is_measured = |side: &Side| side.rate_ns > 0;
        let is_due = match self.last {
            None => self.sides.iter().any(is_measured),
            Some(last) => at >= last + LINE && self.sides.iter().all(is_measured),
        };
        if !is_due {
            return None;
        }
        self.last = Some(at);
        let several = self.sides.len() > 1;
        let figures = self.sides.iter().map(|side| side.figures(several, self.is_batch));
        let figures = figures.collect::<Vec<_>>().join("  ");
        let line = format!("{:>5.1} s  {}", at.as_secs_f64(), figures.trim_end());
        for side in &mut self.sides {
            (side.rate_ns, side.operations) = (0, 0);
            (side.wrong, side.refused, side.missing) = (0, 0, 0);
            side.latency.reset();
        }
        Some(line)
    }
}

impl Side {
    /// The name, or its end where it is long: names mostly differ there.
    fn short_name(&self) -> String {
        let name = one_line(&self.name);
        match name.chars().count().checked_sub(NAME) {
            None | Some(0) => name,
            Some(over) => ['…'].into_iter().chain(name.chars().skip(over + 1)).collect(),
        }
    }

    fn figures(&self, several: bool, is_batch: bool) -> String {
        let at = |quantile| duration(self.latency.value_at_quantile(quantile) as f64);
        let name = match several {
            true => format!("{:<NAME$} ", self.short_name()),
            false => String::new(),
        };
        let (mut bad, mut kinds_seen) = (String::new(), 0);
        let kinds = [(self.wrong, "wrong"), (self.refused, "refused"), (self.missing, "missing")];
        for (number, what) in kinds {
            if number > 0 {
                bad = format!("{bad} {} {what}", count(number));
                kinds_seen += 1;
            }
        }
        let figures = match is_batch {
            _ if self.rate_ns == 0 => "comes next".to_owned(),
            _ if self.latency.is_empty() => "no answer".to_owned(),
            true => {
                let (low, high) = (self.latency.min() as f64, self.latency.max() as f64);
                let runs = match self.operations {
                    1 => "1 run".to_owned(),
                    runs => format!("{} runs", count(runs)),
                };
                let range = format!("({} to {})", duration(low), duration(high));
                format!("{:<8} {:<7} {}", runs, at(0.5), if several { "" } else { &range })
            }
            false => {
                let per_s = self.operations as f64 * 1e9 / self.rate_ns.max(1) as f64;
                let p99 = format!("p99 {:<7}", at(0.99));
                // A line has room for one of both, where there are two sides, and for two that went
                // wrong beside a rate only.
                let p99 = if several && !bad.is_empty() { "" } else { &p99 };
                let p50 = format!("p50 {:<7} ", at(0.5));
                let p50 = if several && kinds_seen > 1 { "" } else { &p50 };
                format!("{:<8} {p50}{p99}", rate(per_s))
            }
        };
        format!("{name}{}{bad}", figures.trim_end_matches(|c| c == ' ' && !bad.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::drive::{Counts, Pressure};

    fn slice(target: usize) -> SliceStats {
        SliceStats {
            target,
            duration_ns: 500_000_000,
            rate_ns: 500_000_000,
            counts: Counts { operations: 40_000, ..Counts::default() },
            server_ns: None,
            generator_ns: 0,
            busy: 0.0,
            pressure: Pressure::default(),
            times: Vec::new(),
            causes: Vec::new(),
        }
    }

    #[test]
    fn a_line_comes_at_once_and_then_once_a_second_is_over_and_every_side_was_measured() {
        let names = ["memcached 127.0.0.1:1".to_owned(), "redis".to_owned()];
        let mut seconds = Seconds::of(&names, false);
        seconds.add(&slice(0));
        seconds.sides[0].latency.record(200_000).unwrap();
        let first = seconds.line(Duration::from_millis(500)).unwrap();
        assert!(first.starts_with("  0.5 s  …127.0.0.1:1 80.0k/s"), "{first}");
        assert!(first.ends_with("redis        comes next"), "{first}");
        seconds.add(&slice(0));
        assert_eq!(seconds.line(Duration::from_secs(2)), None, "one side only");
        seconds.last = None;
        seconds.add(&slice(1));
        seconds.sides[0].latency.record(200_000).unwrap();
        seconds.sides[1].latency.record(300_000).unwrap();
        (seconds.sides[1].refused, seconds.sides[1].missing) = (2, 3);
        let line = seconds.line(Duration::from_millis(600)).unwrap();
        assert!(line.starts_with("  0.6 s  …127.0.0.1:1 80.0k/s"), "{line}");
        assert!(line.contains("redis") && line.ends_with("2 refused 3 missing"), "{line}");
        assert!(line.chars().count() <= 100, "{line}");
        seconds.add(&slice(0));
        seconds.add(&slice(1));
        assert_eq!(seconds.line(Duration::from_millis(1_500)), None, "too early");
        let line = seconds.line(Duration::from_millis(1_600)).unwrap();
        assert!(line.contains("no answer") && !line.contains("missing"), "{line}");
    }
}
