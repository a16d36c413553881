//! The operations of a cache's workload.

use load::kv::{Role, Rules};

/// The operation `get`, as an index into the workload's operations.
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

/// What they do, in this order, and the limits of a cache.
pub(super) static RULES: Rules = Rules {
    operations: &[
        ("get", Role::Read, "Reads one key."),
        ("mget", Role::ReadMany, "Reads several keys at once."),
        ("mg", Role::Read, "Reads one key with a meta get."),
        ("set", Role::Write, "Stores one key."),
        ("delete", Role::Remove, "Removes one key."),
        (
            "aside",
            Role::Read,
            "Reads one key, and stores it when it isn't there; in datagrams it only reads.",
        ),
    ],
    longest_key_bytes: crate::protocol::MAX_KEY_BYTES,
    // A value of 1 MiB does not fit into memcached's default largest item, which counts its head.
    longest_value_bytes: (1 << 20) - 1024,
};
