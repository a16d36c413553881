//! What a simulation assumes: how long, how jobs end, and how often the tree is looked at.

use crate::model::{Attribute, Clock, Duration, Instant, NodeId, Snapshot};

/// When what has become free is submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pass {
    /// At once, as by this server.
    #[default]
    AtOnce,
    /// Once a minute, in one pass over the tree, as by ecFlow's own simulator: jobs end in the
    /// minute in which they start, and what waits for them starts a minute later.
    EachMinute,
}

/// How a task's jobs end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Assumed {
    /// They are complete.
    #[default]
    Complete,
    /// They are aborted, each time.
    Aborted,
    /// They never end.
    Active,
}

/// What is assumed of the tasks at and below a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumption {
    /// The path.
    pub path: String,
    /// How jobs end, where it says so.
    pub assumed: Option<Assumed>,
    /// How many minutes they take, where it says so.
    pub minutes: Option<i64>,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's time at begin, for suites whose clock has no date.
    pub start: Instant,
    /// How many minutes.
    pub minutes: i64,
    /// How many minutes jobs take, unless an assumption says otherwise.
    pub job_minutes: i64,
    /// When what has become free is submitted.
    pub pass: Pass,
    /// What is assumed of some tasks: the last one that names a task counts.
    pub assumptions: Vec<Assumption>,
    /// Whether minutes in which nothing can happen are passed over.
    pub skips: bool,
}

impl Plan {
    /// How a task's jobs end, and after how many minutes.
    pub(super) fn of(&self, path: &str) -> (Assumed, i64) {
        let is_at = |one: &&Assumption| {
            let rest = path.strip_prefix(one.path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut found = (Assumed::Complete, self.job_minutes);
        for one in self.assumptions.iter().filter(is_at) {
            found = (one.assumed.unwrap_or(found.0), one.minutes.unwrap_or(found.1));
        }
        found
    }
}

const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;

/// How many minutes ecFlow's simulator would simulate: to the end clock, or as long as the
/// attributes of the tree ask for, a day at least.
#[must_use]
pub fn horizon(tree: &Snapshot, start: Instant) -> i64 {
    tree.suites().map(|suite| of_suite(tree, suite, start)).max().unwrap_or(DAY).max(1)
}

fn of_suite(tree: &Snapshot, suite: NodeId, start: Instant) -> i64 {
    let clock = |is_end: bool| -> Option<Clock> {
        tree.node(suite).attributes.iter().find_map(|one| match one {
            Attribute::Clock(clock) if !is_end => Some(**clock),
            Attribute::EndClock(clock) if is_end => Some(**clock),
            _ => None,
        })
    };
    if let (Some(begin), Some(end)) = (clock(false), clock(true)) {
        let span: Duration = end.start(start).since(begin.start(start));
        return span.whole_minutes();
    }
    let mut minutes = DAY;
    for id in tree.walk(suite) {
        for attribute in tree.node(id).attributes.iter() {
            minutes = minutes.max(match attribute {
                Attribute::Day(_) => 7 * DAY,
                Attribute::Date(_) => 7 * 31 * DAY,
                Attribute::Cron(_) | Attribute::Repeat(_) => 365 * DAY,
                _ => DAY,
            });
        }
    }
    minutes
}
