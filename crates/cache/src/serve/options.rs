//! What was typed, as the server takes it. Control plane.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context as _, bail};
use base::units::ByteCount;
use rustix::process::{Signal, getpid, kill_process};
use service::{ListenAddress, read_secret};
use wire::{Address, Backend};

use super::address::{Listen, UdpPort};
use super::args::{CacheArgs, Flush, Io, Protocol};
use super::encryption::encryption;
use crate::server::{Accounts, Options, Shutdown, Speech};

/// Default for the largest item, where the memory holds eight of them.
const USUAL_ITEM_BYTES: u64 = 1 << 20;

/// What was typed, as the server is set.
pub(super) fn options(args: &CacheArgs) -> anyhow::Result<Options> {
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
    let BesideItems { incoming_bytes, send_bytes } = beside_items(args, item_bytes)?;
    let accounts = args.auth_file.as_deref().map(read_accounts).transpose()?;
    let Addresses { listen, listen_plain, datagrams } = addresses(args)?;
    if accounts.is_some() && (!datagrams.is_empty() || args.protocol == Protocol::Binary) {
        bail!("--auth-file works over connections and in text only");
    }
    let end = || {
        // As if the signal had come from outside. A process may always signal itself.
        let _ = kill_process(getpid(), Signal::TERM);
    };
    Ok(Options {
        listen,
        listen_plain,
        encryption: encryption(&args.encryption, &args.memcached)?,
        prefix_end: args.memcached.delimiter.unwrap_or(b':'),
        count_prefixes: args.memcached.delimiter.is_some(),
        track_sizes: args.memcached.names().any(|name| name == "track_sizes"),
        datagrams,
        threads: usize::from(args.threads),
        memory_bytes: bytes(memory)?,
        item_bytes: bytes(item_bytes)?,
        incoming_bytes,
        send_bytes,
        most_connections: args.max_connections as usize,
        wait_when_full: args.memcached.waits_when_full(),
        backlog: args.backlog,
        unix_mode: args.memcached.mask.or(Some(0o700)),
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
        crawler: args.memcached.crawler()?,
        verbosity: args.verbosity(),
        watch: !args.memcached.no_watch,
        watch_queue_bytes: args.memcached.watch_queue_bytes()?,
        debug_time: args.debug_time,
        accounts,
        shutdown: args.allow_shutdown.then(|| Shutdown::new(end)),
        corrupt_every: args.test_corrupt_every,
        ..Options::default()
    })
}

/// Memory beside the items, where it is given.
struct BesideItems {
    incoming_bytes: Option<usize>,
    send_bytes: Option<usize>,
}

/// Reads the options of memory beside the items, each of which has room for the largest item.
fn beside_items(args: &CacheArgs, item_bytes: u64) -> anyhow::Result<BesideItems> {
    let beside = |own: Option<ByteCount>, option: &str, theirs: &str| {
        let given = own.map(|given| given.bytes).or(args.memcached.megabytes_of(theirs)?);
        if given.is_some_and(|given| given < item_bytes) {
            bail!("{option} (or -o {theirs}) has to be at least --max-item, {item_bytes} bytes");
        }
        given.map(usize::try_from).transpose().context("too many bytes")
    };
    Ok(BesideItems {
        incoming_bytes: beside(args.incoming_memory, "--incoming-memory", "read_buf_mem_limit")?,
        send_bytes: beside(args.send_memory, "--send-memory", "resp_obj_mem_limit")?,
    })
}

pub(super) fn read_accounts(path: &Path) -> anyhow::Result<Accounts> {
    let text = read_secret(path).context("cannot read the accounts")?;
    Accounts::read(&text).with_context(|| format!("the accounts in {}", path.display()))
}

/// Where a service is reached.
struct Addresses {
    listen: Vec<Address>,
    listen_plain: Vec<Address>,
    datagrams: Vec<Address>,
}

/// Where it is reached, which has to be somewhere.
fn addresses(args: &CacheArgs) -> anyhow::Result<Addresses> {
    let [listen, listen_plain] = [false, true].map(|plain| stream_addresses(args, plain));
    let datagrams = datagram_addresses(args)?;
    if listen.is_empty() && listen_plain.is_empty() && datagrams.is_empty() {
        bail!("-p 0 needs -U or -s: there is nowhere to listen");
    }
    Ok(Addresses { listen, listen_plain, datagrams })
}

/// Where connections come in, those that stay plain or the others: a Unix socket of memcached's
/// option takes the place of TCP.
fn stream_addresses(args: &CacheArgs, plain: bool) -> Vec<Address> {
    if let Some(path) = &args.memcached.socket {
        return if plain { Vec::new() } else { vec![Address::Unix(path.clone())] };
    }
    let meant = |listen: &Listen| match &listen.place {
        _ if listen.plain != plain => None,
        ListenAddress::Host(_) if args.port == 0 => None,
        place => Some(place.with_port(args.port)),
    };
    listens(args).iter().filter_map(meant).collect()
}

/// `--listen` and memcached's `-l` together, or the default.
fn listens(args: &CacheArgs) -> Vec<Listen> {
    let all: Vec<_> = args.listen.iter().chain(&args.memcached.interfaces).cloned().collect();
    if !all.is_empty() {
        return all;
    }
    vec![Listen { place: ListenAddress::Host(Ipv4Addr::LOCALHOST.into()), plain: false }]
}

/// Where datagrams come in.
fn datagram_addresses(args: &CacheArgs) -> anyhow::Result<Vec<Address>> {
    let listens = listens(args);
    let hosts = listens.iter().filter_map(|listen| match listen.place.with_port(args.port) {
        Address::Internet(address) => Some((address.ip(), address.port())),
        Address::Unix(_) => None,
    });
    let port = |of_tcp: u16| match args.udp_port {
        UdpPort::Off => None,
        UdpPort::Same => Some(of_tcp),
        UdpPort::Port(port) => Some(port),
    };
    let first = hosts.filter_map(|(host, of_tcp)| Some((host, port(of_tcp)?))).next();
    if first.is_none() && args.udp_port != UdpPort::Off {
        bail!("datagrams need an internet address: name one with --listen");
    }
    Ok(first.map(|address| Address::Internet(address.into())).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::super::address::UdpPort;
    use super::{CacheArgs, options};
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
                    -B ascii -b 9 -u nobody -k -R 20 -vv -P /tmp/pid -o idle_timeout=7,modern,\
                    resp_obj_mem_limit=9";
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
        assert_eq!(options.send_bytes, Some(9 << 20));
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
        for socket in ["-s /tmp/a", "--listen unix:/tmp/a"] {
            assert_eq!(meant(socket).unix_mode, Some(0o700), "{socket}");
        }
        assert_eq!(meant("--listen 127.0.0.1:0").listen[0].to_string(), "127.0.0.1:0");
        assert_eq!(meant("").listen[0].to_string(), "127.0.0.1:11211");
        assert!(meant("-U 0").datagrams.is_empty());
        let same = read("--listen 127.0.0.1:0 --udp-port same").expect("understood");
        assert_eq!(same.udp_port, UdpPort::Same);
        let unix = read("--listen unix:/tmp/a -U 5").expect("understood");
        assert!(options(&unix).is_err());
    }

    #[test]
    fn memory_beside_the_items_holds_at_least_one_of_them() {
        let meant = |line: &str| options(&read(line).expect("understood"));
        let given = meant("--send-memory 8MiB --incoming-memory 4MiB").expect("meant");
        assert_eq!((given.send_bytes, given.incoming_bytes), (Some(8 << 20), Some(4 << 20)));
        assert_eq!(meant("-o resp_obj_mem_limit=0").expect("meant").send_bytes, None);
        for option in ["--send-memory", "--incoming-memory"] {
            let line = format!("{option} 512KiB");
            let refused = meant(&line).expect_err("refused").to_string();
            assert!(refused.starts_with(option) && refused.contains("1048576"), "{refused}");
        }
    }
}
