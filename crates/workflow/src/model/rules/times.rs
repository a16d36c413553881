//! Time: calendars move, dependencies on times become free, nodes become late or old.

use std::sync::Arc;

use super::super::attribute::{After, Attribute, DateRule, DayRule, Late};
use super::super::calendar::Calendar;
use super::super::node::NodeId;
use super::super::state::{Flag, Kind, State};
use super::super::time::{Date, Duration, Slot};
use super::change::{Cause, Effect, How, Requeue, Rules};

impl DayRule {
    /// The first such day from this date on.
    pub(super) fn matching(&self, from: Date) -> Date {
        let days = (i32::from(self.weekday) - from.weekday()).rem_euclid(7);
        from.plus_days(days)
    }

    pub(in crate::model) fn holds(&self, calendar: &Calendar) -> bool {
        !self.expired && (self.free || self.date == Some(calendar.suite.date()))
    }
}

impl DateRule {
    pub(in crate::model) fn matches(&self, date: Date) -> bool {
        let (year, month, day) = date.parts();
        let is = |rule: i32, number: i32| rule == 0 || rule == number;
        is(self.day.into(), day) && is(self.month.into(), month) && is(self.year.into(), year)
    }

    pub(in crate::model) fn holds(&self, calendar: &Calendar) -> bool {
        self.free || self.matches(calendar.suite.date())
    }

    /// Whether it comes after this date, part by part, as ecFlow has it.
    fn is_later(&self, date: Date) -> bool {
        let (year, month, day) = date.parts();
        let (d, m, y) = (i32::from(self.day), i32::from(self.month), i32::from(self.year));
        if d != 0 && m != 0 && y != 0 {
            return Date::new(y, m, d).is_some_and(|own| own > date);
        }
        let after = |rule: i32, number: i32| rule == 0 || rule > number;
        after(d, day) || after(m, month) || after(y, year)
    }
}

/// The kinds of dependencies on time that a node has, and which hold.
#[derive(Default)]
struct Times {
    kinds: usize,
    holding: usize,
}

impl Times {
    fn add(&mut self, has: bool, holds: bool) {
        self.kinds += usize::from(has);
        self.holding += usize::from(has && holds);
    }
}

impl Rules<'_> {
    /// Whether a node depends on time.
    pub(super) fn has_times(&self, id: NodeId) -> bool {
        self.tree.node(id).attributes.iter().any(|attribute| {
            matches!(
                attribute,
                Attribute::Time(_)
                    | Attribute::Today(_)
                    | Attribute::Cron(_)
                    | Attribute::Date(_)
                    | Attribute::Day(_)
            )
        })
    }

    /// Whether a node's dependencies on time hold: of each kind that it has, one.
    pub(super) fn times_hold(&self, id: NodeId) -> bool {
        if !self.has_times(id) {
            return true;
        }
        let calendar = &self.calendar(id);
        let attributes = &self.tree.node(id).attributes;
        let count = |test: &dyn Fn(&Attribute) -> Option<bool>| {
            let found = attributes.iter().filter_map(test);
            found.fold((0, 0), |(all, held), holds| (all + 1, held + usize::from(holds)))
        };
        let (days, days_hold) = count(&|attribute| match attribute {
            Attribute::Day(day) => Some(day.holds(calendar)),
            _ => None,
        });
        let (dates, dates_hold) = count(&|attribute| match attribute {
            Attribute::Date(date) => Some(date.holds(calendar)),
            _ => None,
        });
        let (times, times_hold) = count(&|attribute| match attribute {
            Attribute::Time(series) => Some(series.free || series.is_now(calendar)),
            _ => None,
        });
        let (crons, crons_hold) = count(&|attribute| match attribute {
            Attribute::Cron(cron) => Some(cron.series.free || cron.is_now(calendar)),
            _ => None,
        });
        let (todays, todays_hold) = count(&|attribute| match attribute {
            Attribute::Today(series) => Some(series.free || series.is_now_or_passed(calendar)),
            _ => None,
        });
        // Of several todays one has to be now: those that have passed count together only.
        let now = attributes.iter().any(|attribute| match attribute {
            Attribute::Today(series) => series.free || series.is_now(calendar),
            _ => false,
        });
        let today_holds = if todays > 1 { now || todays_hold == todays } else { todays_hold > 0 };
        let mut all = Times::default();
        all.add(days > 0, days_hold > 0);
        all.add(dates > 0, dates_hold > 0);
        all.add(times > 0, times_hold > 0);
        all.add(crons > 0, crons_hold > 0);
        all.add(todays > 0, today_holds);
        all.kinds == all.holding
    }

    /// Queues a node's times again.
    pub(super) fn requeue_times(
        &mut self,
        id: NodeId,
        calendar: &Calendar,
        how: Requeue,
        resets_slot: bool,
    ) {
        let date = calendar.suite.date();
        for attribute in self.tree.node_mut(id).attributes_mut() {
            match attribute {
                Attribute::Time(series) | Attribute::Today(series) => {
                    series.free = false;
                    series.requeue(calendar, resets_slot);
                }
                Attribute::Cron(cron) => {
                    cron.series.free = false;
                    cron.series.requeue(calendar, resets_slot);
                }
                Attribute::Date(date) => date.free = false,
                Attribute::Day(day) => match how.cause {
                    Cause::Time if day.expired => {}
                    Cause::Time => day.free = false,
                    Cause::Full | Cause::Repeat => {
                        (day.free, day.expired) = (false, false);
                        let from = if how.cause == Cause::Full { date } else { date.plus_days(1) };
                        day.date = Some(day.matching(from));
                    }
                },
                _ => {}
            }
        }
    }

    /// Whether a complete node waits for a later time, and so is queued again.
    pub(super) fn wants_requeue(&mut self, id: NodeId) -> bool {
        let calendar = self.calendar(id);
        let (is_hybrid, by_command) = (self.is_hybrid(id), self.by_command);
        let attributes = self.tree.node_mut(id).attributes_mut();
        if attributes.iter().any(|attribute| matches!(attribute, Attribute::Cron(_))) {
            return true;
        }
        for is_today in [false, true] {
            let is_it = |attribute: &Attribute| match attribute {
                Attribute::Time(_) => !is_today,
                Attribute::Today(_) => is_today,
                _ => false,
            };
            let mut range: Option<(Slot, Slot)> = None;
            for attribute in attributes.iter().filter(|attribute| is_it(attribute)) {
                if let Attribute::Time(series) | Attribute::Today(series) = attribute {
                    let (least, most) = series.range();
                    let known = range.unwrap_or((least, most));
                    range = Some((known.0.min(least), known.1.max(most)));
                }
            }
            let Some(range) = range else { continue };
            for attribute in attributes.iter_mut().filter(|attribute| is_it(attribute)) {
                if let Attribute::Time(series) | Attribute::Today(series) = attribute
                    && series.wants_requeue(&calendar, range, by_command)
                {
                    return true;
                }
            }
        }
        let today = calendar.suite.date();
        let later = |attribute: &Attribute| match attribute {
            Attribute::Date(date) => !is_hybrid && date.is_later(today),
            _ => false,
        };
        if attributes.iter().any(later) {
            return true;
        }
        for attribute in attributes.iter_mut() {
            if let Attribute::Day(day) = attribute {
                let date = day.date.unwrap_or_else(|| day.matching(today));
                day.date = Some(date);
                let has_passed = i32::from(day.weekday) == today.weekday() || date <= today;
                day.expired |= by_command || has_passed;
            }
        }
        attributes.iter().any(|attribute| match attribute {
            Attribute::Day(day) => {
                !day.expired && !is_hybrid && day.date.is_some_and(|date| date > today)
            }
            _ => false,
        })
    }

    /// With a hybrid clock, what waits for another day is complete from the start.
    pub(super) fn complete_hybrid(&mut self, id: NodeId) {
        if !self.is_hybrid(id) || self.tree.node(id).state == State::Complete {
            return;
        }
        let calendar = self.calendar(id);
        if let Some(holds) = self.tree.node(id).is_day_of(&calendar) {
            let state = if holds { State::Queued } else { State::Complete };
            self.set_state_only(id, state, How::PLAIN);
        }
    }

    /// The calendars of all suites that have begun move: to the moment's time, or by `step` where a
    /// server polls more often than once a minute. Times are reached, nodes become late, and
    /// what is to be cancelled or archived is.
    pub fn tick(&mut self, step: Option<Duration>) {
        self.by_command = false;
        for id in std::mem::take(&mut self.tree.waiting.left) {
            self.wake(id);
        }
        let count = self.tree.server().calendar_count;
        self.tree.server_mut().calendar_count = count.wrapping_add(1);
        let suites: Vec<NodeId> = self.tree.suites().collect();
        for suite in suites {
            if !self.tree.node(suite).is_begun {
                continue;
            }
            let Some(mut calendar) = self.tree.calendar(suite).copied() else { continue };
            calendar.update(self.moment.now, step, self.is_hybrid(suite));
            self.set_calendar(suite, calendar);
            self.tree.calendar_moved(suite);
            let timed: Vec<NodeId> = self.tree.waiting.timed_of(suite).collect();
            for id in timed {
                self.reach_time(id, &calendar);
            }
            self.wake_clock(suite);
        }
        self.resolve_awake();
        self.expire();
    }

    /// Whoever compares a suite's generated variables is looked at.
    fn wake_clock(&mut self, suite: NodeId) {
        self.wake_waiters(suite);
    }

    /// The times of one node, after its calendar has moved.
    fn reach_time(&mut self, id: NodeId, calendar: &Calendar) {
        let archived = |id: &NodeId| self.tree.node(*id).flags.has(Flag::Archived);
        if self.tree.upwards(id).any(|id| archived(&id)) {
            return;
        }
        if self.has_times(id) && !self.is_held_by_day(id, calendar) {
            let keeps_day = calendar.day_changed && self.keeps_day(id);
            let mut has_changed = false;
            for attribute in self.tree.node_mut(id).attributes_mut() {
                if let Attribute::Day(day) = attribute
                    && !day.expired
                {
                    let free = day.free && (!calendar.day_changed || keeps_day);
                    let free = free || day.date == Some(calendar.suite.date());
                    has_changed |= free != day.free;
                    day.free = free;
                }
                if let Attribute::Date(date) = attribute {
                    let free = date.free && (!calendar.day_changed || keeps_day);
                    let free = free || date.matches(calendar.suite.date());
                    has_changed |= free != date.free;
                    date.free = free;
                }
            }
            if self.has_day(id, calendar) {
                has_changed |= self.reach_series(id, calendar);
            }
            if has_changed {
                self.times_changed(id);
                self.wake(id);
            }
        }
        self.check_late(id, calendar);
    }

    fn reach_series(&mut self, id: NodeId, calendar: &Calendar) -> bool {
        let mut has_changed = false;
        for attribute in self.tree.node_mut(id).attributes_mut() {
            match attribute {
                Attribute::Time(series) => {
                    has_changed |= series.calendar_changed(calendar);
                    let free = series.free || series.is_now(calendar);
                    has_changed |= free != series.free;
                    series.free = free;
                }
                Attribute::Today(series) => {
                    has_changed |= series.calendar_changed(calendar);
                    let free = series.free || series.is_now_or_passed(calendar);
                    has_changed |= free != series.free;
                    series.free = free;
                }
                Attribute::Cron(cron) => {
                    has_changed |= cron.series.calendar_changed(calendar);
                    let free = cron.series.free || cron.is_now(calendar);
                    has_changed |= free != cron.series.free;
                    cron.series.free = free;
                }
                _ => {}
            }
        }
        has_changed
    }

    /// Whether a node has no days and dates, or one of them holds.
    fn has_day(&self, id: NodeId, calendar: &Calendar) -> bool {
        let mut has_any = false;
        for attribute in self.tree.node(id).attributes.iter() {
            let holds = match attribute {
                Attribute::Day(day) => day.holds(calendar),
                Attribute::Date(date) => date.holds(calendar),
                _ => continue,
            };
            has_any = true;
            if holds {
                return true;
            }
        }
        !has_any
    }

    /// Whether a node above waits for its day: times below it stand still.
    fn is_held_by_day(&self, id: NodeId, calendar: &Calendar) -> bool {
        self.tree.upwards(id).skip(1).any(|id| !self.has_day(id, calendar))
    }

    /// Whether a family's day stays free past midnight: something below it has begun.
    fn keeps_day(&self, id: NodeId) -> bool {
        if self.tree.node(id).kind.is_job() {
            return false;
        }
        let (mut running, mut complete, mut queued) = (false, false, false);
        for id in self.tree.walk(id).filter(|id| self.tree.node(*id).kind == Kind::Task) {
            match self.tree.node(id).state {
                State::Active | State::Submitted => running = true,
                State::Complete => complete = true,
                State::Queued => queued = true,
                _ => {}
            }
        }
        running || complete && queued
    }

    /// The lateness that holds for a node: its own, over those above it.
    fn late_of(&self, id: NodeId) -> Option<Late> {
        let mut found: Option<Late> = None;
        let mut chain: Vec<NodeId> = self.tree.upwards(id).collect();
        chain.reverse();
        for id in chain {
            let own = self.tree.node(id).attributes.iter().find_map(|attribute| match attribute {
                Attribute::Late(late) => Some(late),
                _ => None,
            });
            let Some(own) = own else { continue };
            let known = found.get_or_insert_default();
            known.submitted = own.submitted.or(known.submitted);
            known.active = own.active.or(known.active);
            known.complete = own.complete.or(known.complete);
            known.complete_relative = own.complete_relative;
        }
        found
    }

    fn check_late(&mut self, id: NodeId, calendar: &Calendar) {
        let node = self.tree.node(id);
        if !node.kind.is_job() || node.flags.has(Flag::Late) {
            return;
        }
        let (state, since) = (node.state, node.since);
        let Some(late) = self.late_of(id) else { return };
        let passed = calendar.duration.minus(since);
        let time = calendar.suite.time_of_day();
        let after =
            |slot: Option<Slot>, time: Duration| slot.is_some_and(|slot| time >= slot.duration());
        let is_late = match state {
            State::Submitted => after(late.submitted, passed) || after(late.active, time),
            State::Queued => after(late.active, time),
            State::Active if late.complete_relative => after(late.complete, passed),
            State::Active => after(late.complete, time),
            _ => false,
        };
        if !is_late {
            return;
        }
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Late(late) = attribute {
                late.is_late = true;
            }
        }
        self.tree.values_changed(id, |one| matches!(one, Attribute::Late(_)));
        self.set_flag(id, Flag::Late, true);
    }

    /// Removes what is to be cancelled, and asks for what is to be archived.
    fn expire(&mut self) {
        let suites: Vec<NodeId> = self.tree.suites().collect();
        for suite in suites {
            if !self.tree.has(suite) || !self.tree.node(suite).is_begun {
                continue;
            }
            let Some(calendar) = self.tree.calendar(suite).copied() else { continue };
            let timed: Vec<NodeId> = self.tree.waiting.timed_of(suite).collect();
            for id in timed {
                if !self.tree.has(id) {
                    continue;
                }
                let node = self.tree.node(id);
                let due = node.attributes.iter().find_map(|attribute| match attribute {
                    Attribute::AutoCancel(after) => Some((true, *after)),
                    Attribute::AutoArchive(after) => Some((false, *after)),
                    _ => None,
                });
                let Some((cancels, after)) = due else { continue };
                let (state, since) = (node.state, node.since);
                let is_old = state == State::Complete && is_past(&after, &calendar, since)
                    || after.idle
                        && matches!(state, State::Queued | State::Aborted)
                        && is_past(&after, &calendar, since);
                let is_kept = !cancels
                    && (node.flags.has(Flag::Restored)
                        || self.tree.upwards(id).any(|id| self.tree.node(id).is_suspended));
                let (is_archived, kind) = (node.flags.has(Flag::Archived), node.kind.shout());
                if !is_old || is_archived || is_kept || self.has_running(id) {
                    continue;
                }
                if cancels {
                    let path = self.tree.path(id);
                    self.effects.push(Effect::LogMessage(format!("autocancel {kind}:{path}")));
                    self.delete(id);
                } else {
                    self.archive(id);
                }
            }
        }
    }

    /// Gives up a node's next time: it has been run, or completed, by hand.
    pub(super) fn miss_next_time(&mut self, id: NodeId) {
        if !self.has_times(id) || self.tree.node(id).flags.has(Flag::NoRequeue) {
            return;
        }
        self.set_flag(id, Flag::NoRequeue, true);
        let (mut time, mut today, mut cron) = (false, false, false);
        let before = Arc::clone(&self.tree.node(id).attributes);
        for attribute in self.tree.node_mut(id).attributes_mut() {
            let (series, done) = match attribute {
                Attribute::Time(series) => (&mut **series, &mut time),
                Attribute::Today(series) => (&mut **series, &mut today),
                Attribute::Cron(rule) => (&mut rule.series, &mut cron),
                _ => continue,
            };
            if series.is_valid && !*done {
                series.miss_next();
                *done = true;
            }
        }
        self.values_changed_from(id, &before);
    }

    /// Frees the first date of a node that holds it.
    pub(super) fn free_date(&mut self, id: NodeId) {
        let calendar = self.calendar(id);
        let before = Arc::clone(&self.tree.node(id).attributes);
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Date(date) = attribute
                && !date.holds(&calendar)
            {
                date.free = true;
                break;
            }
        }
        self.values_changed_from(id, &before);
    }

    /// Frees the first time, today, day and cron of a node that holds it.
    pub(super) fn free_time(&mut self, id: NodeId) {
        let calendar = self.calendar(id);
        let before = Arc::clone(&self.tree.node(id).attributes);
        let mut done = [false; 4];
        for attribute in self.tree.node_mut(id).attributes_mut() {
            match attribute {
                Attribute::Time(series)
                    if !done[0] && !series.free && !series.is_now(&calendar) =>
                {
                    series.free = true;
                    series.miss_next();
                    done[0] = true;
                }
                Attribute::Today(series)
                    if !done[1] && !series.free && !series.is_now_or_passed(&calendar) =>
                {
                    series.free = true;
                    series.miss_next();
                    done[1] = true;
                }
                Attribute::Day(day) if !done[2] && !day.holds(&calendar) => {
                    day.free = true;
                    done[2] = true;
                }
                Attribute::Cron(cron)
                    if !done[3] && !cron.series.free && !cron.is_now(&calendar) =>
                {
                    cron.series.free = true;
                    cron.series.miss_next();
                    done[3] = true;
                }
                _ => {}
            }
        }
        self.values_changed_from(id, &before);
    }

    fn times_changed(&mut self, id: NodeId) {
        self.values_changed(id, |one| {
            matches!(
                one,
                Attribute::Time(_)
                    | Attribute::Today(_)
                    | Attribute::Cron(_)
                    | Attribute::Day(_)
                    | Attribute::Date(_)
            )
        });
    }
}

/// Whether as much time has passed since a node's last change, or the time of day has come.
fn is_past(after: &After, calendar: &Calendar, since: Duration) -> bool {
    if after.relative {
        calendar.duration.minus(since) >= after.time.duration()
    } else {
        calendar.suite.time_of_day() >= after.time.duration()
    }
}
