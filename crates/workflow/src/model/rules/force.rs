//! What operators do to nodes: force, run, free dependencies.

use super::super::attribute::Attribute;
use super::super::node::NodeId;
use super::super::state::{Kind, State};
use super::change::{How, RuleError, Rules};

/// Which dependencies are freed for this cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Free {
    /// The trigger.
    pub trigger: bool,
    /// The first date that holds the node.
    pub date: bool,
    /// The first time, today, day and cron that hold it.
    pub time: bool,
}

impl Rules<'_> {
    /// `--force`: sets the state of a node, or of all below it, with what follows.
    pub fn force(&mut self, id: NodeId, state: State, recursive: bool) {
        if state == State::Complete {
            self.miss_next_time(id);
        }
        if recursive {
            self.set_state_hierarchically(id, state, How::FORCED);
        } else {
            // ecFlow's own flag for a forced abort is set below a recursive force only.
            self.set_state(id, state, How::PLAIN);
        }
        if state == State::Queued {
            let all: Vec<NodeId> = self.tree.walk(id).collect();
            for id in all {
                for attribute in self.tree.node_mut(id).attributes_mut() {
                    match attribute {
                        Attribute::Late(late) => late.is_late = false,
                        Attribute::Meter(meter) => meter.value = meter.min,
                        Attribute::Event(event) => event.value = event.initial,
                        _ => {}
                    }
                }
                self.values_changed(id, |one| {
                    matches!(one, Attribute::Late(_) | Attribute::Meter(_) | Attribute::Event(_))
                });
            }
        }
        self.wake(id);
    }

    /// Puts the repeats of a node and of all below it past their end.
    pub fn end_repeats(&mut self, id: NodeId) {
        let all: Vec<NodeId> = self.tree.walk(id).collect();
        for id in all.into_iter().filter(|id| self.tree.repeat(*id).is_some()).collect::<Vec<_>>() {
            for attribute in self.tree.node_mut(id).attributes_mut() {
                if let Attribute::Repeat(repeat) = attribute {
                    repeat.over.set_last();
                    repeat.over.increment();
                }
            }
            self.values_changed(id, |one| matches!(one, Attribute::Repeat(_)));
        }
    }

    /// `--run`: submits the tasks of a node now, whatever they wait for; with `force` those that
    /// run, too, whose jobs become zombies.
    ///
    /// # Errors
    /// The suite has not begun.
    pub fn run(&mut self, id: NodeId, force: bool) -> Result<(), RuleError> {
        if let Some(suite) = self.tree.suite(id)
            && !self.tree.node(suite).is_begun
        {
            return Err(RuleError::NotBegun(self.tree.node(suite).name.to_string()));
        }
        self.miss_next_time(id);
        let own = self.tree.node(id).kind;
        let jobs = self.tree.walk(id).filter(|job| {
            let kind = self.tree.node(*job).kind;
            kind == Kind::Task && own != Kind::Alias || *job == id && kind == Kind::Alias
        });
        let jobs: Vec<NodeId> = jobs.collect();
        for job in jobs {
            let state = self.tree.node(job).state;
            let runs = matches!(state, State::Submitted | State::Active);
            if force || !runs {
                self.submit(job);
            }
        }
        Ok(())
    }

    /// Submits a task or alias now, whatever it waits for, and whether or not its suite has begun.
    pub fn submit_now(&mut self, id: NodeId) {
        self.submit(id);
    }

    /// `--free-dep`: frees dependencies of a node for this cycle.
    pub fn free(&mut self, id: NodeId, which: Free) {
        if which.trigger {
            let before = std::sync::Arc::clone(&self.tree.node(id).attributes);
            for attribute in self.tree.node_mut(id).attributes_mut() {
                if let Attribute::Trigger(condition) = attribute {
                    condition.free = true;
                }
            }
            self.values_changed_from(id, &before);
        }
        if which.date {
            self.free_date(id);
        }
        if which.time {
            self.free_time(id);
        }
        self.wake(id);
    }
}
