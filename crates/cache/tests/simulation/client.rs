//! A simulated client: sends requests of one protocol, several at a time, and checks each answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use testing::Register;
use wire::clock::SECOND_NS;
use wire::simulation::{Client, End, Next, Random, START_NS};
use wire::{Input, Ns};

use super::model::{Items, When, text};
use super::operations::{Answer, Key, Op, Parsed, Verb};
use super::{binary, text as words};

/// The keys that all clients share.
const SHARED_KEYS: u64 = 3;

/// What all clients of one simulation know.
pub(super) struct World {
    registers: Vec<Register>,
    next_write: u64,
    next_client: u64,
    pub(super) answers: u64,
    /// Whether the store evicts, so that any item may be missing.
    pub(super) evicts: bool,
    /// Whether there is memory for all that is sent.
    pub(super) is_ample: bool,
    /// Whether the server may close those that read slowly.
    pub(super) closes_slow: bool,
    pub(super) item_bytes: usize,
}

impl World {
    pub(super) fn new(evicts: bool, is_ample: bool, closes_slow: bool, item_bytes: usize) -> Self {
        Self {
            registers: (0..SHARED_KEYS).map(|_| Register::default()).collect(),
            next_write: 1,
            next_client: 0,
            answers: 0,
            evicts,
            is_ample,
            closes_slow,
            item_bytes,
        }
    }
}

/// How requests are written and answers read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Text,
    Meta,
    Binary,
}

impl Protocol {
    fn write(self, op: &Op, out: &mut Vec<u8>) {
        match self {
            Self::Text => words::write(op, out),
            Self::Meta => words::write_meta(op, out),
            Self::Binary => binary::write(op, out),
        }
    }

    fn read(self, op: &Op, bytes: &[u8]) -> Parsed {
        match self {
            Self::Text => words::read(op, bytes),
            Self::Meta => words::read_meta(op, bytes),
            Self::Binary => binary::read(op, bytes),
        }
    }
}

/// A request whose answer is due.
struct Pending {
    op: Op,
    sent_ns: Ns,
    /// The number of its write of a shared key.
    write: Option<u64>,
}

/// One connection.
pub(super) struct CacheClient {
    world: Rc<RefCell<World>>,
    number: u64,
    protocol: Protocol,
    items: Items,
    pending: VecDeque<Pending>,
    left: u32,
    depth: usize,
    most_bytes: usize,
    /// Whether the end is a `quit` instead of the end of the stream.
    quits: bool,
    has_quit: bool,
}

impl CacheClient {
    pub(super) fn new(world: &Rc<RefCell<World>>, random: &mut Random) -> Self {
        let mut state = world.borrow_mut();
        let number = state.next_client;
        state.next_client += 1;
        let protocol = [Protocol::Text, Protocol::Meta, Protocol::Binary][random.index(3)];
        let most_bytes = match random.below(16) {
            0 => state.item_bytes + 100,
            1..4 => 20_000,
            4..8 => 1_000,
            _ => 60,
        };
        Self {
            world: Rc::clone(world),
            number,
            protocol,
            items: Items::new(state.evicts, state.item_bytes),
            pending: VecDeque::new(),
            left: random.below(80) as u32,
            depth: random.up_to(40),
            most_bytes,
            quits: protocol != Protocol::Binary && random.chance(512),
            has_quit: false,
        }
    }

    /// Whether as many requests wait for answers as may.
    fn is_full(&self) -> bool {
        let answered = self.pending.iter().filter(|one| !one.op.is_quiet());
        answered.count() >= self.depth
    }

    /// A value of any length that no other has.
    fn value(&self, random: &mut Random, number: u64) -> Vec<u8> {
        let length = random.up_to(self.most_bytes);
        let mut value = format!("{number}:").into_bytes();
        let letter = b'a' + (number % 26) as u8;
        value.resize(value.len().max(length), letter);
        value
    }

    fn draw(&mut self, random: &mut Random) -> (Op, Option<u64>) {
        let number = random.below(4);
        match random.below(16) {
            0..3 => self.draw_shared(random),
            3..6 => (self.draw_number(Key::Number { client: self.number, number }, random), None),
            6 if random.chance(128) => (Op::Nonsense, None),
            _ => (self.draw_own(Key::Own { client: self.number, number }, random), None),
        }
    }

    fn draw_shared(&self, random: &mut Random) -> (Op, Option<u64>) {
        let key = Key::Shared { number: random.below(SHARED_KEYS) };
        let is_read = random.chance(512);
        if is_read {
            let keys = vec![key];
            return (
                if random.chance(256) { Op::QuietGet { key } } else { Op::Get { keys } },
                None,
            );
        }
        let mut world = self.world.borrow_mut();
        let write = world.next_write;
        world.next_write += 1;
        if random.chance(200) {
            return (Op::Delete { key, quiet: false }, Some(write));
        }
        let (value, verb) = (self.value(random, write), Verb::Set);
        (Op::Store { verb, key, value, flags: 0, exptime: 0, quiet: false }, Some(write))
    }

    fn draw_number(&self, key: Key, random: &mut Random) -> Op {
        match random.below(4) {
            0 => {
                let value = random.below(1000).to_string().into_bytes();
                let (verb, exptime) = (Verb::Set, exptime(random));
                Op::Store { verb, key, value, flags: 7, exptime, quiet: false }
            }
            1 => Op::Get { keys: vec![key] },
            _ => Op::Increment { key, by: random.below(1000) },
        }
    }

    fn draw_own(&self, key: Key, random: &mut Random) -> Op {
        let may_be_quiet = self.world.borrow().is_ample && random.chance(300);
        match random.below(16) {
            0 => Op::QuietGet { key },
            1..6 => {
                let count = if self.protocol == Protocol::Text { random.up_to(6) } else { 1 };
                let other =
                    |random: &mut Random| Key::Own { client: self.number, number: random.below(4) };
                Op::Get { keys: (0..count).map(|_| other(random)).collect() }
            }
            6 => Op::Touch { key, exptime: exptime(random) },
            7 => Op::GetTouch { key, exptime: exptime(random) },
            // The binary protocol answers a quiet delete of nothing.
            8 => Op::Delete { key, quiet: may_be_quiet && self.protocol != Protocol::Binary },
            _ => {
                let verb = match random.below(12) {
                    0 => Verb::Add,
                    1 => Verb::Replace,
                    2 => Verb::Append,
                    3 => Verb::Prepend,
                    4 | 5 => self.items.cas(key).map_or(Verb::Set, Verb::Cas),
                    _ => Verb::Set,
                };
                let number = random.below(1 << 40);
                let value = self.value(random, number);
                let quiet = may_be_quiet && verb == Verb::Set && value.len() < 1000;
                let (flags, exptime) = (random.below(1 << 32) as u32, exptime(random));
                Op::Store { verb, key, value, flags, exptime, quiet }
            }
        }
    }

    /// Takes one request that is answered, or was carried out before one that is.
    fn settle(&mut self, one: &Pending, answer: Option<&Answer>, now: Ns) -> Result<(), String> {
        let when = (second(one.sent_ns), second(now));
        let Some(answer) = answer else {
            self.items.apply_quietly(&one.op, when);
            return Ok(());
        };
        self.world.borrow_mut().answers += 1;
        if *answer == Answer::NoRoom && !self.may_be_refused(&one.op) {
            return Err("there was room for it".to_owned());
        }
        match shared_key(&one.op) {
            Some(number) => self.settle_shared(number, one, answer, now),
            None => self.settle_own(one, answer, when),
        }
    }

    fn settle_own(&mut self, one: &Pending, answer: &Answer, when: When) -> Result<(), String> {
        match (&one.op, answer) {
            // A number is stored anew when it gets longer.
            (Op::Increment { .. }, Answer::NoRoom) => Ok(()),
            _ => self.items.apply(&one.op, answer, when),
        }
    }

    fn may_be_refused(&self, op: &Op) -> bool {
        let world = self.world.borrow();
        let is_large = match op {
            // What is there may be large already.
            Op::Store { verb: Verb::Append | Verb::Prepend, .. } => true,
            Op::Store { value, .. } => value.len() + 200 > world.item_bytes,
            _ => false,
        };
        is_large || !world.is_ample
    }

    fn settle_shared(
        &mut self,
        number: u64,
        one: &Pending,
        answer: &Answer,
        now: Ns,
    ) -> Result<(), String> {
        let mut world = self.world.borrow_mut();
        let evicts = world.evicts || !world.is_ample;
        let register = &mut world.registers[number as usize];
        match (&one.op, answer, one.write) {
            (_, Answer::Stored | Answer::Deleted, Some(write)) => register.end(write, now),
            // A delete of nothing is a read.
            (Op::Delete { .. }, Answer::NotFound, Some(write)) => {
                register.refuse(write);
                return if evicts { Ok(()) } else { register.miss(one.sent_ns) };
            }
            // The item that was there may be dropped.
            (Op::Store { .. }, Answer::NoRoom, Some(write)) => register.become_delete(write),
            (_, Answer::Values(values), None) => match values.first() {
                None if evicts => {}
                None => return register.miss(one.sent_ns),
                Some(got) => {
                    let value = text(&got.value);
                    let write = value.split(':').next().and_then(|number| number.parse().ok());
                    let write = write.ok_or("a shared value of another's")?;
                    register.read(write, one.sent_ns, now)?;
                }
            },
            _ => return Err("no answer to that request of a shared key".to_owned()),
        }
        Ok(())
    }
}

/// The shared key that a request is about.
fn shared_key(op: &Op) -> Option<u64> {
    let key = match op {
        Op::Get { keys } => keys[0],
        Op::QuietGet { key } | Op::Store { key, .. } | Op::Delete { key, .. } => *key,
        _ => return None,
    };
    match key {
        Key::Shared { number } => Some(number),
        _ => None,
    }
}

fn exptime(random: &mut Random) -> u32 {
    [0, 0, 0, 1, 2, 60, 3000][random.index(7)]
}

fn second(at_ns: Ns) -> u64 {
    (at_ns - START_NS) / SECOND_NS
}

impl Client for CacheClient {
    fn send(&mut self, now: Ns, random: &mut Random, out: &mut Vec<u8>) -> Result<Next, String> {
        if self.has_quit {
            return Ok(Next::Await);
        }
        while self.left > 0 && !self.is_full() && random.chance(800) {
            self.left -= 1;
            let (mut op, write) = self.draw(random);
            if self.left == 0 && op.is_quiet() {
                op = Op::Nonsense;
            }
            if let (Some(write), Some(number)) = (write, shared_key(&op)) {
                let register = &mut self.world.borrow_mut().registers[number as usize];
                match op {
                    Op::Delete { .. } => register.begin_delete(write, now),
                    _ => register.begin(write, now),
                }
            }
            self.protocol.write(&op, out);
            self.pending.push_back(Pending { op, sent_ns: now, write });
        }
        if self.left > 0 {
            let is_due = self.pending.iter().any(|one| !one.op.is_quiet());
            return Ok(if is_due { Next::Await } else { Next::Send });
        }
        if self.quits {
            self.has_quit = true;
            out.extend_from_slice(b"quit\r\n");
            return Ok(Next::Await);
        }
        Ok(Next::Finish)
    }

    fn receive(&mut self, now: Ns, input: &mut Input) -> Result<(), String> {
        while !input.is_empty() {
            let Some(quiet) = self.pending.iter().position(|one| !one.op.is_quiet()) else {
                return Err(format!("an answer to nothing: {:?}", text(input.bytes())));
            };
            let op = &self.pending[quiet].op;
            let named = |why: String| format!("client {}, {}: {why}", self.number, shown(op));
            let Some((used, answer)) = self.protocol.read(op, input.bytes()).map_err(named)? else {
                return Ok(());
            };
            input.consume(used);
            for index in 0..=quiet {
                let one = self.pending.pop_front().expect("it is pending");
                let answer = (index == quiet).then_some(&answer);
                let settled = self.settle(&one, answer, now);
                settled.map_err(|why| {
                    let answer = format!("{answer:?}").chars().take(200).collect::<String>();
                    format!("client {}, {}: {why} ({answer})", self.number, shown(&one.op))
                })?;
            }
        }
        Ok(())
    }

    fn ended(&mut self, _: Ns, end: End, is_stopping: bool) -> Result<(), String> {
        let is_whole = self.pending.is_empty() && self.left == 0;
        let may_end = is_stopping || self.world.borrow().closes_slow;
        match end {
            End::Broken => Ok(()),
            End::Closed if is_whole => Ok(()),
            _ if may_end => Ok(()),
            _ => Err(format!(
                "client {}: the end ({end:?}) with {} answers due and {} requests to send",
                self.number,
                self.pending.len(),
                self.left
            )),
        }
    }
}

fn shown(op: &Op) -> String {
    match op {
        Op::Store { verb, key, value, exptime, .. } => {
            format!("{verb:?} of {} bytes at {key:?} for {exptime} s", value.len())
        }
        _ => format!("{op:?}"),
    }
}
