//! The arguments of `loadline compare`.

use std::path::PathBuf;

use base::units::{Share, Span};

use crate::run::HowArgs;

/// Arguments of `loadline compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline compare suites/tour.toml --a loadline --b memcached
  loadline compare suites/tour.toml --a loadline --b loadline     A/A: does this host see ghosts?
  loadline compare suites/tour.toml --commits main..HEAD --build 'cargo build --release'
  loadline compare --runs 12 9 --factor compiler                  two runs of the ledger
  loadline compare --runs 12 9 --markdown >> comment.md           the same for a pull request
  loadline compare --samples after.txt before.txt                 figures from elsewhere
  loadline compare --samples new.json#results.0.times old.json#results.0.times --json

Rounds are measured until the verdict is clear, the interval is as tight as --until asks, or the
budget is spent. The looks, and the strictness of each, are fixed beforehand, so that
stopping early costs no honesty. docs/verdicts.md explains each word.")]
pub(crate) struct CompareArgs {
    /// The suite's TOML file
    #[arg(required_unless_present_any = ["samples", "runs"])]
    pub(super) suite: Option<PathBuf>,
    /// Set one of the suite's keys, e.g. clients.connections=64; a swept key is no longer swept
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = lab::plan::parse_setting)]
    pub(super) settings: Vec<(String, toml::Value)>,
    /// The target that the verdict is about
    #[arg(long, value_name = "TARGET", requires = "b")]
    pub(super) a: Option<String>,
    /// The target that it is compared with; the same again measures two instances of it
    #[arg(long, value_name = "TARGET", requires = "a")]
    pub(super) b: Option<String>,
    /// Two commits, A..B or A,B: the verdict is about B. Each is built once, in a git worktree
    #[arg(long, value_name = "A..B", conflicts_with = "a", requires = "build")]
    pub(super) commits: Option<String>,
    /// The shell command that builds a commit, run in its worktree
    #[arg(long, value_name = "COMMAND", requires = "commits")]
    pub(super) build: Option<String>,
    /// The program in the worktree that serves a service; other targets say {worktree} in the suite
    #[arg(long, value_name = "PATH", default_value = "target/release/loadline")]
    pub(super) binary: String,
    /// The target whose commits or runs are compared; the first one unless given
    #[arg(long, value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// Measured time that may be spent, over all points and both targets
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(super) budget: Span,
    /// Measured time of each target in a round; chosen to fit at least 24 rounds unless given
    #[arg(long, value_name = "TIME", value_parser = crate::plan::measured_time)]
    pub(super) measure: Option<Span>,
    /// Go on until the interval is this tight, even when the verdict is clear
    #[arg(long, value_name = "SHARE")]
    pub(super) until: Option<Share>,
    /// Call differences up to this the same; otherwise as the suite says (2 %)
    #[arg(long, value_name = "SHARE")]
    pub(super) same_within: Option<Share>,
    /// How often a difference may be called where there is none
    #[arg(long, value_name = "SHARE", default_value = "2.5%")]
    pub(super) error: Share,
    /// What differs between the two on purpose, e.g. compiler; the verdict names it
    #[arg(long, value_name = "NAME")]
    pub(super) factor: Option<String>,
    /// Judge a run of the ledger against an earlier one of the same suite
    #[arg(long, num_args = 2, value_name = "RUN", conflicts_with_all = ["suite", "a", "samples"])]
    pub(super) runs: Option<Vec<String>>,
    /// Print two runs as Markdown; of what was measured, `loadline report --markdown` does
    #[arg(long, conflicts_with = "json")]
    pub(super) markdown: bool,
    /// Judge the figures in two files: numbers as text, or FILE#PATH of JSON
    #[arg(long, num_args = 2, value_name = "FILE", conflicts_with_all = ["suite", "a"])]
    pub(super) samples: Option<Vec<String>>,
    /// Which figures of --samples are better: lower ones such as times, or higher ones
    #[arg(long, value_name = "WHICH", default_value = "lower", value_parser = ["lower", "higher"])]
    pub(super) better: String,
    #[command(flatten)]
    pub(super) how: HowArgs,
}
