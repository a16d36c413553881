//! The harness that every service runs in. Control plane.
//!
//! A service is a row, [`Service`], whose subcommands are: `serve NAME` and, for its client,
//! `NAME …`. What a service takes of the harness's options it lists by flattening their
//! `clap::Args` into its own; all others are usage errors.
//!
//! A served service passes three types: its arguments ([`CommonArgs`], [`ListenArgs`],
//! [`DataArgs`], [`HttpArgs`], [`TlsArgs`], as typed), a [`Harness`] (log, signals, the checks
//! that come before anything is bound), and [`Running`] (what is bound, and how it stops), with
//! which [`Unprivileged::run`] reports that it is ready, and waits for the end. The order is: bind
//! the listeners, [`Harness::bind_metrics`], [`Harness::drop_privileges`], open data, start
//! threads.

// Both macros panic once standard output or standard error is closed; `out` returns the error.
#![deny(clippy::print_stdout, clippy::print_stderr)]
#![deny(unsafe_code)]

mod append;
mod args;
mod data;
mod exit;
pub mod file_limit;
mod http;
mod lifecycle;
mod limits;
mod listen;
mod log;
pub mod metrics;
mod notify;
pub mod out;
mod privileges;
mod ready;
mod reload;
mod secret;
mod subcommand;
mod tls;
mod tokens;

pub use args::CommonArgs;
pub use data::{DataArgs, DataDir, make_data};
pub use exit::Failure;
pub use http::{
    BoundHttp, Face, HttpArgs, HttpLimits, HttpServer, HttpSettings, Question, Quick, Quickly,
    socket_address,
};
pub use lifecycle::{DRAIN, Harness, Running, TerminationSignals, Unprivileged, interruption};
pub use limits::{FEWER_THREADS, raise_descriptor_limit, warn_of_memory};
pub use listen::{
    ListenAddress, ListenArgs, ThreadArgs, is_local, listen_advice, parse_address, unbound,
};
pub use ready::Ready;
pub use secret::{MAX_SECRET_BYTES, read_secret};
pub use subcommand::{Outcome, Run, Service, Subcommand};
pub use tls::{TlsArgs, TlsFiles, TrustArgs, Trusted};
pub use tokens::{Tokens, first_token};
