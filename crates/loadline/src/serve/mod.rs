//! `loadline serve ROOM`: one file per room.

pub(crate) mod cache;

use std::process::ExitCode;

use crate::exit::Failure;

/// Arguments of `loadline serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    room: Room,
}

#[derive(Debug, clap::Subcommand)]
enum Room {
    /// A key-value cache that speaks memcached's protocol
    Cache(cache::CacheArgs),
}

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    match args.room {
        Room::Cache(args) => Ok(cache::run(args)?),
    }
}
