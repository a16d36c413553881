//! Hybrid clocks: the date stands still, so that what waits for another day never runs.

use super::attribute::Attribute;
use super::calendar::Calendar;
use super::node::{Node, NodeId};
use super::state::{Flag, State};
use super::tree::Snapshot;

impl Node {
    /// Whether the day of a hybrid calendar is one that the node's dates, days and crons allow;
    /// `None` where it has none of them.
    #[must_use]
    pub fn is_day_of(&self, calendar: &Calendar) -> Option<bool> {
        let today = calendar.suite.date();
        let (mut kinds, mut holding) = (0, 0);
        let mut add = |test: &dyn Fn(&Attribute) -> Option<bool>| {
            let mut found = self.attributes.iter().filter_map(test).peekable();
            if found.peek().is_some() {
                kinds += 1;
                holding += usize::from(found.any(|holds| holds));
            }
        };
        add(&|attribute| match attribute {
            Attribute::Date(date) => {
                let is_whole = date.day != 0 && date.month != 0 && date.year != 0;
                Some(is_whole && date.matches(today))
            }
            _ => None,
        });
        add(&|attribute| match attribute {
            // Its date is known once the suite has begun.
            Attribute::Day(day) if day.date.is_none() => {
                Some(i32::from(day.weekday) == today.weekday())
            }
            Attribute::Day(day) => Some(day.holds(calendar)),
            _ => None,
        });
        add(&|attribute| match attribute {
            Attribute::Cron(cron) => {
                let no_days = cron.days.is_empty() && cron.months.is_empty() && !cron.last_day;
                let weekday = match cron.weekdays.as_slice() {
                    [] => true,
                    [day] => i32::from(*day) == today.weekday(),
                    _ => false,
                };
                Some(cron.series.until.is_some() && no_days && weekday)
            }
            _ => None,
        });
        (kinds > 0).then_some(holding == kinds)
    }
}

impl Snapshot {
    /// Whether the date of a node's suite stands still.
    #[must_use]
    pub fn is_hybrid(&self, id: NodeId) -> bool {
        let suite = self.suite(id).map(|suite| &self.node(suite).attributes);
        suite.is_some_and(|all| {
            // Clocks are the last of all, and suites have many limits and variables.
            let is_last = |one: &&Attribute| {
                matches!(one, Attribute::Clock(_) | Attribute::EndClock(_) | Attribute::Calendar(_))
            };
            let mut last = all.iter().rev().take_while(is_last);
            last.any(|one| matches!(one, Attribute::Clock(clock) if clock.hybrid))
        })
    }

    /// The node, or the one above it, that is complete because the date of its hybrid suite is none
    /// of its own.
    #[must_use]
    pub fn completed_by_date(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id);
        let is_by_rule = node.flags.has(Flag::ByRule);
        if node.state != State::Complete || is_by_rule || !self.is_hybrid(id) {
            return None;
        }
        let calendar = self.calendar(self.suite(id)?)?;
        self.upwards(id).find(|id| self.node(*id).is_day_of(calendar) == Some(false))
    }
}
