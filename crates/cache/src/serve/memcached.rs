//! memcached's command line, as far as it is not the service's own: what is understood and means
//! nothing here is said so; what would be missed is refused by name. Control plane.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::address::{Listen, listen};
use crate::protocol::text::MAX_SLEEP_US;
use crate::server::CrawlerOptions;

/// The options of memcached that have no long name of the service's own.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of memcached")]
pub(super) struct MemcachedArgs {
    /// Where to listen, like --listen; an address that other machines can reach needs no --public
    #[arg(short = 'l', value_name = "ADDRESS", value_delimiter = ',', value_parser = listen)]
    pub(super) interfaces: Vec<Listen>,

    /// Memory in megabytes, like --memory
    #[arg(short = 'm', long = "memory-limit", value_name = "MEGABYTES", conflicts_with = "memory")]
    pub(super) megabytes: Option<u64>,

    /// The largest item, like --max-item: bytes, or with k or m
    #[arg(
        short = 'I',
        long = "max-item-size",
        value_name = "SIZE",
        conflicts_with = "max_item",
        value_parser = item_size
    )]
    pub(super) item_bytes: Option<u64>,

    /// A Unix socket instead of --listen
    #[arg(short = 's', long = "unix-socket", value_name = "FILE")]
    pub(super) socket: Option<std::path::PathBuf>,

    /// The permissions of the Unix socket, in octal
    #[arg(short = 'a', long = "unix-mask", value_name = "MASK", value_parser = mask)]
    pub(super) mask: Option<u32>,

    /// Log connections that end with errors; twice, also connections and commands; three times,
    /// also changes of connections' states
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count)]
    pub(super) verbose: u8,

    /// Write the process id to this file
    #[arg(short = 'P', long = "pidfile", value_name = "FILE")]
    pub(super) pid_file: Option<std::path::PathBuf>,

    /// Suboptions, separated by commas: idle_timeout, and others that are accepted without effect
    #[arg(short = 'o', long = "extended", value_name = "OPTIONS", value_delimiter = ',')]
    pub(super) extended: Vec<String>,

    /// Accepted for compatibility; no effect
    #[arg(
        short = 'R',
        long = "max-reqs-per-event",
        value_name = "REQUESTS",
        hide_short_help = true
    )]
    requests: Option<u32>,

    /// Accepted for compatibility; no effect
    #[arg(short = 'k', long = "lock-memory", hide_short_help = true)]
    lock: bool,

    /// Refuse `watch`
    #[arg(short = 'W', long = "disable-watch")]
    pub(super) no_watch: bool,

    /// Accepted for compatibility; no effect
    #[arg(short = 'r', long = "enable-coredumps", hide_short_help = true)]
    core_file: bool,

    /// Accepted for compatibility; no effect
    #[arg(short = 'L', long = "enable-largepages", hide_short_help = true)]
    large_pages: bool,

    /// Accepted for compatibility; no effect
    #[arg(short = 'f', long = "slab-growth-factor", value_name = "FACTOR", hide_short_help = true)]
    factor: Option<f64>,

    /// Accepted for compatibility; no effect
    #[arg(short = 'n', long = "slab-min-size", value_name = "BYTES", hide_short_help = true)]
    least: Option<u64>,

    /// Not supported: start it in the background with a service manager or `&`
    #[arg(short = 'd', long = "daemon", hide_short_help = true)]
    daemon: bool,

    /// Not supported: items do not outlive the process
    #[arg(short = 'e', long = "memory-file", value_name = "FILE", hide_short_help = true)]
    memory_file: Option<String>,

    /// Print the licence
    #[arg(short = 'i', long = "license")]
    pub(super) license: bool,

    /// Not supported: --auth-file authenticates clients in text
    #[arg(short = 'S', long = "enable-sasl", hide_short_help = true)]
    sasl: bool,

    /// Encrypt connections, with -o ssl_chain_cert=FILE,ssl_key=FILE
    #[arg(short = 'Z', long = "enable-ssl")]
    pub(super) tls: bool,

    /// What ends a key's prefix for `stats detail`, which is then on
    #[arg(short = 'D', value_name = "CHARACTER", value_parser = delimiter)]
    pub(super) delimiter: Option<u8>,

    /// Accepted for compatibility; no effect
    #[arg(short = 'N', long = "napi-ids", value_name = "NUMBER", hide_short_help = true)]
    napi_ids: Option<u32>,
}

/// Suboptions of `-o` that mean here what they mean there.
const MEANT: &[&str] = &[
    "maxconns_fast",
    "no_maxconns_fast",
    "idle_timeout",
    "read_buf_mem_limit",
    "resp_obj_mem_limit",
    "watcher_logbuf_size",
    "track_sizes",
    "lru_crawler",
    "no_lru_crawler",
    "lru_crawler_sleep",
    "lru_crawler_tocrawl",
    "ssl_chain_cert",
    "ssl_key",
    "ssl_keyformat",
    "ssl_verify_mode",
    "ssl_ca_cert",
    "ssl_min_version",
];

/// Suboptions of `-o` whose loss would hurt, and why they are refused.
const REFUSED: &[(&str, &str)] = &[
    ("ext_", "there is no storage outside of memory"),
    ("ssl_ciphers", "the ciphers can't be chosen; they are those of TLS 1.3 and 1.2 that are safe"),
    ("sock_cookie_id", "sockets are not marked; a firewall would not know them"),
    ("proxy_", "there is no proxy"),
    ("drop_privileges", "there is no seccomp filter; --user gives up the privileges of root"),
];

/// Suboptions of `-o` that are understood and mean nothing here; each may have `no_` before it.
const MEANINGLESS: &[&str] = &[
    "hashpower",
    "tail_repair_time",
    "hash_algorithm",
    "hashexpand",
    "lru_maintainer",
    "hot_lru_pct",
    "warm_lru_pct",
    "hot_max_factor",
    "warm_max_factor",
    "temporary_ttl",
    "slab_reassign",
    "slab_automove",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "slab_chunk_max",
    "worker_logbuf_size",
    "inline_ascii_resp",
    "chunked_items",
    "ssl_wbuf_size",
    "ssl_session_cache",
    "ssl_kernel_tls",
    "no_drop_privileges",
    "modern",
];

impl MemcachedArgs {
    /// Refuses what would be missed, and gives the names of what means nothing here.
    pub(super) fn check(&self) -> anyhow::Result<Vec<String>> {
        for (given, what) in [
            (
                self.daemon,
                "-d: this service does not put itself into the background; leave it to \
                           a service manager, or to `&`",
            ),
            (self.memory_file.is_some(), "-e: items do not outlive the process"),
            (self.sasl, "-S: there is no SASL; -Y FILE requires authentication in text"),
        ] {
            if given {
                bail!("{what}");
            }
        }
        let mut meaningless: Vec<String> = [
            (self.requests.is_some(), "-R"),
            (self.lock, "-k"),
            (self.core_file, "-r"),
            (self.large_pages, "-L"),
            (self.factor.is_some(), "-f"),
            (self.least.is_some(), "-n"),
            (self.napi_ids.is_some(), "-N"),
        ]
        .into_iter()
        .filter(|(given, _)| *given)
        .map(|(_, name)| name.to_owned())
        .collect();
        for option in &self.extended {
            let name = option.split('=').next().unwrap_or_default();
            let bare = name.strip_prefix("no_").unwrap_or(name);
            if [name, bare].iter().any(|one| MEANINGLESS.contains(one)) {
                meaningless.push(format!("-o {name}"));
            } else if let Some((_, why)) = REFUSED.iter().find(|(start, _)| bare.starts_with(start))
            {
                bail!("-o {name}: {why}");
            } else if !MEANT.contains(&name) {
                bail!("-o {name}: this service has no such option");
            }
        }
        Ok(meaningless)
    }

    /// The time after which an idle connection is closed.
    pub(super) fn idle_timeout(&self) -> anyhow::Result<Option<Duration>> {
        let seconds = self.number("idle_timeout", "seconds")?;
        Ok(seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    /// Whether one connection too many waits; the last word counts.
    pub(super) fn waits_when_full(&self) -> bool {
        let last = self.names().filter(|name| name.ends_with("maxconns_fast")).last();
        last == Some("no_maxconns_fast")
    }

    /// The crawler's settings.
    pub(super) fn crawler(&self) -> anyhow::Result<CrawlerOptions> {
        let usual = CrawlerOptions::default();
        let last = self.names().filter(|name| name.ends_with("lru_crawler")).last();
        let sleep_us = self.number("lru_crawler_sleep", "microseconds")?;
        let sleep_us = sleep_us.unwrap_or(u64::from(usual.sleep_us));
        if sleep_us > u64::from(MAX_SLEEP_US) {
            bail!("-o lru_crawler_sleep is 0 to {MAX_SLEEP_US} microseconds");
        }
        let to_crawl = self.number("lru_crawler_tocrawl", "items")?.unwrap_or_default();
        Ok(CrawlerOptions {
            enabled: last != Some("no_lru_crawler"),
            sleep_us: u32::try_from(sleep_us)?,
            to_crawl: u32::try_from(to_crawl)
                .context("-o lru_crawler_tocrawl is too many items")?,
        })
    }

    /// How many bytes of lines wait for one who watches.
    pub(super) fn watch_queue_bytes(&self) -> anyhow::Result<usize> {
        let kilobytes = self.number("watcher_logbuf_size", "kilobytes")?.unwrap_or(256);
        if !(1..=MAX_QUEUE_KILOBYTES).contains(&kilobytes) {
            bail!("-o watcher_logbuf_size is 1 to {MAX_QUEUE_KILOBYTES} kilobytes");
        }
        Ok(kilobytes as usize * 1024)
    }

    /// The bytes of a limit in megabytes; 0 leaves it to the service.
    pub(super) fn megabytes_of(&self, name: &str) -> anyhow::Result<Option<u64>> {
        let megabytes = self.number(name, "megabytes")?.filter(|megabytes| *megabytes > 0);
        let bytes = |megabytes: u64| megabytes.checked_mul(1 << 20);
        let too_many = || format!("-o {name} is too many megabytes");
        megabytes.map(|given| bytes(given).with_context(too_many)).transpose()
    }

    /// The names of all suboptions that are given.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.extended.iter().map(|one| one.split('=').next().unwrap_or_default())
    }

    /// What a suboption is given; the last one counts.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let of = |one: &'_ String| one.strip_prefix(name)?.strip_prefix('=').map(str::len);
        let last = self.extended.iter().rfind(|one| of(one).is_some())?;
        last.split_once('=').map(|(_, value)| value)
    }

    /// The number that a suboption is given; the last one counts.
    pub(super) fn number(&self, name: &str, unit: &str) -> anyhow::Result<Option<u64>> {
        if !self.names().any(|given| given == name) {
            return Ok(None);
        }
        match self.value(name).map(str::parse) {
            Some(Ok(number)) => Ok(Some(number)),
            _ => bail!("-o {name} takes a number of {unit}: -o {name}=NUMBER"),
        }
    }
}

/// The lines of one who watches may wait in at most this much memory.
const MAX_QUEUE_KILOBYTES: u64 = 1 << 20;

/// memcached's sizes: a number, or one with `k` or `m`.
fn item_size(written: &str) -> Result<u64, String> {
    let (digits, factor) = match written.as_bytes().last() {
        Some(b'k' | b'K') => (&written[..written.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&written[..written.len() - 1], 1 << 20),
        _ => (written, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|bytes| *bytes > 0).ok_or_else(|| "write 1m, 512k or 1048576".to_owned())
}

/// One character that ends prefixes.
fn delimiter(written: &str) -> Result<u8, String> {
    match written.as_bytes() {
        [one @ b'!'..=b'~'] => Ok(*one),
        _ => Err("write one character, such as :".to_owned()),
    }
}

fn mask(written: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(written, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "write permissions in octal, such as 700".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MemcachedArgs, item_size, mask};

    #[test]
    fn sizes_and_masks_are_read_as_memcached_reads_them() {
        assert_eq!(item_size("2m"), Ok(2 << 20));
        assert_eq!(item_size("512k"), Ok(512 << 10));
        assert_eq!(item_size("1000"), Ok(1000));
        assert!(
            ["", "m", "0", "-1", "1g", "99999999999999999999m"]
                .iter()
                .all(|wrong| item_size(wrong).is_err())
        );
        assert_eq!((mask("700"), mask("0755")), (Ok(0o700), Ok(0o755)));
        assert!(mask("9").is_err() && mask("1777").is_err());
    }

    #[test]
    fn what_would_be_missed_is_refused_and_what_means_nothing_is_named() {
        let refused = |args: MemcachedArgs| args.check().unwrap_err().to_string();
        assert!(refused(MemcachedArgs { sasl: true, ..Default::default() }).contains("-S"));
        assert!(refused(MemcachedArgs { daemon: true, ..Default::default() }).contains("-d"));
        for wanted in ["ext_path=/a:1G", "drop_privileges"] {
            let extended = vec![wanted.to_owned()];
            assert!(refused(MemcachedArgs { extended, ..Default::default() }).contains("-o"));
        }
        let extended = vec!["no_drop_privileges".to_owned()];
        let args = MemcachedArgs { extended, ..Default::default() };
        assert_eq!(args.check().unwrap(), ["-o no_drop_privileges"]);
        let extended = ["no_modern", "hashpower=20", "idle_timeout=5"].map(str::to_owned).into();
        let args = MemcachedArgs { extended, lock: true, ..Default::default() };
        assert_eq!(args.check().unwrap(), ["-k", "-o no_modern", "-o hashpower"]);
        assert_eq!(args.idle_timeout().unwrap().map(|idle| idle.as_secs()), Some(5));
    }
}
