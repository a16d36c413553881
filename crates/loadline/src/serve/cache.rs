//! `loadline serve cache`.

use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use ::cache::server::{CacheServer, Options, StartError};
use anyhow::{Context as _, bail};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use wire::Address;
use workload::units::ByteCount;

/// The port that memcached's clients try first.
const DEFAULT_PORT: u16 = 11211;

/// How long connections may finish what is in flight after the first signal.
const DRAIN: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  loadline serve cache                                   64 MiB on 127.0.0.1:11211
  loadline serve cache --memory 1GiB --threads 4
  loadline serve cache --listen 127.0.0.1:0              any free port; the ready line says which
  loadline serve cache --listen unix:/run/user/1000/cache.sock";

/// Arguments of `loadline serve cache`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CacheArgs {
    /// Where to listen: ADDRESS, ADDRESS:PORT or unix:PATH; may be given several times
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:11211", value_parser = address)]
    pub(crate) listen: Vec<Address>,

    /// Threads that serve
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,

    /// Memory for items and their index
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    pub(crate) memory: ByteCount,

    /// The largest item: key, value, and the little that the store adds
    #[arg(long, value_name = "BYTES", default_value = "1MiB")]
    pub(crate) max_item: ByteCount,

    /// Connections open at once; one more is refused
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,

    /// What to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: tracing::Level,

    /// Log one JSON object a line
    #[arg(long)]
    pub(crate) log_json: bool,

    /// Flip a bit in every so many-th value that is sent, to see whether a load finds it
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) test_corrupt_every: Option<u64>,
}

/// Serves until a signal ends it.
pub(crate) fn run(args: CacheArgs) -> anyhow::Result<ExitCode> {
    start_log(args.log, args.log_json);
    // Before anything is ready, so that no signal is missed.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let server = CacheServer::start(options(&args)?).map_err(explained)?;
    print_ready(&server)?;
    tracing::info!(addresses = ?texts(&server), memory = %args.memory, "ready");
    if let Some(signal) = signals.forever().next() {
        tracing::info!(signal, drain_s = DRAIN.as_secs(), "stopping");
    }
    // A second signal quits: whatever is still in flight is lost.
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
        }
    });
    let counters = server.stop(DRAIN);
    tracing::info!(
        connections = counters.total_connections,
        bytes_read = counters.bytes_read,
        bytes_written = counters.bytes_written,
        "stopped"
    );
    Ok(ExitCode::SUCCESS)
}

/// What was typed, as the server is set.
fn options(args: &CacheArgs) -> anyhow::Result<Options> {
    let bytes = |count: ByteCount| usize::try_from(count.bytes).context("too many bytes");
    if args.max_item.bytes == 0 {
        bail!("--max-item has to be at least 1 byte");
    }
    Ok(Options {
        listen: args.listen.clone(),
        threads: usize::from(args.threads),
        memory_bytes: bytes(args.memory)?,
        item_bytes: bytes(args.max_item)?,
        most_connections: args.max_connections as usize,
        corrupt_every: args.test_corrupt_every,
        ..Options::default()
    })
}

/// The error with what to do about it.
fn explained(error: StartError) -> anyhow::Error {
    let advice = match &error {
        StartError::Store(_) => "change --memory or --max-item",
        StartError::Listen(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            "another server has it: stop that one, or choose another with --listen (port 0 takes \
             any that is free)"
        }
        StartError::Listen(_) => "choose another address with --listen",
        StartError::Threads(_) => "use fewer --threads, or raise the limits of this user",
    };
    anyhow::anyhow!("{error}; {advice}")
}

fn texts(server: &CacheServer) -> Vec<String> {
    server.addresses().iter().map(ToString::to_string).collect()
}

/// The one line on standard output that says where the service is.
fn print_ready(server: &CacheServer) -> anyhow::Result<()> {
    let addresses = texts(server);
    let Some(first) = addresses.first() else { bail!("--listen names no address") };
    let names = addresses.iter().enumerate().map(|(number, address)| match number {
        0 => ("memcached".to_owned(), json!(address)),
        _ => (format!("memcached{}", number + 1), json!(address)),
    });
    let ready = json!({
        "ready": true,
        "service": "cache",
        "pid": std::process::id(),
        "address": first,
        "addresses": names.collect::<serde_json::Map<_, _>>(),
        "data": null,
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{ready}")?;
    out.flush()?;
    Ok(())
}

fn start_log(level: tracing::Level, json: bool) {
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    // A log that has been started already stays as it is.
    let _ = if json { log.json().try_init() } else { log.with_target(false).try_init() };
}

/// An address with or without a port.
pub(crate) fn address(written: &str) -> Result<Address, String> {
    let bare = written.trim_start_matches('[').trim_end_matches(']');
    let address = match (written, bare.parse::<IpAddr>()) {
        ("localhost", _) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (_, Ok(address)) => Some(address),
        (_, Err(_)) => None,
    };
    if let Some(address) = address {
        return Ok(Address::Internet((address, DEFAULT_PORT).into()));
    }
    let written = match written.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => written.to_owned(),
    };
    written.parse().map_err(|_| {
        "write an address such as 127.0.0.1, 127.0.0.1:11211, [::1]:11211 or unix:/run/it.sock"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_may_leave_its_port_out() {
        for (written, meant) in [
            ("127.0.0.1", "127.0.0.1:11211"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost", "127.0.0.1:11211"),
            ("localhost:5", "127.0.0.1:5"),
            ("::1", "[::1]:11211"),
            ("[::1]", "[::1]:11211"),
            ("[::1]:7", "[::1]:7"),
            ("unix:/tmp/a", "unix:/tmp/a"),
        ] {
            assert_eq!(address(written).expect(written).to_string(), meant);
        }
        for wrong in ["", "cache.example", "127.0.0.1:", "127.0.0.1:99999", "unix:"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
