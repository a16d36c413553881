//! Packets of the binary protocol.

use std::fmt::Display;

use wire::{Output, ProtocolError};

use super::state::{CacheConnection, Step};
use super::store_request::{Reply, StoreRequest, mode};
use crate::model::{Access, Change, Entry, Item, Removed, Seconds, Sum, Summed};
use crate::protocol::binary::{
    self, Action, Answered, HEADER_BYTES, Header, KeyRule, Read, Row, Status, long, put_answer,
    put_error, put_head, word,
};
use crate::protocol::text::{StoreVerb, answer};
use crate::protocol::{MAX_KEY_BYTES, Refusal};
use crate::server::service::Service;
use crate::server::statistics;

/// The expiry with which an absent number is not created.
const DO_NOT_MAKE: u32 = u32::MAX;

/// A request whose lengths are valid.
struct Packet<'a> {
    header: Header,
    row: &'static Row,
    extras: &'a [u8],
    key: &'a [u8],
}

impl CacheConnection {
    pub(super) fn step_packet(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        let Some(start) = bytes.first_chunk::<HEADER_BYTES>() else { return Step::NeedMore(0) };
        let Some(header) = Header::read(start) else {
            return Step::Broken(ProtocolError::new("a packet does not begin as a request"));
        };
        let broken = |status, what, out: &mut Output| {
            put_error(&header, status, out.tail());
            Step::Broken(ProtocolError::new(what))
        };
        let Some(value_bytes) = header.value_bytes() else {
            return broken(Status::Unknown, "a packet is shorter than its parts", out);
        };
        if header.key_bytes > MAX_KEY_BYTES {
            return broken(Status::Invalid, "a key is longer than 250 bytes", out);
        }
        let Some(row) = binary::row(header.opcode) else {
            put_error(&header, Status::Unknown, out.tail());
            self.refuse_bytes(header.body_bytes);
            return Step::Consumed(HEADER_BYTES);
        };
        let key_fits = match row.key {
            KeyRule::Forbidden => header.key_bytes == 0,
            KeyRule::Required => header.key_bytes > 0,
            KeyRule::Optional => true,
        };
        if !key_fits
            || !row.extras.contains(&header.extras_bytes)
            || (value_bytes > 0 && !row.value)
        {
            return broken(
                Status::Invalid,
                "a packet's parts have lengths that it can't have",
                out,
            );
        }
        let used = HEADER_BYTES + header.extras_bytes + header.key_bytes;
        let Some(request) = bytes.get(..used) else { return Step::NeedMore(0) };
        let (extras, key) = request[HEADER_BYTES..].split_at(header.extras_bytes);
        let packet = Packet { header, row, extras, key };
        if let Action::Store(verb) = row.act
            && let Some(store) = self.packet_request(now_s, &header, (verb, row.quiet), extras, key)
        {
            return self.step_store(now_s, &store, (request, used), &bytes[used..], out);
        }
        if row.act == Action::Quit {
            if !row.quiet {
                put_answer(&header, Status::Done, &Answered::default(), out.tail());
            }
            return Step::Quit;
        }
        self.refuse_bytes(value_bytes);
        self.answer_packet(now_s, &packet, out);
        Step::Consumed(used)
    }

    /// Returns the storage command of a packet.
    pub(super) fn packet_request<'a>(
        &self,
        now_s: Seconds,
        header: &Header,
        (verb, quiet): (StoreVerb, bool),
        extras: &[u8],
        key: &'a [u8],
    ) -> Option<StoreRequest<'a>> {
        let expires_s = self.service.clock.expires_s(i64::from(word(extras, 4)), now_s);
        let entry = Entry { key, value: b"", flags: word(extras, 0), expires_s };
        let compare = (header.cas != 0).then_some(header.cas);
        // With a unique number, what there has to be is the item that has it.
        let verb = match verb {
            StoreVerb::Add if compare.is_some() => StoreVerb::Set,
            verb => verb,
        };
        let change = Change {
            entry,
            mode: mode(verb),
            compare,
            stale_if_older: false,
            cas: None,
            vivify: false,
            binary_key: false,
        };
        let reply = Reply::Binary { header: *header, quiet };
        Some(StoreRequest { change, value_bytes: header.value_bytes()?, reply })
    }

    fn answer_packet(&mut self, now_s: Seconds, packet: &Packet<'_>, out: &mut Output) {
        let Packet { header, row, extras, key } = packet;
        let done = |answered: &Answered<'_>, out: &mut Output| {
            if !row.quiet {
                put_answer(header, Status::Done, answered, out.tail());
            }
        };
        let status = match row.act {
            Action::Read(read) => return self.read_packet(now_s, packet, read, out),
            Action::Sum(increment) => return self.sum_packet(now_s, packet, increment, out),
            Action::Stat => return put_all_statistics(&self.service, now_s, header, key, out),
            Action::Delete => {
                self.observe_delete(now_s, key);
                let compare = (header.cas != 0).then_some(header.cas);
                match self.service.store.remove(now_s, key, compare) {
                    Removed::Removed => Status::Done,
                    Removed::NotFound => Status::NotFound,
                    Removed::Exists => Status::Exists,
                }
            }
            Action::Flush => {
                let said = self.flush(now_s, Ok(i64::from(word(extras, 0))));
                if said == answer::OK { Status::Done } else { Status::NotAllowed }
            }
            Action::Version => {
                let value = crate::VERSION.as_bytes();
                return done(&Answered { value, ..Answered::default() }, out);
            }
            Action::Noop => Status::Done,
            // Those that store or end have been carried out already.
            Action::Sasl | Action::Store(_) | Action::Quit => Status::Unknown,
        };
        match status {
            Status::Done => done(&Answered::default(), out),
            status => put_error(header, status, out.tail()),
        }
    }

    fn read_packet(&mut self, now_s: Seconds, packet: &Packet<'_>, read: Read, out: &mut Output) {
        let Packet { header, row, extras, key } = packet;
        let service = &*self.service;
        let shown_key: &[u8] = if read.gives_key { key } else { b"" };
        let mut show = |item: &Item<'_>| {
            let (cas, flags, value) = (item.cas, item.flags, item.value);
            let value = if read.gives_value { value } else { b"" };
            let answered = Answered { cas, extras: &flags.to_be_bytes(), key: shown_key, value };
            put_head(header, Status::Done, &answered, out.tail());
            self.put_value(key, value, out);
            item.value.len()
        };
        let found = if read.touches {
            let expires_s = service.clock.expires_s(i64::from(word(extras, 0)), now_s);
            let access = Access { expires_s: Some(expires_s), ..Access::default() };
            service.store.access(now_s, key, &access, |item, _| show(item))
        } else {
            service.store.get(now_s, key, |item| show(item))
        };
        self.observe_read(now_s, key, found);
        if found.is_none() && !row.quiet {
            if read.gives_key {
                let answered = Answered { key: shown_key, ..Answered::default() };
                put_answer(header, Status::NotFound, &answered, out.tail());
            } else {
                put_error(header, Status::NotFound, out.tail());
            }
        }
    }

    fn sum_packet(
        &mut self,
        now_s: Seconds,
        packet: &Packet<'_>,
        increment: bool,
        out: &mut Output,
    ) {
        let Packet { header, row, extras, key } = packet;
        let exptime = word(extras, 16);
        let expires_s = self.service.clock.expires_s(i64::from(exptime), now_s);
        let sum = Sum {
            increment,
            delta: long(extras, 0),
            compare: (header.cas != 0).then_some(header.cas),
            cas: None,
            create: (exptime != DO_NOT_MAKE).then(|| (long(extras, 8), expires_s)),
            expires_s: None,
            binary_key: false,
        };
        self.observe_sum(now_s, key);
        let status = match self.service.store.sum(now_s, key, &sum) {
            Summed::Done(_) if row.quiet => return,
            Summed::Done(total) => {
                let value = &total.number.to_be_bytes();
                let answered = Answered { cas: total.cas, value, ..Answered::default() };
                put_answer(header, Status::Done, &answered, out.tail());
                return;
            }
            Summed::NotANumber => Status::NotANumber,
            Summed::NotFound => Status::NotFound,
            Summed::Exists => Status::Exists,
            Summed::NoRoom => Status::OutOfMemory,
        };
        put_error(header, status, out.tail());
    }
}

/// Answers a request for statistics: one packet each, and an empty one at the end.
fn put_all_statistics(
    service: &Service,
    now_s: Seconds,
    header: &Header,
    group: &[u8],
    out: &mut Output,
) {
    match put_statistics(service, now_s, header, group, out) {
        Ok(()) => {
            put_answer(header, Status::Done, &Answered::default(), out.tail());
        }
        Err(_) => put_error(header, Status::NotFound, out.tail()),
    }
}

fn put_statistics(
    service: &Service,
    now_s: Seconds,
    header: &Header,
    group: &[u8],
    out: &mut Output,
) -> Result<(), Refusal> {
    let mut put = |name: &str, value: &dyn Display| {
        let value = value.to_string();
        let (key, value) = (name.as_bytes(), value.as_bytes());
        put_answer(
            header,
            Status::Done,
            &Answered { key, value, ..Answered::default() },
            out.tail(),
        );
    };
    statistics::group(service, now_s, group, &mut put)
}
