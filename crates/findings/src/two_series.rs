//! Two series of figures from elsewhere, judged: there is no run behind them, so nothing
//! of the ledger either.

use judge::{
    Comparison, Direction, Interval, Rule, Verdict, judge_family, smallest_difference,
    unpaired_ratio,
};

use crate::outcome::Outcome;

/// A series with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name: the file.
    pub name: String,
    /// Its figures.
    pub figures: Vec<f64>,
}

/// Two series, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The first series.
    pub a: Series,
    /// The other.
    pub b: Series,
    /// The rule.
    pub rule: Rule,
    /// The factor that differs.
    pub factor: Option<String>,
    /// The ratio of the means with its interval; `None` when a figure is not above 0.
    pub interval: Option<Interval>,
    /// The verdict on the first series.
    pub verdict: Verdict,
}

impl Samples {
    /// Judges the first series against the second.
    pub fn judge(
        a: Series,
        b: Series,
        direction: Direction,
        rule: Rule,
        factor: Option<String>,
    ) -> Samples {
        let interval = unpaired_ratio(&a.figures, &b.figures, rule.confidence);
        let comparison = Comparison { interval, direction, barred: None };
        Samples { interval, verdict: judge_family(&[comparison], &rule)[0], a, b, rule, factor }
    }

    /// The outcome, from which the exit code follows.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            requirement_broken: false,
            worse: self.verdict == Verdict::Worse,
            cant_tell: matches!(self.verdict, Verdict::CantTell { .. }),
            ..Outcome::default()
        }
    }

    /// The smallest difference that this many runs show with a power of 0.9.
    pub fn could_show(&self) -> Option<f64> {
        let interval = self.interval?;
        let runs = u32::try_from(interval.rounds).ok()?;
        let error = 1.0 - self.rule.confidence;
        Some(smallest_difference(interval.log_deviation, runs, error)? - 1.0)
    }
}
