//! `loadline serve cache`. It takes memcached's short options, too.

mod address;
mod encryption;
mod memcached;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::cache::model::{MakeError, Policy, Sharing};
use ::cache::server::{Accounts, CacheServer, Options, Shutdown, Speech, StartError};
pub(crate) use address::address;
use address::{DEFAULT_PORT, Listen, UdpPort, listen, metrics_address, udp_port};
use anyhow::{Context as _, bail};
use encryption::TlsArgs;
use load::units::ByteCount;
use memcached::MemcachedArgs;
use signal_hook::consts::SIGTERM;
use wire::{Address, Backend, Page};

use super::door::{self, DRAIN, End, Ready};
use crate::exit::Failure;

const EXAMPLES: &str = "\
Examples:
  loadline serve cache                                   64 MiB on 127.0.0.1:11211
  loadline serve cache --memory 1GiB --threads 4
  loadline serve cache --listen 127.0.0.1:0              any free port; the ready line says which
  loadline serve cache --listen unix:/run/user/1000/cache.sock
  loadline serve cache --metrics 127.0.0.1:9150          counters for Prometheus
  loadline serve cache -l 127.0.0.1 -p 11212 -U 11212 -m 1024 -t 4    as memcached is started";

/// What `-i` prints.
const LICENSE: &str = "\
loadline is under the MIT License or the Apache License, Version 2.0, at your choice: the files
LICENSE-MIT and LICENSE-APACHE of its source say both in full. It holds no code of memcached.";

/// Arguments of `loadline serve cache`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, version, args_override_self = true)]
pub(crate) struct CacheArgs {
    /// Where to listen: ADDRESS, ADDRESS:PORT or unix:PATH; may be given several times; `notls:`
    /// before it leaves that one unencrypted
    #[arg(
        long,
        short = 'l',
        value_name = "ADDRESS",
        default_value = "127.0.0.1",
        value_delimiter = ',',
        value_parser = listen
    )]
    pub(crate) listen: Vec<Listen>,

    /// The TCP port where --listen names none; 0 is no TCP
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    pub(crate) port: u16,

    /// Receive datagrams at this port of the first --listen; 0 is off, `same` the port of TCP
    #[arg(long, short = 'U', value_name = "PORT", default_value = "0", value_parser = udp_port)]
    pub(crate) udp_port: UdpPort,

    /// Threads that serve
    #[arg(
        long,
        short,
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub(crate) threads: u16,

    /// Memory for items and their index
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    pub(crate) memory: ByteCount,

    /// The largest item: key, value, and the little that the store adds [default: 1MiB, at most an
    /// eighth of the memory]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_item: Option<ByteCount>,

    /// Memory beside the items for data blocks on their way in, at least --max-item; what does not
    /// fit is refused [default: a quarter of the memory]
    #[arg(long, value_name = "BYTES")]
    pub(crate) incoming_memory: Option<ByteCount>,

    /// Connections open at once; one more is refused
    #[arg(
        long,
        alias = "conn-limit",
        short = 'c',
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: u32,

    /// Connections that may wait to be accepted
    #[arg(
        long,
        alias = "listen-backlog",
        short,
        default_value_t = 1024,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pub(crate) backlog: i32,

    /// Which protocol to speak
    #[arg(long, short = 'B', value_enum, default_value_t = Protocol::Auto)]
    pub(crate) protocol: Protocol,

    /// Which items are let go when memory is full: lru, fifo, clock, s3fifo, or adaptive, which is
    /// lru or s3fifo, whichever has more hits
    #[arg(long, value_name = "POLICY", default_value = Policy::default().name())]
    pub(crate) evict: Policy,

    /// How threads share the store: single (one thread), global-lock (one lock for all keys) or
    /// sharded (four parts with a lock each for every thread)
    #[arg(long, value_name = "HOW", default_value = Sharing::default().name())]
    pub(crate) store: Sharing,

    /// When answers go out: all those to a batch of commands together, or one by one
    #[arg(long, value_enum, default_value_t = Flush::PerBatch)]
    pub(crate) flush: Flush,

    /// How system calls are made: each by itself, for what epoll says is ready; or those of all
    /// connections that are ready together, through io_uring, which is done wherever the kernel
    /// allows it
    #[arg(long, value_enum, default_value_t = Io::Auto)]
    pub(crate) io: Io,

    /// Refuse new items when memory is full, instead of letting old ones go
    #[arg(long, alias = "disable-evictions", short = 'M')]
    pub(crate) no_evict: bool,

    /// Keep no unique number for each store
    #[arg(long, alias = "disable-cas", short = 'C')]
    pub(crate) no_cas: bool,

    /// Refuse flush_all
    #[arg(long, alias = "disable-flush-all", short = 'F')]
    pub(crate) no_flush: bool,

    /// Refuse to list keys
    #[arg(long, alias = "disable-dumping", short = 'X')]
    pub(crate) no_list: bool,

    /// Let clients end the service with the command `shutdown`
    #[arg(long, alias = "enable-shutdown", short = 'A')]
    pub(crate) allow_shutdown: bool,

    /// Have clients say who they are, with a set whose data are NAME PASSWORD; the file has lines
    /// of NAME:PASSWORD
    #[arg(long, short = 'Y', value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,

    /// Show the counters of `stats` to Prometheus at http://ADDRESS/metrics; port 0 is any
    #[arg(long, value_name = "ADDRESS", value_parser = metrics_address)]
    pub(crate) metrics: Option<Address>,

    /// Let the command `debugtime` move the service's clock, for tests of what expires
    #[arg(long)]
    pub(crate) debug_time: bool,

    #[command(flatten)]
    pub(crate) encryption: TlsArgs,

    #[command(flatten)]
    pub(crate) memcached: MemcachedArgs,

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

/// When answers go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Flush {
    /// Each as soon as it is made
    PerAnswer,
    /// All answers to what has come, together
    PerBatch,
}

/// How system calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Io {
    /// uring where the kernel allows it, else epoll
    Auto,
    /// Each by itself
    Epoll,
    /// Those of all connections that are ready, together
    Uring,
}

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// The first byte of a connection decides
    #[value(alias = "auto-negotiate")]
    Auto,
    /// Text and meta commands
    Ascii,
    /// The binary protocol
    Binary,
}

/// Serves until a signal ends it.
pub(crate) fn run(mut args: CacheArgs) -> Result<ExitCode, Failure> {
    if args.memcached.license {
        crate::out::print(format!("{LICENSE}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let level = match args.memcached.verbose {
        0 => args.log,
        1 => args.log.max(tracing::Level::INFO),
        2 => args.log.max(tracing::Level::DEBUG),
        _ => tracing::Level::TRACE,
    };
    door::start_log(level, args.log_json);
    for name in args.memcached.check().map_err(Failure::usage)? {
        tracing::warn!("{name} means nothing to this service and changes nothing");
    }
    args.max_connections = door::make_room(args.max_connections, args.threads);
    let end = End::catch()?;
    let options = options(&args).map_err(Failure::usage)?;
    let memory = options.memory_bytes;
    door::warn_of_memory(memory as u64);
    let server = CacheServer::start(options).map_err(explained)?;
    let metrics = args.metrics.as_ref().map(|at| serve_metrics(at, &server)).transpose()?;
    let pid_file = args.memcached.pid_file.as_deref();
    if let Some(path) = pid_file {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write the process id to {}", path.display()))?;
    }
    let addresses = door::texts(server.addresses());
    let datagrams = server.datagram_addresses().first();
    let ready = Ready {
        service: "cache",
        speaks: "memcached",
        addresses: &addresses,
        datagrams: datagrams.map(|address| ("udp", address.to_string())),
        metrics: metrics.as_ref().map(|page| page.address().to_string()),
    };
    ready.print()?;
    let io = if server.backend() == Backend::Uring { "uring" } else { "epoll" };
    tracing::info!(?addresses, memory, io, "ready");
    end.wait();
    drop(metrics);
    door::stopped(&server.stop(DRAIN));
    if let Some(path) = pid_file {
        // It may have been removed by somebody else already.
        let _ = std::fs::remove_file(path);
    }
    Ok(ExitCode::SUCCESS)
}

/// The largest item where nothing else is said, and the memory has room for eight.
const USUAL_ITEM_BYTES: u64 = 1 << 20;

/// What was typed, as the server is set.
fn options(args: &CacheArgs) -> anyhow::Result<Options> {
    let bytes = |count: u64| usize::try_from(count).context("too many bytes");
    let memory = match args.memcached.megabytes {
        None => args.memory.bytes,
        Some(megabytes) => megabytes.checked_mul(1 << 20).context("-m is too many megabytes")?,
    };
    let item_bytes = args.memcached.item_bytes.or(args.max_item.map(|given| given.bytes));
    // Of too little memory the store says that it is too little.
    let item_bytes = item_bytes.unwrap_or(USUAL_ITEM_BYTES.min((memory / 8).max(1)));
    if item_bytes == 0 {
        bail!("--max-item has to be at least 1 byte");
    }
    let incoming = args.incoming_memory.map(|given| given.bytes);
    let incoming = incoming.or(args.memcached.incoming_bytes()?);
    if incoming.is_some_and(|given| given < item_bytes) {
        bail!("--incoming-memory has to be at least --max-item, {item_bytes} bytes");
    }
    let accounts = args.auth_file.as_deref().map(read_accounts).transpose()?;
    let address::Addresses { listen, listen_plain, datagrams } = address::addresses(args)?;
    if accounts.is_some() && (!datagrams.is_empty() || args.protocol == Protocol::Binary) {
        bail!("--auth-file works over connections and in text only");
    }
    let end = || {
        // As if the signal had come from outside; there is nobody to tell if it can't be sent.
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    Ok(Options {
        listen,
        listen_plain,
        encryption: encryption::encryption(&args.encryption, &args.memcached)?,
        prefix_end: args.memcached.delimiter.unwrap_or(b':'),
        count_prefixes: args.memcached.delimiter.is_some(),
        track_sizes: args.memcached.names().any(|name| name == "track_sizes"),
        datagrams,
        threads: usize::from(args.threads),
        memory_bytes: bytes(memory)?,
        item_bytes: bytes(item_bytes)?,
        incoming_bytes: incoming.map(bytes).transpose()?,
        most_connections: args.max_connections as usize,
        wait_when_full: args.memcached.waits_when_full(),
        backlog: args.backlog,
        unix_mode: args.memcached.mask.or(args.memcached.socket.as_ref().map(|_| 0o700)),
        idle_timeout: args.memcached.idle_timeout()?,
        speech: match args.protocol {
            Protocol::Auto => Speech::Either,
            Protocol::Ascii => Speech::Text,
            Protocol::Binary => Speech::Binary,
        },
        evict: !args.no_evict,
        policy: args.evict,
        sharing: args.store,
        backend: match args.io {
            Io::Auto => Backend::Auto,
            Io::Epoll => Backend::Epoll,
            Io::Uring => Backend::Uring,
        },
        flush_each: args.flush == Flush::PerAnswer,
        cas: !args.no_cas,
        flush: !args.no_flush,
        list_keys: !args.no_list,
        watch: !args.memcached.no_watch,
        watch_queue_bytes: args.memcached.watch_queue_bytes()?,
        debug_time: args.debug_time,
        accounts,
        shutdown: args.allow_shutdown.then(|| Shutdown::new(end)),
        corrupt_every: args.test_corrupt_every,
        ..Options::default()
    })
}

/// Shows the counters to Prometheus.
fn serve_metrics(address: &Address, server: &CacheServer) -> anyhow::Result<Page> {
    let counts = server.prometheus();
    Page::serve(address, "/metrics", "text/plain; version=0.0.4; charset=utf-8", counts)
        .context("choose another address with --metrics")
}

/// Accounts, certificates and keys are short.
pub(crate) const MOST_KEPT_BYTES: u64 = 1 << 20;

fn read_accounts(path: &Path) -> anyhow::Result<Accounts> {
    let text = load::read_bytes(path, MOST_KEPT_BYTES).context("cannot read the accounts")?;
    Accounts::read(&text).with_context(|| format!("the accounts in {}", path.display()))
}

/// The error with what to do about it.
fn explained(error: StartError) -> Failure {
    let is_typed = match &error {
        StartError::Store(why) => !matches!(why, MakeError::OutOfMemory { .. }),
        StartError::Listen(_) | StartError::Threads(_) => false,
    };
    let advice = match &error {
        StartError::Store(MakeError::ManyThreads) => "use --threads 1, or --store global-lock",
        StartError::Store(_) => "change --memory, --max-item or --store",
        StartError::Listen(error) => {
            door::listen_advice(error, "choose another address with --listen")
        }
        StartError::Threads(error) if error.to_string().contains("io_uring") => "use --io epoll",
        StartError::Threads(_) => door::FEWER_THREADS,
    };
    let error = anyhow::anyhow!("{error}; {advice}");
    if is_typed { Failure::usage(error) } else { error.into() }
}

#[cfg(test)]
mod tests {
    use super::{CacheArgs, UdpPort, options};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CacheArgs,
    }

    fn read(line: &str) -> Result<CacheArgs, String> {
        let words = std::iter::once("serve").chain(line.split_ascii_whitespace());
        Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn memcacheds_command_line_is_understood() {
        let line = "-l 127.0.0.1,::1 -p 11300 -U 11301 -m 128 -c 77 -t 2 -I 2m -M -C -F -X -A \
                    -B ascii -b 9 -u nobody -k -R 20 -vv -P /tmp/pid -o idle_timeout=7,modern";
        let args = read(line).expect("understood");
        let options = options(&args).expect("meant");
        let shown: Vec<_> = options.listen.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["127.0.0.1:11300", "[::1]:11300"]);
        assert_eq!(options.datagrams[0].to_string(), "127.0.0.1:11301");
        assert_eq!((options.memory_bytes, options.item_bytes), (128 << 20, 2 << 20));
        assert_eq!((options.most_connections, options.threads, options.backlog), (77, 2, 9));
        assert!(!options.evict && !options.cas && !options.flush && !options.list_keys);
        assert!(options.shutdown.is_some() && options.accounts.is_none());
        assert_eq!(options.idle_timeout.map(|idle| idle.as_secs()), Some(7));
    }

    #[test]
    fn every_long_name_of_memcached_is_known() {
        let version = read("-V").expect_err("it ends there");
        assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
        let line = "--port=0 --udp-port=0 --unix-socket=/tmp/a --unix-mask=700 --enable-shutdown \
                    --listen=127.0.0.1 --enable-coredumps --user=x --memory-limit=64 \
                    --disable-evictions --conn-limit=9 --lock-memory --verbose --pidfile=/tmp/b \
                    --slab-growth-factor=1.25 --slab-min-size=48 --enable-largepages --threads=1 \
                    --max-reqs-per-event=20 --disable-cas --listen-backlog=9 --protocol=ascii \
                    --max-item-size=1m --disable-flush-all --disable-dumping --disable-watch \
                    --auth-file=/tmp/c --extended=modern --napi-ids=1 --license -D :";
        read(line).expect("understood");
        for refused in ["--daemon", "--enable-sasl", "--memory-file=/x"] {
            let args = read(refused).expect("understood");
            assert!(args.memcached.check().is_err(), "{refused}");
        }
        assert!(options(&read("--enable-ssl").expect("understood")).is_err());
    }

    #[test]
    fn port_0_is_no_tcp_and_a_socket_takes_its_place() {
        let meant = |line| options(&read(line).expect("understood")).expect("meant");
        assert!(options(&read("-p 0").expect("understood")).is_err(), "there is nowhere to listen");
        assert!(meant("-p 0 -U 5").listen.is_empty());
        assert_eq!(meant("-p 0 -s /tmp/a").listen[0].to_string(), "unix:/tmp/a");
        assert_eq!(meant("-s /tmp/a").unix_mode, Some(0o700));
        assert_eq!(meant("--listen 127.0.0.1:0").listen[0].to_string(), "127.0.0.1:0");
        assert_eq!(meant("").listen[0].to_string(), "127.0.0.1:11211");
        assert!(meant("-U 0").datagrams.is_empty());
        let same = read("--listen 127.0.0.1:0 --udp-port same").expect("understood");
        assert_eq!(same.udp_port, UdpPort::Same);
        let unix = read("--listen unix:/tmp/a -U 5").expect("understood");
        assert!(options(&unix).is_err());
    }
}
