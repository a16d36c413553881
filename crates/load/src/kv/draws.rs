//! What slots draw of keys: one for each operation, or a number that stands for many.

use super::sampler::Sampler;
use crate::mix::{Mix, Op, Ops};
use crate::workload::Draw;

/// Draws the keys of one slot's operations.
#[derive(Clone, Debug)]
pub struct Draws {
    sampler: Sampler,
    /// By operation, how many keys it is about; those beyond are about one.
    keys: Vec<u64>,
}

impl Draws {
    /// Operations about one key each.
    pub fn of_one(sampler: &Sampler) -> Self {
        Self { sampler: sampler.clone(), keys: Vec::new() }
    }

    /// Operations about as many keys as `keys` says, by operation.
    pub fn of_many(sampler: &Sampler, keys: Vec<u64>) -> Self {
        Self { sampler: sampler.clone(), keys }
    }
}

impl Draw for Draws {
    /// [`Op::what`] is the key, or what [`Sampler::expand`] makes the keys from.
    #[inline]
    fn draw(&mut self, mix: &mut Mix, ops: &mut Ops) {
        while ops.has_room() {
            let operation = mix.operation();
            let what = match self.keys.get(operation) {
                None | Some(1) => self.sampler.draw(mix.random()),
                Some(count) => self.sampler.draw_many(mix.random(), *count),
            };
            ops.push(Op { operation, what });
        }
    }

    /// Stream number `index` is about the key of that number, until there are no more.
    fn subscribe(&mut self, operation: usize, index: u64) -> Op {
        Op { operation, what: index % self.sampler.count().max(1) }
    }
}
