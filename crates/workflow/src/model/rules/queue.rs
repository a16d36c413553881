//! Queues: steps that jobs take one after another.

use super::super::attribute::{Attribute, Queue};
use super::super::node::NodeId;
use super::super::state::State;
use super::change::Rules;
use super::child::ChildError;

/// What a job does with a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueAction<'a> {
    /// Takes the next step.
    Active,
    /// Has done a step.
    Complete(&'a str),
    /// Has failed in a step.
    Aborted(&'a str),
    /// Goes back to the first step that is not done.
    Reset,
    /// Asks how many steps have failed.
    CountAborted,
}

impl Rules<'_> {
    /// Applies an action to the queue of this name: of the node at `path`, or the nearest upwards.
    /// Returns what the job is answered; empty for nothing. A queue at its end gives `<NULL>`.
    ///
    /// # Errors
    /// There is no such queue or step.
    pub fn queue(
        &mut self,
        id: NodeId,
        name: &str,
        action: QueueAction<'_>,
        path: &str,
    ) -> Result<String, ChildError> {
        let is_it = |attribute: &Attribute| match attribute {
            Attribute::Queue(queue) => queue.name == *name,
            _ => false,
        };
        let has = |id: &NodeId| self.tree.node(*id).attributes.iter().any(is_it);
        let at = if path.is_empty() {
            self.tree.upwards(id).find(has).ok_or_else(|| {
                ChildError(format!("QueueCmd:: Could not find queue {name} Up the node hierarchy"))
            })?
        } else {
            let at = self.tree.find(path).ok_or_else(|| {
                ChildError(format!("QueueCmd:: Could not find node at path {path}"))
            })?;
            Some(at).filter(has).ok_or_else(|| {
                let text = "QueueCmd:: Could not find queue of name";
                ChildError(format!("{text} {name}, on input node {path}"))
            })?
        };
        let mut result = Ok(String::new());
        for attribute in self.tree.node_mut(at).attributes_mut() {
            if let Attribute::Queue(queue) = attribute
                && queue.name == *name
            {
                result = act(queue, action);
            }
        }
        if action != QueueAction::CountAborted {
            self.values_changed(at, is_it);
        }
        result
    }
}

/// Applies an action to a queue, and returns what the job is answered.
fn act(queue: &mut Queue, action: QueueAction<'_>) -> Result<String, ChildError> {
    let (step, state) = match action {
        QueueAction::Active => {
            let place = usize::try_from(queue.index).unwrap_or(usize::MAX);
            let Some(step) = queue.steps.get(place) else { return Ok("<NULL>".to_owned()) };
            if let Some(state) = queue.states.get_mut(place) {
                *state = State::Active;
            }
            queue.index += 1;
            return Ok(step.to_string());
        }
        QueueAction::Complete(step) => (step, State::Complete),
        QueueAction::Aborted(step) => (step, State::Aborted),
        QueueAction::Reset => {
            let is_open = |state: &State| matches!(state, State::Queued | State::Aborted);
            if let Some(place) = queue.states.iter().position(is_open) {
                queue.index = i32::try_from(place).unwrap_or(i32::MAX);
            }
            return Ok(String::new());
        }
        QueueAction::CountAborted => {
            let count = queue.states.iter().filter(|state| **state == State::Aborted).count();
            return Ok(if count == 0 { String::new() } else { count.to_string() });
        }
    };
    let place = queue.steps.iter().position(|known| *known == *step);
    match place.and_then(|place| queue.states.get_mut(place)) {
        Some(known) => {
            *known = state;
            Ok(String::new())
        }
        None => {
            Err(ChildError(format!("QueueAttr: Could not find {step} in queue {}", queue.name)))
        }
    }
}
