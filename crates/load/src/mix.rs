//! Which operation comes next: by weight, or step by step. Data plane.

use rand::{Rng, SeedableRng};

/// The random numbers of one slot.
pub type Random = rand::rngs::SmallRng;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014): every input bit changes about half of the output bits.
#[inline]
pub fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// One operation, as the engine hands it to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Op {
    /// Which of the workload's operations.
    pub operation: usize,
    /// What it is about. Only the workload knows what the number stands for: a key, a row, a node.
    pub what: u64,
}

/// Operations that are drawn ahead, so that drawing costs one indirect call for several of them.
const MAX_AHEAD: usize = 16;

/// Operations that are drawn and not yet asked, of one slot.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    ops: [Op; MAX_AHEAD],
    next: usize,
    len: usize,
    most: usize,
}

impl Ops {
    /// Appends an operation; one beyond the room that there is, is dropped.
    #[inline]
    pub fn push(&mut self, op: Op) {
        debug_assert!(self.has_room(), "a workload pushes no more than there is room for");
        if self.has_room() {
            self.ops[self.len] = op;
            self.len += 1;
        }
    }

    /// Whether another one may be pushed.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.len < self.most
    }

    /// Forgets what is left, and makes room for at most `most` operations.
    #[inline]
    pub(crate) fn begin(&mut self, most: usize) {
        (self.next, self.len, self.most) = (0, 0, most.min(MAX_AHEAD));
    }

    /// The oldest one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Op> {
        let op = *self.ops[..self.len].get(self.next)?;
        self.next += 1;
        Some(op)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.len
    }
}

/// An operation of a mix: a draw of 32 bits that is below this, and below no earlier one's, is of
/// this operation.
#[derive(Clone, Copy, Debug)]
struct Weighted {
    below: u64,
    operation: usize,
}

/// The operations of one slot: by weight, or step by step; and the slot's random numbers.
#[derive(Clone, Debug)]
pub struct Mix {
    random: Random,
    weighted: Vec<Weighted>,
    /// The operation of a mix of one: most slots never look further.
    only: Option<usize>,
    /// Operations in order, and how many of them are drawn.
    steps: Vec<usize>,
    stepped: usize,
}

impl Mix {
    /// Operations by their weights.
    pub(crate) fn weighted(seed: u64, weights: &[(usize, u32)]) -> Self {
        let total: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut sum = 0;
        let weighted = weights.iter().map(|&(operation, weight)| {
            sum += u64::from(weight);
            Weighted { below: (sum << 32).div_ceil(total.max(1)), operation }
        });
        let weighted: Vec<_> = weighted.collect();
        let only = if let [only] = weighted[..] { Some(only.operation) } else { None };
        let random = Random::seed_from_u64(seed);
        Self { random, weighted, only, steps: Vec::new(), stepped: 0 }
    }

    /// Operations in their order, each done that often.
    pub(crate) fn in_steps(seed: u64, steps: &[(usize, u32)]) -> Self {
        let step =
            |&(operation, times): &(usize, u32)| std::iter::repeat_n(operation, times as usize);
        Self { steps: steps.iter().flat_map(step).collect(), ..Self::weighted(seed, steps) }
    }

    /// The operation that comes next.
    #[inline]
    pub fn operation(&mut self) -> usize {
        if !self.steps.is_empty() {
            let step = self.steps.get(self.stepped).or(self.steps.last());
            self.stepped += 1;
            return step.copied().unwrap_or(0);
        }
        self.only.unwrap_or_else(|| {
            let bits = self.random.next_u64() >> 32;
            let found = self.weighted.iter().find(|one| bits < one.below);
            found.or(self.weighted.first()).map_or(0, |one| one.operation)
        })
    }

    /// The slot's random numbers.
    #[inline]
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// A number below `count`, every one equally often. Lemire's multiplication gives a range
    /// without a division; its bias of at most count/2^64 is far below anything a run could see.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(count)) >> 64) as u64
    }

    /// How many steps are left to be drawn; `None` without steps.
    pub(crate) fn steps_left(&self) -> Option<usize> {
        (!self.steps.is_empty()).then(|| self.steps.len().saturating_sub(self.stepped))
    }

    /// Goes back to the first step.
    pub(crate) fn begin_again(&mut self) {
        self.stepped = 0;
    }
}
