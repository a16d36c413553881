//! What is typed after `loadline rpc why`.

use base::units::Span;

use super::super::args;
use super::super::ping::ToArgs;
use crate::parts;

/// What is called, and for how long.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct WhyArgs {
    #[command(flatten)]
    pub(super) to: ToArgs,

    /// The most time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = args::time)]
    pub(super) time: Span,

    /// Allocate memory this many times a call, to see what that costs
    #[arg(long, value_name = "NUMBER", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(super) allocate: u32,

    /// What answers are decoded from
    #[arg(long, value_name = "BUFFER", default_value = "fresh")]
    pub(super) decode: parts::From,
}
