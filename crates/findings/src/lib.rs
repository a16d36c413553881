//! Findings: what the figures of a run mean, computed from the ledger and presented nowhere here.
//!
//! Everything reads the ledger only, so that what is found a year later is the same. Measurement
//! ([`ledger::RunView`]), findings ([`Summary`]) and presentation (`report`) are three types: a
//! presenter decides nothing, and nothing is formatted here.
//!
//! | file | what it holds |
//! |---|---|
//! | `metrics` | the metrics of a run: the judge's, and the figures that its suite declares |
//! | `figures` | the metrics of one trial, or of one target at one point |
//! | `grade`, `causes` | what figures are worth, and what disturbed them |
//! | `latency`, `groups` | latencies, of each group of clients and each operation |
//! | `event_kinds` | events of the suite by kind |
//! | `slices`, `between_slices` | slices measured again, drift, and work between slices |
//! | `starts` | targets that ran on from round to round |
//! | `counters`, `streams` | what services counted themselves, and what streams delivered |
//! | `call_values` | figures that calls measured themselves |
//! | `sample_spread` | how the samples of operations in a process are spread |
//! | `cost` | what one operation costs on both sides |
//! | `advice` | what a target's connections did at a point, and what would help it |
//! | `limits` | what limited a target at a point, over its rounds |
//! | `littles_law` | Little's law, checked on every trial |
//! | `trial_summary`, `point_summary`, `summary` | a run by trials, points and targets |
//! | `assembly`, `by_trial` | the summary of what the ledger holds |
//! | `compare` | the first target against each other one, judged |
//! | `verdicts` | the verdicts of a run, stored when it ends |
//! | `ladder` | each rung against the one before and the first |
//! | `modes` | targets with bimodal figures |
//! | `capacity` | the highest load, from a run whose points are loads |
//! | `scaling` | how throughput grows with connections or threads |
//! | `outcome` | the outcome of a run, from which the exit code follows |
//! | `history`, `host` | all runs of a suite on one kind of host, and what makes a kind |
//! | `host_load` | what the host carried while a target was measured |
//! | `two_series` | two series of figures from elsewhere |
//! | `progress` | the progress of a run that is being measured |
//! | `chart_data` | the data of charts: distributions, and series over time |

mod advice;
mod assembly;
mod between_slices;
mod by_trial;
mod call_values;
mod capacity;
mod causes;
mod chart_data;
mod compare;
mod cost;
mod counters;
mod event_kinds;
mod figures;
mod grade;
mod groups;
mod history;
mod host;
mod host_load;
mod ladder;
mod latency;
mod limits;
mod littles_law;
mod metrics;
mod modes;
mod outcome;
mod point_summary;
mod progress;
mod sample_spread;
mod scaling;
mod slices;
mod starts;
mod streams;
mod stretches;
mod summary;
mod trial_summary;
mod two_series;
mod verdicts;

pub use advice::{ActivitySummary, AdviceSummary};
pub use between_slices::BetweenSlices;
pub use call_values::{
    CONNECTIONS_BROKEN, EVALUATIONS, OF_RUNS, OPERATION_REFUSED, OPERATIONS_REFUSED, ValueFigures,
    WRITES_REFUSED, is_of_refusals,
};
pub use capacity::CapacitySummary;
pub use causes::{CauseSummary, Why, merged};
pub use chart_data::{ChartData, Distribution, EventOutcome, MAX_POINTS, Pace, Stretch, Watched};
pub use compare::{Bound, Compared, Contest, LikelyCompared};
pub use cost::{CallCost, CallFigures, Cost, CostRow, Mean, calls, costs};
pub use counters::CounterFigures;
pub use event_kinds::{EventKind, event_kinds};
pub use figures::{Figures, Usage};
pub use grade::{Grade, disturbances, invalid};
pub use groups::GroupFigures;
pub use history::{History, MIN_RUNS, PastFigure, PointHistory, Question};
pub use host::{Difference, differences};
pub use host_load::HostLoad;
pub use ladder::{FunctionShare, Profile, Step, ladder};
pub use latency::Latency;
pub use limits::{LimitSummary, LimitsSummary};
pub use littles_law::LawViolation;
pub use metrics::metrics;
pub use modes::ModesSummary;
pub use outcome::{Outcome, has_failed, outcome};
pub use point_summary::{PointSummary, TargetSummary};
pub use progress::{PointProgress, Progress, TargetProgress, TrialProgress};
pub use sample_spread::{SampleSpread, fastest};
pub use scaling::Scaling;
pub use slices::Drift;
pub use starts::started_once;
pub use streams::StreamFigures;
pub use stretches::StretchFigures;
pub use summary::{
    CallSummary, EventSummary, FindingSummary, InTrial, RequirementSummary, SlowSummary, Summary,
};
pub use trial_summary::TrialSummary;
pub use two_series::{Samples, Series};
pub use verdicts::store_verdicts;
