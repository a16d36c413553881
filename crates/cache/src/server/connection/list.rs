//! Lists of all items. A list is produced as fast as it is sent: neither it nor a copy of the keys
//! is ever in memory as a whole.

use wire::Output;

use super::state::{CacheConnection, State};
use crate::model::{Cursor, Item, Seconds};
use crate::protocol::base64;
use crate::protocol::text::answer::{self, put_number};
use crate::protocol::text::{Listing, put_encoded};
use crate::server::service::Service;

/// The number of items visited under one lock.
const TOGETHER: usize = 64;

impl CacheConnection {
    /// The next items of a list, or its end.
    pub(super) fn step_list(
        &mut self,
        now_s: Seconds,
        listing: Listing,
        cursor: Cursor,
        out: &mut Output,
    ) {
        let service = &*self.service;
        let next = service.store.walk(now_s, cursor, TOGETHER, &mut |item| match listing {
            Listing::Metadump => put_facts(service, item, out.tail()),
            Listing::Mgdump => put_get(item, out.tail()),
        });
        match (next, listing) {
            (Some(next), _) => self.state = State::List(listing, next),
            (None, Listing::Metadump) => self.end_list(answer::END, out),
            (None, Listing::Mgdump) => self.end_list(b"EN\r\n", out),
        }
    }

    fn end_list(&mut self, end: &[u8], out: &mut Output) {
        out.put(end);
        self.state = State::Line;
    }
}

fn put_get(item: &Item<'_>, into: &mut Vec<u8>) {
    into.extend_from_slice(b"mg ");
    if item.binary_key {
        base64::encode(item.key, into);
        into.extend_from_slice(b" b");
    } else {
        into.extend_from_slice(item.key);
    }
    into.extend_from_slice(answer::LINE_END);
}

fn put_facts(service: &Service, item: &Item<'_>, into: &mut Vec<u8>) {
    into.extend_from_slice(b"key=");
    put_encoded(item.key, into);
    match item.expires_s {
        0 => into.extend_from_slice(b" exp=-1"),
        expires_s => put(b" exp=", service.clock.unix_s(expires_s), into),
    }
    put(b" la=", service.clock.unix_s(item.accessed_s), into);
    put(b" cas=", item.cas, into);
    into.extend_from_slice(if item.fetched { b" fetch=yes" } else { b" fetch=no" });
    put(b" cls=1 size=", (item.key.len() + item.value.len()) as u64, into);
    into.push(b'\n');
}

fn put(name: &[u8], number: u64, into: &mut Vec<u8>) {
    into.extend_from_slice(name);
    put_number(number, into);
}
