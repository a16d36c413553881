//! What the flags of a meta command asked for.

use super::{Meta, MetaFlag};
use crate::protocol::base64;
use crate::protocol::text::answer::put_number;

/// What a flag of a meta command asks about, as the store knows it.
#[derive(Clone, Copy, Debug)]
pub struct MetaFacts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Whether the key is shown in base64.
    pub binary_key: bool,
    /// The client's own 32 bits.
    pub flags: u32,
    /// The unique number of the store.
    pub cas: u64,
    /// The length of the value.
    pub value_bytes: usize,
    /// Whether the item had been read before.
    pub fetched: bool,
    /// Seconds since it was last read.
    pub idle_s: u32,
    /// Seconds until it expires, as it was before the command.
    pub left_before_s: Option<u32>,
    /// Seconds until it expires, as it is after the command.
    pub left_after_s: Option<u32>,
}

/// Appends what the flags asked for, each with a space before it.
#[inline]
pub fn put_facts(meta: &Meta<'_>, facts: &MetaFacts<'_>, into: &mut Vec<u8>) {
    let mut left_s = facts.left_before_s;
    for flag in meta.answered() {
        let mut put = |name: &[u8; 2], number: u64| {
            into.extend_from_slice(name);
            put_number(number, into);
        };
        match flag {
            MetaFlag::Cas => put(b" c", facts.cas),
            MetaFlag::Flags => put(b" f", u64::from(facts.flags)),
            MetaFlag::Hit => put(b" h", u64::from(facts.fetched)),
            MetaFlag::LastAccess => put(b" l", u64::from(facts.idle_s)),
            MetaFlag::Size => put(b" s", facts.value_bytes as u64),
            MetaFlag::TimeLeft => match left_s {
                Some(left_s) => put(b" t", u64::from(left_s)),
                None => into.extend_from_slice(b" t-1"),
            },
            MetaFlag::Expiry => left_s = facts.left_after_s,
            MetaFlag::Key | MetaFlag::Opaque(_) => {
                put_echo(&flag, facts.key, facts.binary_key, into);
            }
        }
    }
}

/// Appends what the flags of a store asked for: the unique number, the key, the opaque token.
#[inline]
pub fn put_stored(meta: &Meta<'_>, key: &[u8], cas: u64, into: &mut Vec<u8>) {
    for flag in meta.answered() {
        if flag == MetaFlag::Cas {
            into.extend_from_slice(b" c");
            put_number(cas, into);
        }
        put_echo(&flag, key, meta.binary_key, into);
    }
}

/// Appends what the flags of a sum asked for; `left_s` is the time left before and after it.
pub fn put_summed(
    meta: &Meta<'_>,
    key: &[u8],
    cas: u64,
    left_s: [Option<u32>; 2],
    into: &mut Vec<u8>,
) {
    let [mut left, after] = left_s;
    for flag in meta.answered() {
        match (flag, left) {
            (MetaFlag::Cas, _) => {
                into.extend_from_slice(b" c");
                put_number(cas, into);
            }
            (MetaFlag::TimeLeft, None) => into.extend_from_slice(b" t-1"),
            (MetaFlag::TimeLeft, Some(left)) => {
                into.extend_from_slice(b" t");
                put_number(u64::from(left), into);
            }
            (MetaFlag::Expiry, _) => left = after,
            _ => put_echo(&flag, key, meta.binary_key, into),
        }
    }
}

/// Appends what the flags asked for that needs no item: the key and the opaque token.
#[inline]
pub fn put_echoes(meta: &Meta<'_>, key: &[u8], into: &mut Vec<u8>) {
    meta.answered().for_each(|flag| put_echo(&flag, key, meta.binary_key, into));
}

#[inline]
fn put_echo(flag: &MetaFlag<'_>, key: &[u8], binary_key: bool, into: &mut Vec<u8>) {
    match flag {
        MetaFlag::Key if binary_key => {
            into.extend_from_slice(b" k");
            base64::encode(key, into);
            into.extend_from_slice(b" b");
        }
        MetaFlag::Key => {
            into.extend_from_slice(b" k");
            into.extend_from_slice(key);
        }
        MetaFlag::Opaque(token) => {
            into.push(b' ');
            into.extend_from_slice(token);
        }
        _ => {}
    }
}
