//! The service as the lab sees it: its operations and its dialects.

mod codec;
mod counters;
mod in_flight;
mod in_turn;
mod memcached;
mod operations;
mod redis;
mod udp;
mod workload;

pub use codec::CODECS;
pub use memcached::Memcached;
pub use operations::{ASIDE, DELETE, GET, MG, MGET, SET};
pub use redis::Redis;
pub use udp::MemcachedUdp;

use load::{DialectRow, Reach, Service};

/// The service.
pub static SERVICE: Service = Service {
    name: "cache",
    doc: "A key-value cache that speaks memcached's protocol.",
    read: workload::read,
    dialects: &[
        DialectRow::new(
            "memcached",
            "memcached's text protocol over a stream; `mg` is a meta command.",
            Reach::Stream,
        )
        .with_counters(&counters::Stats),
        DialectRow::new(
            "memcached-udp",
            "memcached's text protocol in datagrams.",
            Reach::Datagrams,
        ),
        DialectRow::new(
            "redis",
            "Redis' protocol over a stream; `mg` is a GET like `get`.",
            Reach::Stream,
        )
        .with_counters(&counters::Info),
    ],
};
