//! Reports: what a run shows, as text and pages for people and JSON for programs.
//!
//! Everything here reads the ledger only, so that a report made a year later says what the run
//! said. Measurement ([`ledger::RunView`]), summary ([`Summary`]) and presentation (`text`,
//! `json`) are three types: a presenter decides nothing, and the summary formats nothing.
//!
//! | file | what it holds |
//! |---|---|
//! | `figures` | the metrics of one trial, or of one target at one point |
//! | `groups` | the latencies of each group of clients and each operation |
//! | `events` | what happened to targets while they were measured |
//! | `slices` | slices measured again, and drift from the first to the last |
//! | `counters` | what services counted themselves |
//! | `values` | figures that calls measured themselves |
//! | `cost` | what one operation costs on both sides |
//! | `ladder` | each rung against the one before and the first |
//! | `limits` | what limited a target at a point, over its rounds |
//! | `summary` | a run by points and targets |
//! | `compare` | the first target against each other one, judged |
//! | `modes` | targets with two speeds |
//! | `contest` | what a run that is one comparison says |
//! | `capacity` | the highest load, from a run whose points are loads |
//! | `little` | Little's law, checked on every trial |
//! | `scaling` | how throughput grows with connections or threads |
//! | `history`, `host` | all runs of a suite on one kind of host, and what makes a kind |
//! | `samples` | two series of figures from elsewhere |
//! | `progress` | how far a run that is being measured has come |
//! | `outcome` | what the exit code needs to know |
//! | `conclusion` | the run in a sentence or two |
//! | `number`, `words` | numbers and verdicts as people read them |
//! | `text` | the terminal |
//! | `sights` | what pictures need besides: distributions, and what happened when |
//! | `html` | a run as one HTML file, and the pages of `loadline ui` around it |
//! | `markdown` | a run for a pull request |
//! | `junit` | a run for programs that show test results |
//! | `json` | `--json`, documented in docs/json.md |
//! | `export` | tables of a run as CSV and JSON lines |

mod capacity;
mod compare;
mod conclusion;
mod contest;
mod cost;
mod counters;
mod events;
mod export;
mod figures;
mod groups;
mod history;
mod host;
mod html;
mod json;
mod junit;
mod ladder;
mod limits;
mod little;
mod markdown;
mod modes;
mod number;
mod outcome;
mod progress;
mod samples;
mod scaling;
mod sights;
mod slices;
mod streams;
mod summary;
mod text;
mod values;
mod words;

pub use capacity::CapacitySummary;
pub use compare::{Beside, Bound, Compared, Contest};
pub use conclusion::conclusion;
pub use cost::{COSTS, CallCost, CallFigures, Cost, CostRow, Mean, calls, costs};
pub use counters::CounterFigures;
pub use events::{EventKind, EventSummary};
pub use export::{ExportError, ExportFormat, export};
pub use figures::{Figures, Latency, Usage};
pub use groups::{ClientsFigures, GroupFigures};
pub use history::{History, Question};
pub use host::{Difference, differences};
pub use html::{
    LIMIT_BYTES as HTML_LIMIT_BYTES, Listed, POINTS_IN_FULL_MOST, beside, history as history_page,
    html, live, notice, run_served, runs, suites, trials,
};
pub use json::{SCHEMA, json, point_json};
pub use junit::junit;
pub use ladder::{FunctionShare, Profile, Step, ladder, ladder_conclusion};
pub use limits::{LimitSummary, LimitsSummary};
pub use little::Broken;
pub use markdown::markdown;
pub use modes::ModesSummary;
pub use number::{
    bytes, count, duration, nanoseconds, percent, plain, plain_rate, rate, ratio, thousands,
    value_of, whole_percent,
};
pub use outcome::{Outcome, outcome};
pub use progress::{PointProgress, Progress, TargetProgress};
pub use samples::{Samples, Series};
pub use scaling::Scaling;
pub use sights::{Distribution, Happened, POINTS_MOST, Pace, Sights, Stretch, Watched};
pub use slices::Drift;
pub use summary::{
    FindingSummary, PointSummary, RequirementSummary, SlowSummary, Summary, TargetSummary,
    TrialSummary,
};
pub use text::{cost, head, point, slowest, text};
pub use values::ValueFigures;
