//! Two series of figures from elsewhere, and the verdict on them, as text and as JSON; two runs of
//! the ledger, which are such series at each point, as Markdown.

use findings::{Samples, Series};
use judge::{Metric, Modes, Verdict, median, step_of, two_modes};
use serde_json::{Value, json};

use crate::escape::one_line;
use crate::json::SCHEMA;
use crate::markdown::cell;
use crate::number::{self, in_one_unit, percent, plain, ratio, ratio_within, whole_percent};
use crate::phrases::{many, verdict};
use crate::wording::unnamed;
use crate::wrap::wrapped;

/// Both series and the verdict for a terminal.
pub fn samples_text(samples: &Samples) -> String {
    let mut text = String::new();
    let width = samples.a.name.chars().count().max(samples.b.name.chars().count());
    for series in [&samples.a, &samples.b] {
        let figures = &series.figures;
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = median(figures).map_or("unseen".to_owned(), plain);
        let (least, most, runs) = (plain(least), plain(most), many(figures.len(), "run"));
        let name = one_line(&series.name);
        text.push_str(&format!("  {name:<width$}  median {middle} · {least} to {most} · {runs}\n"));
        for note in notes(figures, samples.rule.same_within) {
            text.push_str(&format!("  {name:<width$}  {note}\n"));
        }
    }
    text.push_str(&format!("\n{}\n", one_line(&sentence(samples))));
    wrapped(&text)
}

/// The same for programs.
pub fn samples_json(samples: &Samples) -> Value {
    let ends = samples.interval.filter(|interval| interval.high.is_finite());
    let (reason, more) = match samples.verdict {
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
        "samples": [series(&samples.a), series(&samples.b)],
        "factor": samples.factor,
        "confidence": samples.rule.confidence,
        "same_within": samples.rule.same_within,
        "ratio": samples.interval.map(|interval| interval.ratio),
        "low": ends.map(|interval| interval.low),
        "high": ends.map(|interval| interval.high),
        "verdict": samples.verdict.code(),
        "reason": reason,
        "more_rounds": more,
        "least_shown": samples.could_show(),
        "conclusion": sentence(samples),
    })
}

/// Two runs of the ledger, point by point, for a pull request: the sentence about `target` and a
/// table. Ends with a newline.
pub fn runs_markdown(
    title: &str,
    metric: &Metric,
    target: &str,
    conclusion: &str,
    points: &[(String, Samples)],
) -> String {
    let Some((_, first)) = points.first() else { return String::new() };
    let [a, b] = [&first.a.name, &first.b.name].map(|name| cell(name));
    let conclusion = match points {
        [(_, only)] => format!("By {} of {target}: {}", metric.suite, sentence(only)),
        _ => conclusion.to_owned(),
    };
    let mut out = format!("### {}\n\n**{}**\n\n", cell(title), cell(&conclusion));
    let confidence = number::confidence(first.rule.confidence);
    out.push_str(&format!("| point | {a} | {b} | ratio [{confidence}] | verdict |\n"));
    out.push_str("|---|--:|--:|--:|---|\n");
    for (point, samples) in points {
        let medians = median(&samples.a.figures).zip(median(&samples.b.figures));
        let shown = medians.map(|(a, b)| in_one_unit([a, b], metric.unit));
        let [a, b] = shown.unwrap_or_else(|| ["unseen", "unseen"].map(str::to_owned));
        let interval =
            samples.interval.map_or("unseen".to_owned(), |one| match one.high.is_finite() {
                true => ratio_within(one.ratio, one.low, one.high),
                false => format!("{}×", ratio(one.ratio)),
            });
        let verdict = verdict(samples.verdict, Some(samples.rule.same_within));
        let verdict = match samples.verdict {
            Verdict::Worse => format!("**{verdict}**"),
            _ => verdict,
        };
        out.push_str(&format!("| {} | {a} | {b} | {interval} | {verdict} |\n", cell(point)));
    }
    let what = cell(&format!("{} of {target}", metric.suite));
    out.push_str(&format!("\n<sub>medians of {what} · measured at different times</sub>\n"));
    out
}

/// The verdict in a sentence with its evidence.
fn sentence(samples: &Samples) -> String {
    let (a, b) = (&samples.a.name, &samples.b.name);
    let by = samples.factor.as_ref().map_or(String::new(), |factor| format!(" by {factor}"));
    let evidence = evidence(samples);
    match samples.verdict {
        Verdict::Better => format!("{a} is better than {b}{by}: {evidence}."),
        Verdict::Worse => format!("{a} is worse than {b}{by}: {evidence}."),
        Verdict::Same => {
            let within = whole_percent(samples.rule.same_within);
            format!("{a} and {b} are the same within ±{within}: {evidence}.")
        }
        Verdict::CantTell { why, more_rounds } => {
            let more = match more_rounds {
                Some(more) => {
                    format!("; about {} of each would tell", many(more as usize, "more run"))
                }
                None => String::new(),
            };
            let could = samples.could_show();
            let could = could.map_or(String::new(), |least| {
                format!("; this number of runs can only show {}", percent(least))
            });
            let why = why.words().replace("rounds", "runs");
            format!(
                "It can't be told whether {a} is better than {b} ({why}): \
                 {evidence}{more}{could}."
            )
        }
    }
}

fn evidence(samples: &Samples) -> String {
    let (a, b) = (samples.a.figures.len(), samples.b.figures.len());
    let runs = format!("{a} and {}", many(b, "run"));
    match samples.interval {
        None => format!("no ratio, as figures have to be above 0; {runs}"),
        Some(one) if !one.high.is_finite() => format!("{}×, {runs}", ratio(one.ratio)),
        Some(one) => format!("{}, {runs}", unnamed(one.ratio, one.low, one.high)),
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
            "has two modes: {low} in {}, {high} in {high_count}; its mean is neither",
            many(low_count, "run")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::{Direction, Rule};

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
        let sentence = sentence(&samples(&after, &before));
        let expected = "It can't be told whether after is better than before (interval too wide): \
            4.6 % more, between 4.8 % less and 15 % more, 5 and 5 runs; about";
        assert!(sentence.starts_with(expected), "{sentence}");
        assert!(
            sentence.contains("more runs of each would tell; this number of runs can only show")
        );
        assert_eq!(samples(&after, &before).outcome().exit_code(true), 4);
    }

    #[test]
    fn two_runs_are_a_sentence_and_a_table_for_a_pull_request() {
        let (slow, fast) = ([12e6, 12.1e6, 12.2e6, 12e6, 12.1e6], [8e6, 8.1e6, 8e6, 8.2e6, 8.1e6]);
        let metrics = judge::Metrics::default();
        let metric = metrics.named("latency.p50").unwrap();
        let worse = ("1 conns | depth 1".to_owned(), samples(&slow, &fast));
        let text = runs_markdown("A <title>", metric, "wc", "", std::slice::from_ref(&worse));
        let said = "**By latency.p50 of wc: after is worse than before: 50 % more, between ";
        assert!(text.starts_with(&format!("### A &lt;title&gt;\n\n{said}")), "{text}");
        assert!(text.contains(" | ratio [95 %] | verdict |\n"), "{text}");
        let row = "| 1 conns \\| depth 1 | 12.1 ms | 8.10 ms | 1.495× [";
        assert!(text.contains(row) && text.contains("] | **worse** |\n"), "{text}");
        let mut surer = worse.clone();
        surer.1.rule.confidence = 0.975;
        let text = runs_markdown("A", metric, "wc", "", &[surer]);
        assert!(text.contains("ratio [97.5 %]"), "{text}");
        let both = [worse, ("4 conns".to_owned(), samples(&fast, &fast))];
        let text = runs_markdown("A", metric, "wc", "worse at 1, same at 1 of 2 points.", &both);
        assert!(text.contains("\n**worse at 1, same at 1 of 2 points.**\n"), "{text}");
        let bars = |row: &str| row.replace("\\|", "").matches('|').count();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() == 4 && rows.iter().all(|row| bars(row) == 6), "{text}");
    }

    #[test]
    fn a_clear_change_is_told_and_coarse_clocks_are_named() {
        let before = [12.0, 12.0, 13.0, 12.0, 13.0, 12.0];
        let after = [8.0, 9.0, 9.0, 9.0, 8.0, 9.0];
        let judged = samples(&after, &before);
        assert!(sentence(&judged).starts_with("after is better than before: 30 % less, between "));
        assert!(
            samples_text(&judged).contains("comes in steps of 11 %"),
            "{}",
            samples_text(&judged)
        );
        assert_eq!(samples(&before, &after).outcome().exit_code(true), 3);
        assert_eq!(samples_json(&judged)["verdict"], "better");
    }
}
