//! The simulation: calendars move minute by minute, and jobs start and end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use super::idle::Clocked;
use super::jobs::{Signal, signals, used};
use super::plan::{Assumed, Pass, Plan};
use crate::model::{
    Duration, Effect, Instant, LoadError, Moment, NodeId, Rules, ServerState, Snapshot, Submit,
    Text, Tree, Variable,
};

/// The most jobs in one minute of the clock: a repeat without an end, of jobs that take no time,
/// would go on for ever.
const JOBS_LIMIT: u64 = 100_000;

/// What happens to a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It starts; which try it is.
    Started(i32),
    /// It is complete.
    Complete,
    /// It is aborted.
    Aborted,
}

/// Something that happens to a task's job.
#[derive(Clone, Copy, Debug)]
pub struct Happened {
    /// The minute, from 0.
    pub minute: i64,
    /// The time of the task's suite.
    pub at: Instant,
    /// The task.
    pub node: NodeId,
    /// What.
    pub what: What,
}

/// What a simulation comes to.
#[derive(Debug)]
pub struct Simulated {
    /// The tree at the end.
    pub tree: Tree,
    /// How often each task has run.
    pub runs: HashMap<NodeId, u64>,
    /// Changes of states and values, jobs' starts and ends among them.
    pub events: u64,
    /// The minute at which it ended.
    pub minute: i64,
    /// Whether it ended early: more than a hundred thousand jobs in one minute.
    pub is_endless: bool,
}

/// A job that runs: the task, its password, and how it ends.
type Running = (NodeId, Text, Assumed);

/// A job and what it still does.
struct Job {
    submit: Submit,
    signals: std::vec::IntoIter<Signal>,
}

/// A simulation under way.
pub struct Simulation<'a, F> {
    plan: &'a Plan,
    seen: F,
    tree: Tree,
    used: HashSet<(NodeId, Text)>,
    minute: i64,
    jobs: u64,
    ends: BinaryHeap<Reverse<(i64, u64)>>,
    running: HashMap<u64, Running>,
    number: u64,
    runs: HashMap<NodeId, u64>,
    in_minute: u64,
}

impl<'a, F: FnMut(&Snapshot, Happened)> Simulation<'a, F> {
    /// Runs the suites of a definition with these variables of the server, and shows `seen` what
    /// happens.
    ///
    /// # Errors
    /// The suites can't be loaded.
    pub fn run(
        from: &Snapshot,
        variables: Vec<Variable>,
        plan: &'a Plan,
        seen: F,
    ) -> Result<Simulated, LoadError> {
        let mut tree = Tree::default();
        tree.server_mut().variables = variables;
        tree.server_mut().state = ServerState::Running;
        Rules::new(&mut tree, Moment { now: plan.start, entropy: 0 }).load(from, false)?;
        let (used, clocked) = (used(&tree), Clocked::of(&tree));
        let simulation = Self {
            plan,
            seen,
            tree,
            used,
            minute: 0,
            jobs: 0,
            ends: BinaryHeap::new(),
            running: HashMap::new(),
            number: 0,
            runs: HashMap::new(),
            in_minute: 0,
        };
        Ok(simulation.go(&clocked))
    }

    fn go(mut self, clocked: &Clocked) -> Simulated {
        let before = self.tree.state_change_no();
        let each_minute = self.plan.pass == Pass::EachMinute;
        if each_minute {
            self.tree.server_mut().state = ServerState::Shutdown;
        }
        let submits = self.apply(|rules| {
            // All were just loaded: none of them runs.
            let _ = rules.begin_all(true);
        });
        self.start_all(submits);
        loop {
            if each_minute {
                let submits = self.pass();
                self.start_all(submits);
            }
            if self.minute >= self.plan.minutes || self.in_minute > JOBS_LIMIT {
                break;
            }
            let left = self.plan.minutes - self.minute;
            let step = if self.plan.skips { self.idle(clocked, left) } else { 1 };
            self.minute += step;
            self.in_minute = 0;
            let submits = self.apply(|rules| rules.tick(Some(Duration::minutes(step))));
            self.start_all(submits);
            self.end_due();
        }
        self.tree.server_mut().state = ServerState::Running;
        Simulated {
            events: u64::from(self.tree.state_change_no() - before),
            is_endless: self.in_minute > JOBS_LIMIT,
            tree: self.tree,
            runs: self.runs,
            minute: self.minute,
        }
    }

    fn idle(&self, clocked: &Clocked, left: i64) -> i64 {
        let due = self.ends.peek().map_or(left, |Reverse((due, _))| due - self.minute);
        clocked.minutes(&self.tree, left.min(due))
    }

    fn apply(&mut self, change: impl FnOnce(&mut Rules<'_>)) -> Vec<Submit> {
        let now = self.plan.start.plus(Duration::minutes(self.minute));
        self.number += 1;
        let mut rules = Rules::new(&mut self.tree, Moment { now, entropy: self.number });
        rules.without_log();
        if self.plan.pass == Pass::EachMinute {
            rules.by_time();
        }
        change(&mut rules);
        let effects = rules.finish().into_iter();
        let submits = effects.filter_map(|effect| match effect {
            Effect::Submit(submit) => Some(submit),
            _ => None,
        });
        submits.collect()
    }

    /// One look at the whole tree.
    fn pass(&mut self) -> Vec<Submit> {
        let submits = self.apply(|rules| rules.set_server_state(ServerState::Running));
        self.apply(|rules| rules.set_server_state(ServerState::Shutdown));
        submits
    }

    fn happened(&mut self, node: NodeId, what: What) {
        let suite = self.tree.suite(node);
        let calendar = suite.and_then(|suite| self.tree.calendar(suite));
        let at = calendar.map_or(self.plan.start, |calendar| calendar.suite);
        (self.seen)(&self.tree, Happened { minute: self.minute, at, node, what });
    }

    /// Starts jobs, and what they bring about in the same minute.
    fn start_all(&mut self, submits: Vec<Submit>) {
        let mut open: Vec<Job> = Vec::new();
        self.open(submits, &mut open);
        while let Some(job) = open.last_mut() {
            if self.in_minute > JOBS_LIMIT {
                return;
            }
            let node = job.submit.node;
            match job.signals.next() {
                Some(signal) => {
                    let mut submits = self.apply(|rules| signal.apply(rules));
                    let is_seen = self.used.contains(&signal.of());
                    if self.plan.pass == Pass::EachMinute && is_seen {
                        submits = self.pass();
                    }
                    self.open(submits, &mut open);
                }
                None => {
                    open.pop();
                    let (assumed, _) = self.plan.of(&self.tree.path(node));
                    let submits = self.end(node, assumed);
                    self.open(submits, &mut open);
                }
            }
        }
    }

    /// Starts jobs; those that end at once are put onto `open`, the first on top.
    fn open(&mut self, submits: Vec<Submit>, open: &mut Vec<Job>) {
        let mut waiting = VecDeque::from(submits);
        let from = open.len();
        while let Some(submit) = waiting.pop_front() {
            if self.in_minute > JOBS_LIMIT {
                return;
            }
            self.jobs += 1;
            self.in_minute += 1;
            *self.runs.entry(submit.node).or_default() += 1;
            self.happened(submit.node, What::Started(submit.try_no));
            let (assumed, minutes) = self.plan.of(&submit.path);
            let each_minute = self.plan.pass == Pass::EachMinute;
            if !each_minute {
                let node = submit.node;
                let more = self.apply(|rules| rules.init(node, "1", &[]));
                waiting.extend(more);
            }
            if !each_minute && (minutes > 0 || assumed == Assumed::Active) {
                if assumed != Assumed::Active {
                    let due = self.minute + minutes;
                    self.ends.push(Reverse((due, self.jobs)));
                    let job = (submit.node, submit.password, assumed);
                    self.running.insert(self.jobs, job);
                }
                continue;
            }
            let signals = signals(&self.tree, submit.node, &self.used).into_iter();
            open.push(Job { submit, signals });
        }
        open[from..].reverse();
    }

    /// Ends the jobs whose time has come.
    fn end_due(&mut self) {
        while let Some(Reverse((due, number))) = self.ends.peek().copied() {
            if due > self.minute || self.in_minute > JOBS_LIMIT {
                return;
            }
            self.ends.pop();
            let Some((node, password, assumed)) = self.running.remove(&number) else {
                continue;
            };
            // Its node may have been deleted, or run again.
            if !self.tree.has(node) || self.tree.node(node).job().password != password {
                continue;
            }
            for signal in signals(&self.tree, node, &self.used) {
                let submits = self.apply(|rules| signal.apply(rules));
                self.start_all(submits);
            }
            let submits = self.end(node, assumed);
            self.start_all(submits);
        }
    }

    fn end(&mut self, node: NodeId, assumed: Assumed) -> Vec<Submit> {
        let what = if assumed == Assumed::Aborted { What::Aborted } else { What::Complete };
        self.happened(node, what);
        self.apply(|rules| match assumed {
            Assumed::Aborted => rules.abort(node, "assumed"),
            _ => rules.complete(node, &[]),
        })
    }
}
