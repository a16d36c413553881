//! How the service is set.

use super::Put;
use crate::model::Seconds;
use crate::server::{Service, Speech};

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
    put("verbosity", &0);
    put("oldest", &0);
    put("evictions", &on(options.evict));
    put("shutdown_command", &yes(service.shutdown.is_some()));
    put("num_threads", &options.threads);
    put("stat_key_prefix", &":");
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
    put("maxconns_fast", &"yes");
    put("lru_crawler", &"yes");
    put("flush_enabled", &yes(options.flush));
    put("dump_enabled", &yes(options.list_keys));
    put("hash_algorithm", &"foldhash");
    put("idle_timeout", &options.idle_timeout.map_or(0, |idle| idle.as_secs()));
    put("track_sizes", &yes(service.tracks_sizes()));
    put("shards", &service.store.shards());
}
