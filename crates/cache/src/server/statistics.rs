//! `stats`: the names that clients and exporters know, one line each. Control plane.

use std::fmt::Display;
use std::sync::atomic::Ordering::Relaxed;

use super::service::Service;
use crate::model::Seconds;
use crate::protocol::Refusal;
use crate::protocol::text::answer;

/// Answers `stats GROUP`; the empty group is the general one.
pub(super) fn answer(service: &Service, now_s: Seconds, group: &[u8], into: &mut Vec<u8>) {
    match group {
        b"" => general(service, now_s, &mut |name, value| answer::put_stat(name, value, into)),
        b"settings" => settings(service, &mut |name, value| answer::put_stat(name, value, into)),
        b"reset" => {
            service.store.reset_counts();
            service.threads.iter().for_each(|thread| thread.cmd_meta.store(0, Relaxed));
            into.extend_from_slice(answer::RESET);
            return;
        }
        _ => return into.extend_from_slice(Refusal::Unknown.line()),
    }
    into.extend_from_slice(answer::END);
}

/// Takes one statistic.
type Put<'a> = dyn FnMut(&str, &dyn Display) + 'a;

fn general(service: &Service, now_s: Seconds, put: &mut Put<'_>) {
    put("pid", &std::process::id());
    put("uptime", &service.clock.uptime_s(now_s));
    put("time", &service.clock.unix_s(now_s));
    put("version", &crate::VERSION);
    put("pointer_size", &usize::BITS);
    if let Some((user_s, system_s)) = cpu_seconds() {
        put("rusage_user", &format_args!("{user_s:.6}"));
        put("rusage_system", &format_args!("{system_s:.6}"));
    }
    connections(service, put);
    commands(service, put);
    put("limit_maxbytes", &service.store.limits().memory_bytes);
    put("threads", &service.options.threads);
    holdings(service, put);
}

fn connections(service: &Service, put: &mut Put<'_>) {
    let counters = service.counters.get().map(|read| read()).unwrap_or_default();
    put("max_connections", &service.options.most_connections);
    put("curr_connections", &counters.current_connections);
    put("total_connections", &counters.total_connections);
    put("rejected_connections", &counters.rejected_connections);
    put("accepting_conns", &u8::from(counters.accepting));
    put("listen_disabled_num", &counters.listen_disabled);
    put("conn_yields", &counters.yields);
    put("bytes_read", &counters.bytes_read);
    put("bytes_written", &counters.bytes_written);
}

fn commands(service: &Service, put: &mut Put<'_>) {
    let counts = service.store.counts();
    let meta: u64 = service.threads.iter().map(|thread| thread.cmd_meta.load(Relaxed)).sum();
    put("cmd_get", &(counts.get_hits + counts.get_misses));
    put("cmd_set", &counts.cmd_set);
    put("cmd_flush", &0);
    put("cmd_touch", &0);
    put("cmd_meta", &meta);
    put("get_hits", &counts.get_hits);
    put("get_misses", &counts.get_misses);
    put("get_expired", &counts.get_expired);
    put("get_flushed", &0);
    put("delete_misses", &counts.delete_misses);
    put("delete_hits", &counts.delete_hits);
    put("store_too_large", &counts.store_too_large);
    put("store_no_memory", &0);
    put("total_items", &counts.stored);
    put("evictions", &counts.evictions);
    put("evicted_unfetched", &counts.evicted_unfetched);
    put("evicted_active", &counts.evicted_active);
    put("reclaimed", &counts.reclaimed);
    put("expired_unfetched", &counts.expired_unfetched);
}

fn holdings(service: &Service, put: &mut Put<'_>) {
    let holdings = service.store.holdings();
    put("hash_bytes", &holdings.index_bytes);
    put("hash_is_expanding", &0);
    put("curr_items", &holdings.items);
    put("bytes", &holdings.item_bytes);
    put("touched_bytes", &holdings.touched_bytes);
}

fn settings(service: &Service, put: &mut Put<'_>) {
    let options = &service.options;
    put("maxbytes", &options.memory_bytes);
    put("maxconns", &options.most_connections);
    for address in &options.listen {
        match address {
            wire::Address::Internet(address) => {
                put("tcpport", &address.port());
                put("inter", &address.ip());
            }
            wire::Address::Unix(path) => put("domain_socket", &path.display()),
        }
    }
    put("udpport", &0);
    put("evictions", &"on");
    put("num_threads", &options.threads);
    put("cas_enabled", &"yes");
    put("auth_enabled_sasl", &"no");
    put("item_size_max", &options.item_bytes);
    put("hash_algorithm", &"foldhash");
    put("shards", &service.store.shards());
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
