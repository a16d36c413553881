//! The judge: pure statistics and rules over slices of numbers.
//!
//! It does no I/O, reads no clock, knows no suite, target or ledger, and depends on nothing of
//! ours. What it is given are one figure per **round** (rounds, not requests, are the unit of
//! replication); what it gives back is an interval, a p-value and a verdict, or *can't tell* with
//! the reason.
//!
//! | file | what it holds |
//! |---|---|
//! | `student` | Student's t: tail and critical value, from our own incomplete beta |
//! | `interval` | the interval of one series, and of paired log ratios of two |
//! | `holm` | Holm's step-down correction over a family of comparisons |
//! | `verdict` | better, worse, same, can't tell: the rule and its reasons |
//! | `metric` | the one table of metrics: names, unit, and which direction is good |
//! | `quantile` | median |

mod holm;
mod interval;
mod metric;
mod quantile;
mod student;
mod verdict;

pub use holm::holm_adjust;
pub use interval::{Interval, SeriesInterval, paired_ratio, series_interval};
pub use metric::{Direction, METRICS, Metric, Unit, metric_named};
pub use quantile::median;
pub use student::{t_critical, t_two_sided_tail};
pub use verdict::{Comparison, Doubt, LEAST_ROUNDS, Rule, Verdict, judge_family, more_rounds};
