//! The simulation itself: that a seed replays exactly, and that it finds what is wrong.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::common::Lines;
use wire::simulation::{Client, End, Failure, Faults, Next, Random, Report, Simulation};
use wire::{Bytes, Config, Connection, Flow, Output, SendMemory};

/// Sends lines of any length, and expects each back, in order.
struct Echoes {
    left: u32,
    most_bytes: usize,
    due: VecDeque<Vec<u8>>,
    answered: Rc<Cell<u64>>,
}

impl Echoes {
    fn boxed(random: &mut Random, answered: &Rc<Cell<u64>>) -> Box<dyn Client> {
        let most_bytes = 2 << random.below(14);
        let left = random.below(60) as u32;
        Box::new(Self { left, most_bytes, due: VecDeque::new(), answered: Rc::clone(answered) })
    }
}

impl Client for Echoes {
    fn send(&mut self, _: u64, random: &mut Random, out: &mut Vec<u8>) -> Result<Next, String> {
        if self.left == 0 {
            return Ok(if random.chance(16) { Next::Reset } else { Next::Finish });
        }
        if self.due.len() < 20 && random.chance(700) {
            self.left -= 1;
            let letter = b'a' + random.below(26) as u8;
            let mut line = vec![letter; random.up_to(self.most_bytes)];
            line.push(b'\n');
            out.extend_from_slice(&line);
            self.due.push_back(line);
        }
        Ok(if self.due.is_empty() { Next::Idle } else { Next::Await })
    }

    fn receive(&mut self, _: u64, input: &mut wire::Input) -> Result<(), String> {
        while let Some(at) = input.bytes().iter().position(|byte| *byte == b'\n') {
            let line = input.bytes()[..=at].to_vec();
            input.consume(at + 1);
            match self.due.pop_front() {
                Some(expected) if expected == line => {
                    self.answered.set(self.answered.get() + 1);
                }
                Some(_) => return Err("an answer out of order".to_owned()),
                None => return Err("an answer to nothing".to_owned()),
            }
        }
        Ok(())
    }

    fn ended(&mut self, _: u64, end: End, is_stopping: bool) -> Result<(), String> {
        match end {
            End::Broken => Ok(()),
            _ if is_stopping => Ok(()),
            End::Closed if self.due.is_empty() && self.left == 0 => Ok(()),
            End::Closed | End::Dropped => {
                Err(format!("the server ended the connection with {} to answer", self.due.len()))
            }
        }
    }
}

/// Simulates a protocol of lines with 40 clients.
fn simulate<C: Connection + 'static>(
    seed: u64,
    make: impl Fn() -> C + Send + Sync + 'static,
) -> Result<Report, Failure> {
    let mut random = Random::new(seed);
    let faults = Faults::draw(&mut random);
    let config = Config {
        threads: 1 + random.index(3),
        max_connections: 3 + random.index(20),
        input_limit_bytes: 64 << 10,
        output_limit_bytes: 1 << random.below(18),
        turn_bytes: 64 << random.below(15),
        idle_timeout: random.chance(256).then_some(Duration::from_secs(100_000)),
        send_memory: SendMemory::new(64 << 20),
        ..Config::default()
    };
    let simulation = Simulation::new(seed, faults, config, move |_| make()).expect("a simulation");
    let answered = Rc::new(Cell::new(0));
    let mut left = 40;
    simulation.run(10, |random| {
        left -= 1;
        (left >= 0).then(|| Echoes::boxed(random, &answered))
    })
}

/// Answers lines, long ones without a copy.
fn echo() -> Lines<impl FnMut(&[u8], &mut Output) -> Flow> {
    Lines(|line: &[u8], out: &mut Output| {
        out.share(Bytes::copy_from_slice(line));
        Flow::Continue
    })
}

#[test]
fn lines_come_back_in_order_whatever_the_network_does() {
    testing::run_seeds("wire", 0..20, |seed| simulate(seed, echo));
}

#[test]
#[ignore = "it runs for as long as it is asked to: cargo xtask simulate wire"]
fn seeds_of_the_environment_hold() {
    testing::run_seeds_of_environment("wire", |seed| simulate(seed, echo));
}

#[test]
fn a_seed_replays_exactly_and_another_is_another_run() {
    let [first, again, other] = [5, 5, 6].map(|seed| simulate(seed, echo).expect("it holds"));
    assert_eq!(first, again);
    assert_ne!(first.digest, other.digest);
    assert!(first.moved_bytes > 10_000 && first.clients == 40);
}

/// Answers each line with a long one, and closes after the tenth.
fn farewell() -> Lines<impl FnMut(&[u8], &mut Output) -> Flow> {
    let mut lines = 0;
    Lines(move |_: &[u8], out: &mut Output| {
        lines += 1;
        out.put(&[b'.'; 5_000]);
        if lines == 10 { Flow::Close } else { Flow::Continue }
    })
}

/// Sends lines and its end at once, and reads what comes.
struct Talker {
    has_sent: bool,
    got: usize,
}

impl Client for Talker {
    fn send(&mut self, _: u64, _: &mut Random, out: &mut Vec<u8>) -> Result<Next, String> {
        if !std::mem::replace(&mut self.has_sent, true) {
            out.extend_from_slice(&b"line\n".repeat(12));
        }
        Ok(Next::Finish)
    }

    fn receive(&mut self, _: u64, input: &mut wire::Input) -> Result<(), String> {
        self.got += input.len();
        input.consume(input.len());
        Ok(())
    }

    fn ended(&mut self, _: u64, end: End, _: bool) -> Result<(), String> {
        match end {
            End::Closed if self.got != 50_000 => Err(format!("{} bytes of 50,000", self.got)),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_last_answer_that_blocks_arrives_and_its_connection_does_not_spin() {
    testing::run_seeds("wire's farewell", 0..10, |seed| {
        let faults = Faults { buffer_bytes: 4_000, ..Faults::draw(&mut Random::new(seed)) };
        let simulation = Simulation::new(seed, faults, Config::default(), |_| farewell());
        let mut left = 10;
        simulation.expect("a simulation").run(3, |_| {
            left -= 1;
            let talker = Talker { has_sent: false, got: 0 };
            (left >= 0).then(|| Box::new(talker) as Box<dyn Client>)
        })
    });
}

/// How many of 20 seeds find that a protocol is broken.
fn found<C: Connection + 'static>(make: impl Fn() -> C + Send + Sync + Clone + 'static) -> usize {
    (0..20).filter(|seed| simulate(*seed, make.clone()).is_err()).count()
}

#[test]
fn a_protocol_that_swaps_answers_now_and_then_is_found() {
    let swaps = || {
        let (mut lines, mut kept) = (0, Vec::new());
        Lines(move |line: &[u8], out: &mut Output| {
            lines += 1;
            if lines % 40 == 0 {
                kept = line.to_vec();
            } else {
                out.put(line);
                out.put(&std::mem::take(&mut kept));
            }
            Flow::Continue
        })
    };
    assert!(found(swaps) >= 10, "{} of 20 seeds", found(swaps));
}

#[test]
fn a_protocol_that_forgets_an_answer_is_found() {
    let forgets = || {
        let mut lines = 0;
        Lines(move |line: &[u8], out: &mut Output| {
            lines += 1;
            if lines % 40 != 0 {
                out.put(line);
            }
            Flow::Continue
        })
    };
    assert!(found(forgets) >= 10, "{} of 20 seeds", found(forgets));
}

#[test]
fn a_protocol_that_holds_memory_for_ever_is_found() {
    let leaks = || {
        Lines(|line: &[u8], out: &mut Output| {
            out.put(line);
            Flow::Continue
        })
    };
    let memory = SendMemory::new(1 << 20);
    let held = Arc::clone(&memory);
    let config = Config { send_memory: memory, ..Config::default() };
    let simulation = Simulation::new(1, Faults::none(), config, move |_| {
        std::mem::forget(held.hold(10));
        leaks()
    });
    let answered = Rc::default();
    let mut left = 3;
    let failure = simulation.expect("a simulation").run(2, |random| {
        left -= 1;
        (left >= 0).then(|| Echoes::boxed(random, &answered))
    });
    let what = failure.expect_err("it is found").what;
    assert_eq!(what, "30 unsent bytes are counted at the end");
}
