//! A run in a list of runs: the conclusion of its report, kept when it ended.

use findings::{Summary, outcome};
use ledger::{Conclusion, RunLine, RunState};

use crate::conclusion::conclusion;
use crate::document::Role;
use crate::escape::one_line;
use crate::phrases::many;
use crate::text::Paint;

/// What a ledger keeps of a run's report.
pub fn concluded(summary: &Summary) -> Conclusion {
    let found = outcome(summary);
    let word = match found.code() {
        // What is worse is no failure, but nothing good either.
        "cant_tell" | "fine" if found.worse => "worse",
        word => word,
    };
    Conclusion { outcome: word.to_owned(), sentences: conclusion(summary).join(" ") }
}

/// The sentences with their role, which is a colour.
pub(crate) fn sentence(run: &RunLine) -> (Role, String) {
    let trials = many(run.trials as usize, "trial");
    let role = match run.state {
        RunState::Running => return (Role::Dim, format!("Being measured: {trials}.")),
        RunState::Failed => Role::Bad,
        RunState::Interrupted => Role::Unsure,
        RunState::Finished => match run.conclusion.as_ref().map(|one| &one.outcome[..]) {
            Some("unmeasured" | "broken" | "worse") => Role::Bad,
            Some("fine") => Role::Good,
            _ => Role::Unsure,
        },
    };
    let sentences = run.conclusion.as_ref().map(|one| one_line(&one.sentences));
    (role, sentences.unwrap_or_else(|| format!("Nothing was concluded from {trials}.")))
}

/// The same as a line of a terminal.
pub fn run_sentence(run: &RunLine, colour: bool) -> String {
    let (role, words) = sentence(run);
    Paint::new(colour).text(role, &words)
}
