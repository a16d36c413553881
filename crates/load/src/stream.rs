//! The operations of one slot, drawn one after another from a seed. Data plane.

use crate::mix::{Mix, Op, Ops};
use crate::operation::Kind;
use crate::scenario::Scenario;
use crate::workload::{Draw, Workload};

/// An endless, reproducible sequence of operations: the same for every target that gets the same
/// seed and slot. One of steps ends.
pub struct Stream {
    mix: Mix,
    draw: Box<dyn Draw>,
    ops: Ops,
}

impl Stream {
    /// The sequence of `slot` in a run's `round`, of the mix's operations that are answered.
    pub fn new(scenario: &Scenario, workload: &dyn Workload, round: u64, slot: u64) -> Self {
        Self::of(scenario, workload, round, slot, |kind| kind != Kind::Stream)
    }

    /// The sequence of `slot`, of the mix's operations that subscribe.
    pub fn of_streams(scenario: &Scenario, workload: &dyn Workload, round: u64, slot: u64) -> Self {
        Self::of(scenario, workload, round, slot, |kind| kind == Kind::Stream)
    }

    /// The sequence of a slot that does the steps, in order and once.
    pub fn of_steps(scenario: &Scenario, workload: &dyn Workload, round: u64, slot: u64) -> Self {
        let seed = scenario.seed_of(round, slot);
        let (mix, draw) = (Mix::in_steps(seed, &scenario.steps), workload.draw(seed));
        Self { mix, draw, ops: Ops::default() }
    }

    fn of(
        scenario: &Scenario,
        workload: &dyn Workload,
        round: u64,
        slot: u64,
        is_wanted: fn(Kind) -> bool,
    ) -> Self {
        let operations = workload.operations();
        let chosen = scenario.mix.iter().filter(|(index, _)| is_wanted(operations[*index].kind));
        let chosen: Vec<_> = chosen.copied().collect();
        let seed = scenario.seed_of(round, slot);
        Self { mix: Mix::weighted(seed, &chosen), draw: workload.draw(seed), ops: Ops::default() }
    }

    /// The next operation.
    #[inline]
    pub fn next_op(&mut self) -> Op {
        self.ops.take().unwrap_or_else(|| self.draw_ahead())
    }

    #[inline(never)]
    fn draw_ahead(&mut self) -> Op {
        self.ops.begin(self.mix.steps_left().map_or(usize::MAX, |left| left.max(1)));
        self.draw.draw(&mut self.mix, &mut self.ops);
        let op = self.ops.take();
        debug_assert!(op.is_some(), "a workload draws at least one operation");
        op.unwrap_or_default()
    }

    /// The operation that begins stream number `index`.
    pub fn subscribe(&mut self, index: u64) -> Op {
        let operation = self.mix.operation();
        self.draw.subscribe(operation, index)
    }

    /// Whether every step is drawn; a sequence without steps has none to draw.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.ops.is_empty() && self.mix.steps_left().is_none_or(|left| left == 0)
    }

    /// Goes back to the first step.
    pub fn begin_again(&mut self) {
        self.mix.begin_again();
        self.ops.begin(0);
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::kv::{Keys, Oracle, Role, Rules, Store, Values};
    use crate::{DialectRow, Service, null};

    static RULES: Rules = Rules {
        operations: &[
            ("get", Role::Read, ""),
            ("mget", Role::ReadMany, ""),
            ("set", Role::Write, ""),
        ],
        longest_key_bytes: 250,
        longest_value_bytes: 1 << 20,
    };

    static SERVICE: Service = Service {
        name: "toy",
        doc: "A service for tests.",
        read: |part| {
            let no_client = |_: &_, _: &_| Err(wire::ProtocolError::new("no client"));
            Ok(Store::read(part, &RULES)?.with_dialects(no_client))
        },
        dialects: &[] as &[DialectRow],
    };

    fn scenario(rest: &str) -> Scenario {
        let text = format!("service='toy'\nkeys={{count=100}}\nvalue={{bytes=16}}\n{rest}");
        Scenario::parse(&text, &SERVICE).unwrap()
    }

    #[test]
    fn a_stream_repeats_itself_and_keeps_its_weights() {
        let scenario = scenario("mix={get=90,set=10}");
        let draw = |slot| {
            let mut stream = Stream::new(&scenario, &*scenario.workload, 3, slot);
            (0..10_000).map(|_| stream.next_op()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let sets = draw(1).iter().filter(|op| op.operation == 2).count();
        assert!((900..1100).contains(&sets), "{sets} sets of 10,000");
        assert!(draw(1).iter().all(|op| op.what < 100));
    }

    #[test]
    fn steps_come_in_order_and_end() {
        let scenario = scenario("steps=['set','get * 30','mget']");
        let mut stream = Stream::of_steps(&scenario, &*scenario.workload, 0, 0);
        for _ in 0..2 {
            let drawn: Vec<usize> = (0..32).map(|_| stream.next_op().operation).collect();
            assert_eq!((drawn[0], drawn[31]), (2, 1));
            assert!(drawn[1..31].iter().all(|operation| *operation == 0));
            assert!(stream.is_over());
            stream.begin_again();
        }
        let null = Scenario::parse("service='null'\noperation='ask'", &null::SERVICE).unwrap();
        assert!(Stream::new(&null, &*null.workload, 0, 0).is_over(), "it has none to take");
    }

    #[test]
    fn a_service_of_keys_and_values_needs_both_and_says_so() {
        let error = |text: &str| {
            let error = Scenario::parse(&format!("service='toy'\n{text}"), &SERVICE).unwrap_err();
            format!("{}: {error}", error.key)
        };
        let many = "keys={count=1001,bytes=4}\nvalue={bytes=16}";
        assert!(error(many).contains("`bytes` = 5"), "{}", error(many));
        assert!(error("value={bytes=16}").contains("toy needs keys"));
        assert!(error("keys={count=10}").contains("toy needs values"));
        let unknown = error("keys={cuont=10}\nvalue={bytes=16}");
        assert!(unknown.starts_with("workload.keys.cuont: unknown field `cuont`"), "{unknown}");
        let unknown = error("operaton='get'\nkeys={count=10}\nvalue={bytes=16}");
        assert!(unknown.contains("expected one of `service`, `operation`"), "{unknown}");
        assert!(error("keys={count=10}\nvalue={bytes=16}\n[[request]]").contains("`request`"));
    }

    #[test]
    fn a_removing_workload_allows_misses_and_a_reading_one_keeps_no_versions() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 16));
        static REMOVING: Rules = Rules {
            operations: &[("get", Role::Read, ""), ("delete", Role::Remove, "")],
            longest_key_bytes: 250,
            longest_value_bytes: 16,
        };
        let store = Store::of(&REMOVING, oracle);
        assert!(store.begin(&[0, 1]).oracle.misses_allowed);
        let reading = store.begin(&[0]).oracle;
        assert!(!reading.misses_allowed);
        assert_eq!(reading.versions.begin_write(3).version, 1);
    }
}
