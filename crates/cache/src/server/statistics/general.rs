//! The general group, and the connections.

use std::sync::atomic::Ordering::Relaxed;

use wire::Address;

use super::sink::Put;
use crate::model::Seconds;
use crate::server::options::INPUT_LIMIT_BYTES;
use crate::server::service::Service;

/// What memcached counts and what does not happen here, as there are no slab classes and no
/// threads beside those that serve.
const NOTHING_HERE: &[&str] = &[
    "slab_reassign_rescues",
    "slab_reassign_chunk_rescues",
    "slab_reassign_evictions_nomem",
    "slab_reassign_inline_reclaim",
    "slab_reassign_busy_items",
    "slab_reassign_busy_deletes",
    "slab_reassign_running",
    "slabs_moved",
    "lru_maintainer_juggles",
    "malloc_fails",
    "unexpected_napi_ids",
    "round_robin_fallback",
    "slab_global_page_pool",
    "lrutail_reflocked",
    "moves_to_cold",
    "moves_to_warm",
    "moves_within_lru",
    "direct_reclaims",
    "lru_bumps_dropped",
];

pub(super) fn put(service: &Service, now_s: Seconds, put: &mut Put<'_>) {
    put("pid", &std::process::id());
    put("uptime", &service.clock.uptime_s(now_s));
    put("time", &service.clock.unix_s(now_s));
    put("version", &crate::VERSION);
    put("libevent", &"none");
    put("pointer_size", &usize::BITS);
    if let Some((user_s, system_s)) = cpu_seconds() {
        put("rusage_user", &format_args!("{user_s:.6}"));
        put("rusage_system", &format_args!("{system_s:.6}"));
    }
    put_sockets(service, put);
    put_commands(service, put);
    put("limit_maxbytes", &service.store.memory_bytes());
    put("threads", &service.options.threads);
    put_holdings(service, put);
    put_watchers(service, put);
    if let Some(encryption) = &service.options.encryption {
        put("time_since_server_cert_refresh", &encryption.reload.age().as_secs());
    }
    put("lru_crawler_running", &u8::from(service.crawler.is_running()));
    put("lru_crawler_starts", &service.crawler.starts());
    for name in NOTHING_HERE {
        put(name, &0);
    }
}

fn put_watchers(service: &Service, put: &mut Put<'_>) {
    let counts = service.watchers.counts();
    put("log_watchers", &counts.watchers);
    put("log_worker_written", &counts.written);
    put("log_worker_dropped", &0);
    put("log_watcher_sent", &counts.sent);
    put("log_watcher_skipped", &counts.skipped);
}

fn put_sockets(service: &Service, put: &mut Put<'_>) {
    let counters = service.counters.get().map(|read| read()).unwrap_or_default();
    put("max_connections", &service.options.most_connections);
    put("curr_connections", &counters.current_connections);
    put("total_connections", &counters.total_connections);
    put("rejected_connections", &counters.rejected_connections);
    put("connection_structures", &counters.current_connections);
    put("response_obj_oom", &counters.slow_peers_closed);
    put("response_obj_count", &0);
    put("response_obj_bytes", &service.send_memory.held_bytes());
    put("response_obj_bytes_limit", &service.send_memory.limit_bytes());
    // Each thread lends one buffer to its connections in turn; a large data block on its way in
    // has one of its own.
    let incoming = &service.incoming;
    let lent_bytes = service.options.threads * INPUT_LIMIT_BYTES;
    put("read_buf_count", &service.options.threads);
    put("read_buf_bytes", &(lent_bytes + incoming.reserved_bytes()));
    put("read_buf_bytes_free", &incoming.limit_bytes().saturating_sub(incoming.reserved_bytes()));
    put("read_buf_oom", &incoming.refused());
    put("reserved_fds", &0);
    if service.options.idle_timeout.is_some() {
        put("idle_kicks", &service.idle_kicks());
    }
    put("accepting_conns", &u8::from(counters.accepting));
    put("listen_disabled_num", &counters.listen_disabled);
    put("conn_yields", &counters.yields);
    put("bytes_read", &counters.bytes_read);
    put("bytes_written", &counters.bytes_written);
    put("datagrams_received", &counters.datagrams_received);
    put("datagrams_sent", &counters.datagrams_sent);
    put("datagrams_dropped", &counters.datagrams_dropped);
}

fn put_commands(service: &Service, put: &mut Put<'_>) {
    let counts = service.store.counts();
    let meta: u64 = service.threads.iter().map(|thread| thread.cmd_meta.load(Relaxed)).sum();
    let (flushes, auths, auth_errors) = service.counted();
    for (name, value) in [
        ("cmd_get", counts.get_hits + counts.get_misses),
        ("cmd_set", counts.cmd_set),
        ("cmd_flush", flushes),
        ("cmd_touch", counts.cmd_touch),
        ("cmd_meta", meta),
        ("get_hits", counts.get_hits),
        ("get_misses", counts.get_misses),
        ("get_expired", counts.get_expired),
        ("delete_misses", counts.delete_misses),
        ("delete_hits", counts.delete_hits),
        ("incr_misses", counts.incr_misses),
        ("incr_hits", counts.incr_hits),
        ("decr_misses", counts.decr_misses),
        ("decr_hits", counts.decr_hits),
        ("cas_misses", counts.cas_misses),
        ("cas_hits", counts.cas_hits),
        ("cas_badval", counts.cas_badval),
        ("touch_hits", counts.touch_hits),
        ("touch_misses", counts.touch_misses),
        ("store_too_large", counts.store_too_large),
        ("store_no_memory", counts.store_no_memory),
        ("auth_cmds", auths),
        ("auth_errors", auth_errors),
        ("total_items", counts.stored),
        ("evictions", counts.evictions),
        ("evicted_unfetched", counts.evicted_unfetched),
        ("evicted_active", counts.evicted_active),
        ("reclaimed", counts.reclaimed),
        ("expired_unfetched", counts.expired_unfetched),
        ("crawler_reclaimed", counts.crawler_reclaimed),
        ("crawler_items_checked", counts.crawler_checked),
    ] {
        put(name, &value);
    }
}

fn put_holdings(service: &Service, put: &mut Put<'_>) {
    let holdings = service.store.holdings();
    let slots = (holdings.index_bytes / 8).max(1);
    put("hash_power_level", &slots.ilog2());
    put("hash_bytes", &holdings.index_bytes);
    put("hash_is_expanding", &0);
    put("curr_items", &holdings.items);
    put("bytes", &holdings.item_bytes);
    put("touched_bytes", &holdings.touched_bytes);
}

/// The listeners and the connections.
pub(super) fn put_connections(service: &Service, now_s: Seconds, put: &mut Put<'_>) {
    let listening = service.listening.get().map(Vec::as_slice).unwrap_or_default();
    let uptime_s = service.clock.uptime_s(now_s);
    for (index, address) in listening.iter().enumerate() {
        let number = index + 1;
        put(&format!("{number}:addr"), &shown(address));
        put(&format!("{number}:state"), &"conn_listening");
        put(&format!("{number}:secs_since_last_cmd"), &uptime_s);
    }
    for (number, facts) in service.peers.all() {
        put(&format!("{number}:addr"), &shown(&facts.address));
        // Where there are several, which one took it in is not known.
        if let [only] = listening {
            put(&format!("{number}:listen_addr"), &shown(only));
        }
        put(&format!("{number}:state"), &facts.activity().name());
        let idle_s = now_s.saturating_sub(facts.last_s.load(Relaxed));
        put(&format!("{number}:secs_since_last_cmd"), &idle_s);
    }
}

fn shown(address: &Address) -> String {
    match address {
        Address::Internet(address) if address.is_ipv6() => format!("tcp6:{address}"),
        Address::Internet(address) => format!("tcp:{address}"),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// User and system time of this process, which the kernel counts in clock ticks.
fn cpu_seconds() -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold anything; the fields are counted from its end.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut seconds = || Some(ticks.next()?.ok()? as f64 / per_second);
    Some((seconds()?, seconds()?))
}
