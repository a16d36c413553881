//! From a suite file to what will run: points, targets, clients and rounds, all checked before
//! anything starts.
//!
//! What was written is in `suite`; what it means is here. Control plane.

mod arrivals;
mod clients;
mod compare;
mod error;
mod event;
mod expression;
mod fill;
mod require;
mod resolve;
mod rounds;
mod rung;
mod suite;
mod sweep;
mod target;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use load::units::{Share, Span};
use load::{DialectRow, Service, Workload};

pub use arrivals::{Arrivals, Schedule, Spacing, Stretch};
pub use compare::Contest;
pub use error::SuiteError;
pub use event::{Action, Event};
pub use expression::Expression;
pub use require::{Comparison, Requirement};
pub use rounds::LEAST_MEASURE;
pub use rung::Rung;
pub use sweep::parse_setting;

/// A suite that can run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the suite was read from.
    pub path: PathBuf,
    /// Its text as read.
    pub text: String,
    /// The overrides given on the command line.
    pub settings: Vec<(String, toml::Value)>,
    /// Its title.
    pub title: String,
    /// What it claims to stand for.
    pub claims: Vec<String>,
    /// What makes it less than that.
    pub compromises: Vec<String>,
    /// The combinations of the sweep, in the order of the suite.
    pub points: Vec<Point>,
    /// How often and how long.
    pub rounds: Rounds,
}

/// One combination of the sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// In words: `16 conns · depth 16 · closed`.
    pub label: String,
    /// The swept keys with their values, and `workload.operation`.
    pub keys: BTreeMap<String, serde_json::Value>,
    /// The operations of all groups of clients.
    pub workload: Workload,
    /// Who sends them.
    pub clients: Vec<Clients>,
    /// To whom.
    pub targets: Vec<Target>,
    /// What must hold for the first target.
    pub requirements: Vec<Requirement>,
    /// What every trial has to be like: one that is not is invalid.
    pub expected: Vec<Requirement>,
    /// What makes it pointless to go on with the run.
    pub abort_on: Vec<Requirement>,
    /// What happens in every slice.
    pub events: Vec<Event>,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in the suite.
    pub name: String,
    /// How it comes to be.
    pub kind: TargetKind,
    /// How it is spoken to.
    pub dialect: &'static DialectRow,
    /// How its own counters are read.
    pub counters: CountersOf,
    /// What its bytes travel in.
    pub medium: Medium,
    /// The CPUs it is pinned to; empty is all.
    pub cpus: Vec<usize>,
    /// A program that loads it, in place of this program's own clients.
    pub client: Option<Vec<String>>,
    /// Environment variables beside the lab's own.
    pub env: BTreeMap<String, String>,
    /// What is picked out of a batch's output, by name.
    pub figures: Vec<(String, regex_lite::Regex)>,
    /// The name under which the data that preparing it writes are kept, where they are.
    pub kept_data: Option<String>,
    /// A command run once before anything starts.
    pub build: Option<Vec<String>>,
    /// A command run before each start.
    pub setup: Option<Vec<String>>,
    /// What its command is put behind; timings taken so are not the service's.
    pub wrap: Option<Vec<String>>,
    /// How long it may take until it accepts connections.
    pub ready_within: Span,
    /// What makes it a rung, if it is one.
    pub rung: Option<Rung>,
    /// Why it is left out, if it is.
    pub skipped: Option<String>,
    /// What is known of how it came to be, by name: the commit that it was built from.
    pub facts: Vec<(String, String)>,
}

/// How a target comes to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A service of this program, with its arguments after `serve SERVICE`.
    Service(&'static str, Vec<String>),
    /// A program, with placeholders `{port}` and `{dir}` still in its arguments.
    Command(Vec<String>),
    /// A program that is run to its end, over and over.
    Batch(Vec<String>),
    /// Something that runs already, at this address.
    Address(wire::Address),
    /// Operations without a socket, evaluated in a process of their own.
    InProcess,
}

/// How a target's own counters are read.
#[derive(Clone, Debug)]
pub enum CountersOf {
    /// In its dialect, where that has words for it.
    Dialect,
    /// From a page of Prometheus text: host and port, and path, with placeholders still in them.
    Page(String, String),
    /// Not at all.
    Nowhere,
}

/// What a target's bytes travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// TCP over IPv4's loopback.
    Tcp,
    /// TCP over IPv6's loopback.
    Tcp6,
    /// A Unix socket.
    Unix,
    /// UDP over IPv4's loopback.
    Udp,
}

/// A named group of slots.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Its name.
    pub name: String,
    /// Its operations with their weights, where groups differ; else it does the workload's.
    pub mix: Option<Vec<(usize, u32)>>,
    /// How many connections, each one slot.
    pub connections: usize,
    /// How many requests each keeps outstanding.
    pub pipeline: usize,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// How many threads drive them.
    pub threads: usize,
    /// The CPUs these threads are pinned to; empty is all.
    pub cpus: Vec<usize>,
    /// How long an answer may take before it is missing.
    pub timeout: Span,
    /// A new connection after so many answers; `None` keeps connections.
    pub reconnect_every: Option<u64>,
    /// Whether the last microseconds before a scheduled request are spun away.
    pub spin: bool,
}

impl Clients {
    /// What this group does of the workload of all groups.
    pub fn workload(&self, all: &Workload) -> Workload {
        let mix = self.mix.as_ref().unwrap_or(&all.mix).clone();
        let takes_steps = self.mix.is_none() || self.arrivals == Arrivals::Steps;
        let steps = if takes_steps { all.steps.clone() } else { Vec::new() };
        Workload { mix, steps, ..all.clone() }
    }
}

/// How often and how long.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Measured time of each target in a round.
    pub measure: Span,
    /// The length of a slice; `None` measures each target in one piece.
    pub slice: Option<Span>,
    /// Load before measuring begins; the least of it, when it ends by itself.
    pub warm_up: Span,
    /// The warm-up ends when the load is steady, or after this; `None` when its length is fixed.
    pub warm_up_most: Option<Span>,
    /// At least so many rounds.
    pub at_least: u32,
    /// At most so many rounds.
    pub at_most: u32,
    /// Stop at the first of its looks at which the relative half-width of the primary metric's
    /// interval is this small.
    pub until: Option<Share>,
    /// Two targets count as the same when the interval lies within this.
    pub same_within: Share,
    /// Whether slices are watched for disturbance, and measured again when they are disturbed.
    pub repeat_disturbed: bool,
    /// Whether each trial is the first load that its data see: it has no warm-up, it is measured in
    /// one piece and never again, and kept data are dropped from the page cache before.
    pub is_cold: bool,
    /// Whether targets are started fresh in every round; else they run on, and from the second
    /// round on nothing is prepared.
    pub restart: bool,
    /// Whether targets are stopped (SIGSTOP) outside their slices.
    pub stops_between: bool,
    /// The metric that carries verdicts.
    pub primary: &'static str,
    /// Time for the whole suite.
    pub budget: Option<Span>,
    /// When the rounds are those of a comparison that is looked at while it runs.
    pub sequence: Option<Sequence>,
}

/// How often an interval may miss, unless a comparison asks for something else.
const ERROR: f64 = 0.05;

impl Rounds {
    /// The confidence of intervals and verdicts: that of the comparison; or 95 %, which the looks
    /// of a run that stops when its interval is tight have to share.
    pub fn confidence(&self) -> f64 {
        if let Some(sequence) = &self.sequence {
            return 1.0 - sequence.error;
        }
        judge::level_confidence(&self.looks(), ERROR).unwrap_or(1.0 - ERROR)
    }

    /// After how many rounds it is looked whether the interval is tight enough; only then may a
    /// run stop because of it. A run of a fixed number of rounds is looked at once, at its end.
    pub fn looks(&self) -> Vec<u32> {
        match self.until {
            Some(_) => judge::looks_from(self.at_least, self.at_most),
            None => vec![self.at_least],
        }
    }
}

/// What a comparison that is looked at while it runs fixes before its first round.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The probability of a wrong better or worse, over all points and looks.
    pub error: f64,
    /// How tight the interval has to be before it may stop; `None` stops once the verdict is told.
    pub until: Option<f64>,
    /// What differs between the targets on purpose, as the user calls it.
    pub factor: Option<String>,
    /// The smallest difference that can be shown, as a fraction, and what that was said from.
    pub least_shown: Option<(f64, String)>,
}

/// Says what is wrong with the arguments of `serve SERVICE`, if anything is.
pub type CheckArguments<'a> = &'a dyn Fn(&str, &[String]) -> Result<(), String>;

/// What the plan has to know of the program around it.
#[derive(Clone, Copy)]
pub struct Registry<'a> {
    /// The services there are.
    pub services: &'a [&'static Service],
    /// Checks the arguments of `serve SERVICE` without starting anything.
    pub check_arguments: CheckArguments<'a>,
}

/// People write suites: what is longer is something else.
pub const MOST_SUITE_BYTES: u64 = 4 << 20;

impl Plan {
    /// Reads the suite at `path` with `settings` applied over it.
    ///
    /// # Errors
    /// What is wrong, with file, line and column, and what would be right.
    pub fn read(
        path: &Path,
        settings: &[(String, toml::Value)],
        registry: Registry<'_>,
    ) -> Result<Self, Box<SuiteError>> {
        let text = load::read_text(path, MOST_SUITE_BYTES).map_err(|error| {
            let source = error::Source::new(path, String::new());
            source.error(None, error.to_string(), None)
        })?;
        Self::parse(path, text, settings, registry)
    }

    /// Reads a suite from `text`; `path` is its name in messages.
    ///
    /// # Errors
    /// As [`Plan::read`].
    pub fn parse(
        path: &Path,
        text: String,
        settings: &[(String, toml::Value)],
        registry: Registry<'_>,
    ) -> Result<Self, Box<SuiteError>> {
        resolve::resolve(path, text, settings, registry)
    }

    /// How long the suite takes at least: every round with its starts, preparation and warm-up.
    pub fn shortest(&self) -> Span {
        let rounds = u64::from(self.rounds.at_least);
        let trial = |point: &Point| {
            let targets = point.targets.iter().filter(|target| target.skipped.is_none());
            let prepare_ns = START_NS + point.workload.prepared_keys() * PREPARE_NS_PER_KEY;
            let one = prepare_ns + self.rounds.warm_up.ns + self.rounds.measure.ns;
            (targets.count() as u64).saturating_mul(one)
        };
        let all = self.points.iter().map(trial).fold(0, u64::saturating_add);
        Span { ns: all.saturating_mul(rounds) }
    }

    /// How long it takes when as many slices are disturbed, and measured again, as may be.
    pub fn shortest_disturbed(&self) -> Span {
        let Rounds { measure, slice, at_least, repeat_disturbed, is_cold, .. } = &self.rounds;
        let slice_ns = slice.unwrap_or(*measure).ns.max(1);
        let again_ns = measure.ns.div_ceil(slice_ns).div_ceil(2) * slice_ns;
        let trials = |point: &Point| {
            let here = point.targets.iter().filter(|target| target.skipped.is_none()).count();
            if *repeat_disturbed && !is_cold { here as u64 } else { 0 }
        };
        let trials: u64 = self.points.iter().map(trials).sum();
        let again_ns = trials.saturating_mul(again_ns).saturating_mul(u64::from(*at_least));
        Span { ns: self.shortest().ns.saturating_add(again_ns) }
    }

    /// The overrides, each with its value as TOML writes it.
    pub fn settings_as_text(&self) -> Vec<(String, String)> {
        self.settings.iter().map(|(key, value)| (key.clone(), value.to_string())).collect()
    }

    /// The names of all targets, in order, with the reason for each that is left out.
    pub fn targets(&self) -> &[Target] {
        self.points.first().map_or(&[], |point| &point.targets)
    }
}

/// Starting and stopping one process, as a rule.
const START_NS: u64 = 150_000_000;

/// Writing one key while preparing, as a rule.
const PREPARE_NS_PER_KEY: u64 = 2_000;

/// What `arrivals = TEXT` means, for tests of what follows schedules.
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test's own text is right")]
pub(crate) fn arrivals_of(text: &str) -> Arrivals {
    #[derive(serde::Deserialize)]
    struct Suite {
        arrivals: arrivals::ArrivalsSpec,
    }
    let suite: Suite = toml::from_str(&format!("arrivals = {text}")).unwrap();
    suite.arrivals.resolve(Path::new("")).unwrap()
}
