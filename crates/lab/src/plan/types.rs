//! What a suite means: points, targets and rounds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::units::{Share, Span};
use judge::{Metric, Metrics};
use load::{Counters, Scenario, Service, Speaks};
use wire::ProtocolError;

use super::event::Event;
use super::require::Requirement;
use super::rung::Rung;
use crate::drive::Clients;

/// A suite that can run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the suite was read from.
    pub path: PathBuf,
    /// Its text as read.
    pub text: String,
    /// The overrides given on the command line.
    pub settings: Vec<(String, toml::Value)>,
    /// What its author should know, though it runs.
    pub notes: Vec<String>,
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
    /// Its metrics, with the figures that its programs report.
    pub metrics: Metrics,
}

/// One combination of the sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// In words: `16 conns · depth 16 · closed`.
    pub label: String,
    /// The swept keys with their values, and `workload.operation`.
    pub keys: BTreeMap<String, serde_json::Value>,
    /// The workload, and the operations of all groups of clients.
    pub workload: Scenario,
    /// Whether its reads may find nothing.
    pub may_miss: bool,
    /// Who sends them.
    pub clients: Vec<Clients>,
    /// To whom.
    pub targets: Vec<Target>,
    /// What must hold for the first target.
    pub requirements: Vec<Requirement>,
    /// Named loads, and what must hold for a target that carries one.
    pub carried: Vec<(String, Requirement)>,
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
    pub speaks: Speaks,
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
    /// The data that preparing it writes, where they are kept.
    pub kept_data: Option<KeptData>,
    /// A command run once before anything starts.
    pub build: Option<Vec<String>>,
    /// A command run before each start.
    pub setup: Option<Vec<String>>,
    /// What its command is put behind; timings taken so are not the service's.
    pub wrap: Option<Vec<String>>,
    /// How long it may take until it accepts connections.
    pub ready_within: Span,
    /// The signal that ends it.
    pub stop_signal: rustix::process::Signal,
    /// What makes it a rung, if it is one.
    pub rung: Option<Rung>,
    /// Why it is left out, if it is.
    pub skipped: Option<String>,
    /// Whether it is measured at this point.
    pub is_here: bool,
    /// What is known of how it came to be, by name: the commit that it was built from.
    pub facts: Vec<(String, String)>,
}

impl Target {
    /// Whether it is started at this point.
    pub fn is_measured(&self) -> bool {
        self.skipped.is_none() && self.is_here
    }
}

/// A kept data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptData {
    /// Its name, which follows from all that the data depend on.
    pub name: String,
    /// Whether each start has a copy of its own; else all have the same.
    pub is_copied: bool,
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
    Page(String, String, MakePage),
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
    /// Minimum number of rounds.
    pub at_least: u32,
    /// Maximum number of rounds.
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
    pub primary: Metric,
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
    /// How tight the interval has to be before it may stop; `None` stops once there is a verdict.
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
    /// Returns the default of an option of `serve SERVICE`, where it has one.
    pub default_of: DefaultOf,
    /// Makes what reads a page of counters.
    pub page: MakePage,
    /// Returns whether a read of a service, by its name, may find nothing: only then hits have a
    /// share.
    pub may_miss: fn(&str) -> bool,
}

/// Returns the default of a service's option, both by name.
pub type DefaultOf = fn(&str, &str) -> Option<String>;

/// Makes what reads the page of counters at a host and a path, or says why there is none.
pub type MakePage = fn(&str, &str) -> Result<Arc<dyn Counters>, ProtocolError>;
