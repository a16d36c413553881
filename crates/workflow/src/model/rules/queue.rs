//! Queues: steps that jobs take one after another.

use super::super::attribute::Attribute;
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
        let mut answer = String::new();
        let mut missing = None;
        for attribute in self.tree.node_mut(at).attributes_mut() {
            let Attribute::Queue(queue) = attribute else { continue };
            if queue.name != *name {
                continue;
            }
            match action {
                QueueAction::Active => {
                    let place = usize::try_from(queue.index).unwrap_or(usize::MAX);
                    answer = match queue.steps.get(place) {
                        Some(step) => {
                            if let Some(state) = queue.states.get_mut(place) {
                                *state = State::Active;
                            }
                            queue.index += 1;
                            step.to_string()
                        }
                        None => "<NULL>".to_owned(),
                    };
                }
                QueueAction::Complete(step) | QueueAction::Aborted(step) => {
                    let place = queue.steps.iter().position(|known| *known == *step);
                    let state = if matches!(action, QueueAction::Complete(_)) {
                        State::Complete
                    } else {
                        State::Aborted
                    };
                    match place.and_then(|place| queue.states.get_mut(place)) {
                        Some(known) => *known = state,
                        None => missing = Some(step),
                    }
                }
                QueueAction::Reset => {
                    let is_open = |state: &State| matches!(state, State::Queued | State::Aborted);
                    if let Some(place) = queue.states.iter().position(is_open) {
                        queue.index = i32::try_from(place).unwrap_or(i32::MAX);
                    }
                }
                QueueAction::CountAborted => {
                    let aborted = queue.states.iter().filter(|state| **state == State::Aborted);
                    let count = aborted.count();
                    answer = if count == 0 { String::new() } else { count.to_string() };
                }
            }
        }
        if let Some(step) = missing {
            let text = format!("Could not find {step} in queue {name}");
            return Err(ChildError(format!("QueueAttr: {text}")));
        }
        if action != QueueAction::CountAborted {
            self.changed(at);
        }
        Ok(answer)
    }
}
