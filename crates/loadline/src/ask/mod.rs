//! First questions, and the words of the answers: what a user types before there is a suite.
//!
//! | file | what it holds |
//! |---|---|
//! | `attempt` | `loadline try`: arguments, and the way from them to a run |
//! | `side` | what is measured: a URL, a service at an address, or a command |
//! | `place` | an address as it is typed, and whether something listens there |
//! | `greeting` | the first answer of a web server |
//! | `first_request` | the first request of another service, and the first run of a command |
//! | `question` | the one suite that a question stands for, as TOML |
//! | `seconds` | a line of figures a second |
//! | `templates` | `loadline new`: suites to begin with |
//! | `pages` | `loadline help`: the documents that this program carries |
//! | `markdown` | Markdown for a terminal of some width |
//! | `explain` | `loadline explain`: what a word means |

mod attempt;
mod explain;
mod first_request;
mod greeting;
mod markdown;
mod pages;
mod place;
mod question;
mod seconds;
mod side;
mod templates;

pub(crate) use attempt::{TryArgs, run as attempt};
pub(crate) use explain::{ExplainArgs, glossary, nearest, run as explain};
pub(crate) use pages::{HelpArgs, run as help};
pub(crate) use templates::{NewArgs, run as new};
