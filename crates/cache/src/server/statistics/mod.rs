//! `stats`: the names that clients and exporters know. Control plane.

mod general;
mod insight;
mod items;
mod prometheus;
mod settings;
mod sink;

use std::fmt::Display;
use std::sync::atomic::Ordering::Relaxed;

use super::service::Service;
use crate::model::Seconds;
use crate::protocol::Refusal;
use crate::protocol::text::{Tokens, answer};
use sink::Put;

/// A group of statistics.
struct Group {
    name: &'static str,
    put: fn(&Service, Seconds, &mut Put<'_>),
}

/// The group that shows keys, which may be switched off.
const HOT_KEYS: &str = "hotkeys";

/// All groups that are lists of names and values.
static GROUPS: &[Group] = &[
    Group { name: "", put: general::put },
    Group { name: "settings", put: settings::put },
    Group { name: "items", put: items::put_items },
    Group { name: "slabs", put: items::put_slabs },
    Group { name: "sizes", put: items::put_sizes },
    Group { name: "sizes_enable", put: |service, _, put| items::switch_sizes(service, true, put) },
    Group {
        name: "sizes_disable",
        put: |service, _, put| items::switch_sizes(service, false, put),
    },
    Group { name: "conns", put: general::put_connections },
    Group { name: "evictions", put: insight::put_evictions },
    Group { name: "cpu", put: insight::put_cpu },
    Group { name: HOT_KEYS, put: insight::put_hot_keys },
    Group { name: "reset", put: |service, _, _| reset(service) },
    Group { name: "detail on", put: |service, _, _| service.detail.switch(true) },
    Group { name: "detail off", put: |service, _, _| service.detail.switch(false) },
    Group { name: "detail dump", put: put_detail },
];

/// Hands out the statistics of a group; the empty group is the general one.
///
/// # Errors
/// When there is no such group.
pub(super) fn group(
    service: &Service,
    now_s: Seconds,
    name: &[u8],
    put: &mut Put<'_>,
) -> Result<(), Refusal> {
    if name == HOT_KEYS.as_bytes() && !service.options.list_keys {
        return Err(Refusal::NoCacheDump);
    }
    let group = GROUPS.iter().find(|group| group.name.as_bytes() == name);
    (group.ok_or(Refusal::Unknown)?.put)(service, now_s, put);
    Ok(())
}

/// Answers `stats GROUP` as text.
pub(super) fn answer(
    service: &Service,
    now_s: Seconds,
    name: &[u8],
    mut rest: Tokens<'_>,
    into: &mut Vec<u8>,
) {
    match name {
        b"reset" => {
            reset(service);
            into.extend_from_slice(answer::RESET);
        }
        b"detail" => match rest.next() {
            Some(b"on") => {
                service.detail.switch(true);
                into.extend_from_slice(answer::OK);
            }
            Some(b"off") => {
                service.detail.switch(false);
                into.extend_from_slice(answer::OK);
            }
            Some(b"dump") => {
                service.detail.dump(into);
                into.extend_from_slice(answer::END);
            }
            _ => into.extend_from_slice(Refusal::BadDetail.line()),
        },
        b"cachedump" => items::dump(service, now_s, rest, into),
        _ => {
            let start = into.len();
            let mut put = |name: &str, value: &dyn Display| answer::put_stat(name, value, into);
            match group(service, now_s, name, &mut put) {
                Ok(()) => into.extend_from_slice(answer::END),
                Err(refusal) => {
                    into.truncate(start);
                    into.extend_from_slice(refusal.line());
                }
            }
        }
    }
}

fn reset(service: &Service) {
    service.store.reset_counts();
    service.detail.reset();
    service.reset_counts();
    service.crawler.reset_counts();
    for thread in &service.threads {
        thread.cmd_meta.store(0, Relaxed);
        thread.samples.reset();
    }
}

fn put_detail(service: &Service, _now_s: Seconds, put: &mut Put<'_>) {
    let mut text = Vec::new();
    service.detail.dump(&mut text);
    text.extend_from_slice(answer::END);
    put("detailed", &String::from_utf8_lossy(&text));
}
