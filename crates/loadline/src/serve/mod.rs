//! `loadline serve SERVICE`: one file per service.

pub(crate) mod cache;
mod door;
pub(crate) mod null;
pub(crate) mod records;

use std::process::ExitCode;

use crate::exit::Failure;

/// Arguments of `loadline serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline serve cache --memory 256MiB
  loadline serve records --config records.toml

Each prints one line of JSON when it is ready. The first SIGTERM or Ctrl-C ends it in good order.")]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, clap::Subcommand)]
enum Service {
    /// A key-value cache that speaks memcached's protocol
    Cache(Box<cache::CacheArgs>),
    /// Live records of typed values and big arrays, over EPICS pvAccess
    Records(Box<records::RecordsArgs>),
    /// Eight bytes there and back after a known service time, to measure the lab itself
    #[command(hide = true)]
    Null(null::NullArgs),
}

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    match args.service {
        Service::Cache(args) => cache::run(*args),
        Service::Records(args) => records::run(&args),
        Service::Null(args) => null::run(&args),
    }
}
