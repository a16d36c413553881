//! What a tree notes of its changes, and finds again for a client that is behind.

use std::collections::BTreeMap;

use super::attribute::Attribute;
use super::changes::{Aspect, Changed, Passed};
use super::node::{Node, NodeId};
use super::state::Displayed;
use super::tree::Tree;

impl Tree {
    /// Notes that something of a node has changed: clients get all of it but its children.
    pub(super) fn changed(&mut self, id: NodeId) {
        self.changed_in(id, Aspect::Any);
    }

    /// Notes what of a node has changed.
    pub(super) fn changed_in(&mut self, id: NodeId, aspect: Aspect) {
        let no = self.next_state_no();
        let shown = self.arena.get(id).map_or(Displayed::Unknown, Node::displayed);
        self.changes.note(no, id, aspect, shown);
    }

    /// Notes that values of those attributes of a node have changed for which `is_it` holds.
    pub(super) fn values_changed(&mut self, id: NodeId, is_it: impl Fn(&Attribute) -> bool) {
        for place in 0..self.node(id).attributes.len() {
            if is_it(&self.node(id).attributes[place]) {
                let aspect = u16::try_from(place).map_or(Aspect::Attributes, Aspect::Attribute);
                self.changed_in(id, aspect);
            }
        }
    }

    /// Notes which values of a node's attributes are others than before.
    pub(super) fn values_changed_from(&mut self, id: NodeId, before: &[Attribute]) {
        for (place, old) in before.iter().enumerate() {
            if self.node(id).attributes.get(place).is_some_and(|new| new != old) {
                self.value_changed(id, place);
            }
        }
    }

    /// Notes that the value of the attribute of this place is another than before.
    pub(super) fn value_changed(&mut self, id: NodeId, place: usize) {
        let aspect = match (self.node(id).attributes.get(place), u16::try_from(place)) {
            // Clients take these with all others only.
            (Some(Attribute::InLimit(_)), _) | (_, Err(_)) => Aspect::Attributes,
            (_, Ok(place)) => Aspect::Attribute(place),
        };
        self.changed_in(id, aspect);
    }

    /// Notes that a suite's calendar has moved. That is no news: clients get it with the next
    /// change in the suite.
    pub(super) fn calendar_moved(&mut self, suite: NodeId) {
        self.changes.calendars.insert(suite, self.state_change_no().saturating_add(1));
    }

    /// The suites whose calendars have moved since this number.
    pub fn calendars_since(&self, no: u32) -> impl Iterator<Item = NodeId> {
        let moved =
            self.changes.calendars.iter().filter(move |(id, moved)| **moved > no && self.has(**id));
        moved.map(|(id, _)| *id)
    }

    /// Notes that an attribute was altered: of what has a value it is that, else its definition.
    pub(super) fn attribute_changed(&mut self, id: NodeId, place: usize) {
        let has_value = matches!(
            self.node(id).attributes.get(place),
            Some(
                Attribute::Variable(_)
                    | Attribute::Label(_)
                    | Attribute::Meter(_)
                    | Attribute::Event(_)
                    | Attribute::Limit(_)
                    | Attribute::Repeat(_)
                    | Attribute::Clock(_)
            )
        );
        let aspect = match u16::try_from(place) {
            Ok(place) if has_value => Aspect::Attribute(place),
            _ => Aspect::Attributes,
        };
        self.changed_in(id, aspect);
    }

    /// Notes that attributes of a node were added or deleted.
    pub(super) fn attributes_changed(&mut self, id: NodeId) {
        self.changed_in(id, Aspect::Attributes);
    }

    /// Notes that children of a node were added or deleted.
    pub(super) fn children_changed(&mut self, id: NodeId) {
        self.changed_in(id, Aspect::Children);
    }

    /// What has changed after this number, by node; `None` when that is not remembered any more.
    #[must_use]
    pub fn changed_since(&self, no: u32) -> Option<BTreeMap<NodeId, Changed>> {
        let mut nodes = self.changes.since(no)?;
        // Of a deleted node there is nothing to send: its parent has it.
        nodes.retain(|id, _| self.has(*id));
        Some(nodes)
    }

    /// The states that nodes have shown one after another since this number.
    #[must_use]
    pub fn passed_since(&self, no: u32) -> Passed<NodeId> {
        // A number from the future is that of another server, or of before they began again.
        let is_ahead = no > self.state_change_no();
        let mut passed = self.changes.passed_since(if is_ahead { 0 } else { no });
        passed.states.retain(|(id, _)| self.has(*id));
        if is_ahead {
            passed.missed = passed.missed.max(1);
        }
        passed
    }

    /// Keeps those lines of the edit histories for which `is_kept` holds.
    pub fn retain_history(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.server_mut().history.retain(|_, lines| {
            lines.retain(|line| is_kept(line));
            !lines.is_empty()
        });
    }

    /// Has change numbers begin again from 0, and every client take the whole text.
    pub fn number_anew(&mut self) {
        let modify = self.next_modify_no();
        self.set_change_numbers(0, modify);
        self.changes.calendars.clear();
    }

    /// Has every client take the whole text: what came before a restart is not remembered.
    pub fn forget_changes(&mut self) {
        self.next_modify_no();
        self.changes.forget(self.state_change_no());
    }
}
