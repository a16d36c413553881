//! The service as the lab sees it: its operations and the ways to say them.

mod asked;
mod codec;
mod counters;
mod in_turn;
mod memcached;
mod redis;
mod udp;

pub use codec::CODECS;
pub use memcached::Memcached;
pub use redis::Redis;
pub use udp::MemcachedUdp;

use load::{Client, DialectRow, Kind, Operation, Service};

/// The operation `get`, as an index into [`SERVICE`]'s operations.
pub const GET: usize = 0;
/// The operation `mget`.
pub const MGET: usize = 1;
/// The operation `mg`.
pub const MG: usize = 2;
/// The operation `set`.
pub const SET: usize = 3;
/// The operation `delete`.
pub const DELETE: usize = 4;
/// The operation `aside`.
pub const ASIDE: usize = 5;

/// The service.
pub static SERVICE: Service = Service {
    name: "cache",
    doc: "A key-value cache that speaks memcached's protocol.",
    operations: &[
        Operation { name: "get", kind: Kind::Read, doc: "Reads one key." },
        Operation { name: "mget", kind: Kind::ReadMany, doc: "Reads several keys at once." },
        Operation { name: "mg", kind: Kind::Read, doc: "Reads one key with a meta get." },
        Operation { name: "set", kind: Kind::Write, doc: "Stores one key." },
        Operation { name: "delete", kind: Kind::Remove, doc: "Removes one key." },
        Operation {
            name: "aside",
            kind: Kind::Read,
            doc: "Reads one key, and stores it when it isn't there; in datagrams it only reads.",
        },
    ],
    dialects: &[
        DialectRow {
            name: "memcached",
            doc: "memcached's text protocol over a stream; `mg` says it with a meta command.",
            client: Client::Stream(|oracle| Box::new(Memcached::new(oracle))),
            counters: Some(&counters::Stats),
        },
        DialectRow {
            name: "memcached-udp",
            doc: "memcached's text protocol in datagrams.",
            client: Client::Datagrams(|oracle| Box::new(MemcachedUdp::new(oracle))),
            counters: None,
        },
        DialectRow {
            name: "redis",
            doc: "Redis' protocol over a stream; `mg` is a GET like `get`.",
            client: Client::Stream(|oracle| Box::new(Redis::new(oracle))),
            counters: Some(&counters::Info),
        },
    ],
    longest_key_bytes: crate::protocol::MOST_KEY_BYTES,
    // A value of 1 MiB does not fit into memcached's default largest item, which counts its head.
    longest_value_bytes: (1 << 20) - 1024,
    prepares: true,
};
