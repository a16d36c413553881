//! Changes of a tree that are due at fixed times, and how long each waits from then: what a
//! checkpoint holds up.

use std::io;
use std::time::{Duration, Instant};

use super::super::tree::percentile;
use super::site::{Figure, MOMENT};
use crate::model::{Kind, NodeId, Rules, Snapshot, Tree};

/// The interval between changes.
const EVERY: Duration = Duration::from_micros(500);

/// From one task that is changed to the next: they lie in other chunks of memory.
const STRIDE: usize = 7_919;

/// Changes that are due: one task after another is suspended, and resumed in the next round.
pub(super) struct Due {
    tasks: Vec<NodeId>,
    made: usize,
    next: Instant,
    waits: Vec<Duration>,
}

impl Due {
    /// None yet.
    pub(super) fn new(tree: &Snapshot) -> Self {
        let all = tree.walk(NodeId::ROOT).filter(|id| tree.node(*id).kind == Kind::Task);
        Self { tasks: all.collect(), made: 0, next: Instant::now(), waits: Vec::new() }
    }

    /// From now on one is due at each interval.
    pub(super) fn begin(&mut self) {
        self.next = Instant::now() + EVERY;
    }

    /// Makes all that are due.
    pub(super) fn catch_up(&mut self, mut with: impl FnMut(&mut dyn FnMut(&mut Tree))) {
        while Instant::now() >= self.next {
            let id = self.task(self.made);
            with(&mut |tree| change(tree, id));
            self.made += 1;
            self.waits.push(self.next.elapsed());
            self.next += EVERY;
        }
    }

    /// Sleeps until the next one is due.
    pub(super) fn sleep(&self) {
        std::thread::sleep(self.next.saturating_duration_since(Instant::now()));
    }

    fn task(&self, number: usize) -> NodeId {
        self.tasks[number.wrapping_mul(STRIDE) % self.tasks.len()]
    }

    /// Whether the tree has each change, and no other.
    pub(super) fn check(&self, tree: &Snapshot) -> io::Result<()> {
        let mut changed = vec![false; self.tasks.len()];
        for number in 0..self.made {
            let place = number.wrapping_mul(STRIDE) % self.tasks.len();
            changed[place] = !changed[place];
        }
        let is_right = |(id, changed): (&NodeId, &bool)| tree.node(*id).is_suspended == *changed;
        match self.tasks.iter().zip(&changed).all(is_right) {
            true => Ok(()),
            false => Err(io::Error::other("a change that was made is not in the tree")),
        }
    }

    /// How long they waited.
    pub(super) fn figures(&mut self) -> [Figure; 3] {
        self.waits.sort_unstable();
        let ns = |wait: Duration| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        [
            ("others_p99_ns", ns(percentile(&self.waits, 0.99))),
            ("others_most_ns", ns(percentile(&self.waits, 1.0))),
            ("others", self.waits.len() as u64),
        ]
    }
}

fn change(tree: &mut Tree, id: NodeId) {
    let is_suspended = tree.node(id).is_suspended;
    let mut rules = Rules::new(tree, MOMENT);
    match is_suspended {
        true => rules.resume(id),
        false => rules.suspend(id),
    }
    let _ = rules.finish();
}
