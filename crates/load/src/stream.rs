//! The operations of one slot, drawn one after another from a seed.

use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::values::mix;
use crate::{Kind, Op, Sampler, Workload};

/// An endless, reproducible sequence of operations: the same for every target that gets the same
/// seed and slot.
#[derive(Clone, Debug)]
pub struct Stream {
    sampler: Sampler,
    random: SmallRng,
    drawn: Vec<Drawn>,
    /// The operation of a mix of one: most streams never look further.
    only: Option<Drawn>,
    /// The key of an operation about one, and those of one about many.
    key: u64,
    keys: Vec<u64>,
    /// The operations of a stream that ends, in order, and how many of them are drawn.
    steps: Vec<Drawn>,
    stepped: usize,
}

/// An operation of the mix.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    /// A draw of 32 bits that is below this, and below no earlier one's, is of this operation.
    below: u64,
    operation: u32,
    /// How many keys it is about.
    keys: u32,
}

impl Drawn {
    fn of(workload: &Workload, operation: usize, below: u64) -> Self {
        let keys = match workload.service.operations[operation].kind {
            Kind::ReadMany => workload.keys_per_request,
            Kind::Read | Kind::Write | Kind::Remove | Kind::Stream => 1,
        };
        Self { below, operation: operation as u32, keys: keys as u32 }
    }
}

impl Stream {
    /// The sequence of a slot that does the workload's steps, in order and once.
    pub fn of_steps(workload: &Workload, round: u64, slot: u64) -> Self {
        let step = |&(operation, times): &(usize, u32)| {
            std::iter::repeat_n(Drawn::of(workload, operation, 0), times as usize)
        };
        let steps = workload.steps.iter().flat_map(step).collect();
        Self { steps, ..Self::new(workload, round, slot) }
    }

    /// Whether every step is drawn.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.stepped == self.steps.len()
    }

    /// Goes back to the first step.
    pub fn begin_again(&mut self) {
        self.stepped = 0;
    }

    /// The sequence of `slot` in a run's `round`, of the mix's operations that are answered.
    pub fn new(workload: &Workload, round: u64, slot: u64) -> Self {
        Self::of(workload, round, slot, |kind| kind != Kind::Stream)
    }

    /// The sequence of `slot`, of the mix's operations that subscribe.
    pub fn of_streams(workload: &Workload, round: u64, slot: u64) -> Self {
        Self::of(workload, round, slot, |kind| kind == Kind::Stream)
    }

    fn of(workload: &Workload, round: u64, slot: u64, wanted: fn(Kind) -> bool) -> Self {
        let operations = workload.service.operations;
        let chosen = || workload.mix.iter().filter(|(index, _)| wanted(operations[*index].kind));
        let total: u64 = chosen().map(|(_, weight)| u64::from(*weight)).sum();
        let mut sum = 0;
        let drawn = chosen().map(|&(operation, weight)| {
            sum += u64::from(weight);
            Drawn::of(workload, operation, (sum << 32).div_ceil(total))
        });
        let drawn: Vec<Drawn> = drawn.collect();
        let only = if let [only] = drawn[..] { Some(only) } else { None };
        let seed = mix(workload.seed ^ mix(round ^ mix(slot)));
        Self {
            sampler: workload.sampler.clone(),
            random: SmallRng::seed_from_u64(seed),
            drawn,
            only,
            key: 0,
            keys: Vec::with_capacity(workload.keys_per_request),
            steps: Vec::new(),
            stepped: 0,
        }
    }

    /// The next operation, about this key.
    pub fn draw_for(&mut self, key: u64) -> Op<'_> {
        let operation = self.draw_operation().operation as usize;
        self.key = key;
        Op { operation, keys: std::slice::from_ref(&self.key) }
    }

    #[inline]
    fn draw_operation(&mut self) -> Drawn {
        if !self.is_over() {
            self.stepped += 1;
            return self.steps[self.stepped - 1];
        }
        self.only.unwrap_or_else(|| {
            let bits = self.random.next_u64() >> 32;
            let index = self.drawn.iter().position(|drawn| bits < drawn.below);
            self.drawn[index.unwrap_or(0)]
        })
    }

    /// The next operation.
    #[inline]
    pub fn draw(&mut self) -> Op<'_> {
        let Drawn { operation, keys, .. } = self.draw_operation();
        let operation = operation as usize;
        if keys == 1 {
            self.key = self.sampler.draw(&mut self.random);
            return Op { operation, keys: std::slice::from_ref(&self.key) };
        }
        self.keys.clear();
        for _ in 0..keys {
            self.keys.push(self.sampler.draw(&mut self.random));
        }
        Op { operation, keys: &self.keys }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Service, WorkloadSpec};

    static SERVICE: Service = Service {
        name: "toy",
        doc: "A service for tests.",
        operations: &[
            Operation { name: "get", kind: Kind::Read, doc: "" },
            Operation { name: "mget", kind: Kind::ReadMany, doc: "" },
            Operation { name: "set", kind: Kind::Write, doc: "" },
        ],
        dialects: &[],
        longest_key_bytes: 250,
        longest_value_bytes: 1 << 20,
        prepares: true,
    };

    #[test]
    fn a_stream_repeats_itself_and_keeps_its_weights() {
        let text = "service='toy'\nmix={get=90,set=10}\nkeys={count=100}\nvalue={bytes=16}";
        let workload = toml::from_str::<WorkloadSpec>(text).unwrap().resolve(&SERVICE).unwrap();
        let draw = |slot| {
            let mut stream = Stream::new(&workload, 3, slot);
            let draws = (0..10_000).map(|_| {
                let op = stream.draw();
                (op.operation, op.keys[0])
            });
            draws.collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let sets = draw(1).iter().filter(|(operation, _)| *operation == 2).count();
        assert!((900..1100).contains(&sets), "{sets} sets of 10,000");
    }

    #[test]
    fn steps_come_in_order_and_end() {
        let text =
            "service='toy'\nsteps=['set','get * 3','mget']\nkeys={count=9}\nvalue={bytes=16}";
        let workload = toml::from_str::<WorkloadSpec>(text).unwrap().resolve(&SERVICE).unwrap();
        let mut stream = Stream::of_steps(&workload, 0, 0);
        for _ in 0..2 {
            let drawn: Vec<usize> = (0..5).map(|_| stream.draw().operation).collect();
            assert_eq!(drawn, [2, 0, 0, 0, 1]);
            assert!(stream.is_over());
            stream.begin_again();
        }
        assert!(Stream::new(&workload, 0, 0).is_over(), "it has none to take");
    }

    #[test]
    fn an_operation_of_many_keys_draws_as_many() {
        let text =
            "service='toy'\noperation='mget'\nkeys_per_request=7\nkeys={count=9}\nvalue={bytes=16}";
        let workload = toml::from_str::<WorkloadSpec>(text).unwrap().resolve(&SERVICE).unwrap();
        assert_eq!(Stream::new(&workload, 0, 0).draw().keys.len(), 7);
    }
}
