//! A suite as it is written: the TOML's shape, nothing decided yet.

use std::collections::BTreeMap;

use base::units::{Share, Span};
use serde::Deserialize;

use super::arrivals::ArrivalsSpec;
use super::event::EventSpec;

/// A suite file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuiteSpec {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) claims: Lines,
    #[serde(default)]
    pub(crate) compromises: Lines,
    pub(crate) target: Vec<TargetSpec>,
    /// The first target as each rung of a ladder has it, in this order.
    #[serde(default)]
    pub(crate) rung: Vec<RungSpec>,
    /// Its keys are the service's own, but for a few.
    pub(crate) workload: toml::Table,
    pub(crate) clients: Vec<ClientsSpec>,
    /// How much faster simulated time runs, in which arrivals may be said; 100 unless said
    /// otherwise.
    pub(crate) time_scale: Option<f64>,
    #[serde(default)]
    pub(crate) event: Vec<EventSpec>,
    /// Numbers and texts of the suite's own, for its targets to name.
    #[serde(default, rename = "parameters")]
    _parameters: toml::Table,
    #[serde(default)]
    pub(crate) sweep: toml::Table,
    /// Figures that programs report, by name.
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, FigureSpec>,
    /// Names for what is computed from metrics and the suite's numbers.
    #[serde(default)]
    pub(crate) derive: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) require: BTreeMap<String, String>,
    /// Named loads, each with the condition under which a target carries it.
    #[serde(default)]
    pub(crate) carry: BTreeMap<String, String>,
    /// What a trial has to be like to be worth comparing, in the same form.
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, String>,
    /// Conditions in the same form under which the run ends at once.
    #[serde(default)]
    pub(crate) abort_on: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) rounds: RoundsSpec,
}

/// One line of text or several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged, expecting = "a text in quotes is wanted here, or a list of them")]
pub(crate) enum Lines {
    /// No line.
    #[default]
    None,
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Lines {
    pub(crate) fn to_vec(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::One(line) => vec![line.clone()],
            Self::Several(lines) => lines.clone(),
        }
    }
}

/// `[[target]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetSpec {
    pub(crate) name: String,
    /// A service of this program.
    pub(crate) serve: Option<String>,
    /// The service's long flags.
    #[serde(default)]
    pub(crate) options: toml::Table,
    /// A program started by the lab.
    pub(crate) command: Option<Vec<String>>,
    /// A program that is run to its end, over and over: each run is one operation.
    pub(crate) batch: Option<Vec<String>>,
    /// A program that loads it, in place of this program's own clients.
    pub(crate) client: Option<Vec<String>>,
    /// What is picked out of a batch's output: names with patterns that have one group.
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, String>,
    /// An implementation of the service's operations that needs no socket.
    pub(crate) in_process: Option<String>,
    /// Something that runs already.
    pub(crate) address: Option<String>,
    /// Whether that may be another host.
    #[serde(default)]
    pub(crate) allow_remote: bool,
    /// A dialect of the workload's service.
    pub(crate) speaks: Option<SpeaksSpec>,
    /// Where its own counters are read: a page of Prometheus text, or `none`; else in its dialect.
    pub(crate) counters: Option<String>,
    /// What its bytes travel in, where the dialect leaves a choice.
    pub(crate) transport: Option<TransportSpec>,
    #[serde(default)]
    pub(crate) cpus: Vec<usize>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// `keep`: what preparing it writes to `{data}` is kept, and copied before each start; `reuse`:
    /// it is kept, and every start is given it as it is.
    pub(crate) data: Option<DataSpec>,
    /// The points at which it is measured, by keys of the suite and their values there; all of them
    /// unless said otherwise.
    #[serde(default)]
    pub(crate) only: BTreeMap<String, Vec<toml::Value>>,
    /// Programs that have to be there besides its own.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// Run once before anything starts.
    pub(crate) build: Option<Vec<String>>,
    /// Run before each start, in the target's own folder.
    pub(crate) setup: Option<Vec<String>>,
    /// Put before the command: a tracer or profiler. Its timings are not the service's.
    pub(crate) wrap: Option<Vec<String>>,
    /// Left out, and said so, when its program is not installed.
    #[serde(default)]
    pub(crate) optional: bool,
    /// How long it may take until it accepts connections; 10 s unless said otherwise.
    pub(crate) ready_within: Option<Span>,
    /// The name of the signal that ends it; SIGTERM unless said otherwise.
    pub(crate) stop_signal: Option<String>,
}

/// `[figures]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    pub(crate) better: BetterSpec,
    /// The word of its unit; that of its name's end unless said otherwise.
    pub(crate) unit: Option<String>,
}

/// `better = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BetterSpec {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// `data = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DataSpec {
    /// Prepared once, kept, and copied before each start.
    Keep,
    /// Prepared once, and kept: every start has the same.
    Reuse,
}

/// `speaks = "DIALECT"` or `speaks = { DIALECT = { OPTION = … } }`
#[derive(Clone, Debug)]
pub(crate) struct SpeaksSpec {
    pub(crate) dialect: String,
    pub(crate) options: toml::Table,
}

impl<'de> Deserialize<'de> for SpeaksSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(dialect) => Ok(Self { dialect, options: toml::Table::new() }),
            toml::Value::Table(table) if table.len() == 1 => match table.into_iter().next() {
                Some((dialect, toml::Value::Table(options))) => Ok(Self { dialect, options }),
                _ => Err(serde::de::Error::custom(SPEAKS)),
            },
            _ => Err(serde::de::Error::custom(SPEAKS)),
        }
    }
}

const SPEAKS: &str = "a target speaks a dialect, \"pvaccess\", or one with options, \
                      { pvaccess = { pipeline = true } }";

/// `[[rung]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RungSpec {
    pub(crate) name: String,
    /// What was changed, in words.
    #[serde(default)]
    pub(crate) note: String,
    /// Laid over the first target's.
    #[serde(default)]
    pub(crate) options: toml::Table,
    /// Laid over the first target's.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// In place of the first target's: another build of the same program.
    pub(crate) command: Option<Vec<String>>,
    /// A commit that is built for this rung.
    pub(crate) commit: Option<String>,
    pub(crate) decision: Option<DecisionSpec>,
    pub(crate) reason: Option<String>,
    /// Of one that was not tried: what it would take.
    pub(crate) effort: Option<String>,
}

/// `decision = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum DecisionSpec {
    #[serde(rename = "kept")]
    Kept,
    #[serde(rename = "backed out")]
    BackedOut,
    /// It is no target.
    #[serde(rename = "not tried")]
    NotTried,
}

/// `transport = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportSpec {
    /// TCP over IPv4.
    Tcp,
    /// TCP over IPv6.
    Tcp6,
    /// A Unix socket.
    Unix,
}

/// `[[clients]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientsSpec {
    pub(crate) name: Option<String>,
    /// Operations of its own in place of the workload's: one …
    pub(crate) operation: Option<String>,
    /// … or several with their weights.
    pub(crate) mix: Option<BTreeMap<String, u32>>,
    #[serde(default = "one")]
    pub(crate) connections: usize,
    #[serde(default = "one")]
    pub(crate) pipeline: usize,
    #[serde(default)]
    pub(crate) arrivals: ArrivalsSpec,
    #[serde(default = "one")]
    pub(crate) threads: usize,
    #[serde(default)]
    pub(crate) cpus: Vec<usize>,
    /// How long an answer may take before it is missing; 1 s unless said otherwise.
    pub(crate) timeout: Option<Span>,
    /// `each`: a connection for every request.
    pub(crate) connect: Option<ConnectSpec>,
    /// A new connection after so many answers.
    pub(crate) reconnect_every: Option<u64>,
    /// `hybrid` or `block`: how a scheduled request is waited for.
    pub(crate) wait: Option<WaitSpec>,
    /// How the system calls of a thread's connections are made.
    #[serde(default)]
    pub(crate) io: IoSpec,
}

/// `connect = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConnectSpec {
    /// A connection for every request.
    Each,
    /// Connections are kept.
    Once,
}

/// `wait = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WaitSpec {
    /// Block, then spin for the last microseconds.
    Hybrid,
    /// Only block.
    Block,
}

/// `io = …`
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IoSpec {
    /// Those of all ready connections together where the kernel allows it.
    #[default]
    Auto,
    /// Each by itself.
    Epoll,
    /// Together, or not at all.
    Uring,
}

fn one() -> usize {
    1
}

/// `[rounds]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoundsSpec {
    pub(crate) measure: Option<Span>,
    pub(crate) slice: Option<SliceSpec>,
    pub(crate) warm_up: Option<WarmUpSpec>,
    pub(crate) at_least: Option<u32>,
    pub(crate) at_most: Option<u32>,
    pub(crate) until: Option<Share>,
    pub(crate) same_within: Option<Share>,
    pub(crate) state: Option<StateSpec>,
    pub(crate) restart: Option<RestartSpec>,
    pub(crate) disturbed: Option<DisturbedSpec>,
    pub(crate) between: Option<BetweenSpec>,
    pub(crate) primary: Option<String>,
    pub(crate) budget: Option<Span>,
}

/// `state = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateSpec {
    /// Each trial is the first load that its data see.
    Cold,
    /// Each trial comes after a warm-up.
    Warm,
}

/// `restart = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RestartSpec {
    /// Every round starts its targets fresh.
    Round,
    /// Targets run on from round to round: for questions about repetition.
    Never,
}

/// `between = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BetweenSpec {
    /// Targets keep running outside their slices.
    Run,
    /// Targets are stopped outside their slices.
    Stop,
}

/// `disturbed = …`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DisturbedSpec {
    /// A disturbed slice is measured again, as often as half the slices of a trial.
    Repeat,
    /// Nothing is taken for disturbed: for hosts that are never quiet.
    Ignore,
}

/// `warm_up = "2s"` or `warm_up = "detect"`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarmUpSpec {
    /// It takes so long.
    Fixed(Span),
    /// It ends when the load is steady.
    Detect,
}

impl<'de> Deserialize<'de> for WarmUpSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "detect" => Ok(Self::Detect),
            length => length.parse().map(Self::Fixed).map_err(serde::de::Error::custom),
        }
    }
}

/// `slice = "500ms"` or `slice = "none"`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceSpec {
    /// Targets are measured one after another, each in one piece.
    None,
    /// Targets are measured alternately in pieces of this length.
    Length(Span),
}

impl<'de> Deserialize<'de> for SliceSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "none" => Ok(Self::None),
            other => other.parse().map(Self::Length).map_err(serde::de::Error::custom),
        }
    }
}
