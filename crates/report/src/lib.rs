//! Reports: a run's results as text and pages for people and JSON for programs.
//!
//! Everything here reads the ledger only, so that a report made a year later is the same.
//! Measurement ([`ledger::RunView`]), summary ([`Summary`]) and presentation (`text`, `json`) are
//! three types: a presenter decides nothing, and the summary formats nothing.
//!
//! | file | what it holds |
//! |---|---|
//! | `figures` | the metrics of one trial, or of one target at one point |
//! | `latency`, `groups` | latencies, of each group of clients and each operation |
//! | `events`, `event_kinds` | events of the suite, each and by kind |
//! | `slices` | slices measured again, and drift from the first to the last |
//! | `counters`, `streams` | what services counted themselves, and what streams delivered |
//! | `call_values` | figures that calls measured themselves |
//! | `cost` | what one operation costs on both sides |
//! | `ladder` | each rung against the one before and the first |
//! | `limits` | what limited a target at a point, over its rounds |
//! | `trial_summary`, `point_summary`, `summary` | a run by trials, points and targets |
//! | `assembly` | the summary of what the ledger holds |
//! | `compare` | the first target against each other one, judged |
//! | `modes` | targets with bimodal figures |
//! | `contest` | the sentences and the table of a run that is one comparison |
//! | `capacity` | the highest load, from a run whose points are loads |
//! | `littles_law` | Little's law, checked on every trial |
//! | `scaling` | how throughput grows with connections or threads |
//! | `history`, `host` | all runs of a suite on one kind of host, and what makes a kind |
//! | `two_series` | two series of figures from elsewhere |
//! | `metrics` | the metrics of a run: the judge's, and the figures that its suite declares |
//! | `progress` | the progress of a run that is being measured |
//! | `outcome` | the outcome of a run, from which the exit code follows |
//! | `conclusion` | the run in a sentence or two |
//! | `number`, `phrases`, `escape` | numbers, verdicts and foreign text as people read them |
//! | `text` | the terminal |
//! | `chart_data` | the data of charts: distributions, and series over time |
//! | `html` | a run as one HTML file, and the pages of `loadline ui` around it |
//! | `markdown` | a run for a pull request |
//! | `junit` | a run for programs that show test results |
//! | `json` | `--json`, documented in docs/json.md |
//! | `export` | tables of a run as CSV and JSON lines |

mod assembly;
mod between_slices;
mod call_values;
mod capacity;
mod chart_data;
mod compare;
mod conclusion;
mod contest;
mod cost;
mod counters;
mod escape;
mod event_kinds;
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
mod latency;
mod limits;
mod littles_law;
mod markdown;
mod metrics;
mod modes;
mod number;
mod outcome;
mod phrases;
mod point_summary;
mod progress;
mod scaling;
mod slices;
mod streams;
mod summary;
mod text;
mod trial_summary;
mod two_series;

pub use call_values::ValueFigures;
pub use capacity::CapacitySummary;
pub use chart_data::{ChartData, Distribution, EventOutcome, MAX_POINTS, Pace, Stretch, Watched};
pub use compare::{Beside, Bound, Compared, Contest};
pub use conclusion::conclusion;
pub use cost::{COSTS, CallCost, CallFigures, Cost, CostRow, Mean, calls, costs};
pub use counters::CounterFigures;
pub use escape::one_line;
pub use event_kinds::EventKind;
pub use events::EventSummary;
pub use export::{ExportError, ExportFormat, export};
pub use figures::{Figures, Usage};
pub use groups::{ClientsFigures, GroupFigures};
pub use history::{History, Question};
pub use host::{Difference, differences};
pub use html::{
    LIMIT_BYTES as HTML_LIMIT_BYTES, Listed, MAX_POINTS_IN_FULL, beside, history as history_page,
    html, live, notice, run_served, runs, suites, trials,
};
pub use json::{SCHEMA, json, point_json};
pub use junit::junit;
pub use ladder::{FunctionShare, Profile, Step, ladder, ladder_conclusion};
pub use latency::Latency;
pub use limits::{LimitSummary, LimitsSummary};
pub use littles_law::LawViolation;
pub use markdown::markdown;
pub use metrics::{figures_of_run, metrics};
pub use modes::ModesSummary;
pub use number::{
    bytes, count, duration, nanoseconds, percent, plain, plain_rate, rate, ratio, thousands,
    value_of, whole_percent,
};
pub use outcome::{Outcome, outcome};
pub use point_summary::{PointSummary, TargetSummary};
pub use progress::{PointProgress, Progress, TargetProgress};
pub use scaling::Scaling;
pub use slices::Drift;
pub use summary::{FindingSummary, RequirementSummary, SlowSummary, Summary};
pub use text::{cost, head, point, slowest, text};
pub use trial_summary::TrialSummary;
pub use two_series::{Samples, Series};
