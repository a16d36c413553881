//! Two series of figures from elsewhere, judged: there is no run behind them, so nothing
//! of the ledger either.

use judge::{
    Comparison, Direction, Interval, Modes, Rule, Verdict, judge_family, mann_whitney, median,
    median_ratio_interval, shift_ratio, smallest_difference, step_of, two_modes, unpaired_ratio,
};
use serde_json::{Value, json};

use crate::contest::{changes, confidence_words};
use crate::json::SCHEMA;
use crate::number::{count, percent, plain, ratio, whole_percent};
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
    a: Series,
    b: Series,
    rule: Rule,
    factor: Option<String>,
    interval: Option<Interval>,
    verdict: Verdict,
    median_interval: Option<(f64, f64)>,
    shift: Option<f64>,
    rank_p: Option<f64>,
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
        Samples {
            interval,
            verdict: judge_family(&[comparison], &rule)[0],
            median_interval: median_ratio_interval(&a.figures, &b.figures, rule.confidence),
            shift: shift_ratio(&a.figures, &b.figures),
            rank_p: mann_whitney(&a.figures, &b.figures),
            a,
            b,
            rule,
            factor,
        }
    }

    /// The verdict on the first series.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The outcome, from which the exit code follows.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            requirement_broken: false,
            worse: self.verdict == Verdict::Worse,
            cant_tell: matches!(self.verdict, Verdict::CantTell { .. }),
        }
    }

    /// The verdict in a sentence with its evidence.
    pub fn sentence(&self) -> String {
        let (a, b) = (&self.a.name, &self.b.name);
        let by = self.factor.as_ref().map_or(String::new(), |factor| format!(" by {factor}"));
        let evidence = self.evidence();
        match self.verdict {
            Verdict::Better => format!("{a} is better than {b}{by}: {evidence}."),
            Verdict::Worse => format!("{a} is worse than {b}{by}: {evidence}."),
            Verdict::Same => {
                let within = whole_percent(self.rule.same_within);
                format!("{a} and {b} are the same within ±{within}: {evidence}.")
            }
            Verdict::CantTell { why, more_rounds } => {
                let more = match more_rounds {
                    Some(more) => {
                        format!("; about {} more runs of each would tell", count(u64::from(more)))
                    }
                    None => String::new(),
                };
                let could = self.could_show();
                let could = could.map_or(String::new(), |least| {
                    format!("; so many runs can only show {}", percent(least))
                });
                let why = why.words().replace("rounds", "runs");
                format!(
                    "It can't be told whether {a} is better than {b} ({why}): \
                     {evidence}{more}{could}."
                )
            }
        }
    }

    fn evidence(&self) -> String {
        let runs = format!("{} and {} runs", self.a.figures.len(), self.b.figures.len());
        match self.interval {
            None => format!("no ratio, as figures have to be above 0; {runs}"),
            Some(one) if !one.high.is_finite() => format!("{}×, {runs}", ratio(one.ratio)),
            Some(one) => format!("{}, {runs}", changes(one.ratio, one.low, one.high)),
        }
    }

    /// The smallest difference that this many runs show with a power of 0.9.
    fn could_show(&self) -> Option<f64> {
        let interval = self.interval?;
        let runs = u32::try_from(interval.rounds).ok()?;
        let error = 1.0 - self.rule.confidence;
        Some(smallest_difference(interval.log_deviation, runs, error)? - 1.0)
    }

    /// Both series and the verdict for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let width = self.a.name.chars().count().max(self.b.name.chars().count());
        for series in [&self.a, &self.b] {
            let figures = &series.figures;
            let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
            let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let middle = median(figures).map_or("unseen".to_owned(), plain);
            let (least, most, runs) = (plain(least), plain(most), figures.len());
            let name = crate::escape::one_line(&series.name);
            text.push_str(&format!(
                "  {name:<width$}  median {middle} · {least} to {most} · {runs} runs\n"
            ));
            for note in notes(figures, self.rule.same_within) {
                text.push_str(&format!("  {name:<width$}  {note}\n"));
            }
        }
        let confidence = confidence_words(self.rule.confidence);
        if let Some((low, high)) = self.median_interval {
            let middle = median(&self.a.figures).zip(median(&self.b.figures));
            let middle = middle.map_or(f64::NAN, |(a, b)| a / b);
            text.push_str(&format!(
                "  medians {} [{}, {}] (bootstrap, {confidence}) · ",
                ratio(middle),
                ratio(low),
                ratio(high)
            ));
        }
        if let (Some(shift), Some(p)) = (self.shift, self.rank_p) {
            text.push_str(&format!(
                "shift {} (Hodges-Lehmann) · rank p {p:.2} (Mann-Whitney)",
                ratio(shift)
            ));
        }
        text.push_str(&format!("\n\n{}\n", crate::escape::one_line(&self.sentence())));
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let ends = self.interval.filter(|interval| interval.high.is_finite());
        let (reason, more) = match self.verdict {
            Verdict::CantTell { why, more_rounds } => (Some(why.code()), more_rounds),
            _ => (None, None),
        };
        let series = |series: &Series| {
            let modes = two_modes(&series.figures);
            json!({
                "name": series.name,
                "figures": series.figures,
                "median": median(&series.figures),
                "step": step_of(&series.figures),
                "modes": modes.map(|modes| json!({ "low": modes.low, "high": modes.high })),
            })
        };
        json!({
            "schema": SCHEMA,
            "samples": [series(&self.a), series(&self.b)],
            "factor": self.factor,
            "confidence": self.rule.confidence,
            "same_within": self.rule.same_within,
            "ratio": self.interval.map(|interval| interval.ratio),
            "low": ends.map(|interval| interval.low),
            "high": ends.map(|interval| interval.high),
            "median_low": self.median_interval.map(|(low, _)| low),
            "median_high": self.median_interval.map(|(_, high)| high),
            "shift": self.shift,
            "rank_p": self.rank_p,
            "verdict": self.verdict.code(),
            "reason": reason,
            "more_rounds": more,
            "least_shown": self.could_show(),
            "conclusion": self.sentence(),
        })
    }
}

/// The caveats of a series.
fn notes(figures: &[f64], same_within: f64) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(step) = step_of(figures).filter(|step| *step > same_within) {
        let step = percent(step);
        notes.push(format!("comes in steps of {step}: a finer clock would tell more"));
    }
    if let Some(Modes { low, high, low_count, high_count }) = two_modes(figures) {
        let (low, high) = (plain(low), plain(high));
        notes.push(format!(
            "has two modes: {low} in {low_count} runs, {high} in {high_count}; its mean is neither"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(a: &[f64], b: &[f64]) -> Samples {
        let series = |name: &str, figures: &[f64]| Series {
            name: name.to_owned(),
            figures: figures.to_vec(),
        };
        let rule = Rule { same_within: 0.02, confidence: 0.95 };
        Samples::judge(
            series("after", a),
            series("before", b),
            Direction::LowerIsBetter,
            rule,
            None,
        )
    }

    #[test]
    fn the_series_that_were_backed_out_end_in_a_sentence_with_the_runs_that_would_tell() {
        let before = [12.35, 12.41, 12.42, 12.33, 12.64];
        let after = [14.53, 12.35, 12.32, 12.3, 13.63];
        let sentence = samples(&after, &before).sentence();
        let expected = "It can't be told whether after is better than before (interval too wide): \
            4.6 % more [−4.8 %, +15 %], 5 and 5 runs; about";
        assert!(sentence.starts_with(expected), "{sentence}");
        assert!(sentence.contains("more runs of each would tell; so many runs can only show"));
        assert_eq!(samples(&after, &before).outcome().exit_code(true), 4);
    }

    #[test]
    fn a_clear_change_is_told_and_coarse_clocks_are_named() {
        let before = [12.0, 12.0, 13.0, 12.0, 13.0, 12.0];
        let after = [8.0, 9.0, 9.0, 9.0, 8.0, 9.0];
        let judged = samples(&after, &before);
        assert!(judged.sentence().starts_with("after is better than before: 30 % less ["));
        assert!(judged.text().contains("comes in steps of 11 %"), "{}", judged.text());
        assert_eq!(samples(&before, &after).outcome().exit_code(true), 3);
        assert_eq!(judged.json()["verdict"], "better");
    }
}
