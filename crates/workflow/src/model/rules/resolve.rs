//! Dependencies: what may run now is submitted.

use hashbrown::HashMap;

use super::super::attribute::Attribute;
use super::super::changes::Aspect;
use super::super::evaluate::From;
use super::super::node::NodeId;
use super::super::repeat::Over;
use super::super::state::{Flag, Kind, State};
use super::super::text::Text;
use super::change::{Effect, How, Rules, Submit};

/// How often the nodes that a change has woken may wake others: a wheel of conditions that doesn't
/// rest goes on with the next minute.
const ROUNDS_LIMIT: usize = 10_000;
/// The same of what changes meanwhile: the lines of a log wait in memory until the end.
const CHANGES_LIMIT: u32 = 1_000_000;

/// The variable that says how often a task is tried.
pub(super) const TRIES: &str = "ECF_TRIES";
/// The flags with which an aborted task isn't tried again.
pub(super) const STOPS: [Flag; 5] =
    [Flag::ForceAborted, Flag::Killed, Flag::EditFailed, Flag::NoScript, Flag::JobCommandFailed];

impl Rules<'_> {
    /// Looks at all nodes whose dependencies may hold now.
    pub(super) fn resolve_awake(&mut self) {
        if !self.is_running() {
            self.awake.clear();
            return;
        }
        self.computed_states = Some(HashMap::new());
        self.resolve_in_rounds();
        self.computed_states = None;
    }

    fn resolve_in_rounds(&mut self) {
        let before = self.tree.state_change_no();
        for _ in 0..ROUNDS_LIMIT {
            if self.awake.is_empty() {
                return;
            }
            if self.tree.state_change_no() - before > CHANGES_LIMIT {
                break;
            }
            for id in self.awake.take() {
                if self.is_open(id) {
                    self.resolve(id);
                }
            }
        }
        self.tree.waiting.left.extend(self.awake.take());
    }

    /// Everything is looked at: after a start, or where a server asks for it.
    pub fn resolve_all(&mut self) {
        self.wake_suites();
        self.resolve_awake();
    }

    pub(super) fn wake_suites(&mut self) {
        self.tree.suites().for_each(|suite| self.awake.insert(suite));
    }

    /// Whether a node is there, its suite has begun, and all above it let it run.
    fn is_open(&self, id: NodeId) -> bool {
        let Some(suite) =
            Some(id).filter(|id| self.tree.has(*id)).and_then(|id| self.tree.suite(id))
        else {
            return false;
        };
        self.tree.node(suite).is_begun
            && self.tree.upwards(id).skip(1).all(|above| {
                let node = self.tree.node(above);
                !node.is_suspended
                    && node.state != State::Complete
                    && !node.flags.has(Flag::Archived)
                    && self.times_hold(above)
                    && self.trigger_holds(above)
                    && self.has_room(above)
            })
    }

    fn trigger_holds(&self, id: NodeId) -> bool {
        let from = From { tree: self.tree, node: id };
        self.tree.node(id).attributes.iter().all(|attribute| match attribute {
            Attribute::Trigger(condition) => {
                let program = condition.expression.program.as_ref();
                condition.free || program.is_some_and(|program| program.holds(&from))
            }
            _ => true,
        })
    }

    /// Whether a node has a complete expression that holds, and nothing of it has begun.
    fn completes(&self, id: NodeId) -> bool {
        let from = From { tree: self.tree, node: id };
        let holds = self.tree.node(id).attributes.iter().any(|attribute| match attribute {
            Attribute::Complete(condition) => {
                let program = condition.expression.program.as_ref();
                condition.free || program.is_some_and(|program| program.holds(&from))
            }
            _ => false,
        });
        holds && self.computed_below(id) == State::Queued
    }

    /// Whether a node, or one around it, has a repeat without end.
    fn repeats_for_ever(&self, id: NodeId) -> bool {
        let is_endless =
            |id| self.tree.repeat(id).is_some_and(|repeat| matches!(repeat.over, Over::Day { .. }));
        self.tree.upwards(id).any(is_endless)
    }

    /// Submits what may run at a node and below it.
    fn resolve(&mut self, id: NodeId) {
        let node = self.tree.node(id);
        match node.kind {
            Kind::Root | Kind::Alias => return,
            Kind::Task if !self.may_run(id) => return,
            _ => {}
        }
        let node = self.tree.node(id);
        let is_held = node.flags.has(Flag::Archived)
            || node.is_suspended
            || node.state == State::Complete
            || !self.times_hold(id);
        if is_held {
            return;
        }
        if self.completes(id) {
            // `repeat day` would have it complete again at once, and for ever: once in a change.
            if self.repeats_for_ever(id) && !self.ruled.insert(id) {
                return;
            }
            self.set_flag(id, Flag::ByRule, true);
            self.set_state_hierarchically(id, State::Complete, How::PLAIN);
            return;
        }
        if !self.trigger_holds(id) {
            return;
        }
        if node_is_task(self, id) {
            if self.has_room_upwards(id) {
                self.submit(id);
            }
            return;
        }
        if self.has_room(id) {
            let children: Vec<NodeId> = self.tree.children(id).collect();
            for child in children {
                self.resolve(child);
            }
        }
    }

    /// Whether a task's state lets it run: queued, or aborted with a try left.
    fn may_run(&self, id: NodeId) -> bool {
        let node = self.tree.node(id);
        match node.state {
            State::Queued => !node.flags.has(Flag::ForceAborted),
            State::Aborted => {
                if STOPS.into_iter().any(|flag| node.flags.has(flag)) {
                    return false;
                }
                match self.tree.user_variable(id, TRIES) {
                    Some(tries) => tries.parse().is_ok_and(|tries: i32| node.try_no() < tries),
                    None => true,
                }
            }
            _ => false,
        }
    }

    /// Submits a task or alias: another try, with another password.
    pub(super) fn submit(&mut self, id: NodeId) {
        let password = self.password(id);
        let job = self.tree.node_mut(id).job_mut();
        job.try_no = job.try_no.saturating_add(1);
        let try_no = job.try_no;
        job.password = password.clone();
        (job.rid, job.abort_reason) = (Text::default(), Text::default());
        let mut flags = self.tree.node(id).flags;
        for flag in [
            Flag::NoScript,
            Flag::EditFailed,
            Flag::JobCommandFailed,
            Flag::KillCommandFailed,
            Flag::StatusCommandFailed,
            Flag::Killed,
            Flag::Status,
        ] {
            flags = flags.without(flag);
        }
        self.tree.node_mut(id).flags = flags;
        let has_new = |attribute: &Attribute| match attribute {
            Attribute::Label(label) => !label.new_value.is_empty(),
            _ => false,
        };
        if self.tree.node(id).attributes.iter().any(has_new) {
            for attribute in self.tree.node_mut(id).attributes_mut() {
                if let Attribute::Label(label) = attribute {
                    label.new_value = Text::default();
                }
            }
        }
        self.tree.values_changed(id, |one| matches!(one, Attribute::Label(_)));
        self.tree.changed_in(id, Aspect::Flags);
        self.changed_in(id, Aspect::Job);
        // The log has its line when the job is written, with the job's size.
        self.set_state(id, State::Submitted, How::SILENT);
        let path = self.tree.path(id);
        self.effects.push(Effect::Submit(Submit { node: id, path, try_no, password }));
    }

    /// A job could not be made or started: the task is aborted for this reason. The flag says what
    /// failed, and keeps it from being tried again.
    pub fn job_failed(&mut self, id: NodeId, flag: Flag, reason: &str) {
        self.set_flag(id, flag, true);
        self.abort(id, reason);
    }
}

fn node_is_task(rules: &Rules<'_>, id: NodeId) -> bool {
    rules.tree.node(id).kind == Kind::Task
}
