//! The checks, one row each: a suite, how often it is run in which way, and the judge of its runs.

mod advice;
mod compare;
mod disturbance;
mod likely;
mod limits;
mod ordinary;
mod queue;
mod stops;

use serde_json::Value;

use super::burner::Beside;

/// One claim of the lab, and how it is compared with the known truth.
pub(crate) struct Check {
    /// Its name on the command line and in the document's markers.
    pub(crate) name: &'static str,
    /// What is claimed, in a sentence.
    pub(crate) claim: &'static str,
    /// The suite that is run.
    pub(crate) suite: &'static str,
    /// The program's subcommand and its options; the suite is put behind the first word.
    pub(crate) command: &'static str,
    /// The ways in which it is run.
    pub(crate) kinds: &'static [Kind],
    /// What is set beside the suite's text for the run of that kind and number.
    pub(crate) settings: fn(&Kind, usize) -> Vec<(&'static str, String)>,
    /// The result of all runs together.
    pub(crate) judge: fn(&Seen) -> Judged,
}

/// One way to run a check's suite.
pub(crate) struct Kind {
    /// In a word.
    pub(crate) name: &'static str,
    /// Stands in the seeds of its runs.
    pub(crate) number: u64,
    /// How many runs the claim takes.
    pub(crate) runs: usize,
    /// The other program that runs meanwhile.
    pub(crate) beside: Beside,
}

/// All runs of a check.
pub(crate) struct Seen {
    /// Each with its kind's name.
    pub(crate) runs: Vec<(&'static str, Value)>,
}

impl Seen {
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.runs.iter().filter(move |(name, _)| *name == kind).map(|(_, run)| run)
    }
}

/// What came of it.
pub(crate) struct Judged {
    /// Whether the claim holds; `None` while there are too few runs.
    pub(crate) holds: Option<bool>,
    /// The figures, as Markdown that ends with a line's end.
    pub(crate) evidence: String,
}

fn none(_: &Kind, _: usize) -> Vec<(&'static str, String)> {
    Vec::new()
}

/// How long a planted difference is looked for beside other programs.
const PLANTED_BESIDE: &str = "compare --a costlier --b plain --budget 20s --measure 500ms";

/// Every check, in the order in which they are measured.
pub(crate) static CHECKS: &[Check] = &[
    Check {
        name: "stops",
        claim: "A target that is stopped for 200 ms every 2 s costs every request that was due \
                meanwhile: p95 is 100 ms and p99 180 ms, within 2 %.",
        suite: "suites/credibility/stops.toml",
        command: "run",
        kinds: &[Kind { name: "stopped", number: 1, runs: 3, beside: Beside::Nothing }],
        settings: none,
        judge: stops::judge,
    },
    Check {
        name: "queue",
        claim: "Waiting times in an open loop are those of M/M/1 and M/D/1 at ten loads, within \
                the measured interval.",
        suite: "suites/credibility/queue.toml",
        command: "run",
        kinds: &[Kind { name: "queue", number: 2, runs: 5, beside: Beside::Nothing }],
        // Each run has service times of its own.
        settings: |_, number| vec![("target.null.options.seed", (number * 1000 + 1).to_string())],
        judge: queue::judge,
    },
    Check {
        name: "disturbance",
        claim: "A burner that takes a core for a tenth of the time is noticed in each of 100 runs, \
                and in at most 2 of 100 something is seen where nothing is.",
        suite: "suites/credibility/disturbance.toml",
        command: "run",
        kinds: &[
            Kind { name: "burner", number: 3, runs: 100, beside: Beside::TenthOfACore },
            Kind { name: "clean", number: 4, runs: 100, beside: Beside::Nothing },
        ],
        settings: none,
        judge: disturbance::judge,
    },
    Check {
        name: "limits",
        claim: "A limit that was planted is the first in the list in at least 85 of 90 runs, of \
                each plant in at least 8 of 10, and a load of a fifth reaches none in at least 19 \
                of 20.",
        suite: "suites/credibility/limits.toml",
        command: "run",
        kinds: limits::KINDS,
        settings: |kind, _| limits::settings(kind),
        judge: limits::judge,
    },
    Check {
        name: "advice",
        claim: "Of a PostgreSQL that lacks statistics, an index, memory to sort or shared memory, \
                or in which a lock is held, that is what the lab advises first in at least 8 of 10 \
                runs of each, and nothing of one that lacks nothing.",
        suite: "suites/credibility/advice.toml",
        command: "run",
        kinds: advice::KINDS,
        settings: |kind, _| advice::settings(kind),
        judge: advice::judge,
    },
    Check {
        name: "same",
        claim: "Of 200 comparisons of a cache with itself, each of ten rounds or 6 s of measured \
                time, at most 10 call a difference.",
        suite: "suites/credibility/same.toml",
        command: "compare --a cache --b cache --budget 6s --measure 300ms",
        kinds: &[Kind { name: "same", number: 5, runs: 200, beside: Beside::Nothing }],
        settings: none,
        judge: compare::same,
    },
    Check {
        name: "planted",
        claim: "Two percent more CPU time per operation are found in at least 36 of 40 tries, each \
                with 60 s of measured time at most.",
        suite: "suites/credibility/planted.toml",
        command: "compare --a costlier --b plain --budget 60s --measure 500ms",
        kinds: &[Kind { name: "planted", number: 6, runs: 40, beside: Beside::Nothing }],
        settings: none,
        judge: compare::planted,
    },
    Check {
        name: "likely",
        claim: "Beside other programs at most 10 of 200 comparisons of a cache with itself, each \
                with 6 s of measured time, call a difference, even a likely one.",
        suite: "suites/credibility/same.toml",
        command: "compare --a cache --b cache --budget 6s --measure 300ms",
        kinds: likely::SAME,
        settings: none,
        judge: likely::same_judge,
    },
    Check {
        name: "likely-10",
        claim: "Beside them ten percent more or less CPU time per operation are found in at least \
                nine of ten tries, as a verdict or as likely, each with 20 s of measured time at \
                most, and the sign is never wrong.",
        suite: "suites/credibility/planted.toml",
        command: PLANTED_BESIDE,
        kinds: likely::TEN,
        settings: |kind, _| likely::settings(kind),
        judge: |seen| likely::planted_judge(seen, likely::TEN, 0.9),
    },
    Check {
        name: "likely-5",
        claim: "Five percent are found in at least six of ten.",
        suite: "suites/credibility/planted.toml",
        command: PLANTED_BESIDE,
        kinds: likely::FIVE,
        settings: |kind, _| likely::settings(kind),
        judge: |seen| likely::planted_judge(seen, likely::FIVE, 0.6),
    },
    Check {
        name: "ordinary-web",
        claim: "Beside a program that takes half of a core the question is answered, as on a \
                quiet machine: does nginx serve a file of 4 kB at less CPU time than lighttpd?",
        suite: "suites/credibility/ordinary-web.toml",
        command: "run",
        kinds: ordinary::kinds!(40),
        settings: none,
        judge: |seen| ordinary::judge(seen, 1),
    },
    Check {
        name: "ordinary-cache",
        claim: "Beside that program at least 5 of 6 questions are answered, as on a quiet machine: \
                does our cache take less CPU time than memcached, with values of 100 B, 10 kB and \
                100 kB, over 1 and 16 connections?",
        suite: "suites/credibility/ordinary-cache.toml",
        command: "run",
        kinds: ordinary::kinds!(42),
        settings: none,
        judge: |seen| ordinary::judge(seen, 5),
    },
    Check {
        name: "ordinary-stall",
        claim: "Beside that program both questions are answered, as on a quiet machine: does a \
                server that stops for 200 ms every 2 s keep its slowest answer under 300 ms, and \
                its 99th percentile under 100 ms?",
        suite: "suites/credibility/ordinary-stall.toml",
        command: "run",
        kinds: ordinary::kinds!(44),
        settings: none,
        judge: |seen| ordinary::judge(seen, 2),
    },
    Check {
        name: "ordinary-tour",
        claim: "Beside that program both points of the tour are answered, as on a quiet machine.",
        suite: "suites/tour.toml",
        command: "run",
        kinds: ordinary::kinds!(46),
        settings: none,
        judge: |seen| ordinary::judge(seen, 2),
    },
];

/// The reasons of what was not valid, for a document's reader.
fn trials(run: &Value) -> impl Iterator<Item = &Value> {
    run["trials"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_kinds_are_unique() {
        let kinds: Vec<_> = CHECKS.iter().flat_map(|check| check.kinds).collect();
        for kind in &kinds {
            assert_eq!(kinds.iter().filter(|other| other.number == kind.number).count(), 1);
        }
    }
}
