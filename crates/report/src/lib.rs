//! Reports: a run's results as text and pages for people and JSON for programs.
//!
//! A presenter decides nothing: what the figures mean is in [`findings`], and is put into words,
//! tables and pictures here.
//!
//! | file | what it holds |
//! |---|---|
//! | `conclusion` | the run in a sentence or two |
//! | `against` | the first target beside another one, in a sentence |
//! | `contest` | the sentences of a run that is one comparison |
//! | `causes`, `grade` | what disturbed or invalidated figures, and what they are worth |
//! | `history` | all runs of a suite on one kind of host, as text and JSON |
//! | `run_line` | a run in one sentence, for lists of runs |
//! | `samples` | two series of figures from elsewhere, as text and JSON; two runs as Markdown |
//! | `progress` | the progress of a run, as JSON |
//! | `scaling` | a scalability law in words |
//! | `number`, `phrases`, `escape` | numbers, verdicts and foreign text as people read them |
//! | `wording` | differences of a metric in words |
//! | `document` | the one model of lines and tables, with a role for each word |
//! | `content` | the parts of a report in that model, made once for every form |
//! | `names` | metrics and sensors as people say them |
//! | `wrap` | lines and tables of at most 100 columns |
//! | `text` | the terminal |
//! | `html` | a run as one HTML file, and the pages of `loadline ui` around it |
//! | `markdown` | a run for a pull request |
//! | `junit` | a run for programs that show test results |
//! | `json` | `--json`, documented in docs/json.md |
//! | `export` | tables of a run as CSV and JSON lines |

mod against;
mod causes;
mod conclusion;
mod content;
mod contest;
mod document;
mod escape;
mod export;
mod grade;
mod history;
mod html;
mod json;
mod junit;
mod markdown;
mod names;
mod number;
mod phrases;
mod progress;
mod requirements;
mod run_line;
mod samples;
mod scaling;
mod schedule;
mod text;
mod wording;
mod wrap;

pub use causes::{HELP_FOR_SUITES, disturbed_by, programs, stays_disturbed, validity_note};
pub use conclusion::conclusion;
pub use escape::{lines, one_line};
pub use export::{ExportError, ExportFormat, export};
pub use history::{history_json, history_text};
pub use html::{
    LIMIT_BYTES as HTML_LIMIT_BYTES, Listed, MAX_POINTS_IN_FULL, Now, TargetNow,
    history as history_page, html, live, notice, run_served, runs, suites, trials,
};
pub use json::{SCHEMA, json, point_json};
pub use junit::junit;
pub use markdown::markdown;
pub use number::{
    bytes, count, duration, nanoseconds, percent, plain, rate, ratio, thousands, value_of,
};
pub use progress::progress_json;
pub use run_line::{concluded, run_sentence};
pub use samples::{runs_markdown, samples_json, samples_text};
pub use text::{cost, slowest, text};
pub use wrap::wrapped;
