//! What a run asks, and what became of it.

use crate::ids::{PointId, RunId, TargetId};
use crate::table::rows;
use crate::word_columns::{ArrivalsKind, Better, Decision, RequirementOutcome};

rows! {
    /// One figure that a suite declares and its programs report.
    ///
    /// A row for each name of the suite's `[figures]`; the values are in the table `value`, and a
    /// trial's figure is their mean.
    program_figure: ProgramFigureRow {
        /// The run.
        run_id: RunId,
        /// Its place among the declared figures.
        ordinal: u32,
        /// Its name, as programs report it.
        name: String,
        /// Which direction of it is good: `higher` or `lower`.
        better: Better,
        /// `1/s`, `ns`, `bytes`, `bytes/s`, `count`, `fraction` or `number`.
        unit: String,
    }
    key "run_id, name"

    /// What became of a requirement at a point.
    requirement: RequirementRow {
        /// The run.
        run_id: RunId,
        /// The point.
        point_id: PointId,
        /// The requirement, as in the suite: `latency.p99 < 1ms`.
        expression: String,
        /// The metric's value at this point, in the metric's unit; NULL when it wasn't seen.
        value: Option<f64>,
        /// `held`, `broken` or `cant_tell`.
        outcome: RequirementOutcome,
        /// The limit, in the metric's unit.
        bound: f64,
        /// The unit of value and limit, as in `program_figure`; NULL when it isn't known.
        unit: Option<String>,
        /// The distance from the value to the limit as a part of the limit, negative where it is
        /// broken; NULL for a limit of 0 or an exact one.
        room: Option<f64>,
        /// The rounds that it was judged by.
        rounds: u32,
        /// Those of them that were disturbed.
        disturbed: u32,
        /// Those of them that would have broken it alone.
        broken_in: u32,
        /// Why it can't be told; NULL otherwise.
        reason: Option<String>,
    }
    unique "point_id, expression"
    index "run_id"

    /// Whether a target carries a load that the suite names, at a point.
    ///
    /// A row for each line of the suite's `[carry]` and each target.
    carried: CarriedRow {
        /// The point.
        point_id: PointId,
        /// The target.
        target_id: TargetId,
        /// The load's name in the suite.
        name: String,
        /// What has to hold: `latency.mean <= 5s`.
        expression: String,
        /// The figure, as in `requirement`.
        value: Option<f64>,
        /// The limit.
        bound: f64,
        /// The unit of both.
        unit: Option<String>,
        /// `held`, `broken` or `cant_tell`.
        outcome: RequirementOutcome,
        /// How many times the load could be carried: limit ÷ value of an upper limit, value ÷ limit
        /// of a lower one; NULL of an exact one, and where the figure wasn't seen.
        times: Option<f64>,
    }
    key "point_id, target_id, name"
    index "target_id"

    /// One target against another at one point, by one metric.
    ///
    /// Judged when the run ended, by the rules of then ([verdicts.md](verdicts.md)); reports show
    /// these rows. A run that was killed, or is being measured, has none and is judged whenever it
    /// is read.
    verdict: VerdictRow {
        /// The run.
        run_id: RunId,
        /// The verdict's place in the run.
        ordinal: u32,
        /// The point.
        point_id: PointId,
        /// The target that the verdict is on.
        a_id: TargetId,
        /// The target that it is compared with; of a ladder the rung before, or the first.
        b_id: TargetId,
        /// The metric, by its name in suites.
        metric: String,
        /// Whether it is the run's primary one.
        is_primary: bool,
        /// The ratio a ÷ b; NULL where a figure was unseen.
        ratio: Option<f64>,
        /// The lower end of its interval; NULL with one round.
        low: Option<f64>,
        /// The upper end; NULL with one round.
        high: Option<f64>,
        /// Number of rounds in it.
        rounds: Option<u64>,
        /// Those of them that are disturbed.
        disturbed_rounds: u64,
        /// The p-value of "the ratio is 1", uncorrected.
        p_value: Option<f64>,
        /// The standard deviation of ln(a ÷ b) over rounds.
        log_deviation: Option<f64>,
        /// `at_least` or `at_most` where the ratio is a bound, because the generator was at its
        /// limit with one of the two.
        bound: Option<String>,
        /// The confidence of the interval and of the verdict.
        confidence: f64,
        /// `better`, `worse`, `same` or `cant_tell`.
        verdict: String,
        /// Why it is inconclusive, in one word.
        why: Option<String>,
        /// Estimate of the rounds that are missing.
        more_rounds: Option<u32>,
        /// The median of a over rounds.
        a_median: Option<f64>,
        /// The median of b.
        b_median: Option<f64>,
        /// `better` or `worse` where there is no strict verdict and disturbed rounds, or two
        /// processes, show one.
        likely: Option<String>,
        /// The ratio that they show, at equal disturbance.
        likely_ratio: Option<f64>,
        /// The lower end of its interval.
        likely_low: Option<f64>,
        /// The upper end.
        likely_high: Option<f64>,
        /// Number of rounds in it.
        likely_rounds: Option<u64>,
        /// Those of them that were disturbed.
        likely_disturbed_rounds: Option<u64>,
        /// The least disturbance of a round, 0 to 1.
        least_disturbance: Option<f64>,
        /// The greatest.
        most_disturbance: Option<f64>,
    }
    key "run_id, ordinal"
    index "point_id"
    index "a_id"
    index "b_id"
    check "bound IN ('at_least', 'at_most')"
    check "verdict IN ('better', 'worse', 'same', 'cant_tell')"
    check "likely IN ('better', 'worse')"

    /// What a run that is one comparison of its two targets fixed before its first round.
    comparison: ComparisonRow {
        /// The run.
        run_id: RunId,
        /// The probability of a wrong better or worse, over all points and looks.
        error: f64,
        /// The most rounds that a point may take.
        rounds_most: u32,
        /// The factor by which the targets differ on purpose; NULL when none was declared.
        factor: Option<String>,
        /// The smallest detectable difference, as estimated before the first round: 0.02 is 2 %.
        /// NULL without earlier runs to estimate it from.
        least_shown: Option<f64>,
        /// The source of that estimate, such as `run 12`.
        least_shown_from: Option<String>,
    }
    key "run_id"
    check "error > 0 AND error < 1"
    check "rounds_most > 0"

    /// One look at the verdict of a point while rounds still came.
    look: LookRow {
        /// The run.
        run_id: RunId,
        /// The point.
        point_id: PointId,
        /// Rounds in which both targets were valid by then.
        rounds: u32,
    }
    key "point_id, rounds"
    index "run_id"

    /// What a run asks that searches the highest load that meets every requirement.
    ///
    /// Its points are the loads that were tried, in order.
    search: SearchRow {
        /// The run.
        run_id: RunId,
        /// The suite's key whose value is the load: `clients.arrivals.rate`.
        key: String,
        /// The gap between held and broken that is narrow enough: 0.02 is 2 %.
        precision: f64,
        /// The error probability of a requirement at one load.
        error: f64,
        /// The most rounds that one load may take.
        rounds_most: u32,
    }
    key "run_id"

    /// One load that was tried.
    probe: ProbeRow {
        /// Its point.
        point_id: PointId,
        /// The load, in requests per second or as a number.
        load: f64,
        /// `held`, `broken` or `cant_tell`: of all requirements together.
        outcome: RequirementOutcome,
        /// The broken requirement, or the reason why it is undecided.
        reason: Option<String>,
    }
    key "point_id"

    /// One group of clients at one point.
    clients: ClientsRow {
        /// The point.
        point_id: PointId,
        /// Its name in the suite.
        name: String,
        /// Number of connections, each one slot.
        connections: u64,
        /// Requests that each keeps in flight.
        pipeline: u64,
        /// Number of the generator's threads that drive it.
        threads: u64,
        /// When requests are sent: `closed`, `think`, `steps`, `schedule` or `subscribe`.
        arrivals: ArrivalsKind,
        /// The pause between an answer and the next request; NULL without one.
        think_ns: Option<u64>,
    }
    key "point_id, name"

    /// A target that is a rung of a ladder.
    ///
    /// Rungs stand in the order of their targets.
    rung: RungRow {
        /// The target.
        target_id: TargetId,
        /// The change, in words.
        note: String,
        /// `kept` or `backed out`; NULL as long as it is undecided.
        decision: Option<Decision>,
        /// Why.
        reason: Option<String>,
    }
    key "target_id"

    /// One fact about what a target was built from.
    fact: FactRow {
        /// The target.
        target_id: TargetId,
        /// `program` (its file), `program_bytes`, `compiler`, `version` where it says one,
        /// `commit` where commits are compared, `overfull` where its data don't fit its memory, and
        /// `started` where the lab didn't start it.
        name: String,
        /// What is known.
        value: String,
    }
    key "target_id, name"
}

impl RequirementRow {
    /// The same of a target, as a load of this name.
    pub fn of_target(self, target_id: TargetId, name: &str) -> CarriedRow {
        let is_lower = self.expression.contains('>');
        let (value, bound) = (self.value, self.bound);
        let positive = value.filter(|value| *value > 0.0 && bound > 0.0);
        let times = positive.map(|value| if is_lower { value / bound } else { bound / value });
        let is_exact = !is_lower && !self.expression.contains('<');
        CarriedRow {
            point_id: self.point_id,
            target_id,
            name: name.to_owned(),
            expression: self.expression,
            value,
            bound,
            unit: self.unit,
            outcome: self.outcome,
            times: times.filter(|_| !is_exact),
        }
    }
}
