//! Tokens of limits: taken when a job is submitted, given back when it ends.

use std::sync::Arc;

use super::super::attribute::{Attribute, InLimit};
use super::super::changes::Aspect;
use super::super::node::NodeId;
use super::super::state::{Kind, State};
use super::super::text::Text;
use super::change::Rules;

impl Rules<'_> {
    /// Takes or gives back tokens, as a job's state has it.
    pub(super) fn update_limits(&mut self, id: NodeId) {
        match self.tree.node(id).state {
            State::Submitted => self.take_tokens(id),
            State::Active => self.give_tokens(id, true),
            _ => self.give_tokens(id, false),
        }
    }

    /// The inlimits of a node, with their places among its attributes.
    fn inlimits(&self, id: NodeId) -> impl Iterator<Item = (usize, &InLimit)> {
        let attributes = self.tree.node(id).attributes.iter().enumerate();
        attributes.filter_map(|(place, attribute)| match attribute {
            Attribute::InLimit(inlimit) => Some((place, inlimit)),
            _ => None,
        })
    }

    /// Whether the limits of a node itself have room.
    pub(super) fn has_room(&self, id: NodeId) -> bool {
        self.inlimits(id).all(|(_, inlimit)| {
            let limit = self.tree.limit_of(id, inlimit);
            let is_holder = inlimit.node_only && inlimit.incremented;
            is_holder || limit.is_none_or(|limit| limit.value + inlimit.tokens <= limit.max)
        })
    }

    /// Whether the limits of a node and of all above it have room.
    pub(super) fn has_room_upwards(&self, id: NodeId) -> bool {
        self.tree.upwards(id).all(|id| self.has_room(id))
    }

    /// Each limit that a node or one above it names, once: the nearest inlimit counts.
    fn each_limit(&self, id: NodeId) -> Vec<(NodeId, usize, InLimit, NodeId)> {
        let mut all: Vec<(NodeId, usize, InLimit, NodeId)> = Vec::new();
        for holder in self.tree.upwards(id) {
            for (place, inlimit) in self.inlimits(holder) {
                let Some(at) = self.tree.limit_node(holder, inlimit) else { continue };
                // They are few.
                if all.iter().all(|(.., one, known)| (*known, &one.name) != (at, &inlimit.name)) {
                    all.push((holder, place, inlimit.clone(), at));
                }
            }
        }
        all
    }

    fn take_tokens(&mut self, id: NodeId) {
        for (holder, place, inlimit, at) in self.each_limit(id) {
            if inlimit.node_only {
                if !inlimit.incremented {
                    let path = Text::from(self.tree.path(holder));
                    self.add_holder(at, &inlimit, path);
                    self.mark(holder, place, true);
                }
            } else {
                let path = Text::from(self.tree.path(id));
                self.add_holder(at, &inlimit, path);
            }
        }
    }

    /// Gives back a job's tokens: all, or those that are held while it is submitted only.
    pub(super) fn give_tokens(&mut self, id: NodeId, of_submission: bool) {
        for (holder, place, inlimit, at) in self.each_limit(id) {
            if of_submission {
                if inlimit.submission {
                    self.give_back(at, &inlimit, id);
                }
            } else if !inlimit.node_only {
                self.give_back(at, &inlimit, id);
            } else if inlimit.incremented && !self.has_running(holder) {
                self.give_back(at, &inlimit, holder);
                self.mark(holder, place, false);
            }
        }
    }

    /// Gives back the tokens that a node holds by itself (`-n`): what is below it runs no more.
    pub(super) fn leave_limits(&mut self, id: NodeId) {
        let held = self.inlimits(id).filter(|(_, one)| one.node_only && one.incremented);
        let held: Vec<(usize, InLimit)> = held.map(|(place, one)| (place, one.clone())).collect();
        for (place, inlimit) in held {
            if let Some(at) = self.tree.limit_node(id, &inlimit) {
                self.give_back(at, &inlimit, id);
            }
            self.mark(id, place, false);
        }
    }

    /// Gives back the tokens of nodes that are about to be removed.
    pub(super) fn leave_all_limits(&mut self, gone: &[NodeId]) {
        for id in gone {
            if self.tree.node(*id).kind.is_job() {
                self.give_tokens(*id, false);
            }
            self.leave_limits(*id);
        }
    }

    /// Whether a job has taken tokens.
    fn holds_tokens(&self, id: NodeId) -> bool {
        let node = self.tree.node(id);
        if !node.kind.is_job() || !matches!(node.state, State::Active | State::Submitted) {
            return false;
        }
        let path = self.tree.path(id);
        self.each_limit(id).iter().any(|(_, _, inlimit, at)| {
            let limit = self.tree.limit(*at, &inlimit.name);
            let holders = limit.and_then(|limit| limit.holders.as_ref());
            let is_holder = holders.is_some_and(|holders| holders.contains(&*path));
            is_holder || inlimit.node_only && inlimit.incremented
        })
    }

    /// Gives back the tokens of all jobs at and below a node that is about to be moved, and returns
    /// the paths below it of those who had some. What others have of limits there is free, too: by
    /// the node's new place they can't give it back.
    pub(super) fn leave_to_move(&mut self, id: NodeId) -> Vec<String> {
        let all: Vec<NodeId> = self.tree.walk(id).collect();
        let above = self.tree.path(id).len();
        let holding = all.iter().filter(|job| self.holds_tokens(**job));
        let holding = holding.map(|job| self.tree.path(*job)[above..].to_owned()).collect();
        self.leave_all_limits(&all);
        for id in all {
            let is_held = |one: &Attribute| match one {
                Attribute::Limit(limit) => limit.holders.is_some(),
                _ => false,
            };
            if self.tree.node(id).attributes.iter().any(is_held) {
                self.reset_limits(id);
            }
        }
        holding
    }

    /// Takes tokens for jobs that run, by their paths below a node that was moved.
    pub(super) fn take_again(&mut self, moved: NodeId, holding: &[String]) {
        let above = self.tree.path(moved);
        for below in holding {
            let Some(job) = self.tree.find(&format!("{above}{below}")) else { continue };
            self.take_tokens(job);
            if self.tree.node(job).state == State::Active {
                self.give_tokens(job, true);
            }
        }
    }

    /// Gives back the tokens that a node, and those above it, hold by themselves where nothing runs
    /// below them any more.
    pub(super) fn leave_limits_upwards(&mut self, id: NodeId) {
        let all: Vec<NodeId> = self.tree.upwards(id).collect();
        for id in all {
            let is_holder = self.inlimits(id).any(|(_, one)| one.node_only && one.incremented);
            if is_holder && !self.has_running(id) {
                self.leave_limits(id);
            }
        }
    }

    /// Gives back what was taken of a limit: it was a farther one, where this one has come since.
    /// What the holder has of a farther one by another inlimit is left to that.
    fn give_back(&mut self, at: NodeId, inlimit: &InLimit, holder: NodeId) {
        self.remove_holder(at, inlimit, holder);
        if !inlimit.path.is_empty() {
            return;
        }
        let path = self.tree.path(holder);
        let has_it = |at: &NodeId| {
            let holders = self.tree.limit(*at, &inlimit.name).and_then(|one| one.holders.as_ref());
            holders.is_some_and(|all| all.contains(&*path))
        };
        let farther: Vec<NodeId> = self.tree.upwards(at).skip(1).filter(has_it).collect();
        // Nearly always: what follows looks through all inlimits.
        if farther.is_empty() {
            return;
        }
        let is_job = self.tree.node(holder).kind.is_job();
        let mut all = self.each_limit(holder);
        all.retain(|(by, _, one, _)| {
            one.name == inlimit.name && if one.node_only { *by == holder } else { is_job }
        });
        for at in farther {
            if all.iter().all(|(.., known)| *known != at) {
                self.remove_holder(at, inlimit, holder);
            }
        }
    }

    /// Whether a job runs at a node or below it.
    pub(super) fn has_running(&self, id: NodeId) -> bool {
        self.tree.walk(id).any(|id| {
            let node = self.tree.node(id);
            node.kind == Kind::Task && matches!(node.state, State::Active | State::Submitted)
        })
    }

    fn mark(&mut self, holder: NodeId, place: usize, is_incremented: bool) {
        if let Some(Attribute::InLimit(inlimit)) =
            self.tree.node_mut(holder).attributes_mut().get_mut(place)
        {
            inlimit.incremented = is_incremented;
        }
        self.changed_in(holder, Aspect::Attributes);
    }

    fn add_holder(&mut self, at: NodeId, inlimit: &InLimit, path: Text) {
        let mut is_new = false;
        for attribute in self.tree.node_mut(at).attributes_mut() {
            if let Attribute::Limit(limit) = attribute
                && limit.name == inlimit.name
            {
                let holders = Arc::make_mut(limit.holders.get_or_insert_default());
                is_new = holders.insert(path.clone());
                if is_new {
                    limit.value = limit.value.saturating_add(inlimit.tokens);
                }
            }
        }
        if is_new {
            self.limit_changed(at, &inlimit.name);
        }
    }

    fn remove_holder(&mut self, at: NodeId, inlimit: &InLimit, holder: NodeId) {
        let limit = self.tree.limit(at, &inlimit.name);
        let Some(holders) = limit.and_then(|limit| limit.holders.as_ref()) else { return };
        let path = &*self.tree.path(holder);
        if !holders.contains(path) {
            return;
        }
        for attribute in self.tree.node_mut(at).attributes_mut() {
            if let Attribute::Limit(limit) = attribute
                && limit.name == inlimit.name
            {
                let holders = Arc::make_mut(limit.holders.get_or_insert_default());
                holders.remove(path);
                limit.value = limit.value.saturating_sub(inlimit.tokens);
                if limit.value < 0 {
                    limit.value = 0;
                    holders.clear();
                }
                if holders.is_empty() {
                    limit.holders = None;
                }
            }
        }
        self.limit_changed(at, &inlimit.name);
        self.wake_limited(at);
    }

    fn limit_changed(&mut self, at: NodeId, name: &str) {
        self.values_changed(
            at,
            |one| matches!(one, Attribute::Limit(limit) if limit.name == *name),
        );
    }

    /// Whoever uses a limit of this node is looked at: there may be room.
    pub(super) fn wake_limited(&mut self, at: NodeId) {
        if self.is_running() {
            self.tree.waiting.of_limit(at).iter().for_each(|id| self.awake.insert(*id));
        }
    }

    /// All tokens of a node's limits are given back.
    pub(super) fn reset_limits(&mut self, id: NodeId) {
        let is_used = |attribute: &Attribute| match attribute {
            Attribute::Limit(limit) => limit.value != 0 || limit.holders.is_some(),
            _ => false,
        };
        if !self.tree.node(id).attributes.iter().any(is_used) {
            return;
        }
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Limit(limit) = attribute {
                (limit.value, limit.holders) = (0, None);
            }
        }
        self.values_changed(id, |one| matches!(one, Attribute::Limit(_)));
        self.wake_limited(id);
    }
}
