//! What can run: from what waits for nothing to what waits for that, until no more is found.

use std::collections::{HashMap, VecDeque};

use super::domain::{Domain, can_hold};
use crate::model::{
    Attribute, Calendar, Date, Displayed, Found, From, Instant, Kind, NodeId, Operand, Over,
    Program, Snapshot, State,
};

/// A set of states, a bit each.
type States = u8;

const fn bit(state: Displayed) -> States {
    1 << state as u8
}

/// What a task's run takes it through.
const RUN: States = bit(Displayed::Queued)
    | bit(Displayed::Submitted)
    | bit(Displayed::Active)
    | bit(Displayed::Complete)
    | bit(Displayed::Aborted);

/// Why a node never runs, if nothing above it keeps it from that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closed {
    /// Its trigger.
    Trigger,
    /// The inlimit of this place.
    Limit(usize),
    /// Its dates have passed.
    Date,
    /// Its dates, days and crons are none of its hybrid suite's date, which stands still.
    Day,
}

/// What is known of one node.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    states: States,
    closed: Option<Closed>,
    /// Whether it can run: nothing above it is closed, either.
    runs: bool,
    /// It is complete from the start, or something above it is.
    is_off: bool,
    is_waiting: bool,
}

/// What can run of a tree, and what can't.
#[derive(Debug)]
pub(super) struct Reach<'a> {
    tree: &'a Snapshot,
    today: Date,
    nodes: Vec<Known>,
    waiters: HashMap<NodeId, Vec<NodeId>>,
}

impl<'a> Reach<'a> {
    /// Looks at all of a tree that has not begun.
    pub(super) fn of(tree: &'a Snapshot, today: Date) -> Self {
        let all: Vec<NodeId> = tree.walk(NodeId::ROOT).skip(1).collect();
        let size = all.iter().map(|id| id.index() + 1).max().unwrap_or(1);
        let nodes = vec![Known::default(); size];
        let mut reach = Self { tree, today, nodes, waiters: HashMap::new() };
        for id in &all {
            reach.begin(*id);
        }
        let mut queue = VecDeque::from(all);
        for id in &queue {
            reach.nodes[id.index()].is_waiting = true;
        }
        while let Some(id) = queue.pop_front() {
            reach.nodes[id.index()].is_waiting = false;
            reach.look(id, &mut queue);
        }
        reach
    }

    /// Why a node never runs by itself, where that is its own fault and nothing above it is closed.
    pub(super) fn closed(&self, id: NodeId) -> Option<Closed> {
        let known = self.nodes[id.index()];
        let above = self.tree.node(id).parent.filter(|id| *id != NodeId::ROOT);
        let is_reached = above.is_none_or(|above| self.nodes[above.index()].runs);
        known.closed.filter(|_| is_reached && !known.is_off)
    }

    /// Whether a node can run.
    pub(super) fn runs(&self, id: NodeId) -> bool {
        self.nodes[id.index()].runs
    }

    /// Whether a node can become complete.
    pub(super) fn completes(&self, id: NodeId) -> bool {
        self.nodes[id.index()].states & bit(Displayed::Complete) != 0
    }

    fn begin(&mut self, id: NodeId) {
        let tree = self.tree;
        let node = tree.node(id);
        let parent = node.parent.filter(|id| *id != NodeId::ROOT);
        let is_off = node.default == Displayed::Complete
            || parent.is_some_and(|parent| self.nodes[parent.index()].is_off);
        let state = if is_off { Displayed::Complete } else { node.default };
        let known = &mut self.nodes[id.index()];
        known.is_off = is_off;
        known.states = bit(state) | bit(state.state().into());
        let from = From { tree, node: id };
        for (program, _) in programs(tree, id) {
            for found in program.operands().filter_map(|operand| from.find(operand)) {
                let waiters = self.waiters.entry(found).or_default();
                if waiters.last() != Some(&id) {
                    waiters.push(id);
                }
            }
        }
    }

    fn look(&mut self, id: NodeId, queue: &mut VecDeque<NodeId>) {
        let tree = self.tree;
        let node = tree.node(id);
        let parent = node.parent.filter(|id| *id != NodeId::ROOT);
        let before = self.nodes[id.index()];
        let mut known = before;
        known.closed = self.why_closed(id);
        let is_reached = parent.is_none_or(|parent| self.nodes[parent.index()].runs);
        known.runs |= is_reached && known.closed.is_none() && !known.is_off;
        if node.kind.is_job() {
            if known.runs {
                known.states |= RUN & !self.kept_from_completing(id);
            }
        } else if node.first_child.is_some() && !known.is_off {
            known.states |= self.of_children(id);
        }
        let completes = known.closed == Some(Closed::Day) || self.can_complete_by_rule(id);
        if is_reached && !known.is_off && completes {
            known.states |= bit(Displayed::Complete);
            for below in tree.walk(id).skip(1) {
                if self.nodes[below.index()].states & bit(Displayed::Complete) == 0 {
                    self.nodes[below.index()].states |= bit(Displayed::Complete);
                    self.wake_waiters(below, queue);
                }
            }
        }
        let runs_now = known.runs && !before.runs;
        let has_changed = known.states != before.states || runs_now;
        self.nodes[id.index()] = Known { is_waiting: self.nodes[id.index()].is_waiting, ..known };
        if has_changed {
            self.wake_waiters(id, queue);
            if let Some(parent) = parent {
                self.wake(parent, queue);
            }
        }
        if runs_now {
            for child in tree.children(id) {
                self.wake(child, queue);
            }
        }
    }

    fn wake(&mut self, id: NodeId, queue: &mut VecDeque<NodeId>) {
        if !std::mem::replace(&mut self.nodes[id.index()].is_waiting, true) {
            queue.push_back(id);
        }
    }

    fn wake_waiters(&mut self, id: NodeId, queue: &mut VecDeque<NodeId>) {
        for waiter in self.waiters.get(&id).cloned().unwrap_or_default() {
            self.wake(waiter, queue);
        }
    }

    /// The states that a family's children can give it together.
    fn of_children(&self, id: NodeId) -> States {
        let mut all = 0;
        let mut least = 0;
        for child in self.tree.children(id) {
            let states = self.nodes[child.index()].states & !bit(Displayed::Suspended);
            all |= states;
            let own = State::ALL.into_iter().filter(|state| states & bit((*state).into()) != 0);
            least = least.max(own.map(State::significance).min().unwrap_or(0));
        }
        let given = State::ALL.into_iter().filter(|state| state.significance() >= least);
        let given = given.map(|state| bit(state.into())).fold(0, |all, one| all | one) & all;
        given & !self.kept_from_completing(id)
    }

    /// A node with a cron is queued again at once: nothing ever sees it complete.
    fn kept_from_completing(&self, id: NodeId) -> States {
        let has_cron =
            self.tree.node(id).attributes.iter().any(|one| matches!(one, Attribute::Cron(_)));
        if has_cron && !self.tree.is_hybrid(id) { bit(Displayed::Complete) } else { 0 }
    }

    fn why_closed(&self, id: NodeId) -> Option<Closed> {
        let trigger = programs(self.tree, id).find(|(_, is_trigger)| *is_trigger);
        if let Some((program, _)) = trigger
            && !can_hold(program, &|operand| self.domain(id, operand))
        {
            return Some(Closed::Trigger);
        }
        let inlimits = self.tree.node(id).attributes.iter().filter_map(|one| match one {
            Attribute::InLimit(inlimit) => Some(inlimit),
            _ => None,
        });
        for (place, inlimit) in inlimits.enumerate() {
            let limit = self.tree.limit_of(id, inlimit);
            if limit.is_some_and(|limit| inlimit.tokens > limit.max) {
                return Some(Closed::Limit(place));
            }
        }
        if self.is_another_day(id) {
            return Some(Closed::Day);
        }
        self.has_passed(id).then_some(Closed::Date)
    }

    /// The date on which the clock of a node's suite starts.
    fn clock_date(&self, id: NodeId) -> Option<Date> {
        let suite = self.tree.suite(id)?;
        let clock = self.tree.node(suite).attributes.iter().find_map(|one| match one {
            Attribute::Clock(clock) => Some(**clock),
            _ => None,
        });
        let (day, month, year) = clock?.date?;
        Date::new(year.into(), month.into(), day.into())
    }

    /// Whether a hybrid suite's clock has a date on which the node doesn't run.
    fn is_another_day(&self, id: NodeId) -> bool {
        let Some(date) = self.clock_date(id).filter(|_| self.tree.is_hybrid(id)) else {
            return false;
        };
        let start = Instant::midnight(date);
        self.tree.node(id).is_day_of(&Calendar::begin(start, start)) == Some(false)
    }

    /// Whether all dates of a node had passed when its suite begins.
    fn has_passed(&self, id: NodeId) -> bool {
        let mut dates = self.tree.node(id).attributes.iter().filter_map(|one| match one {
            Attribute::Date(date) => Some(date),
            _ => None,
        });
        let Some(first) = dates.next() else { return false };
        if self.tree.is_hybrid(id) {
            return false;
        }
        let begin = self.clock_date(id).unwrap_or(self.today);
        std::iter::once(first).chain(dates).all(|rule| {
            let date = Date::new(rule.year.into(), rule.month.into(), rule.day.into());
            date.is_some_and(|date| date < begin)
        })
    }

    /// Whether a node's complete expression can hold.
    pub(super) fn can_complete_by_rule(&self, id: NodeId) -> bool {
        let complete = programs(self.tree, id).find(|(_, is_trigger)| !is_trigger);
        complete.is_some_and(|(program, _)| can_hold(program, &|one| self.domain(id, one)))
    }

    /// The values that an operand of a node's expression can have, as far as is known.
    pub(super) fn domain(&self, id: NodeId, operand: &Operand) -> Domain {
        domain(self.tree, id, operand, |found| {
            let known = self.nodes[found.index()];
            (known.states, known.runs || !self.tree.node(found).kind.is_job())
        })
    }

    /// The same, if every node could run.
    pub(super) fn whole_domain(&self, id: NodeId, operand: &Operand) -> Domain {
        domain(self.tree, id, operand, |found| {
            (RUN | self.nodes[found.index()].states | bit(Displayed::Suspended), true)
        })
    }
}

/// The expressions of a node, and whether each is its trigger.
pub(super) fn programs(tree: &Snapshot, id: NodeId) -> impl Iterator<Item = (&Program, bool)> {
    tree.node(id).attributes.iter().filter_map(|attribute| match attribute {
        Attribute::Trigger(condition) => Some((condition.expression.program.as_ref()?, true)),
        Attribute::Complete(condition) => Some((condition.expression.program.as_ref()?, false)),
        _ => None,
    })
}

/// The values of an operand, where `known` has the states of a node and whether it runs.
fn domain(
    tree: &Snapshot,
    id: NodeId,
    operand: &Operand,
    known: impl Fn(NodeId) -> (States, bool),
) -> Domain {
    let from = From { tree, node: id };
    let Some(found) = from.find(operand) else {
        return match operand {
            Operand::Flag(..) => Domain::Of(vec![0, 1]),
            _ => Domain::Any,
        };
    };
    if found == NodeId::ROOT {
        return Domain::Any;
    }
    let (states, runs) = known(found);
    match operand {
        Operand::Flag(..) => Domain::Of(vec![0, 1]),
        Operand::Node(_) => Domain::Of(states_of(tree, id, found, states)),
        Operand::Variable(_, name) | Operand::Upward(name) => value_of(tree, found, name, runs),
    }
}

fn states_of(tree: &Snapshot, id: NodeId, found: NodeId, states: States) -> Vec<i64> {
    let mut states = states;
    if found == id {
        // It asks while it waits.
        states = bit(Displayed::Queued) | bit(Displayed::Aborted);
    } else if tree.upwards(id).any(|above| above == found) {
        // So does something in it then.
        states = RUN & !bit(Displayed::Complete);
    } else if tree.suite(id) != tree.suite(found) {
        states |= bit(Displayed::Unknown);
    }
    let all = Displayed::ALL.into_iter().filter(|state| states & bit(*state) != 0);
    all.map(|state| state as i64).collect()
}

fn value_of(tree: &Snapshot, found: NodeId, name: &str, runs: bool) -> Domain {
    let attributes = &tree.node(found).attributes;
    match tree.named(found, name).map(|named| named.found) {
        Some(Found::Event) => {
            let event = attributes.iter().find_map(|one| match one {
                Attribute::Event(event) if event.is_called(name) => Some(event),
                _ => None,
            });
            let initial = event.is_some_and(|event| event.initial);
            if runs { Domain::Of(vec![0, 1]) } else { Domain::Of(vec![initial.into()]) }
        }
        Some(Found::Meter) => {
            let meter = attributes.iter().find_map(|one| match one {
                Attribute::Meter(meter) if meter.name == *name => Some(meter),
                _ => None,
            });
            meter.map_or(Domain::Any, |meter| {
                Domain::Range(meter.min.into(), if runs { meter.max } else { meter.min }.into())
            })
        }
        Some(Found::Repeat) => match tree.repeat(found).map(|repeat| &repeat.over) {
            Some(Over::Date(range) | Over::Integer(range)) => {
                Domain::Range(range.start.min(range.end), range.start.max(range.end))
            }
            _ => Domain::Any,
        },
        Some(Found::Limit) => {
            let max = tree.limit(found, name).map_or(0, |limit| limit.max);
            if max < 0 { Domain::Any } else { Domain::Range(0, max.into()) }
        }
        _ => Domain::Any,
    }
}

/// Whether a node is a task.
pub(super) fn is_task(tree: &Snapshot, id: NodeId) -> bool {
    tree.node(id).kind == Kind::Task
}
