//! Miniature simulations: what either of two policies would have had for hits, seen in a sample
//! of the keys and with a share of the memory as small as the sample.
//!
//! The hit ratio of a cache is close to that of a cache of a hundredth of its size that sees the
//! hundredth of the keys chosen by their hash, whatever the policy. One shard's keys are such a
//! sample already, so one shard does it for all.

use std::collections::{HashMap, VecDeque};

use super::ghost::Ghosts;
use super::policy::{AGES, Policy, SMALL_PART};

/// The capacity of each simulation, in items.
const MAX_ITEMS: usize = 4096;

/// Both simulations take at most this part of their shard's memory.
const MEMORY_PART: usize = 64;

/// What both take for each item of one: an entry of a map with its control byte and one of a
/// queue, both up to half empty.
const ITEM_BYTES: usize = 2 * 2 * (size_of::<(u32, Noted)>() + 1 + size_of::<(u32, u32)>());

/// Below this many items nothing is simulated: chance would decide.
const MIN_ITEMS: usize = 128;

/// The policies are compared after this many sampled reads.
const PERIOD: u32 = 1024;

/// Hits of earlier periods count less by this part in each.
const FORGET: u32 = 8;

/// The other policy takes over when it is better by this part of all reads.
const MARGIN: u32 = 64;

/// LRU is simulated with this part of the memory more: a sample is uncertain about how much of
/// what is read in turn just fits, and where it does, LRU is the one to have.
const BENEFIT: usize = 16;

/// The simulations of two policies, and their hits so far.
#[derive(Debug)]
pub(super) struct Simulation {
    /// The capacity of each, in items.
    most: usize,
    /// A tag is in the sample when its lowest bits, this many, are zero.
    sampled_bits: u32,
    reads: u32,
    period_left: u32,
    runs: [Miniature; 2],
    /// Which of them is in force.
    chosen: usize,
}

impl Simulation {
    /// For a shard of `budget_bytes` that holds `items` and is full; `None` when it is too small.
    pub(super) fn new(budget_bytes: usize, items: usize) -> Option<Self> {
        let most = Self::most(budget_bytes);
        if most < MIN_ITEMS || items < MIN_ITEMS {
            return None;
        }
        let runs = [Policy::Lru, Policy::S3Fifo].map(Miniature::new);
        let mut new =
            Self { most, sampled_bits: 0, reads: 0, period_left: PERIOD, runs, chosen: 0 };
        new.start(items);
        Some(new)
    }

    /// Restarts with the largest sample that fits.
    fn start(&mut self, items: usize) {
        self.sampled_bits = items.div_ceil(self.most).next_power_of_two().ilog2();
        self.reads = 0;
        self.period_left = PERIOD;
        self.runs.iter_mut().for_each(|run| *run = Miniature::new(run.policy));
        self.resize(items);
    }

    /// Has the simulations hold their part of `items`.
    fn resize(&mut self, items: usize) {
        for run in &mut self.runs {
            let share = items >> self.sampled_bits;
            let more = if run.policy == Policy::Lru { share / BENEFIT } else { 0 };
            run.resize(share + more);
        }
    }

    fn most(budget_bytes: usize) -> usize {
        (budget_bytes / MEMORY_PART / ITEM_BYTES).min(MAX_ITEMS)
    }

    /// The most memory that it takes of a shard's budget.
    pub(super) fn bytes(budget_bytes: usize) -> usize {
        let most = Self::most(budget_bytes);
        if most < MIN_ITEMS { 0 } else { most * ITEM_BYTES }
    }

    #[inline]
    fn samples(&self, tag: u32) -> bool {
        tag.trailing_zeros() >= self.sampled_bits
    }

    /// Notes a read and whether it hit. `items` is the number that the shard holds. Returns the
    /// policy to put in force, when it changes.
    #[inline]
    pub(super) fn read(&mut self, tag: u32, found: bool, items: usize) -> Option<Policy> {
        if !self.samples(tag) {
            return None;
        }
        self.read_sampled(tag, found, items)
    }

    fn read_sampled(&mut self, tag: u32, found: bool, items: usize) -> Option<Policy> {
        self.reads += 1;
        for run in &mut self.runs {
            run.hits += u32::from(run.read(tag));
            if found {
                // A real hit is followed by no store: the simulation stores it itself.
                run.store(tag);
            }
        }
        self.period_left -= 1;
        if self.period_left > 0 {
            return None;
        }
        self.period_left = PERIOD;
        let share = items >> self.sampled_bits;
        if share > self.most || share * 4 < self.most && self.sampled_bits > 0 {
            self.start(items);
            return None;
        }
        self.resize(items);
        let better = self.runs[1 - self.chosen].hits;
        let change = better > self.runs[self.chosen].hits + self.reads / MARGIN;
        if change {
            self.chosen = 1 - self.chosen;
        }
        self.reads -= self.reads / FORGET;
        self.runs.iter_mut().for_each(|run| run.hits -= run.hits / FORGET);
        change.then(|| self.runs[self.chosen].policy)
    }

    /// Notes a store.
    #[inline]
    pub(super) fn store(&mut self, tag: u32) {
        if self.samples(tag) {
            self.runs.iter_mut().for_each(|run| run.store(tag));
        }
    }
}

/// What is known of one item.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    /// How many items had come to a ring's front when this one was last read, or came there.
    read_at: u32,
    referenced: bool,
}

/// One cache of items that all have one size.
#[derive(Debug)]
struct Miniature {
    policy: Policy,
    capacity: usize,
    items: HashMap<u32, Noted, foldhash::fast::RandomState>,
    small: VecDeque<u32>,
    /// With how many items had come to the front when this one did.
    main: VecDeque<(u32, u32)>,
    gone: Ghosts,
    came: u32,
    is_full: bool,
    hits: u32,
}

impl Miniature {
    fn new(policy: Policy) -> Self {
        Self {
            policy,
            capacity: 0,
            items: HashMap::default(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            gone: Ghosts::default(),
            came: 0,
            is_full: false,
            hits: 0,
        }
    }

    /// Sets the capacity; a smaller one takes effect as items are stored.
    fn resize(&mut self, capacity: usize) {
        if self.policy.filters() && self.capacity == 0 {
            self.gone.reset(capacity);
        }
        self.capacity = capacity;
    }

    /// Whether the item is there.
    fn read(&mut self, tag: u32) -> bool {
        let noted = self.items.get_mut(&tag);
        let found = noted.is_some();
        if let Some(noted) = noted {
            *noted = Noted { read_at: self.came, referenced: true };
        }
        found
    }

    fn store(&mut self, tag: u32) {
        if self.items.contains_key(&tag) {
            return;
        }
        let small = if self.policy.filters() { self.capacity / SMALL_PART } else { 0 };
        if small == 0 || !self.is_full || self.gone.take(tag).is_some() {
            return self.come(tag, self.capacity - small);
        }
        while self.small.len() >= small
            && let Some(oldest) = self.small.pop_front()
        {
            let referenced = self.items.get(&oldest).is_some_and(|noted| noted.referenced);
            if referenced {
                self.come(oldest, self.capacity - small);
            } else {
                self.items.remove(&oldest);
                self.gone.insert(oldest, 0);
            }
        }
        self.items.insert(tag, Noted::default());
        self.small.push_back(tag);
    }

    /// An item comes to the main ring's front.
    fn come(&mut self, tag: u32, most: usize) {
        let mut tries = most;
        while self.main.len() >= most.max(1)
            && let Some((oldest, since)) = self.main.pop_front()
        {
            self.is_full = true;
            let noted = self.items.get(&oldest).copied().unwrap_or_default();
            let lap = self.came.wrapping_sub(since).max(1);
            let age = u64::from(self.came.wrapping_sub(noted.read_at)) * u64::from(AGES);
            let age = (age / u64::from(lap)).min(u64::from(AGES)) as u8;
            if self.policy.keeps(noted.referenced.then_some(age)) && tries > 0 {
                tries -= 1;
                self.put_first(oldest);
            } else {
                self.items.remove(&oldest);
            }
        }
        self.put_first(tag);
    }

    fn put_first(&mut self, tag: u32) {
        self.came = self.came.wrapping_add(1);
        self.items.insert(tag, Noted { read_at: self.came, referenced: false });
        self.main.push_back((tag, self.came));
    }
}
