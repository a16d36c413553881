//! The answer of what needs gRPC, where this program was built without it.

use std::ffi::OsString;

use service::Failure;

/// What is missing, and what brings it.
pub(crate) const WORDS: &str = "this loadline is built without gRPC: build it with `cargo build \
                                --release --features rpc`";

/// The failure of a command.
pub(crate) fn left_out() -> Failure {
    Failure::Usage(WORDS.to_owned())
}

/// Whatever is typed.
#[derive(Debug, clap::Args)]
pub(crate) struct AnyArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _typed: Vec<OsString>,
}
