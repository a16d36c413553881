//! Arguments of `loadline serve cache`, as typed. Control plane.

use std::path::PathBuf;

use base::units::ByteCount;
use service::{CommonArgs, HttpArgs, TlsArgs};

use super::address::{DEFAULT_PORT, Listen, UdpPort, listen, udp_port};
use super::memcached::MemcachedArgs;
use crate::model::{Policy, Sharing};

const EXAMPLES: &str = "\
Examples:
  loadline serve cache                                   64 MiB on 127.0.0.1:11211
  loadline serve cache --memory 1GiB --threads 4
  loadline serve cache --listen 127.0.0.1:0              any free port; the ready line says which
  loadline serve cache --listen unix:/run/user/1000/cache.sock
  loadline serve cache --metrics 127.0.0.1:9150          counters for Prometheus
  loadline serve cache -l 127.0.0.1 -p 11212 -U 11212 -m 1024 -t 4    as memcached is started";

/// Arguments of `loadline serve cache`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, version = crate::VERSION, args_override_self = true)]
pub(crate) struct CacheArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    /// Where to listen: ADDRESS, ADDRESS:PORT or unix:PATH; may be given several times; `notls:`
    /// before it leaves that one unencrypted [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = listen)]
    pub(super) listen: Vec<Listen>,

    /// The TCP port where --listen names none; 0 is no TCP
    #[arg(long, short, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub(super) port: u16,

    /// Receive datagrams at this port of the first --listen; 0 is off, `same` the port of TCP
    #[arg(long, short = 'U', value_name = "PORT", default_value = "0", value_parser = udp_port)]
    pub(super) udp_port: UdpPort,

    /// Threads that serve
    #[arg(
        long,
        short,
        value_name = "NUMBER",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub(super) threads: u16,

    /// Memory for items and their index
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = memory)]
    pub(super) memory: ByteCount,

    /// The largest item: key, value, and the little that the store adds; at most half of the memory
    /// [default: 1MiB, or an eighth of the memory if that is less]
    #[arg(long, value_name = "BYTES")]
    pub(super) max_item: Option<ByteCount>,

    /// Memory beside the items for data blocks on their way in, at least --max-item; what does not
    /// fit is refused, and then data that come more slowly than 64 KiB a second are, too [default:
    /// a quarter of the memory]
    #[arg(long, value_name = "BYTES")]
    pub(super) incoming_memory: Option<ByteCount>,

    /// Memory beside the items for the unsent answers of all connections, at least --max-item;
    /// when it is full, the slowest readers are closed [default: a quarter of the memory, at least
    /// 32MiB and --max-item]
    #[arg(long, value_name = "BYTES")]
    pub(super) send_memory: Option<ByteCount>,

    /// Connections open at once; one more is refused
    #[arg(
        long,
        alias = "conn-limit",
        short = 'c',
        value_name = "NUMBER",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) max_connections: u32,

    /// Connections that may wait to be accepted
    #[arg(
        long,
        alias = "listen-backlog",
        short,
        value_name = "NUMBER",
        default_value_t = 1024,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pub(super) backlog: i32,

    /// Which protocol to speak
    #[arg(long, short = 'B', value_enum, default_value_t = Protocol::Auto)]
    pub(super) protocol: Protocol,

    /// Which items are evicted when memory is full: by lru, fifo, clock, s3fifo, density (the least
    /// requested for their size), or adaptive, which is density where sizes are mixed, else lru or
    /// s3fifo, whichever has more hits
    #[arg(long, value_name = "POLICY", default_value = Policy::default().name())]
    pub(super) evict: Policy,

    /// How threads share the store: single (one thread), global-lock (one lock for all keys) or
    /// sharded (four parts with a lock each for every thread)
    #[arg(long, value_name = "HOW", default_value = Sharing::default().name())]
    pub(super) store: Sharing,

    /// When answers go out: all those to a batch of commands together, or one by one
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Flush::PerBatch)]
    pub(super) flush: Flush,

    /// How system calls are made: each by itself, for what epoll says is ready; or those of all
    /// connections that are ready together, through io_uring, which is done wherever the kernel
    /// allows it
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Io::Auto)]
    pub(super) io: Io,

    /// Refuse new items when memory is full, instead of evicting old ones
    #[arg(long, alias = "disable-evictions", short = 'M')]
    pub(super) no_evict: bool,

    /// Keep no CAS values
    #[arg(long, alias = "disable-cas", short = 'C')]
    pub(super) no_cas: bool,

    /// Refuse flush_all
    #[arg(long, alias = "disable-flush-all", short = 'F')]
    pub(super) no_flush: bool,

    /// Refuse to list keys
    #[arg(long, alias = "disable-dumping", short = 'X')]
    pub(super) no_list: bool,

    /// Let clients end the service with the command `shutdown`
    #[arg(long, alias = "enable-shutdown", short = 'A')]
    pub(super) allow_shutdown: bool,

    /// Require authentication: a set whose data are NAME PASSWORD; the file has lines of
    /// NAME:PASSWORD
    #[arg(long, short = 'Y', value_name = "FILE")]
    pub(super) auth_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) http: HttpArgs,

    /// Let the command `debugtime` move the service's clock, to test expiry; only at addresses of
    /// this machine
    #[arg(long)]
    pub(super) debug_time: bool,

    #[command(flatten)]
    pub(super) encryption: TlsArgs,

    #[command(flatten)]
    pub(super) memcached: MemcachedArgs,

    /// Flip a bit in every Nth value that is sent, to check that a load detects it
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) test_corrupt_every: Option<u64>,
}

impl CacheArgs {
    /// What is logged of connections, by memcached's option or by the log's level.
    pub(super) fn verbosity(&self) -> u8 {
        match self.log_level() {
            tracing::Level::TRACE => 3,
            tracing::Level::DEBUG => 2,
            _ => self.memcached.verbose.min(1),
        }
    }

    /// The log's level, by its own option or by memcached's.
    pub(super) fn log_level(&self) -> tracing::Level {
        match self.memcached.verbose {
            0 => self.common.log,
            1 => self.common.log.max(tracing::Level::INFO),
            2 => self.common.log.max(tracing::Level::DEBUG),
            _ => tracing::Level::TRACE,
        }
    }
}

/// When answers go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Flush {
    /// Each as soon as it is made
    PerAnswer,
    /// All answers to what has come, together
    PerBatch,
}

/// How system calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Io {
    /// uring where the kernel allows it, else epoll
    Auto,
    /// Each by itself
    Epoll,
    /// Those of all connections that are ready, together
    Uring,
}

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Protocol {
    /// The first byte of a connection decides
    #[value(alias = "auto-negotiate")]
    Auto,
    /// Text and meta commands
    Ascii,
    /// The binary protocol
    Binary,
}

/// A size of memory. One without a unit that holds nothing was meant in megabytes, as memcached's
/// `-m` is.
fn memory(written: &str) -> Result<ByteCount, String> {
    let meant: ByteCount = written.parse().map_err(|error| format!("{error}"))?;
    let is_bare = written.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if is_bare && meant.bytes < 1 << 20 {
        return Err(format!("{} bytes hold nothing: write {}MiB", meant.bytes, meant.bytes.max(1)));
    }
    Ok(meant)
}
