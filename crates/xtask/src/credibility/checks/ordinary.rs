//! Ordinary questions on an ordinary machine: asked beside another program, each has to get the
//! answer that it has on a quiet machine, or none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Judged, Seen};

/// The two ways in which a question is asked, by the number of the first.
macro_rules! kinds {
    ($number:literal) => {
        &[
            Kind { name: "quiet", number: $number, runs: 1, beside: Beside::Nothing },
            Kind { name: "burner", number: $number + 1, runs: 1, beside: Beside::HalfOfACore },
        ]
    };
}
pub(super) use kinds;

/// The answers beside the burner against those of a quiet machine: at least `least` are given, and
/// none differs.
pub(super) fn judge(seen: &Seen, least: usize) -> Judged {
    let of = |kind| seen.of(kind).last().map(answers).unwrap_or_default();
    let (quiet, beside) = (of("quiet"), of("burner"));
    let mut evidence = String::from("| question | quiet | beside it |\n|---|---|---|\n");
    let (mut told, mut wrong) = (0, 0);
    for (question, answer) in &beside {
        let truth = quiet.get(question);
        let word = |answer: Option<&Answer>| answer.map_or("not asked".to_owned(), Answer::words);
        let _ = writeln!(evidence, "| {question} | {} | {} |", word(truth), word(Some(answer)));
        told += usize::from(answer.word.is_some());
        let differs = |truth: &Answer| truth.word.is_some() && truth.word != answer.word;
        wrong += usize::from(answer.word.is_some() && truth.is_some_and(differs));
    }
    let _ = writeln!(evidence, "\n{told} of {} answered, {wrong} wrongly.", beside.len());
    let asked = !quiet.is_empty() && !beside.is_empty();
    Judged { holds: asked.then_some(told >= least && wrong == 0), evidence }
}

/// An answer: the verdict or the outcome, `None` where there is none; perhaps only likely.
struct Answer {
    word: Option<String>,
    is_likely: bool,
}

impl Answer {
    fn words(&self) -> String {
        match &self.word {
            None => "can't tell".to_owned(),
            Some(word) if self.is_likely => format!("likely {word}"),
            Some(word) => word.clone(),
        }
    }
}

/// The answers of one run, by question.
fn answers(run: &Value) -> BTreeMap<String, Answer> {
    let list = |key: &str| run[key].as_array().cloned().unwrap_or_default();
    let told = |word: &Value| {
        let word = word.as_str().filter(|word| *word != "cant_tell");
        word.map(str::to_owned)
    };
    let verdicts = list("comparisons").into_iter().filter(|one| one["primary"] == true);
    let verdicts = verdicts.map(|one| {
        let question = format!("{} {} {}", one["metric"], one["b"], one["point"]);
        let strict = told(&one["verdict"]);
        let is_likely = strict.is_none();
        let word = strict.or_else(|| told(&one["likely"]["verdict"]));
        (question.replace(['"', '|'], ""), Answer { word, is_likely })
    });
    // What is counted holds on any machine, and asks nothing of it.
    let asked = list("requirements").into_iter().filter(|one| {
        one["expression"].as_str().is_some_and(|expression| expression.starts_with("latency"))
    });
    let asked = asked.map(|one| {
        let question = one["expression"].to_string().replace('"', "");
        (question, Answer { word: told(&one["outcome"]), is_likely: false })
    });
    verdicts.chain(asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(kind: &'static str, verdict: &str, likely: Value) -> (&'static str, Value) {
        let comparison = json!({
            "primary": true, "metric": "rate_per_s", "b": "peer", "point": {},
            "verdict": verdict, "likely": likely,
        });
        (kind, json!({ "comparisons": [comparison] }))
    }

    #[test]
    fn an_answer_counts_when_it_is_that_of_the_quiet_machine() {
        let better = || json!({ "verdict": "better" });
        let holds = |beside| {
            let quiet = run("quiet", "better", Value::Null);
            judge(&Seen { runs: vec![quiet, beside] }, 1).holds
        };
        assert_eq!(holds(run("burner", "better", Value::Null)), Some(true));
        assert_eq!(holds(run("burner", "cant_tell", better())), Some(true));
        assert_eq!(holds(run("burner", "cant_tell", Value::Null)), Some(false));
        assert_eq!(holds(run("burner", "worse", Value::Null)), Some(false));
        let alone = vec![run("burner", "better", Value::Null)];
        assert_eq!(judge(&Seen { runs: alone }, 1).holds, None);
    }
}
