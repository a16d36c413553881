//! Groups about items. There are no size classes: all items are of class 1.

use std::collections::BTreeMap;
use std::io::Write as _;

use super::sink::Put;
use crate::model::{Cursor, Item, Seconds};
use crate::protocol::Refusal;
use crate::protocol::text::Tokens;
use crate::protocol::text::answer;
use crate::server::service::Service;

/// The largest class that memcached has.
const MAX_CLASSES: u64 = 63;

/// A dump is at most this long.
const MAX_DUMP_BYTES: usize = 2 << 20;

/// The number of items visited under one lock.
const TOGETHER: usize = 256;

/// The resolution of sizes, in bytes.
const SIZE_STEP: usize = 32;

pub(super) fn put_items(service: &Service, now_s: Seconds, put: &mut Put<'_>) {
    let (holdings, counts) = (service.store.holdings(), service.store.counts());
    let evictions = service.store.eviction_stats();
    if holdings.items == 0 {
        return;
    }
    for (name, value) in [
        ("number", holdings.items),
        ("number_hot", 0),
        ("number_warm", 0),
        ("number_cold", holdings.items),
        ("age_hot", 0),
        ("age_warm", 0),
        ("age", u64::from(service.store.oldest_age_s(now_s))),
        ("mem_requested", holdings.item_bytes),
        ("evicted", counts.evictions),
        ("evicted_nonzero", evictions.mortal),
        ("evicted_time", u64::from(evictions.last_idle_s)),
        ("outofmemory", counts.store_no_memory),
        ("tailrepairs", 0),
        ("reclaimed", counts.reclaimed),
        ("expired_unfetched", counts.expired_unfetched),
        ("evicted_unfetched", counts.evicted_unfetched),
        ("evicted_active", counts.evicted_active),
        ("crawler_reclaimed", counts.crawler_reclaimed),
        ("crawler_items_checked", counts.crawler_checked),
        ("lrutail_reflocked", 0),
        ("moves_to_cold", 0),
        ("moves_to_warm", 0),
        ("moves_within_lru", 0),
        ("direct_reclaims", 0),
        ("hits_to_hot", 0),
        ("hits_to_warm", 0),
        ("hits_to_cold", counts.get_hits),
        ("hits_to_temp", 0),
    ] {
        put(&format!("items:1:{name}"), &value);
    }
}

pub(super) fn put_slabs(service: &Service, _now_s: Seconds, put: &mut Put<'_>) {
    let (holdings, counts) = (service.store.holdings(), service.store.counts());
    let has_items = holdings.items > 0;
    if has_items {
        // There are no classes of sizes: a chunk stands for an item of the mean size.
        let chunk_bytes = (holdings.item_bytes / holdings.items).max(1);
        let chunks = (holdings.touched_bytes / chunk_bytes).max(holdings.items);
        for (name, value) in [
            ("chunk_size", chunk_bytes),
            ("chunks_per_page", ((1 << 20) / chunk_bytes).max(1)),
            ("total_pages", holdings.touched_bytes.div_ceil(1 << 20)),
            ("total_chunks", chunks),
            ("used_chunks", holdings.items),
            ("free_chunks", chunks - holdings.items),
            ("free_chunks_end", 0),
            ("get_hits", counts.get_hits),
            ("cmd_set", counts.cmd_set),
            ("delete_hits", counts.delete_hits),
            ("incr_hits", counts.incr_hits),
            ("decr_hits", counts.decr_hits),
            ("cas_hits", counts.cas_hits),
            ("cas_badval", counts.cas_badval),
            ("touch_hits", counts.touch_hits),
        ] {
            put(&format!("1:{name}"), &value);
        }
    }
    put("active_slabs", &u8::from(has_items));
    put("total_malloced", &holdings.touched_bytes);
}

pub(super) fn switch_sizes(service: &Service, on: bool, put: &mut Put<'_>) {
    service.track_sizes(on);
    put("sizes_status", &if on { "enabled" } else { "disabled" });
}

/// Counts all items by their sizes, here and now.
pub(super) fn put_sizes(service: &Service, now_s: Seconds, put: &mut Put<'_>) {
    if !service.tracks_sizes() {
        return put("sizes_status", &"disabled");
    }
    let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = service.store.walk(now_s, from, TOGETHER, &mut |item| {
            let bytes = item.key.len() + item.value.len();
            *sizes.entry(bytes.next_multiple_of(SIZE_STEP)).or_default() += 1;
        });
    }
    for (size, count) in sizes {
        put(&size.to_string(), &count);
    }
}

/// `stats cachedump CLASS LIMIT`: some keys, with their sizes and expiries.
pub(super) fn dump(service: &Service, now_s: Seconds, mut rest: Tokens<'_>, into: &mut Vec<u8>) {
    let number = |word: Option<&[u8]>| -> Result<u64, Refusal> {
        let text = std::str::from_utf8(word.ok_or(Refusal::BadStats)?);
        text.ok().and_then(|text| text.parse().ok()).ok_or(Refusal::BadLine)
    };
    let refusal = match (rest.next(), rest.next()) {
        _ if !service.options.list_keys => Refusal::NoCacheDump,
        (Some(class), Some(limit)) => match (number(Some(class)), number(Some(limit))) {
            (Ok(class), Ok(_)) if class > MAX_CLASSES => Refusal::NoClass,
            (Ok(class), Ok(limit)) => {
                if class == 1 {
                    dump_all(service, now_s, limit, into);
                }
                return into.extend_from_slice(answer::END);
            }
            _ => Refusal::BadLine,
        },
        _ => Refusal::BadStats,
    };
    into.extend_from_slice(refusal.line());
}

fn dump_all(service: &Service, now_s: Seconds, limit: u64, into: &mut Vec<u8>) {
    let start = into.len();
    let mut left = if limit == 0 { u64::MAX } else { limit };
    let mut show = |item: &Item<'_>| {
        let fits = into.len() - start + item.key.len() + 64 <= MAX_DUMP_BYTES;
        if left == 0 || !fits {
            left = 0;
            return;
        }
        left -= 1;
        into.extend_from_slice(b"ITEM ");
        into.extend_from_slice(item.key);
        let expires_s = match item.expires_s {
            0 => 0,
            expires_s => service.clock.unix_s(expires_s),
        };
        // Writing to a vector can't fail.
        let _ = write!(into, " [{} b; {expires_s} s]\r\n", item.value.len());
    };
    let mut cursor = Some(Cursor::default());
    let mut looked_at = 0;
    // The walk is bounded by the number of items that could be shown.
    while let Some(from) = cursor
        && looked_at < MAX_DUMP_BYTES / 16
    {
        cursor = service.store.walk(now_s, from, TOGETHER, &mut show);
        looked_at += TOGETHER;
    }
}
