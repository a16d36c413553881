//! A sample of all batches: the CPU time of each command, and the most requested keys.
//!
//! A thread takes about one batch of [`ONE_IN`] as a sample, after gaps of random length so that
//! no rhythm of a client can hide from it. Within it, the thread's CPU clock is read whenever the
//! command changes: two system calls for a batch of one kind, of 170 ns each where this was
//! written. All other batches pay for counting one number down. With the list of keys that is
//! about 4 ns for a batch, where a single `get` over a socket takes 1,500 ns or more.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::{Ns, clock};

use super::hot_keys::{HotKey, HotKeys};
use crate::model::Seconds;
use crate::protocol::{binary, text};

/// One batch in this many is a sample.
pub(super) const ONE_IN: u32 = 128;

/// The number of a command: a row of the text or the binary protocol, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandId(u8);

impl CommandId {
    /// A line or packet that no row stands for.
    pub(super) const OTHER: Self = Self(0);

    /// The command of a line, by its first word.
    pub(super) fn of_line(line: &[u8]) -> Self {
        let end = line.iter().position(|byte| b" \r\n".contains(byte)).unwrap_or(line.len());
        let row = text::COMMANDS.iter().position(|row| row.name.as_bytes() == &line[..end]);
        row.map_or(Self::OTHER, |row| Self(row as u8 + 1))
    }

    /// The command of a packet.
    pub(super) fn of_packet(bytes: &[u8]) -> Self {
        let opcode = bytes.get(1);
        let row = binary::COMMANDS.iter().position(|row| Some(&row.opcode) == opcode);
        row.map_or(Self::OTHER, |row| Self((text::COMMANDS.len() + row) as u8 + 1))
    }

    /// What it is called.
    pub(super) fn name(self) -> String {
        let index = usize::from(self.0);
        if index == 0 {
            return "other".to_owned();
        }
        match text::COMMANDS.get(index - 1) {
            Some(row) => row.name.to_owned(),
            None => format!("binary-{}", binary::COMMANDS[index - 1 - text::COMMANDS.len()].name),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..=(text::COMMANDS.len() + binary::COMMANDS.len()) as u8).map(Self)
    }
}

/// Sums over runs of one command in sampled batches: `n` commands that took `x` nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    runs: f64,
    n: f64,
    x: f64,
    nn: f64,
    nx: f64,
    xx: f64,
}

impl Sums {
    fn add(&mut self, commands: f64, ns: f64) {
        self.runs += 1.0;
        self.n += commands;
        self.x += ns;
        self.nn += commands * commands;
        self.nx += commands * ns;
        self.xx += ns * ns;
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            n: self.n + other.n,
            x: self.x + other.x,
            nn: self.nn + other.nn,
            nx: self.nx + other.nx,
            xx: self.xx + other.xx,
        }
    }

    /// Nanoseconds for a command and the standard error of that: the ratio estimator and its
    /// variance (Cochran, Sampling Techniques, 3rd edition, sections 2.11 and 6.4). There is no
    /// standard error for fewer than two runs.
    fn ratio(&self) -> Option<(f64, Option<f64>)> {
        if self.n <= 0.0 {
            return None;
        }
        let ratio = self.x / self.n;
        let squares = (self.xx - 2.0 * ratio * self.nx + ratio * ratio * self.nn).max(0.0);
        let variance = squares * self.runs / (self.runs - 1.0) / (self.n * self.n);
        Some((ratio, (self.runs >= 2.0).then(|| variance.sqrt())))
    }
}

/// The CPU time of one command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) name: String,
    /// How many were sampled.
    pub(super) sampled: u64,
    /// User and system time from the first byte of the command to the last of its answer, in
    /// nanoseconds; receiving and sending are not in it, as they are a whole batch's.
    pub(super) ns: f64,
    /// The standard error of `ns`.
    pub(super) error_ns: Option<f64>,
}

/// What one thread has sampled.
#[derive(Debug)]
struct Sampled {
    sums: Vec<Sums>,
    hot: HotKeys,
}

/// One thread's samples.
#[derive(Debug)]
pub(super) struct Samples {
    /// Batches until the next sample. Only the owning thread writes it.
    left: AtomicU32,
    random: AtomicU64,
    /// What reading the clock costs.
    clock_ns: f64,
    /// Locked by the thread for each sample, and by readers.
    sampled: Mutex<Sampled>,
}

impl Samples {
    /// The samples of thread number `thread`.
    pub(super) fn new(thread: usize) -> Self {
        let sums = vec![Sums::default(); CommandId::all().count()];
        let seed = (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let samples = Self {
            left: AtomicU32::new(0),
            random: AtomicU64::new(seed),
            clock_ns: clock_cost_ns(),
            sampled: Mutex::new(Sampled { sums, hot: HotKeys::default() }),
        };
        samples.draw();
        samples
    }

    /// Counts a batch. Returns whether it is a sample.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let left = self.left.load(Relaxed);
        if left > 0 {
            self.left.store(left - 1, Relaxed);
            return false;
        }
        self.draw();
        true
    }

    /// Draws the length of the next gap: uniform, and [`ONE_IN`] with its sample on average.
    #[cold]
    fn draw(&self) {
        // xorshift64 (Marsaglia, 2003): quality hardly matters here, and there is one writer.
        let mut random = self.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.store(random, Relaxed);
        self.left.store((random >> 33) as u32 % (2 * ONE_IN - 1), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Sampled> {
        // Numbers are whole between any two calls: a panic elsewhere can't break them.
        self.sampled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a key of a sampled batch.
    pub(super) fn add_key(&self, now_s: Seconds, key: &[u8]) {
        self.lock().hot.add(now_s, key);
    }

    /// Forgets everything.
    pub(super) fn reset(&self) {
        let mut sampled = self.lock();
        sampled.sums.fill(Sums::default());
        sampled.hot = HotKeys::default();
    }
}

/// What reading the thread's CPU clock costs: the least of some tries.
fn clock_cost_ns() -> f64 {
    let tries = (0..32).map(|_| {
        let start = clock::thread_cpu();
        clock::thread_cpu().saturating_sub(start)
    });
    tries.min().unwrap_or(0) as f64
}

/// Measures the commands of one sampled batch.
#[derive(Debug)]
pub(super) struct Meter {
    kind: Option<CommandId>,
    commands: u32,
    start: Ns,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { kind: None, commands: 0, start: 0 }
    }

    /// Begins a step of `kind`; `None` continues the command before.
    pub(super) fn step(&mut self, samples: &Samples, kind: Option<CommandId>) {
        if kind.is_some() && kind != self.kind {
            self.end(samples);
            (self.kind, self.commands) = (kind, 0);
            self.start = clock::thread_cpu();
        }
    }

    /// That step has begun a command.
    pub(super) fn count(&mut self) {
        self.commands += 1;
    }

    /// Notes what the commands of one kind have taken.
    pub(super) fn end(&mut self, samples: &Samples) {
        let Some(kind) = self.kind.take() else { return };
        let ns = clock::thread_cpu().saturating_sub(self.start) as f64 - samples.clock_ns;
        let mut sampled = samples.lock();
        sampled.sums[usize::from(kind.0)].add(f64::from(self.commands), ns.max(0.0));
    }
}

/// The commands that were sampled by any thread.
pub(super) fn costs<'a>(threads: impl Iterator<Item = &'a Samples> + Clone) -> Vec<Cost> {
    let cost = |kind: CommandId| {
        let of = |samples: &Samples| samples.lock().sums[usize::from(kind.0)];
        let sums = threads.clone().fold(Sums::default(), |sum, one| sum.plus(&of(one)));
        let (ns, error_ns) = sums.ratio()?;
        Some(Cost { name: kind.name(), sampled: sums.n as u64, ns, error_ns })
    };
    CommandId::all().filter_map(cost).collect()
}

/// The keys asked for most, the hottest first, and of how many sampled requests that is.
pub(super) fn hot_keys<'a>(
    threads: impl Iterator<Item = &'a Samples>,
    now_s: Seconds,
) -> (Vec<HotKey>, u64) {
    let mut all = Vec::new();
    let total = threads.map(|samples| samples.lock().hot.gather(now_s, &mut all)).sum();
    all.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.key.cmp(&other.key)));
    (all, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_batch_of_so_many_is_a_sample() {
        let samples = Samples::new(0);
        let batches = 100_000;
        let taken = (0..batches).filter(|_| samples.is_due()).count() as f64;
        let expected = f64::from(batches) / f64::from(ONE_IN);
        assert!((taken - expected).abs() < 0.1 * expected, "{taken} of about {expected}");
    }

    #[test]
    fn the_ratio_and_its_error_are_those_of_the_textbook() {
        let mut sums = Sums::default();
        assert_eq!(sums.ratio(), None);
        sums.add(1.0, 100.0);
        assert_eq!(sums.ratio(), Some((100.0, None)));
        // With runs of one command each, it is the mean and its standard error.
        sums.add(1.0, 104.0);
        sums.add(1.0, 102.0);
        let (ratio, error) = sums.ratio().expect("a ratio");
        assert!((ratio - 102.0).abs() < 1e-9);
        assert!((error.expect("an error") - 2.0 / 3.0_f64.sqrt()).abs() < 1e-9);
        // Runs that all took the same for each command leave no error, however long they are.
        let mut even = Sums::default();
        (1..9).for_each(|length| even.add(f64::from(length), f64::from(length) * 50.0));
        let (ratio, error) = even.ratio().expect("a ratio");
        assert!((ratio - 50.0).abs() < 1e-9 && error.expect("an error") < 1e-6);
    }

    #[test]
    fn commands_are_known_by_their_first_word_or_opcode() {
        assert_eq!(CommandId::of_line(b"get key\r\n").name(), "get");
        assert_eq!(CommandId::of_line(b"quit\r\n").name(), "quit");
        assert_eq!(CommandId::of_line(b"bogus\r\n").name(), "other");
        assert_eq!(CommandId::of_packet(&[0x80, 0x00]).name(), "binary-get");
        assert_eq!(CommandId::of_packet(&[0x80]).name(), "other");
    }

    #[test]
    fn the_commands_of_a_batch_are_told_apart() {
        let samples = Samples::new(0);
        let (get, set) = (CommandId::of_line(b"get a\r\n"), CommandId::of_line(b"set a 0 0 1\r\n"));
        let mut meter = Meter::new();
        for kind in [Some(get), Some(get), Some(set), None] {
            meter.step(&samples, kind);
            if kind.is_some() {
                meter.count();
            }
        }
        meter.end(&samples);
        let costs = costs([&samples].into_iter());
        let counts: Vec<_> = costs.iter().map(|cost| (&cost.name[..], cost.sampled)).collect();
        assert_eq!(counts, [("set", 1), ("get", 2)]);
    }
}
