//! What the operands of an expression are, seen from the node that has it.

use super::attribute::Attribute;
use super::expression::{Operand, Operands};
use super::node::NodeId;
use super::tree::Snapshot;

/// A node's view of the tree: relative paths begin there.
#[derive(Clone, Copy, Debug)]
pub struct From<'a> {
    /// The tree.
    pub tree: &'a Snapshot,
    /// The node that has the expression.
    pub node: NodeId,
}

/// What a name is at a node, and its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its kind.
    pub found: Found,
    /// What expressions compare.
    pub number: i64,
}

/// The kinds of what expressions name at nodes, in the order in which they are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// An event, by name or number.
    Event,
    /// A meter.
    Meter,
    /// A user's variable.
    Variable,
    /// The repeat.
    Repeat,
    /// A variable that the node makes.
    Generated,
    /// A limit.
    Limit,
    /// A queue.
    Queue,
}

impl Found {
    /// ecFlow's word in explanations.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Meter => "meter",
            Self::Variable => "user-variable",
            Self::Repeat => "repeat",
            Self::Generated => "gen-variable",
            Self::Limit => "limit",
            Self::Queue => "queue",
        }
    }
}

/// The number of a value: 0 where it is none.
fn number_of(value: &str) -> i64 {
    value.parse::<i32>().map_or(0, i64::from)
}

impl Snapshot {
    /// What a name is at a node.
    #[must_use]
    pub fn named(&self, id: NodeId, name: &str) -> Option<Named> {
        let attributes = &self.node(id).attributes;
        let first = |kind: &dyn Fn(&Attribute) -> Option<Named>| attributes.iter().find_map(kind);
        let some = |found, number| Some(Named { found, number });
        let event = |attribute: &Attribute| match attribute {
            Attribute::Event(event) if event.is_called(name) => {
                some(Found::Event, event.value.into())
            }
            _ => None,
        };
        let meter = |attribute: &Attribute| match attribute {
            Attribute::Meter(meter) if meter.name == *name => {
                some(Found::Meter, meter.value.into())
            }
            _ => None,
        };
        let variable = |attribute: &Attribute| match attribute {
            Attribute::Variable(variable) if variable.name == *name => {
                some(Found::Variable, number_of(&variable.value))
            }
            Attribute::Repeat(_) => None,
            _ => None,
        };
        let repeat = |attribute: &Attribute| match attribute {
            Attribute::Repeat(repeat) if repeat.name == *name => {
                some(Found::Repeat, repeat.over.number())
            }
            _ => None,
        };
        let made = || {
            let value = self.made_variable(id, name)?;
            some(Found::Generated, number_of(&value))
        };
        let limit = |attribute: &Attribute| match attribute {
            Attribute::Limit(limit) if limit.name == *name => {
                some(Found::Limit, limit.value.into())
            }
            _ => None,
        };
        let queue = |attribute: &Attribute| match attribute {
            Attribute::Queue(queue) if queue.name == *name => {
                let index = usize::try_from(queue.index).ok();
                let step = index.and_then(|index| queue.steps.get(index));
                let number = step.and_then(|step| step.parse::<i32>().ok());
                some(Found::Queue, number.unwrap_or(queue.index).into())
            }
            _ => None,
        };
        first(&event)
            .or_else(|| first(&meter))
            .or_else(|| first(&variable))
            .or_else(|| first(&repeat))
            .or_else(made)
            .or_else(|| first(&limit))
            .or_else(|| first(&queue))
    }
}

impl From<'_> {
    /// The node that an operand is at.
    #[must_use]
    pub fn find(&self, operand: &Operand) -> Option<NodeId> {
        match operand {
            Operand::Node(path) | Operand::Variable(path, _) | Operand::Flag(path, _) => {
                self.tree.find_from(self.node, path)
            }
            Operand::Upward(name) => {
                self.tree.upwards(self.node).find(|id| self.tree.named(*id, name).is_some())
            }
        }
    }

    fn name(operand: &Operand) -> &str {
        match operand {
            Operand::Variable(_, name) | Operand::Upward(name) => name,
            _ => "",
        }
    }
}

impl Operands for From<'_> {
    fn number(&self, operand: &Operand) -> i64 {
        let at = self.find(operand);
        match operand {
            Operand::Node(_) => at.map_or(0, |id| self.tree.node(id).displayed() as i64),
            Operand::Flag(path, flag) => {
                let root = (*path == "/").then_some(NodeId::ROOT);
                at.or(root).is_some_and(|id| self.tree.node(id).flags.has(*flag)).into()
            }
            Operand::Variable(_, name) | Operand::Upward(name) => {
                at.and_then(|id| self.tree.named(id, name)).map_or(0, |named| named.number)
            }
        }
    }

    fn number_plus(&self, operand: &Operand, more: i64) -> i64 {
        let Some(id) = self.find(operand) else { return more };
        let name = Self::name(operand);
        match self.tree.named(id, name) {
            Some(Named { found: Found::Repeat, number }) => {
                let repeat = self.tree.repeat(id);
                repeat.map_or(number + more, |repeat| repeat.over.number_plus(more))
            }
            Some(named) => named.number + more,
            None => more,
        }
    }
}
