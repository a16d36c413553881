//! `loadline serve records`. It minds the environment that EPICS servers mind.

mod producer;
mod putlog;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::records::environment::{ServerEnvironment, place};
use ::records::model::{Declarations, declare};
use ::records::server::{Discovery, Limits, Options, RecordsServer, Service, StartError};
use anyhow::Context as _;
use load::units::ByteCount;

use super::door::{self, DRAIN, End, Ready};
use crate::exit::Failure;
use crate::records::segment_bytes;

/// The example of a file is one that can be served.
const EXAMPLES: &str = concat!(
    "\
Examples:
  loadline serve records --config records.toml           on 127.0.0.1:5075
  loadline serve records --config records.toml --listen 0.0.0.0
  loadline serve records --config records.toml --listen 127.0.0.1:0   any free port
  loadline serve records --producer array --size 1000000 --monitors 0 --log-json

EPICS_PVAS_INTF_ADDR_LIST, _SERVER_PORT, _BROADCAST_PORT, _BEACON_ADDR_LIST,
_AUTO_BEACON_ADDR_LIST, _IGNORE_ADDR_LIST and EPICS_PVA_CONN_TMO are minded where no option says
otherwise.

A records.toml:

",
    include_str!("../../../../records/examples/records.toml")
);

/// Arguments of `loadline serve records`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    /// The file that declares records
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where to listen: ADDRESS or ADDRESS:PORT; may be given several times [default: 127.0.0.1]
    #[arg(long, short = 'l', value_name = "ADDRESS", value_delimiter = ',')]
    listen: Vec<String>,

    /// The port where --listen names none [default: 5075]
    #[arg(long, short)]
    port: Option<u16>,

    /// The port where searches are received [default: 5076; any, where --listen has port 0]
    #[arg(long, value_name = "PORT")]
    search_port: Option<u16>,

    /// Receive no searches over datagrams: clients need EPICS_PVA_NAME_SERVERS
    #[arg(long)]
    no_search: bool,

    /// Threads that serve
    #[arg(
        long,
        short,
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    threads: u16,

    /// The largest message: what clients may put, and what fits into one update
    #[arg(long, value_name = "BYTES", default_value = "1GiB")]
    max_message: ByteCount,

    /// Send messages in segments of at most so many bytes, for clients with small buffers
    #[arg(long, value_name = "BYTES", value_parser = segment_bytes)]
    segment: Option<usize>,

    /// Connections open at once; one more waits
    #[arg(
        long,
        short = 'c',
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    max_connections: u32,

    /// Note who has put what: a JSON object a line, appended to this file
    #[arg(long, value_name = "FILE")]
    put_log: Option<PathBuf>,

    #[command(flatten)]
    producer: producer::ProducerArgs,

    /// What to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: tracing::Level,

    /// Log one JSON object a line
    #[arg(long)]
    log_json: bool,
}

/// Serves until a signal ends it.
pub(crate) fn run(args: &RecordsArgs) -> Result<ExitCode, Failure> {
    door::start_log(args.log, args.log_json);
    let end = End::catch()?;
    let options = options(args).map_err(Failure::usage)?;
    let service = service(args)?;
    let producer = args.producer.start(&service).map_err(Failure::usage)?.map(Arc::new);
    let count = service.names().len();
    if count == 0 {
        tracing::warn!("there are no records: declare some with --config, or make them by a call");
    }
    let server = RecordsServer::start(service, options).map_err(explained)?;
    let addresses = door::texts(server.addresses());
    let search = server.search_addresses().first();
    let ready = Ready {
        service: "records",
        speaks: "pva",
        addresses: &addresses,
        datagrams: search.map(|address| ("search", address.to_string())),
        metrics: None,
    };
    ready.print()?;
    if let Some(producer) = &producer {
        args.producer.report(Arc::clone(producer), &server)?;
    }
    tracing::info!(?addresses, records = count, "ready");
    end.wait();
    // As long as it makes arrays, those who watch it are never sent all of them.
    if let Some(producer) = &producer {
        producer.stop();
    }
    door::stopped(&server.stop(DRAIN));
    Ok(ExitCode::SUCCESS)
}

/// The records that are to be served.
fn service(args: &RecordsArgs) -> Result<Arc<Service>, Failure> {
    let message_bytes = usize::try_from(args.max_message.bytes).unwrap_or(usize::MAX);
    if !(1024..=u32::MAX as usize).contains(&message_bytes) {
        let message = "--max-message has to be 1 KiB to 4 GiB - 1, which is what a message can say";
        return Err(Failure::Usage(message.to_owned()));
    }
    let declared = args.config.as_deref().map(read_config).transpose().map_err(Failure::usage)?;
    let mut declared = declared.unwrap_or_default();
    let access = std::mem::take(&mut declared.access);
    let put_log = args.put_log.as_deref().map(putlog::open).transpose()?;
    let limits = Limits {
        message_bytes,
        unfinished_bytes: message_bytes.saturating_mul(2),
        segment_bytes: args.segment,
        ..Limits::default()
    };
    let service = Service::with(limits, access, put_log);
    service.declare(declared).map_err(Failure::usage)?;
    Ok(service)
}

/// A million records with long descriptions take less.
const MOST_CONFIG_BYTES: u64 = 1 << 30;

fn read_config(path: &Path) -> anyhow::Result<Declarations> {
    let text = load::read_text(path, MOST_CONFIG_BYTES)?;
    declare(&text).with_context(|| format!("{} declares no records", path.display()))
}

/// What was typed, and what the environment says where nothing was.
fn options(args: &RecordsArgs) -> anyhow::Result<Options> {
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
        threads: usize::from(args.threads),
        most_connections: door::make_room(args.max_connections, args.threads) as usize,
        idle_timeout: said.idle_timeout,
        discovery: Discovery { listen: searches, beacons, ignore: said.ignore },
    })
}

/// The error with what to do about it.
fn explained(error: StartError) -> anyhow::Error {
    let advice = match &error {
        StartError::Listen(error) => {
            door::listen_advice(error, "choose another address with --listen, or --no-search")
        }
        StartError::Threads(_) => door::FEWER_THREADS,
    };
    anyhow::anyhow!("{error}; {advice}")
}
