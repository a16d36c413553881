//! The harness that every service runs in. Control plane.
//!
//! A service is a row, [`Service`], whose faces are commands: `serve NAME` and, for its client,
//! `NAME …`. What a service takes of the harness's options it lists by flattening their
//! `clap::Args` into its own; all others are usage errors.
//!
//! A served service passes three types: its arguments ([`CommonArgs`], [`ListenArgs`],
//! [`DataArgs`], [`HttpArgs`], [`TlsArgs`], as typed), a [`Harness`] (log, signals, the checks
//! that come before anything is bound), and [`Running`] (what is bound, and how it stops), with
//! which [`Harness::run`] says that it is ready, and waits for the end.

// Both macros panic once standard output or standard error is closed; `out` returns the error.
#![deny(clippy::print_stdout, clippy::print_stderr)]
#![deny(unsafe_code)]

mod data;
mod exit;
mod face;
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
mod tls;
mod tokens;

pub use data::{DataArgs, DataDir};
pub use exit::Failure;
pub use face::{Face, Outcome, Run, Service};
pub use http::{HttpArgs, HttpServer, HttpSettings, socket_address};
pub use lifecycle::{DRAIN, End, Harness, Running};
pub use limits::{FEWER_THREADS, make_room, warn_of_memory};
pub use listen::{ListenAddress, ListenArgs, ThreadArgs, is_local, listen_advice, parse_address};
pub use log::CommonArgs;
pub use ready::Ready;
pub use tls::{TlsArgs, TlsFiles};
pub use tokens::Tokens;

/// Accounts, certificates, keys and tokens are short files: the most that is read of one.
pub const MOST_SECRET_BYTES: u64 = 1 << 20;
