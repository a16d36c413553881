//! The meta commands.

use wire::Output;

use super::state::CacheConnection;
use crate::model::{Access, Batch, Item, Mark, Reads, Removed, Seconds, Seen, Sum, Summed};
use crate::protocol::text::answer::{self, LINE_END, put_number};
use crate::protocol::text::{self, Meta, MetaFacts, put_echoes, put_facts};
use crate::protocol::{MAX_KEY_BYTES, Refusal, base64};

impl CacheConnection {
    /// Answers `mg KEY v` for one key of a batch. Returns the value's length.
    #[inline]
    pub(super) fn plain_meta_get(
        &self,
        reads: &mut Reads<'_>,
        batch: &Batch<'_>,
        number: usize,
        out: &mut Output,
    ) -> Option<usize> {
        let found = reads.get_in_batch::<true, _>(batch, number, |item| {
            let into = out.tail();
            // The code, a length, the marks of a stale item, two line ends.
            let copied_bytes = if self.copies(item.value.len()) { item.value.len() } else { 0 };
            into.reserve(3 + 20 + 6 + 2 + copied_bytes + 2);
            put_code(Some(item.value.len()), into);
            if item.stale || item.won {
                put_marks(item, None, into);
            }
            into.extend_from_slice(LINE_END);
            self.put_value(item.key, item.value, out);
            out.put(LINE_END);
            item.value.len()
        });
        if found.is_none() {
            out.put(answer::META_MISS);
            out.put(LINE_END);
        }
        found
    }

    pub(super) fn meta_get(&mut self, now_s: Seconds, meta: &Meta<'_>, out: &mut Output) {
        let service = &*self.service;
        service.threads[self.thread].add_metas(1);
        let mut buffer = [0; MAX_KEY_BYTES];
        let key = meta.key(&mut buffer);
        let expires = |exptime: Option<i64>| exptime.map(|at| service.clock.expires_s(at, now_s));
        let is_plain = meta.exptime.is_none()
            && meta.vivify.is_none()
            && meta.recache.is_none()
            && !meta.unnoticed;
        let mut show = |item: &Item<'_>, seen: Option<&Seen>| {
            put_hit(now_s, meta, item, seen, out.tail());
            if meta.value {
                self.put_value(item.key, item.value, out);
                out.put(LINE_END);
            }
            item.value.len()
        };
        let found = if is_plain {
            service.store.get_or_win(now_s, key, |item| show(item, None))
        } else {
            let access = Access {
                wins: true,
                unnoticed: meta.unnoticed,
                expires_s: expires(meta.exptime),
                vivify_s: expires(meta.vivify),
                recache_s: expires(meta.recache),
                recache_last: meta.recache_last,
                binary_key: meta.binary_key,
            };
            service.store.access(now_s, key, &access, |item, seen| show(item, Some(seen)))
        };
        self.observe_read(now_s, key, found);
        if found.is_none() && !meta.quiet {
            out.put(answer::META_MISS);
            put_echoes(meta, key, out.tail());
            out.put(LINE_END);
        }
    }

    pub(super) fn meta_delete(&mut self, now_s: Seconds, meta: &Meta<'_>, out: &mut Output) {
        let service = &*self.service;
        service.threads[self.thread].add_metas(1);
        let mut buffer = [0; MAX_KEY_BYTES];
        let key = meta.key(&mut buffer);
        self.observe_delete(now_s, key);
        let expires_s = meta.exptime.map(|at| service.clock.expires_s(at, now_s));
        let removed = if meta.value_only || meta.invalidate {
            let mark = Mark {
                cas: meta.cas,
                expires_s: expires_s.filter(|_| meta.invalidate),
                stale: meta.invalidate,
                empty: meta.value_only,
            };
            service.store.mark(now_s, key, meta.compare, &mark)
        } else {
            service.store.remove(now_s, key, meta.compare)
        };
        let code: &[u8] = match removed {
            Removed::Removed if meta.quiet => return,
            Removed::Removed => b"HD",
            Removed::NotFound => b"NF",
            Removed::Exists => b"EX",
        };
        out.put(code);
        put_echoes(meta, key, out.tail());
        out.put(LINE_END);
    }

    pub(super) fn meta_sum(
        &mut self,
        now_s: Seconds,
        meta: &Meta<'_>,
        increment: bool,
        out: &mut Output,
    ) {
        let service = &*self.service;
        service.threads[self.thread].add_metas(1);
        let mut buffer = [0; MAX_KEY_BYTES];
        let key = meta.key(&mut buffer);
        let expires = |exptime: Option<i64>| exptime.map(|at| service.clock.expires_s(at, now_s));
        let sum = Sum {
            increment,
            delta: meta.delta,
            compare: meta.compare,
            cas: meta.cas,
            create: expires(meta.vivify).map(|expires_s| (meta.initial, expires_s)),
            expires_s: expires(meta.exptime),
            binary_key: meta.binary_key,
        };
        self.observe_sum(now_s, key);
        let total = match service.store.sum(now_s, key, &sum) {
            // The creation of a number is answered in quiet mode, too.
            Summed::Done(total) if meta.quiet && !total.is_new => return,
            Summed::Done(total) => total,
            Summed::NotANumber => return out.put(Refusal::NotANumber.line()),
            Summed::NoRoom => return out.put(Refusal::OutOfMemoryForNumber.line()),
            missed @ (Summed::NotFound | Summed::Exists) => {
                out.put(if missed == Summed::NotFound { b"NF" } else { b"EX" });
                put_echoes(meta, key, out.tail());
                return out.put(LINE_END);
            }
        };
        let digits = total.number.checked_ilog10().unwrap_or(0) + 1;
        put_code(meta.value.then_some(digits as usize), out.tail());
        let left = |at_s: Seconds| (at_s != 0).then(|| at_s.saturating_sub(now_s));
        text::put_summed(
            meta,
            key,
            total.cas,
            [left(total.before_s), left(total.after_s)],
            out.tail(),
        );
        out.put(LINE_END);
        if meta.value {
            put_number(total.number, out.tail());
            out.put(LINE_END);
        }
    }

    pub(super) fn meta_debug(&mut self, now_s: Seconds, meta: &Meta<'_>, out: &mut Output) {
        use std::io::Write as _;
        let service = &*self.service;
        service.threads[self.thread].add_metas(1);
        let mut buffer = [0; MAX_KEY_BYTES];
        let key = meta.key(&mut buffer);
        let found = service.store.peek(now_s, key, |item| {
            out.put(b"ME ");
            match item.binary_key {
                true => base64::encode(item.key, out.tail()),
                false => out.put(item.key),
            }
            let left = (item.expires_s != 0).then(|| item.expires_s.saturating_sub(now_s));
            let left = left.map_or(-1, i64::from);
            let idle_s = now_s.saturating_sub(item.accessed_s);
            let fetched = if item.fetched { "yes" } else { "no" };
            let size = item.key.len() + item.value.len();
            let cas = item.cas;
            // Writing to a vector can't fail.
            let _ = write!(
                out.tail(),
                " exp={left} la={idle_s} cas={cas} fetch={fetched} cls=1 size={size}\r\n"
            );
        });
        if found.is_none() {
            out.put(b"EN\r\n");
        }
    }
}

/// `VA` with its length where a value follows, else `HD`.
#[inline]
fn put_code(value_bytes: Option<usize>, into: &mut Vec<u8>) {
    match value_bytes {
        None => into.extend_from_slice(b"HD"),
        Some(count) => {
            into.extend_from_slice(b"VA ");
            put_number(count as u64, into);
        }
    }
}

#[inline]
fn put_hit(
    now_s: Seconds,
    meta: &Meta<'_>,
    item: &Item<'_>,
    seen: Option<&Seen>,
    into: &mut Vec<u8>,
) {
    put_code(meta.value.then_some(item.value.len()), into);
    let left = |at_s: Seconds| (at_s != 0).then(|| at_s.saturating_sub(now_s));
    let facts = MetaFacts {
        key: item.key,
        binary_key: item.binary_key,
        flags: item.flags,
        cas: item.cas,
        value_bytes: item.value.len(),
        fetched: item.fetched,
        idle_s: now_s.saturating_sub(item.accessed_s),
        left_before_s: left(seen.map_or(item.expires_s, |seen| seen.before_s)),
        left_after_s: left(seen.map_or(item.expires_s, |seen| seen.after_s)),
    };
    put_facts(meta, &facts, into);
    put_marks(item, seen, into);
    into.extend_from_slice(LINE_END);
}

/// Appends the marks of a stale item: `W` for the client that may recache it, `Z` for others.
#[inline]
fn put_marks(item: &Item<'_>, seen: Option<&Seen>, into: &mut Vec<u8>) {
    let won = seen.map_or(item.stale && !item.won, |seen| seen.won);
    for (is_so, letter) in [(item.won, b" Z"), (item.stale, b" X"), (won, b" W")] {
        if is_so {
            into.extend_from_slice(letter);
        }
    }
}
