//! What a job does between its start and its end: it sets the events, moves the meters and takes
//! the steps of the queues that something waits for.

use std::collections::HashSet;

use crate::model::QueueAction;
use crate::model::{Attribute, From, NodeId, Operand, Program, Rules, Snapshot, Text};

/// The most values that a meter takes one by one.
const STEPS_LIMIT: i32 = 10_000;

/// What a job does, one thing at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    Event(NodeId, Text, bool),
    Meter(NodeId, Text, i32),
    /// The next step of a queue, begun and done.
    Queue(NodeId, Text),
}

/// The names that expressions use, by node.
pub(super) fn used(tree: &Snapshot) -> HashSet<(NodeId, Text)> {
    let mut used = HashSet::new();
    for id in tree.walk(NodeId::ROOT) {
        let from = From { tree, node: id };
        for program in programs(tree, id) {
            for operand in program.operands() {
                if let Operand::Variable(_, name) | Operand::Upward(name) = operand {
                    used.extend(from.find(operand).map(|at| (at, name.clone())));
                }
            }
        }
    }
    used
}

/// The expressions of a node.
pub(super) fn programs(tree: &Snapshot, id: NodeId) -> impl Iterator<Item = &Program> {
    tree.node(id).attributes.iter().filter_map(|attribute| match attribute {
        Attribute::Trigger(condition) | Attribute::Complete(condition) => {
            condition.expression.program.as_ref()
        }
        _ => None,
    })
}

/// What a task's job does, in ecFlow's simulator's order.
pub(super) fn signals(tree: &Snapshot, id: NodeId, used: &HashSet<(NodeId, Text)>) -> Vec<Signal> {
    let mut all = Vec::new();
    let is_used = |name: &Text| used.contains(&(id, name.clone()));
    let own = &tree.node(id).attributes;
    for attribute in own.iter() {
        if let Attribute::Event(event) = attribute {
            let number = event.number.map(|number| Text::from(number.to_string()));
            let by_number = number.as_ref().is_some_and(&is_used);
            if by_number || is_used(&event.name) {
                let named = Some(&event.name).filter(|name| !name.is_empty()).cloned();
                let name = named.or(number).unwrap_or_default();
                all.push(Signal::Event(id, name, !event.initial));
            }
        }
    }
    for attribute in own.iter() {
        if let Attribute::Meter(meter) = attribute {
            let span = meter.max.saturating_sub(meter.value);
            if is_used(&meter.name) && span <= STEPS_LIMIT {
                let steps = meter.value.saturating_add(1)..=meter.max;
                all.extend(steps.map(|value| Signal::Meter(id, meter.name.clone(), value)));
            } else if meter.value != meter.max {
                all.push(Signal::Meter(id, meter.name.clone(), meter.max));
            }
        }
    }
    for holder in tree.upwards(id) {
        for attribute in tree.node(holder).attributes.iter() {
            if let Attribute::Queue(queue) = attribute {
                let steps = queue.steps.iter().map(|_| Signal::Queue(holder, queue.name.clone()));
                all.extend(steps);
            }
        }
    }
    all
}

impl Signal {
    /// Does it.
    pub(super) fn apply(&self, rules: &mut Rules<'_>) {
        match self {
            Self::Event(id, name, value) => {
                rules.set_event(*id, name, *value);
            }
            Self::Meter(id, name, value) => {
                rules.set_meter(*id, name, *value);
            }
            Self::Queue(id, name) => {
                let step = rules.queue(*id, name, QueueAction::Active, "").unwrap_or_default();
                if step != "<NULL>" {
                    let _ = rules.queue(*id, name, QueueAction::Complete(&step), "");
                }
            }
        }
    }

    /// The node and name that it changes.
    pub(super) fn of(&self) -> (NodeId, Text) {
        match self {
            Self::Event(id, name, _) | Self::Meter(id, name, _) | Self::Queue(id, name) => {
                (*id, name.clone())
            }
        }
    }
}
