//! States of nodes, and how they go upwards.

use super::super::attribute::Attribute;
use super::super::changes::Aspect;
use super::super::node::NodeId;
use super::super::state::{Displayed, Flag, Kind, State};
use super::super::time::Duration;
use super::change::{Cause, Effect, How, Requeue, Restoring, Rules};

impl Rules<'_> {
    pub(super) fn set_flag(&mut self, id: NodeId, flag: Flag, is_set: bool) {
        let flags = self.tree.node(id).flags;
        let new = if is_set { flags.with(flag) } else { flags.without(flag) };
        if new != flags {
            self.tree.node_mut(id).flags = new;
            self.changed_in(id, Aspect::Flags);
        }
    }

    /// Sets a node's state, and nothing else.
    pub(super) fn set_state_only(&mut self, id: NodeId, state: State, how: How) {
        let node = self.tree.node(id);
        let (before, parent) = (node.state, node.parent);
        if before == state {
            return;
        }
        let is_job = node.kind.is_job();
        let since = node.since;
        let duration = self.duration(id);
        let mut flags = node.flags;
        let mut behind = String::new();
        if state == State::Aborted {
            if how.is_forced {
                flags = flags.with(Flag::ForceAborted);
            }
            if is_job {
                flags = flags.with(Flag::TaskAborted);
                let job = node.job();
                behind = format!(" try-no: {} reason: {}", job.try_no, job.abort_reason);
            }
        } else {
            flags = flags.without(Flag::TaskAborted).without(Flag::ForceAborted);
        }
        if how.is_logged && self.has_log {
            self.log_of([" ", state.word(), ": "], id, &behind);
        }
        let node = self.tree.node_mut(id);
        let has_flags = node.flags != flags;
        node.flags = flags;
        node.state = state;
        node.ran = if state == State::Queued { Duration::ZERO } else { duration.minus(since) };
        node.since = duration;
        let counts = |attribute: &Attribute| match attribute {
            Attribute::Verify(verify) => verify.state == state,
            _ => false,
        };
        if node.attributes.iter().any(counts) {
            for attribute in node.attributes_mut() {
                if let Attribute::Verify(verify) = attribute
                    && verify.state == state
                {
                    verify.actual = verify.actual.saturating_add(1);
                }
            }
            self.tree.values_changed(id, counts);
        }
        self.note_computed(parent, (before, state));
        if has_flags {
            self.tree.changed_in(id, Aspect::Flags);
        }
        self.changed_in(id, Aspect::State);
    }

    /// Sets a node's state, with what follows: limits, repeats, and the nodes above.
    pub(super) fn set_state(&mut self, id: NodeId, state: State, how: How) {
        if self.tree.node(id).state != state {
            self.set_state_only(id, state, how);
            self.handle_state_change(id);
        }
    }

    pub(super) fn set_state_below(&mut self, id: NodeId, state: State, how: How) {
        let all: Vec<NodeId> = self.tree.walk(id).collect();
        for id in all {
            // A task's aliases are their own.
            if self.tree.node(id).kind != Kind::Alias {
                self.set_state_only(id, state, how);
            }
        }
    }

    /// Sets the state of a node and all below it, with what follows.
    pub(super) fn set_state_hierarchically(&mut self, id: NodeId, state: State, how: How) {
        self.set_state_below(id, state, how);
        if how.is_forced {
            let all: Vec<NodeId> = self.tree.walk(id).collect();
            for id in all {
                if self.tree.node(id).kind == Kind::Task {
                    self.update_limits(id);
                }
            }
        }
        self.handle_state_change(id);
    }

    pub(super) fn handle_state_change(&mut self, id: NodeId) {
        match self.tree.node(id).kind {
            Kind::Task => {
                self.update_limits(id);
                self.step_or_go_up(id);
            }
            Kind::Alias => self.update_limits(id),
            _ => self.step_or_go_up(id),
        }
        self.restore_if_complete(id);
    }

    fn restore_if_complete(&mut self, id: NodeId) {
        if self.tree.node(id).state != State::Complete {
            return;
        }
        let upwards: Vec<NodeId> = self.tree.upwards(id).collect();
        for id in upwards {
            let node = self.tree.node(id);
            if node.state != State::Complete {
                continue;
            }
            let paths = node.attributes.iter().find_map(|attribute| match attribute {
                Attribute::AutoRestore(paths) => Some(std::sync::Arc::clone(paths)),
                _ => None,
            });
            for path in paths.iter().flat_map(|paths| paths.iter()) {
                match self.tree.find_from(id, path) {
                    Some(archived) => self.ask_restore(archived, Restoring::Same),
                    None => {
                        let at = self.tree.path(id);
                        let line = format!("autorestore of {at}: there is no node {path}");
                        self.effects.push(Effect::LogError(line));
                    }
                }
            }
        }
    }

    /// The state that the children of a node give it; of a node without children its own.
    pub(super) fn computed(&self, id: NodeId) -> State {
        let node = self.tree.node(id);
        if node.kind.is_job() || node.first_child.is_none() {
            return node.state;
        }
        let states = self.tree.children(id).map(|child| self.tree.node(child).state);
        states.max_by_key(|state| state.significance()).unwrap_or(node.state)
    }

    /// The same, noted for the next time where only states change until then.
    fn computed_again(&mut self, id: NodeId) -> State {
        let known = self.computed_states.as_ref().and_then(|known| known.get(&id).copied());
        if let Some(known) = known {
            debug_assert_eq!(known, self.computed(id), "{}", self.tree.path(id));
            return known;
        }
        let computed = self.computed(id);
        let node = self.tree.node(id);
        if let Some(known) = &mut self.computed_states
            && !node.kind.is_job()
            && node.first_child.is_some()
        {
            known.insert(id, computed);
        }
        computed
    }

    /// A child's state has changed from one to another: what is noted of its parent is so, too.
    fn note_computed(&mut self, parent: Option<NodeId>, (before, now): (State, State)) {
        let (Some(parent), Some(known)) = (parent, &mut self.computed_states) else { return };
        let Some(most) = known.get_mut(&parent) else { return };
        if now.significance() >= most.significance() {
            *most = now;
        } else if before.significance() >= most.significance() {
            // Others may have it, too.
            known.remove(&parent);
        }
    }

    /// The state that the tasks below a node give it, whatever the families between say.
    pub(super) fn computed_below(&self, id: NodeId) -> State {
        let node = self.tree.node(id);
        if node.kind.is_job() || node.first_child.is_none() {
            return node.state;
        }
        let leaf = |id: &NodeId| {
            let node = self.tree.node(*id);
            node.kind == Kind::Task || node.kind != Kind::Alias && node.first_child.is_none()
        };
        let states = self.tree.walk(id).filter(leaf).map(|id| self.tree.node(id).state);
        states.max_by_key(|state| state.significance()).unwrap_or(node.state)
    }

    /// A node has changed: it takes the state of its children; complete, it steps its repeat or
    /// waits for its next time; otherwise the node above is looked at.
    pub(super) fn step_or_go_up(&mut self, from: NodeId) {
        let mut at = Some(from);
        while let Some(id) = at.filter(|id| *id != NodeId::ROOT) {
            let computed = self.computed_again(id);
            self.set_state_only(id, computed, How::PLAIN);
            if computed == State::Complete && self.step_or_requeue(id) {
                self.go_up(id);
                return;
            }
            at = self.tree.node(id).parent;
        }
        self.update_root();
    }

    /// Steps a complete node's repeat, or queues it for its next time; false when it is done.
    fn step_or_requeue(&mut self, id: NodeId) -> bool {
        let mut is_stepped = false;
        if self.tree.repeat(id).is_some() {
            for attribute in self.tree.node_mut(id).attributes_mut() {
                if let Attribute::Repeat(repeat) = attribute {
                    repeat.over.increment();
                    is_stepped = repeat.over.is_valid();
                }
            }
            self.values_changed(id, |one| matches!(one, Attribute::Repeat(_)));
        }
        if is_stepped {
            let how = Requeue {
                cause: Cause::Repeat,
                resets_repeat: false,
                resumes: -1,
                resets_slot: true,
                resets_waited: true,
                is_logged: true,
            };
            self.requeue_node(id, how);
            return true;
        }
        if self.has_times(id) && self.wants_requeue(id) {
            let has_cron =
                self.tree.node(id).attributes.iter().any(|item| matches!(item, Attribute::Cron(_)));
            let missed = self.tree.node(id).flags.has(Flag::NoRequeue);
            let how = Requeue {
                cause: Cause::Time,
                resets_repeat: false,
                resumes: -1,
                resets_slot: has_cron && !missed,
                resets_waited: false,
                is_logged: true,
            };
            self.requeue_node(id, how);
            return true;
        }
        false
    }

    /// Takes the states of children upwards, and nothing else.
    pub(super) fn go_up(&mut self, from: NodeId) {
        let mut at = Some(from);
        while let Some(id) = at.filter(|id| *id != NodeId::ROOT) {
            let node = self.tree.node(id);
            at = node.parent;
            if !node.kind.is_job() {
                let computed = self.computed(id);
                self.set_state_only(id, computed, How::PLAIN);
            }
        }
        self.update_root();
    }

    /// The server's state is the most significant of the suites'.
    pub(super) fn update_root(&mut self) {
        let states = self.tree.suites().map(|suite| self.tree.node(suite).state);
        let state = states.max_by_key(|state| state.significance()).unwrap_or(State::Unknown);
        if self.tree.node(NodeId::ROOT).state != state {
            if self.has_log {
                self.log_of([" ", state.word(), ": "], NodeId::ROOT, "");
            }
            self.tree.node_mut(NodeId::ROOT).state = state;
            self.changed_in(NodeId::ROOT, Aspect::State);
        }
    }

    /// Suspends a node: nothing below it is submitted.
    pub fn suspend(&mut self, id: NodeId) {
        self.tree.node_mut(id).is_suspended = true;
        self.changed_in(id, Aspect::Suspended);
    }

    /// Resumes a node; what may run now is submitted.
    pub fn resume(&mut self, id: NodeId) {
        if self.tree.node(id).is_suspended {
            self.tree.node_mut(id).is_suspended = false;
            self.changed_in(id, Aspect::Suspended);
        }
        self.wake(id);
    }

    /// The state of begin and requeue: that of `defstatus`.
    pub(super) fn initial_state(&mut self, id: NodeId, resumes: i32, is_logged: bool) {
        let duration = self.duration(id);
        let default = self.tree.node(id).default;
        let how = if is_logged { How::PLAIN } else { How::SILENT };
        if self.tree.node(id).since != duration {
            self.tree.node_mut(id).since = duration;
            self.tree.changed_in(id, Aspect::State);
        }
        if default == Displayed::Suspended {
            self.suspend(id);
        } else if resumes > 0 && self.tree.node(id).is_suspended {
            self.tree.node_mut(id).is_suspended = false;
            self.changed_in(id, Aspect::Suspended);
        }
        self.set_state_only(id, default.state(), how);
    }
}
