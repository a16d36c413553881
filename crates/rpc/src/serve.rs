//! `loadline serve rpc`. Control plane.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::units::{ByteCount, Span};
use service::{CommonArgs, ListenArgs, Outcome, Run, ThreadArgs, TlsArgs, socket_address};

/// The service's name.
pub(crate) const NAME: &str = "rpc";

/// The port where `--listen` names none: what examples of gRPC use.
pub(crate) const PORT: u16 = 50051;

/// What the ready line calls the addresses: the first of what is spoken there.
const PROTOCOL: &str = if cfg!(feature = "grpc") { "grpc" } else { "frames" };

const EXAMPLES: &str = "\
Examples:
  loadline serve rpc                               on 127.0.0.1:50051
  loadline serve rpc --listen 127.0.0.1:0          any free port
  loadline serve rpc --listen 127.0.0.1 --unix /run/rpc.sock
  loadline serve rpc --shm /run/rpc.shm            and rpc ping shm:/run/rpc.shm
  loadline rpc ping 'pipe:loadline serve rpc --pipe'   serves its parent
  loadline serve rpc --listen 0.0.0.0 --public --token-file tokens
      --tls-cert server.pem --tls-key server.key

Call it with `loadline rpc call 127.0.0.1 loadline.rpc.v1.Table/Add '{\"value\": 1}'`, or any client
of gRPC; reflection lists its functions.";

/// Arguments of `loadline serve rpc`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RpcArgs {
    #[command(flatten)]
    common: CommonArgs,

    #[command(flatten)]
    listen: ListenArgs,

    /// Listen at this Unix socket, too
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,

    /// Serve clients of this host over shared memory, too, which is passed over a Unix socket here:
    /// 64 at once, idle ones as well; further ones are closed
    #[arg(long, value_name = "PATH")]
    shm: Option<PathBuf>,

    /// Serve one connection over standard input and output, which are pipes, and end with it
    #[arg(long, conflicts_with_all = ["listen", "unix", "shm", "metrics", "threads", "tls_cert"])]
    pipe: bool,

    /// How connections over shared memory wait for their clients
    #[arg(long, value_name = "HOW", default_value = "hybrid", requires = "shm")]
    wait: crate::waiting::Wait,

    /// Divide each answer of own frames into writes, to see what that costs
    #[arg(long, value_name = "HOW", default_value = "array")]
    writes: crate::writes::Writes,

    /// Leave Nagle's algorithm on, to see what that costs (TCP)
    #[arg(long)]
    nagle: bool,

    #[command(flatten)]
    threads: ThreadArgs,

    /// The largest message that is received, decompressed
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = message_size)]
    max_message: ByteCount,

    /// The most calls of a connection at once; clients let further ones wait
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    max_streams: u32,

    /// The most metadata of a call: names and values, and 32 bytes for each
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = metadata_size)]
    max_metadata: ByteCount,

    /// The most connections at once; further ones are closed
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1_024,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    max_connections: u32,

    /// The most memory of messages that wait to be whole or to be sent, or that running functions
    /// have, and of metadata of calls that wait, of all connections
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    max_memory: ByteCount,

    /// End connections whose clients ping more often than this while nothing is sent to them
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = span)]
    keepalive_min: Span,

    /// Answer only calls with a token of this file, a line each, as metadata `authorization: Bearer
    /// TOKEN`; health needs none
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    encryption: TlsArgs,

    /// Serve counters to Prometheus at http://ADDRESS/metrics; port 0 is any
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
}

fn size(written: &str) -> Result<ByteCount, String> {
    written.parse().map_err(|error| format!("{error}"))
}

fn within(written: &str, least: u64, most: u64) -> Result<ByteCount, String> {
    let size = size(written)?;
    if !(least..=most).contains(&size.bytes) {
        let [least, most] = [least, most].map(|bytes| ByteCount { bytes });
        return Err(format!("{size} is not between {least} and {most}"));
    }
    Ok(size)
}

fn message_size(written: &str) -> Result<ByteCount, String> {
    within(written, 1 << 10, 1 << 30)
}

fn metadata_size(written: &str) -> Result<ByteCount, String> {
    within(written, 1 << 10, 1 << 20)
}

fn span(written: &str) -> Result<Span, String> {
    written.parse().map_err(|error| format!("{error}"))
}

impl Run for RpcArgs {
    fn run(self) -> Outcome {
        use service::{Failure, Harness, HttpArgs, Running, Tokens, raise_descriptor_limit};
        use wire::Address;

        let mut harness = Harness::begin(NAME, &self.common)?;
        let mut addresses = self.listen.addresses(PORT);
        harness.check_exposure("--listen", &addresses)?;
        addresses.extend(self.unix.clone().map(Address::Unix));
        let tokens = self.token_file.clone().map(Tokens::read).transpose();
        let tokens = tokens.map_err(Failure::usage)?;
        if let Some(tokens) = tokens.clone() {
            harness.reload("tokens", move || tokens.read_again());
        }
        let files = self.encryption.files().map(|files| files.offering(&["h2"]));
        let tls = files.map(|files| harness.read_tls(files)).transpose()?;
        warn(&addresses, tls.is_some(), tokens.is_some());
        let threads = self.threads.threads;
        let mut settings = crate::server::Settings {
            threads: threads.into(),
            max_message_bytes: self.max_message.bytes as usize,
            max_streams: self.max_streams,
            max_metadata_bytes: self.max_metadata.bytes as u32,
            keepalive_min: self.keepalive_min.duration(),
            max_connections: raise_descriptor_limit(self.max_connections, threads) as usize,
            max_memory_bytes: self.max_memory.bytes as usize,
            tokens,
            tls,
            handshake_timeout: self.encryption.handshake_timeout(),
            wait: self.wait,
            writes: self.writes,
            nagle: self.nagle,
            ..crate::server::Settings::default()
        };
        if self.pipe {
            // Its user is already who it has to be: it opens nothing.
            let _unprivileged = harness.drop_privileges(&[])?;
            settings.threads = 1;
            crate::server::serve_standard(settings, service::DRAIN)?;
            return Ok(std::process::ExitCode::SUCCESS);
        }
        let bound = crate::server::BoundRpc::bind(&addresses, settings);
        let mut bound = bound.map_err(service::unbound)?;
        let shm = self.shm.as_ref().map(|path| ("shm", format!("shm:{}", path.display())));
        if let Some(path) = self.shm {
            bound = bound.share_memory(path)?;
        }
        harness.bind_metrics(&HttpArgs { metrics: self.metrics, token_file: None })?;
        let mut harness = harness.drop_privileges(bound.listeners())?;
        let server = bound.start()?;
        harness.serve_metrics(server.metrics())?;
        harness.run(Running {
            protocol: PROTOCOL,
            addresses: server.addresses().to_vec(),
            other: shm,
            data: None,
            stop: Box::new(move |drain| {
                server.stop(drain);
                None
            }),
        })
    }
}

/// Warns where other machines can call, and what they send can be read on the way.
fn warn(addresses: &[wire::Address], is_encrypted: bool, needs_token: bool) {
    for address in addresses.iter().filter(|address| !service::is_local(address)) {
        if !is_encrypted {
            tracing::warn!(
                "--listen {address}: calls cross the network unencrypted; add --tls-cert, or have \
                 a firewall restrict it"
            );
        }
        if !needs_token {
            tracing::warn!(
                "--listen {address}: whoever reaches it may call all functions; add --token-file"
            );
        }
    }
}
