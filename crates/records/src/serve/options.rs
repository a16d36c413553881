//! What was typed, and what EPICS' environment says where nothing was, as the server takes it.
//! Control plane.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use service::{Failure, raise_descriptor_limit};

use super::args::RecordsArgs;
use crate::environment::{ServerEnvironment, place};
use crate::model::{Declarations, declare};
use crate::server::{Discovery, Limits, Options, PutLog, Service};

/// The records that are to be served.
pub(super) fn service(
    args: &RecordsArgs,
    put_log: Option<PutLog>,
) -> Result<Arc<Service>, Failure> {
    let message_bytes = usize::try_from(args.max_message.bytes).unwrap_or(usize::MAX);
    if !(1024..=u32::MAX as usize).contains(&message_bytes) {
        let message = "--max-message has to be 1 KiB to 4 GiB - 1, which is what a message can say";
        return Err(Failure::Usage(message.to_owned()));
    }
    let send_bytes = send_bytes(args)?;
    let declared = args.config.as_deref().map(read_config).transpose().map_err(Failure::usage)?;
    let mut declared = declared.unwrap_or_default();
    let access = std::mem::take(&mut declared.access);
    let limits = Limits {
        message_bytes,
        unfinished_bytes: message_bytes.saturating_mul(2),
        in_flight_bytes: send_bytes,
        segment_bytes: args.segment,
        ..Limits::default()
    };
    let service = Service::with(limits, access, put_log);
    service.declare(declared).map_err(Failure::usage)?;
    Ok(service)
}

/// The least of `--send-memory`.
const MIN_SEND_BYTES: u64 = 1 << 20;

/// Half of `--send-memory`: for large arrays, or for the rest. There are two limits because an
/// array that is larger than its limit is sent all the same: of that one updates wait, where of the
/// other connections are closed.
fn send_bytes(args: &RecordsArgs) -> Result<usize, Failure> {
    let bytes = args.send_memory.bytes;
    if bytes < MIN_SEND_BYTES {
        return Err(Failure::Usage("--send-memory has to be at least 1MiB".to_owned()));
    }
    Ok(usize::try_from(bytes / 2).unwrap_or(usize::MAX))
}

/// A million records with long descriptions take less.
const MAX_CONFIG_BYTES: u64 = 1 << 30;

fn read_config(path: &Path) -> anyhow::Result<Declarations> {
    let text = base::read_text(path, MAX_CONFIG_BYTES)?;
    declare(&text).with_context(|| format!("{} declares no records", path.display()))
}

/// What was typed, and what the environment says where nothing was.
pub(super) fn options(args: &RecordsArgs) -> Result<Options, Failure> {
    let send_bytes = send_bytes(args)?;
    let addresses = addresses(args).map_err(Failure::usage)?;
    let connections = raise_descriptor_limit(args.max_connections, args.threads.threads);
    Ok(Options {
        threads: usize::from(args.threads.threads),
        most_connections: connections as usize,
        send_bytes,
        ..addresses
    })
}

/// Where it listens and searches.
fn addresses(args: &RecordsArgs) -> anyhow::Result<Options> {
    let said = ServerEnvironment::read(&|name| std::env::var(name).ok())?;
    let port = args.port.unwrap_or(said.port);
    let mut listen = Vec::new();
    for written in &args.listen {
        let address = place(written, port).with_context(|| {
            format!("--listen {written:?} is no address, such as 127.0.0.1 or 0.0.0.0:5075")
        })?;
        listen.push(address);
    }
    if listen.is_empty() {
        listen.extend(said.interfaces.iter().map(|ip| SocketAddr::new(*ip, port)));
    }
    if listen.is_empty() {
        listen.push((Ipv4Addr::LOCALHOST, port).into());
    }
    // Who wants any port doesn't want the one for searches that others already have.
    let any = listen.iter().all(|at| at.port() == 0);
    let search_port = args.search_port.unwrap_or(if any { 0 } else { said.search_port });
    let mut searches: Vec<SocketAddr> =
        listen.iter().map(|at| SocketAddr::new(at.ip(), search_port)).collect();
    searches.dedup();
    if args.no_search {
        searches.clear();
    }
    let mut beacons = said.beacons;
    let is_local = |at: &SocketAddr| at.ip().is_loopback();
    if said.beacons_to_all && !listen.iter().all(is_local) {
        beacons.push((Ipv4Addr::BROADCAST, said.search_port).into());
    }
    Ok(Options {
        listen,
        idle_timeout: said.idle_timeout,
        discovery: Discovery { listen: searches, beacons, ignore: said.ignore },
        ..Options::default()
    })
}
