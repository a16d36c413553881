//! How many minutes can be passed over because nothing can happen in them.

use super::jobs::programs;
use crate::model::{Attribute, Flag, NodeId, Operand, Series, Snapshot};

const DAY: i64 = 24 * 60;

/// What of a tree the clock moves.
#[derive(Debug, Default)]
pub(super) struct Clocked {
    timed: Vec<NodeId>,
    /// Something is to be looked at each minute.
    is_restless: bool,
}

impl Clocked {
    pub(super) fn of(tree: &Snapshot) -> Self {
        let mut clocked = Self::default();
        for id in tree.walk(NodeId::ROOT).skip(1) {
            for attribute in tree.node(id).attributes.iter() {
                match attribute {
                    Attribute::Time(_)
                    | Attribute::Today(_)
                    | Attribute::Cron(_)
                    | Attribute::Date(_)
                    | Attribute::Day(_)
                        if clocked.timed.last() != Some(&id) =>
                    {
                        clocked.timed.push(id);
                    }
                    Attribute::AutoCancel(_) | Attribute::AutoArchive(_) | Attribute::Late(_) => {
                        clocked.is_restless = true;
                    }
                    _ => {}
                }
            }
            let by_clock = |operand: &Operand| match operand {
                Operand::Variable(_, name) | Operand::Upward(name) => {
                    matches!(name.as_str(), "TIME" | "ECF_TIME" | "ECF_CLOCK")
                }
                Operand::Flag(_, flag) => *flag == Flag::Late,
                Operand::Node(_) => false,
            };
            let mut operands = programs(tree, id).flat_map(|program| program.operands());
            clocked.is_restless |= operands.any(by_clock);
        }
        clocked
    }

    /// The minutes until something can become free, at least 1 and at most `most`.
    pub(super) fn minutes(&self, tree: &Snapshot, most: i64) -> i64 {
        if self.is_restless {
            return 1;
        }
        let mut least = most;
        // Variables of the date, and times, change at midnight; relative times that a day has held
        // until then have waited one minute after it, not a whole step.
        for suite in tree.suites() {
            if let Some(calendar) = tree.calendar(suite) {
                let midnight = DAY - calendar.suite.time_of_day().whole_minutes();
                least = least.min((midnight - 1).max(1));
            }
        }
        for id in &self.timed {
            if least <= 1 {
                break;
            }
            if !tree.has(*id) {
                continue;
            }
            let suite = tree.suite(*id);
            let Some(calendar) = suite.and_then(|suite| tree.calendar(suite)) else { continue };
            for attribute in tree.node(*id).attributes.iter() {
                let series: &Series = match attribute {
                    Attribute::Time(series) | Attribute::Today(series) => series,
                    Attribute::Cron(cron) => &cron.series,
                    _ => continue,
                };
                if !series.free && series.is_valid {
                    least = least.min(until(series, series.now(calendar).minutes));
                }
            }
        }
        least.max(1)
    }
}

/// The minutes from `now` until a series is free again, as far as the time of day says.
fn until(series: &Series, now: i32) -> i64 {
    let next = series.next.minutes;
    let minutes = match series.until {
        _ if now < next => next - now,
        None => i32::MAX,
        Some((_, step)) if step.minutes > 0 => step.minutes - (now - next) % step.minutes,
        Some(_) => 1,
    };
    // A node that is held by its trigger is looked at again where its time stays.
    minutes.into()
}
