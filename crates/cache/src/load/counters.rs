//! A cache's own counters: memcached's `stats` and Redis' `INFO`. Control plane.

use load::{Counter, CounterKind, Counters, MAX_COUNTERS};
use wire::ProtocolError;

use crate::protocol::resp::{self, Reply};

/// `stats` of memcached's text protocol.
#[derive(Debug)]
pub(super) struct Stats;

/// What of `stats` is no count: clocks, names, and settings that are numbers.
const NO_COUNTS: &[&str] = &["pid", "uptime", "time", "version", "libevent", "pointer_size"];

/// What of `stats` may fall again (memcached, doc/protocol.txt, "General-purpose statistics").
const STATS_LEVELS: &[&str] = &[
    "accepting_conns",
    "bytes",
    "connection_structures",
    "hash_bytes",
    "hash_is_expanding",
    "hash_power_level",
    "limit_maxbytes",
    "log_watchers",
    "max_connections",
    "reserved_fds",
    "response_obj_bytes",
    "response_obj_count",
    "slab_reassign_running",
    "read_buf_bytes",
    "read_buf_bytes_free",
    "read_buf_count",
    "threads",
];

impl Counters for Stats {
    fn ask(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(b"stats\r\n");
    }

    fn read(&self, bytes: &[u8], _: bool) -> Result<Option<Vec<Counter>>, ProtocolError> {
        let mut counters = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line == b"END" {
                return Ok(Some(counters));
            }
            let line = String::from_utf8_lossy(line);
            let mut words = line.split(' ');
            let (Some("STAT"), Some(name), Some(value)) =
                (words.next(), words.next(), words.next())
            else {
                return Err(ProtocolError::new("this is no answer to stats"));
            };
            keep(name, value, &mut counters, |name| {
                name.starts_with("curr_") || STATS_LEVELS.contains(&name)
            });
        }
        Ok(None)
    }
}

/// Redis' `INFO`.
#[derive(Debug)]
pub(super) struct Info;

/// What of `INFO` only grows (Redis, the command's page), beside what begins with `total_`, with
/// `used_cpu_` or with `sync_`.
const INFO_TOTALS: &[&str] = &[
    "active_defrag_hits",
    "active_defrag_misses",
    "active_defrag_key_hits",
    "active_defrag_key_misses",
    "dump_payload_sanitizations",
    "evicted_clients",
    "evicted_keys",
    "expire_cycle_cpu_milliseconds",
    "expired_keys",
    "expired_time_cap_reached_count",
    "io_threaded_reads_processed",
    "io_threaded_writes_processed",
    "keyspace_hits",
    "keyspace_misses",
    "rejected_connections",
    "reply_buffer_expands",
    "reply_buffer_shrinks",
    "unexpected_error_replies",
];

impl Counters for Info {
    fn ask(&self, into: &mut Vec<u8>) {
        resp::put_command(1, into);
        resp::put_word(4, into, |into| into.extend_from_slice(b"INFO"));
    }

    fn read(&self, bytes: &[u8], _: bool) -> Result<Option<Vec<Counter>>, ProtocolError> {
        let (length, used) = match resp::read_reply(bytes) {
            Ok(Some((Reply::Bulk(length), used))) => (length, used),
            Ok(None) => return Ok(None),
            _ => return Err(ProtocolError::new("this is no answer to INFO")),
        };
        let Some(text) = bytes[used..].get(..length) else { return Ok(None) };
        let text = String::from_utf8_lossy(text);
        let mut counters = Vec::new();
        let is_level = |name: &str| {
            let grows = ["total_", "used_cpu_", "sync_"].iter().any(|how| name.starts_with(how))
                || INFO_TOTALS.contains(&name);
            !grows || name.starts_with("total_system_") || name.starts_with("total_blocking_")
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.starts_with("uptime_") || name.ends_with("_id") || name.ends_with("_usec") {
                continue;
            }
            // `db0:keys=5,expires=0` holds several.
            for part in value.split(',').filter(|_| value.contains('=')) {
                if let Some((inner, value)) = part.split_once('=') {
                    keep(&format!("{name}.{inner}"), value, &mut counters, |_| true);
                }
            }
            keep(name, value, &mut counters, is_level);
        }
        Ok(Some(counters))
    }
}

/// Keeps a counter whose value is a number.
fn keep(name: &str, value: &str, counters: &mut Vec<Counter>, is_level: impl Fn(&str) -> bool) {
    let value = value.parse::<f64>().ok().filter(|value| value.is_finite());
    if let Some(value) = value
        && !NO_COUNTS.contains(&name)
        && counters.len() < MAX_COUNTERS
    {
        let kind = if is_level(name) { CounterKind::Level } else { CounterKind::Total };
        counters.push(Counter { name: name.to_owned(), kind, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stats_are_read_once_their_end_has_come() {
        let said = b"STAT pid 7\r\nSTAT cmd_get 5\r\nSTAT curr_items 2\r\nSTAT version 1.6.18\r\n\
                     STAT rusage_user 0.25\r\nEND\r\n";
        assert_eq!(Stats.read(&said[..said.len() - 2], false), Ok(None));
        let expected = vec![
            Counter::total("cmd_get", 5.0),
            Counter::level("curr_items", 2.0),
            Counter::total("rusage_user", 0.25),
        ];
        assert_eq!(Stats.read(said, false), Ok(Some(expected)));
        assert!(Stats.read(b"ERROR\r\n", false).is_err());
    }

    #[test]
    fn info_is_read_with_the_keys_of_its_databases() {
        let text = "# Stats\r\nkeyspace_hits:9\r\nused_memory:100\r\ntotal_system_memory:5\r\n\
                    redis_version:7.0.15\r\ndb0:keys=3,expires=1\r\nuptime_in_seconds:4\r\n";
        let said = format!("${}\r\n{text}\r\n", text.len());
        assert_eq!(Info.read(&said.as_bytes()[..20], false), Ok(None));
        let expected = vec![
            Counter::total("keyspace_hits", 9.0),
            Counter::level("used_memory", 100.0),
            Counter::level("total_system_memory", 5.0),
            Counter::level("db0.keys", 3.0),
            Counter::level("db0.expires", 1.0),
        ];
        assert_eq!(Info.read(said.as_bytes(), false), Ok(Some(expected)));
        assert!(Info.read(b"-NOAUTH Authentication required.\r\n", false).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_breaks_the_readers(bytes: Vec<u8>, text in "[ -~\r\n]{0,200}") {
            for bytes in [&bytes[..], text.as_bytes()] {
                let _ = (Stats.read(bytes, false), Info.read(bytes, true));
            }
        }
    }
}
