//! A definition with the counts of ECMWF's own performance tests: 320,830 nodes at scale 1.
//!
//! It is written line by line, from counts alone: the same scale gives the same bytes. Every task
//! waits, so that no job starts once the suites have begun: each suite has a task `gate`, which is
//! complete, and whose event `go` nothing sets; the families that hold tasks have it in their
//! trigger. The families above them have none: a server has to look at all of them.

use std::io::{self, Write};

use super::spread::Spread;

/// How many suites there are, at any scale.
const SUITES: u64 = 18;

/// Families come in blocks: one, in it eight, and in each of those eight that hold tasks.
const BLOCK: u64 = 1 + INNER * (1 + INNER);
const INNER: u64 = 8;

/// The length of a variable's value, by which the text at scale 1 is as long as ECMWF's 60 MB.
const VALUE_BYTES: usize = 22;

/// The scales that are taken.
pub const SCALES: std::ops::RangeInclusive<f64> = 0.001..=10.0;

/// How many there are of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Suites.
    pub suites: u64,
    /// Families.
    pub families: u64,
    /// Tasks.
    pub tasks: u64,
    variables: u64,
    times: u64,
    lates: u64,
    events: u64,
    meters: u64,
    labels: u64,
    triggers: u64,
    completes: u64,
    limits: u64,
    inlimits: u64,
    repeats: u64,
    defstatuses: u64,
}

impl Counts {
    /// The counts of `3199.def` in ECMWF's `Client/test/TestPerfForLargeDefs`, multiplied by
    /// `scale`. Of some there is at least one a suite. `None` unless it is one of [`SCALES`].
    pub fn scaled(scale: f64) -> Option<Self> {
        let of = |count: u32| (f64::from(count) * scale).round() as u64;
        SCALES.contains(&scale).then(|| Self {
            suites: SUITES,
            families: of(105_375),
            tasks: of(215_437),
            variables: of(885_533),
            times: of(245),
            lates: of(41_023),
            events: of(35_477).max(SUITES),
            meters: of(14_994),
            labels: of(46_714),
            triggers: of(115_613),
            completes: of(6_870),
            limits: of(635).max(SUITES),
            inlimits: of(52_376),
            repeats: of(90),
            defstatuses: of(1_975).max(SUITES),
        })
    }

    /// Suites, families and tasks together.
    pub fn nodes(&self) -> u64 {
        self.suites + self.families + self.tasks
    }

    /// Families that hold tasks.
    fn leaves(&self) -> u64 {
        let mut families = Spread::new(self.families, self.suites);
        (0..self.suites).map(|_| leaves(families.take())).sum()
    }
}

/// A suite's name, by its number.
pub(super) fn suite(number: u64) -> String {
    format!("s{number:02}")
}

/// How many of a suite's families hold tasks.
fn leaves(families: u64) -> u64 {
    let (blocks, rest) = (families / BLOCK, families % BLOCK);
    let below = rest.saturating_sub(1);
    blocks * INNER * INNER + below - below.div_ceil(1 + INNER)
}

/// How deep a suite's family lies, by its number in the suite: 1 to 3.
fn depth(family: u64) -> usize {
    match family % BLOCK {
        0 => 1,
        place if (place - 1).is_multiple_of(1 + INNER) => 2,
        _ => 3,
    }
}

/// What is written, and how much of everything is left for what follows.
struct Writer<W> {
    out: W,
    depth: usize,
    variables: Spread,
    variable: u64,
    repeats: Spread,
    tasks: Spread,
    task: u64,
    of_tasks: OfTasks,
}

/// What tasks have, the gates left out.
struct OfTasks {
    triggers: Spread,
    defstatuses: Spread,
    events: Spread,
    meters: Spread,
    labels: Spread,
    lates: Spread,
    completes: Spread,
    inlimits: Spread,
    times: Spread,
}

/// Writes the definition of these counts.
///
/// # Errors
/// When it can't be written.
pub fn generate(counts: &Counts, out: impl Write) -> io::Result<()> {
    let (leaves, tasks) = (counts.leaves(), counts.tasks - counts.suites);
    let over = |things: u64| Spread::new(things, tasks);
    let mut writer = Writer {
        out,
        depth: 0,
        variables: Spread::new(counts.variables, counts.nodes()),
        variable: 0,
        repeats: Spread::new(counts.repeats, counts.families),
        tasks: Spread::new(tasks, leaves),
        task: 0,
        of_tasks: OfTasks {
            triggers: over(counts.triggers - leaves),
            defstatuses: over(counts.defstatuses - counts.suites),
            events: over(counts.events - counts.suites),
            meters: over(counts.meters),
            labels: over(counts.labels),
            lates: over(counts.lates),
            completes: over(counts.completes),
            inlimits: over(counts.inlimits),
            times: over(counts.times),
        },
    };
    let mut limits = Spread::new(counts.limits, counts.suites);
    let mut families = Spread::new(counts.families, counts.suites);
    for suite in 0..counts.suites {
        writer.suite(suite, limits.take(), families.take())?;
    }
    writer.out.flush()
}

impl<W: Write> Writer<W> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.out, "{:width$}{text}", "", width = self.depth * 2)
    }

    fn suite(&mut self, suite: u64, limits: u64, families: u64) -> io::Result<()> {
        self.line(format_args!("suite {}", self::suite(suite)))?;
        self.depth = 1;
        self.variables()?;
        for limit in 0..limits {
            self.line(format_args!("limit l{limit} 10"))?;
        }
        self.gate()?;
        for family in 0..families {
            let depth = depth(family);
            self.close(depth)?;
            self.family(suite, family, limits, depth == 3)?;
        }
        self.close(1)?;
        self.depth = 0;
        self.line(format_args!("endsuite"))
    }

    /// Ends families until the next node lies at `depth`.
    fn close(&mut self, depth: usize) -> io::Result<()> {
        while self.depth > depth {
            self.depth -= 1;
            self.line(format_args!("endfamily"))?;
        }
        Ok(())
    }

    fn gate(&mut self) -> io::Result<()> {
        self.line(format_args!("task gate"))?;
        self.depth += 1;
        self.line(format_args!("defstatus complete"))?;
        self.variables()?;
        self.line(format_args!("event go"))?;
        self.depth -= 1;
        Ok(())
    }

    /// The variables of the next node.
    fn variables(&mut self) -> io::Result<()> {
        for _ in 0..self.variables.take() {
            let number = self.variable;
            let value = format_args!("/data/{number:0width$}", width = VALUE_BYTES - 6);
            self.line(format_args!("edit VAR_{} '{value}'", number % 64))?;
            self.variable += 1;
        }
        Ok(())
    }

    /// A family and, where it holds tasks, those.
    fn family(&mut self, suite: u64, family: u64, limits: u64, is_leaf: bool) -> io::Result<()> {
        self.line(format_args!("family f{family}"))?;
        self.depth += 1;
        if is_leaf && depth(family - 1) == 3 {
            let before = family - 1;
            self.line(format_args!(
                "trigger /s{suite:02}/gate:go == set and f{before} == complete"
            ))?;
        } else if is_leaf {
            self.line(format_args!("trigger /s{suite:02}/gate:go == set"))?;
        }
        if self.repeats.take() > 0 {
            self.line(format_args!("repeat date YMD 20260101 20261231 1"))?;
        }
        self.variables()?;
        let tasks = if is_leaf { self.tasks.take() } else { 0 };
        (0..tasks).try_for_each(|place| self.a_task(suite, limits, place == 0))
    }

    fn a_task(&mut self, suite: u64, limits: u64, is_first: bool) -> io::Result<()> {
        let number = self.task;
        self.task += 1;
        self.line(format_args!("task t{number}"))?;
        self.depth += 1;
        if self.of_tasks.defstatuses.take() > 0 {
            self.line(format_args!("defstatus complete"))?;
        }
        if self.of_tasks.completes.take() > 0 {
            self.line(format_args!("complete /s{suite:02}/gate:go == set"))?;
        }
        match self.of_tasks.triggers.take() {
            0 => {}
            _ if is_first => self.line(format_args!("trigger /s{suite:02}/gate:go == set"))?,
            _ => self.line(format_args!("trigger t{} == complete", number - 1))?,
        }
        if self.of_tasks.lates.take() > 0 {
            self.line(format_args!("late -s +00:15 -c +02:00"))?;
        }
        self.variables()?;
        if self.of_tasks.inlimits.take() > 0 {
            self.line(format_args!("inlimit /s{suite:02}:l{}", number % limits.max(1)))?;
        }
        if self.of_tasks.labels.take() > 0 {
            self.line(format_args!("label info \"\""))?;
        }
        if self.of_tasks.meters.take() > 0 {
            self.line(format_args!("meter step 0 240 240"))?;
        }
        if self.of_tasks.events.take() > 0 {
            self.line(format_args!("event done"))?;
        }
        if self.of_tasks.times.take() > 0 {
            self.line(format_args!("time 23:59"))?;
        }
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, generate};

    fn text(scale: f64) -> String {
        let mut text = Vec::new();
        generate(&Counts::scaled(scale).expect("a scale"), &mut text).expect("memory");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn a_definition_has_the_counts_that_it_should() {
        for scale in [0.001, 0.01, 1.0] {
            let (text, counts) = (text(scale), Counts::scaled(scale).expect("a scale"));
            let lines = |word: &str| {
                let begins = |line: &&str| line.trim_start().starts_with(word);
                text.lines().filter(begins).count() as u64
            };
            for (word, count) in [
                ("suite ", counts.suites),
                ("family ", counts.families),
                ("task ", counts.tasks),
                ("edit ", counts.variables),
                ("time ", counts.times),
                ("late ", counts.lates),
                ("event ", counts.events),
                ("meter ", counts.meters),
                ("label ", counts.labels),
                ("trigger ", counts.triggers),
                ("complete ", counts.completes),
                ("limit ", counts.limits),
                ("inlimit ", counts.inlimits),
                ("repeat ", counts.repeats),
                ("defstatus ", counts.defstatuses),
            ] {
                assert_eq!(lines(word), count, "{word}at scale {scale}");
            }
        }
        let whole = Counts::scaled(1.0).expect("a scale");
        assert_eq!((whole.suites, whole.families, whole.tasks), (18, 105_375, 215_437));
        assert_eq!(whole.nodes(), 320_830);
        let bytes = text(1.0).len();
        assert!((59_000_000..60_500_000).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn the_same_scale_gives_the_same_bytes() {
        assert_eq!(text(0.01), text(0.01));
        assert_eq!(Counts::scaled(0.0), None);
        assert_eq!(Counts::scaled(f64::NAN), None);
    }
}
