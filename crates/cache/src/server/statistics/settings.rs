//! How the service is set.

use wire::Backend;

use super::sink::Put;
use crate::model::Seconds;
use crate::server::options::Speech;
use crate::server::service::Service;

/// What memcached can be set to and what does not exist here.
const NOTHING_HERE: &[(&str, &str)] = &[
    ("reqs_per_event", "0"),
    ("hashpower_init", "0"),
    ("slab_reassign", "no"),
    ("slab_automove", "0"),
    ("slab_automove_ratio", "0.00"),
    ("slab_automove_window", "0"),
    ("slab_automove_freeratio", "0.000"),
    ("slab_chunk_max", "0"),
    ("tail_repair_time", "0"),
    ("lru_maintainer_thread", "no"),
    ("lru_segmented", "no"),
    ("hot_lru_pct", "0"),
    ("warm_lru_pct", "0"),
    ("hot_max_factor", "0.00"),
    ("warm_max_factor", "0.00"),
    ("temp_lru", "no"),
    ("temporary_ttl", "0"),
    ("worker_logbuf_size", "0"),
    ("inline_ascii_response", "no"),
    ("num_napi_ids", "(null)"),
    ("memory_file", "(null)"),
];

pub(super) fn put(service: &Service, _now_s: Seconds, put: &mut Put<'_>) {
    let options = &service.options;
    let on = |is_so: bool| if is_so { "on" } else { "off" };
    let yes = |is_so: bool| if is_so { "yes" } else { "no" };
    put("maxbytes", &service.store.memory_bytes());
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
    let udp = options.datagrams.iter().find_map(|address| match address {
        wire::Address::Internet(address) => Some(address.port()),
        wire::Address::Unix(_) => None,
    });
    put("udpport", &udp.unwrap_or(0));
    if !options.listen.iter().any(|address| matches!(address, wire::Address::Unix(_))) {
        put("domain_socket", &"NULL");
    }
    put("umask", &format_args!("{:o}", options.unix_mode.unwrap_or(0o700)));
    put("verbosity", &service.verbosity.level());
    put("oldest", &0);
    put("evictions", &on(options.evict));
    put("eviction_policy", &options.policy.name());
    put("store", &options.sharing.name());
    put("answers_flushed", &if options.flush_each { "per-answer" } else { "per-batch" });
    put("io", &io(options.backend));
    put("io_in_force", &io(backend_in_use(service)));
    put("eviction_policy_in_force", &service.store.policy_in_force().name());
    put("shutdown_command", &yes(service.shutdown.is_some()));
    put("num_threads", &options.threads);
    put("num_threads_per_udp", &options.threads);
    // There are no classes of sizes: an item takes what it takes.
    put("growth_factor", &"1.00");
    put("chunk_size", &0);
    put("stat_key_prefix", &char::from(options.prefix_end));
    put("detail_enabled", &yes(service.detail.is_on()));
    put("cas_enabled", &yes(options.cas));
    put("tcp_backlog", &options.backlog);
    let speech = match options.speech {
        Speech::Either => "auto-negotiate",
        Speech::Text => "ascii",
        Speech::Binary => "binary",
    };
    put("binding_protocol", &speech);
    put("auth_enabled_sasl", &"no");
    put("auth_enabled_ascii", &yes(service.accounts.is_some()));
    put("item_size_max", &options.item_bytes);
    put("read_buf_mem_limit", &(service.incoming.limit_bytes() >> 20));
    put("maxconns_fast", &yes(!options.wait_when_full));
    let crawler = service.crawler.options();
    put("lru_crawler", &yes(crawler.enabled));
    put("lru_crawler_sleep", &crawler.sleep_us);
    put("lru_crawler_tocrawl", &crawler.to_crawl);
    put_encryption(service, put);
    for (name, value) in NOTHING_HERE {
        put(name, value);
    }
    put("flush_enabled", &yes(options.flush));
    put("dump_enabled", &yes(options.list_keys));
    put("hash_algorithm", &"foldhash");
    put("idle_timeout", &options.idle_timeout.map_or(0, |idle| idle.as_secs()));
    put("watch_enabled", &yes(options.watch));
    put("watcher_logbuf_size", &options.watch_queue_bytes);
    put("debug_time", &yes(options.debug_time));
    put("track_sizes", &yes(service.tracks_sizes()));
    put("shards", &service.store.shards());
}

/// The backend that all threads use.
fn backend_in_use(service: &Service) -> Backend {
    let counters = service.counters.get().map(|read| read()).unwrap_or_default();
    let is_uring = counters.uring_threads == service.options.threads as u64;
    if is_uring { Backend::Uring } else { Backend::Epoll }
}

/// The name that `--io` has for it.
fn io(backend: Backend) -> &'static str {
    match backend {
        Backend::Epoll => "epoll",
        Backend::Uring => "uring",
        Backend::Auto => "auto",
    }
}

/// What connections are encrypted with. Buffers and sessions are the library's own.
fn put_encryption(service: &Service, put: &mut Put<'_>) {
    let used = service.options.encryption.as_ref();
    let text = |text: Option<&String>, none: &str| text.map_or(none.to_owned(), String::clone);
    put("ssl_enabled", &if used.is_some() { "yes" } else { "no" });
    put("ssl_chain_cert", &text(used.map(|used| &used.certificates), "(null)"));
    put("ssl_key", &text(used.and_then(|used| used.key.as_ref()), "(null)"));
    put("ssl_verify_mode", &used.map_or(0, |used| used.verify_mode));
    put("ssl_keyformat", &1);
    put("ssl_ciphers", &"NULL");
    put("ssl_ca_cert", &text(used.and_then(|used| used.authorities.as_ref()), "NULL"));
    put("ssl_wbuf_size", &0);
    put("ssl_session_cache", &if used.is_some() { "yes" } else { "no" });
    put("ssl_kernel_tls", &"no");
    let least =
        if used.is_some_and(|used| used.least_version == 3) { "tlsv1.3" } else { "tlsv1.2" };
    put("ssl_min_version", &least);
}
