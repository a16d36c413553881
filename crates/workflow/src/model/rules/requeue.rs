//! Begin and requeue: a node and all below it as it was at the start of a cycle.

use std::sync::Arc;

use super::super::attribute::{Attribute, Queue};
use super::super::calendar::Calendar;
use super::super::changes::Aspect;
use super::super::node::NodeId;
use super::super::repeat::Over;
use super::super::state::{Displayed, Flag, Flags, Kind, State};
use super::super::text::Text;
use super::super::time::{Duration, Instant};
use super::super::tree::Tree;
use super::change::{How, Requeue, Restoring, RuleError, Rules};

impl Rules<'_> {
    /// Begins a suite; one that has begun stays as it is.
    ///
    /// # Errors
    /// There is no such suite, or tasks of it run although it has not begun; `force` allows that.
    pub fn begin(&mut self, suite: &str, force: bool) -> Result<(), RuleError> {
        let id = self.tree.child(NodeId::ROOT, suite);
        let id = id.ok_or_else(|| RuleError::NoSuite(suite.to_owned()))?;
        self.check_begin(id, force)?;
        self.begin_suite(id, force);
        Ok(())
    }

    /// Begins all suites.
    ///
    /// # Errors
    /// Tasks of one run although it has not begun; then none begins.
    pub fn begin_all(&mut self, force: bool) -> Result<(), RuleError> {
        let suites: Vec<NodeId> = self.tree.suites().collect();
        for id in &suites {
            self.check_begin(*id, force)?;
        }
        for id in suites {
            self.begin_suite(id, force);
        }
        Ok(())
    }

    fn check_begin(&self, id: NodeId, force: bool) -> Result<(), RuleError> {
        let node = self.tree.node(id);
        if force || node.is_begun || matches!(node.state, State::Unknown | State::Complete) {
            return Ok(());
        }
        let runs = |id: &NodeId| {
            let node = self.tree.node(*id);
            node.kind == Kind::Task && matches!(node.state, State::Active | State::Submitted)
        };
        let running: Vec<String> = self
            .tree
            .walk(id)
            .filter(runs)
            .map(|id| format!("   {}\n", self.tree.path(id)))
            .collect();
        if running.is_empty() {
            return Ok(());
        }
        Err(RuleError::Refused(format!(
            "Begin failed as suite {}(computed state={}) can only begin if its in UNKNOWN or \
             COMPLETE state\nFound {} tasks with state 'active' or 'submitted'\n{}Use the force \
             argument to bypass this check, at the risk of creating zombies\n",
            node.name,
            node.state.word(),
            running.len(),
            running.concat()
        )))
    }

    fn begin_suite(&mut self, id: NodeId, force: bool) {
        if self.tree.node(id).is_begun && !force {
            return;
        }
        self.tree.next_modify_no();
        self.tree.node_mut(id).is_begun = true;
        self.begin_calendar(id);
        self.begin_node(id);
        self.update_root();
        self.wake(id);
    }

    /// Begins a node that was put into a suite, where that suite has begun.
    pub fn begin_below(&mut self, id: NodeId) {
        let suite = self.tree.suite(id).filter(|suite| self.tree.node(*suite).is_begun);
        if suite.is_some() {
            self.begin_node(id);
            self.go_up(id);
            self.wake(id);
        }
    }

    /// Starts a suite's calendar by its clock.
    pub(super) fn begin_calendar(&mut self, id: NodeId) {
        let now = self.moment.now;
        let clock = self.tree.node(id).attributes.iter().find_map(|attribute| match attribute {
            Attribute::Clock(clock) => Some(**clock),
            _ => None,
        });
        let mut start = clock.map_or(now, |clock| clock.start(now));
        // A hybrid suite that repeats by days goes on from its date.
        let step = self.tree.repeat(id).and_then(|repeat| match repeat.over {
            Over::Day { step, .. } => Some(step),
            _ => None,
        });
        let before = self.tree.calendar(id).copied();
        if let (Some(step), Some(before), true) =
            (step, before, clock.is_some_and(|clock| clock.hybrid))
        {
            let date = before.suite.date().plus_days(step);
            start = Instant::midnight(date).plus(now.time_of_day());
        }
        self.set_calendar(id, Calendar::begin(start, now));
    }

    pub(super) fn set_calendar(&mut self, id: NodeId, calendar: Calendar) {
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Calendar(known) = attribute {
                **known = calendar;
                return;
            }
        }
        self.tree.add_attribute(id, Attribute::Calendar(Box::new(calendar)));
    }

    pub(super) fn is_hybrid(&self, id: NodeId) -> bool {
        self.tree.is_hybrid(id)
    }

    /// A job's particulars as before the first try.
    fn forget_job(&mut self, id: NodeId) {
        let has_aliases = self.tree.node(id).first_child.is_some();
        if let Some(job) = &self.tree.node(id).job {
            let before = job.alias_no;
            self.tree.node_mut(id).job = None;
            if before != 0 && has_aliases {
                self.tree.node_mut(id).job_mut().alias_no = before;
            } else if before != 0 {
                self.tree.changed_in(id, Aspect::AliasNumber);
            }
        }
    }

    pub(super) fn begin_node(&mut self, id: NodeId) {
        let kind = self.tree.node(id).kind;
        if kind.is_job() {
            self.forget_job(id);
        } else {
            self.ask_restore(id, Restoring::Begun);
        }
        let runs = matches!(self.tree.node(id).state, State::Active | State::Submitted);
        self.initial_state(id, 0, true);
        self.leave_limits(id);
        if kind.is_job() && runs {
            self.give_tokens(id, false);
        }
        // It stays archived until what was below it is there again.
        let is_archived = self.tree.node(id).flags.has(Flag::Archived);
        let flags = Flags::default();
        self.tree.node_mut(id).flags = if is_archived { flags.with(Flag::Archived) } else { flags };
        if !self.tree.node(id).attributes.is_empty() {
            let calendar = self.calendar(id);
            for attribute in self.tree.node_mut(id).attributes_mut() {
                begin_attribute(attribute, &calendar);
            }
            self.changed(id);
            self.reset_limits(id);
            self.complete_hybrid(id);
        }
        if kind == Kind::Task {
            return;
        }
        let mut next = self.tree.node(id).first_child;
        while let Some(child) = next {
            self.begin_node(child);
            next = self.tree.node(child).next;
        }
        self.spread_default(id);
    }

    /// Queues a node, and all below it, again.
    pub(super) fn requeue_node(&mut self, id: NodeId, how: Requeue) {
        self.requeue_below(id, how);
        self.wake(id);
    }

    fn requeue_below(&mut self, id: NodeId, how: Requeue) {
        let node = self.tree.node(id);
        let (kind, has_times) = (node.kind, self.has_times(id));
        if kind == Kind::Suite {
            self.tree.next_modify_no();
            self.begin_calendar(id);
        }
        if kind.is_job() {
            self.forget_job(id);
        } else {
            self.ask_restore(id, Restoring::Queued);
        }
        self.initial_state(id, how.resumes, how.is_logged);
        self.leave_limits(id);
        let missed = self.tree.node(id).flags.has(Flag::NoRequeue);
        // Few have times; to compare with what was before copies all attributes of a node.
        let before = has_times.then(|| Arc::clone(&self.tree.node(id).attributes));
        let places = self.requeue_attributes(id, how);
        if has_times {
            let (calendar, resets_slot) = (self.calendar(id), how.resets_slot || !missed);
            self.requeue_times(id, &calendar, how, resets_slot);
            self.complete_hybrid(id);
        }
        let flags = self.tree.node(id).flags;
        let mut kept = Flags::default();
        for flag in [Flag::Message, Flag::Archived] {
            kept = if flags.has(flag) { kept.with(flag) } else { kept };
        }
        self.tree.node_mut(id).flags = kept;
        if kept != flags {
            self.tree.changed_in(id, Aspect::Flags);
        }
        if kind.is_job() {
            self.tree.changed_in(id, Aspect::Job);
        }
        match before {
            Some(before) => self.values_changed_from(id, &before),
            None => self.values_changed_at(id, &places),
        }
        self.reset_limits(id);
        if kind == Kind::Task {
            self.give_tokens(id, false);
            return;
        }
        let below = Requeue {
            cause: how.cause,
            resets_repeat: true,
            resumes: if how.resumes >= 0 { how.resumes + 1 } else { how.resumes },
            resets_slot: how.resets_slot,
            resets_waited: true,
            is_logged: how.is_logged && self.tree.node(id).default != Displayed::Complete,
        };
        let mut next = self.tree.node(id).first_child;
        while let Some(child) = next {
            self.requeue_below(child, below);
            next = self.tree.node(child).next;
        }
        self.spread_default(id);
    }

    /// Attributes of a node as before its first try; returns the places of those that were not.
    fn requeue_attributes(&mut self, id: NodeId, how: Requeue) -> Vec<usize> {
        let node = self.tree.node_mut(id);
        let kind = node.kind;
        let mut places = Vec::new();
        for (place, attribute) in node.attributes_mut().iter_mut().enumerate() {
            if requeue_attribute(attribute, kind, how) {
                places.push(place);
            }
        }
        places
    }

    /// A `defstatus complete` goes down; otherwise the children's states come up.
    pub(super) fn spread_default(&mut self, id: NodeId) {
        match self.tree.node(id).default {
            Displayed::Complete => self.set_state_below(id, State::Complete, How::PLAIN),
            Displayed::Queued => {
                let computed = self.computed(id);
                self.set_state_only(id, computed, How::PLAIN);
            }
            _ => {}
        }
    }

    /// Queues nodes again, as an operator asks: all; those without running tasks only; or the
    /// aborted tasks only.
    ///
    /// # Errors
    /// The suite has not begun.
    pub fn requeue(&mut self, id: NodeId, which: Which) -> Result<(), RuleError> {
        if let Some(suite) = self.tree.suite(id)
            && !self.tree.node(suite).is_begun
        {
            return Err(RuleError::NotBegun(self.tree.node(suite).name.to_string()));
        }
        let task = |tree: &Tree, id: &NodeId| tree.node(*id).kind == Kind::Task;
        let tasks: Vec<NodeId> = self.tree.walk(id).filter(|id| task(self.tree, id)).collect();
        let state = |rules: &Self, id: &NodeId| rules.tree.node(*id).state;
        match which {
            Which::Aborted => {
                for task in tasks {
                    if state(self, &task) == State::Aborted {
                        self.requeue_node(task, Requeue::FULL);
                        self.go_up(task);
                    }
                }
            }
            Which::Idle
                if tasks
                    .iter()
                    .any(|id| matches!(state(self, id), State::Active | State::Submitted)) =>
            {
                return Ok(());
            }
            Which::Idle | Which::All => {
                self.requeue_node(id, Requeue::FULL);
                self.go_up(id);
            }
        }
        if let Some(parent) = self.tree.node(id).parent.filter(|id| *id != NodeId::ROOT) {
            self.handle_state_change(parent);
        }
        Ok(())
    }
}

/// What `--requeue` is to queue again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The node, unless a task of it runs.
    Idle,
    /// The aborted tasks.
    Aborted,
    /// The node, also where tasks run.
    All,
}

fn begin_attribute(attribute: &mut Attribute, calendar: &Calendar) {
    match attribute {
        Attribute::Trigger(condition) | Attribute::Complete(condition) => condition.free = false,
        Attribute::Repeat(repeat) => repeat.over.reset(),
        Attribute::Meter(meter) => meter.value = meter.min,
        Attribute::Event(event) => event.value = event.initial,
        Attribute::Label(label) => label.new_value = Text::default(),
        Attribute::Late(late) => late.is_late = false,
        Attribute::InLimit(inlimit) => inlimit.incremented = false,
        Attribute::Verify(verify) => verify.actual = 0,
        Attribute::Queue(queue) => reset_queue(queue),
        Attribute::Time(series) | Attribute::Today(series) => {
            series.free = false;
            series.reset(calendar);
        }
        Attribute::Cron(cron) => {
            cron.series.free = false;
            cron.series.reset(calendar);
        }
        Attribute::Date(date) => date.free = false,
        Attribute::Day(day) => {
            (day.free, day.expired) = (false, false);
            day.date = Some(day.matching(calendar.suite.date()));
        }
        _ => {}
    }
}

/// Whether the attribute was another one before.
fn requeue_attribute(attribute: &mut Attribute, kind: Kind, how: Requeue) -> bool {
    match attribute {
        Attribute::Trigger(condition) | Attribute::Complete(condition) => {
            set(&mut condition.free, false)
        }
        Attribute::Repeat(repeat) if how.resets_repeat => {
            let before = repeat.over.clone();
            repeat.over.reset();
            repeat.over != before
        }
        Attribute::Meter(meter) => set(&mut meter.value, meter.min),
        Attribute::Event(event) => set(&mut event.value, event.initial),
        // A task's labels tell of its last run until the next one.
        Attribute::Label(label) if !kind.is_job() => set(&mut label.new_value, Text::default()),
        Attribute::Late(late) => set(&mut late.is_late, false),
        Attribute::InLimit(inlimit) => set(&mut inlimit.incremented, false),
        Attribute::Queue(queue) => {
            let has_states = queue.states.iter().any(|state| *state != State::Queued);
            let has_place = queue.index != 0;
            reset_queue(queue);
            has_states || has_place
        }
        Attribute::Time(series) | Attribute::Today(series) if how.resets_waited => {
            set(&mut series.waited, Duration::ZERO)
        }
        Attribute::Cron(cron) if how.resets_waited => set(&mut cron.series.waited, Duration::ZERO),
        _ => false,
    }
}

/// Sets a value, and returns whether it was another one.
fn set<T: PartialEq>(place: &mut T, value: T) -> bool {
    let is_other = *place != value;
    *place = value;
    is_other
}

fn reset_queue(queue: &mut Queue) {
    queue.index = 0;
    queue.states.fill(State::Queued);
}
