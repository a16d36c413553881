//! The judge: pure statistics and rules over slices of numbers.
//!
//! It does no I/O, reads no clock, knows no suite, target or ledger, and depends on nothing of
//! ours. Its input is one figure per **round** (rounds, not requests, are the unit of replication);
//! its output is an interval, a p-value and a verdict, or *can't tell* with the reason.
//!
//! | file | what it holds |
//! |---|---|
//! | `student` | Student's t: tail and critical value, from our own incomplete beta |
//! | `interval` | the interval of one series, and of paired log ratios of two |
//! | `normal` | the normal distribution: tail and critical value |
//! | `looks` | group-sequential tests: alpha spending, smallest detectable difference |
//! | `holm` | Holm's step-down correction over a family of comparisons |
//! | `verdict` | better, worse, same, can't tell: the rule and its reasons |
//! | `likely` | the second rank of a verdict, from disturbed rounds |
//! | `margin` | how much longer an answer may have taken for a disturbance |
//! | `metric` | the one table of metrics: names, unit, and which direction is good |
//! | `unpaired` | the interval of two series that aren't paired |
//! | `bootstrap` | intervals by resampling |
//! | `random` | a random number generator with the same output everywhere |
//! | `capacity` | the search for the highest load that meets its requirements |
//! | `change_points` | lasting changes in a series over commits |
//! | `knee` | where more load begins to cost more than it brings |
//! | `usl` | the Universal Scalability Law, and when points don't fit it |
//! | `modes` | whether figures fall into two groups |
//! | `quantile` | median |
//! | `steady` | where a series becomes steady: how a warm-up ends |
//! | `share` | the interval of a share of operations that come in clusters |
//! | `slope` | how fast a series grows, with its interval |
//! | `limits/` | what limited a trial: figures, thresholds, one row per limit |

mod bootstrap;
mod capacity;
mod change_points;
mod holm;
mod interval;
mod knee;
mod likely;
pub mod limits;
mod looks;
mod margin;
mod metric;
mod modes;
mod normal;
mod quantile;
mod random;
mod share;
mod slope;
mod steady;
mod student;
mod unpaired;
pub mod usl;
mod verdict;

pub use capacity::{Capacity, Held, Search, Try};
pub use change_points::{ChangePoint, Hunt, change_points};
pub use holm::holm_adjust;
pub use interval::{Interval, SeriesInterval, paired_ratio, series_interval};
pub use knee::knee;
pub use likely::{Likely, LikelyInterval, NoisyPair, likely};
pub use looks::{
    confidence_at, level_confidence, looks, looks_from, nominal_errors, smallest_difference,
};
pub use margin::{Stretch, margin};
pub use metric::{Direction, METRICS, Metric, Metrics, OF_A_SCHEDULE, Unit, metric_named};
pub use modes::{Modes, two_modes};
pub use quantile::median;
pub use random::Random;
pub use share::{ShareInterval, share_interval};
pub use slope::{Slope, slope};
pub use steady::steady_from;
pub use student::{t_critical, t_two_sided_tail};
pub use unpaired::{step_of, unpaired_ratio};
pub use verdict::{Comparison, Inconclusive, MIN_ROUNDS, Rule, Verdict, judge_family, more_rounds};
