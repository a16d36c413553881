//! pvAccess, as a load generator speaks it: every element of every value is compared, and every
//! value has to be the one that counting says. Data plane: nothing is allocated per operation
//! after warm-up, except for findings and large messages' ends.

mod answers;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use load::{Dialect, Done, Events, Op, Tag};
use wire::{Bytes, Input, Ns, Output, ProtocolError};

use super::elements::Elements;
use super::incoming::{Came, Incoming, Partial};
use super::layout::{Found, Walk, bits};
use super::made::{Channel, ChannelState, Operation, Sent, Stage, What};
use super::operations::{CONNECT, MONITOR, PUT, RPC};
use super::oracle::Oracle;
use crate::client::shared::Segments;
use crate::protocol::messages::{CreateChannels, Named, RequestHead, ResponseHead, subcommand};
use crate::protocol::{
    Command, Field, Header, Item, Order, Reader, Registry, Request, Scalar, Sender, Status,
    Structure, Type, Value, control, message,
};

/// The channel that answers calls about the server itself.
const SERVER_CHANNEL: &str = "server";

/// Its key among channels.
const SERVER_KEY: u64 = u64::MAX;

/// No channel is made for this key yet.
const NONE: u32 = u32::MAX;

/// Channels that are made to be destroyed have numbers from here on.
const PASSING: u32 = 1 << 31;

/// A monitor's queue in the server, and the window of one that acknowledges.
const QUEUE_SIZE: u32 = 4;

/// Elements of arrays are written in shared pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

/// A server closes a connection of which it hears nothing for some time; pvxs waits for 40 s.
const ECHO_EVERY_NS: u64 = 10_000_000_000;

/// What echoes say; one that waits for the end of a stream adds its tag.
const ECHO: &[u8] = b"loadline";

/// How monitors get their updates: the options of the dialect.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Updates {
    /// Acknowledged, with a window; else as they come.
    #[serde(default)]
    pub pipeline: bool,
    /// With arrays looked at in memory that a server of this host shares, where it does: at both
    /// ends and once at each page.
    #[serde(default)]
    pub shared: bool,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct PvAccess {
    oracle: Arc<Oracle>,
    updates: Updates,
    segments: Segments,
    order: Order,
    incoming: Incoming,
    known: Registry,
    /// The channel of each key, as a place among channels.
    by_key: Vec<u32>,
    channels: Vec<Channel>,
    operations: Vec<Operation>,
    /// Which operation each tag waits for.
    by_tag: Vec<u32>,
    /// Channels under way to be destroyed.
    passing: HashMap<u32, Option<Tag>>,
    next_passing: u32,
    echo_at: Ns,
}

impl PvAccess {
    /// A connection whose answers `oracle` checks.
    pub fn new(oracle: &Arc<Oracle>, updates: Updates) -> Self {
        Self {
            oracle: oracle.clone(),
            updates,
            segments: Segments::default(),
            order: Order::Little,
            incoming: Incoming::default(),
            known: Registry::default(),
            by_key: Vec::new(),
            channels: Vec::new(),
            operations: Vec::new(),
            by_tag: Vec::new(),
            passing: HashMap::new(),
            next_passing: PASSING,
            echo_at: 0,
        }
    }

    /// The name of a key's record.
    fn name(&self, key: u64) -> Arc<str> {
        if key == SERVER_KEY {
            return Arc::from(SERVER_CHANNEL);
        }
        let mut name = Vec::new();
        self.oracle.keys.put(key, &mut name);
        String::from_utf8_lossy(&name).into()
    }

    /// The channel of a key, asked for if it isn't there.
    fn channel(&mut self, key: u64, out: &mut Output) -> u32 {
        let place = if key == SERVER_KEY { self.oracle.keys.count() } else { key } as usize;
        if place >= self.by_key.len() {
            self.by_key.resize(place + 1, NONE);
        }
        if self.by_key[place] == NONE {
            let number = self.channels.len() as u32;
            self.by_key[place] = number;
            let state = ChannelState::Asked(Vec::new());
            let (idle_gets, idle_puts) = (Vec::new(), Vec::new());
            self.channels.push(Channel { key, state, idle_gets, idle_puts, last: None });
            let asking = CreateChannels(vec![(number, self.name(key))]);
            self.say(Command::CreateChannel, out, |writer| asking.write(writer));
        }
        self.by_key[place]
    }

    fn say(
        &self,
        command: Command,
        out: &mut Output,
        body: impl FnOnce(&mut crate::protocol::Writer<'_, Output>),
    ) {
        message(out, Sender::Client, self.order, command, body);
    }

    /// An operation that can be executed now, or one that is being made.
    #[inline]
    fn operate(&mut self, what: What, key: u64, tag: Tag, sent: Sent, out: &mut Output) {
        let channel = self.channel(key, out);
        let here = &mut self.channels[channel as usize];
        let idle = match what {
            What::Get => here.idle_gets.pop(),
            What::Put => here.idle_puts.pop(),
            What::Monitor | What::Rpc => None,
        };
        let request = idle.unwrap_or(self.operations.len() as u32);
        if tag as usize >= self.by_tag.len() {
            self.by_tag.resize(tag as usize + 1, NONE);
        }
        self.by_tag[tag as usize] = request;
        if idle.is_some() {
            let operation = &mut self.operations[request as usize];
            (operation.tag, operation.sent) = (Some(tag), sent);
            return self.execute(request, out);
        }
        self.operations.push(Operation {
            what,
            key,
            channel,
            stage: Stage::Making,
            tag: Some(tag),
            sent,
            layout: None,
            last: None,
            unacknowledged: 0,
        });
        match &mut self.channels[channel as usize].state {
            ChannelState::Asked(waiting) => waiting.push(request),
            ChannelState::Open(_) => self.make(request, out),
        }
    }

    fn server_number(&self, channel: u32) -> u32 {
        match self.channels[channel as usize].state {
            ChannelState::Open(number) => number,
            ChannelState::Asked(_) => 0,
        }
    }

    /// Says that an operation is to be made.
    fn make(&mut self, request: u32, out: &mut Output) {
        let operation = &self.operations[request as usize];
        let (command, wanted) = match operation.what {
            What::Get => (Command::Get, "field(value)".to_owned()),
            What::Put => (Command::Put, "field(value)".to_owned()),
            What::Rpc => (Command::Rpc, "field()".to_owned()),
            What::Monitor => {
                let pipeline = if self.updates.pipeline { ",pipeline=true" } else { "" };
                let shared = if self.updates.shared { ",shared=true" } else { "" };
                let options = format!("record[queueSize={QUEUE_SIZE}{pipeline}{shared}]");
                (Command::Monitor, format!("field(value,timeStamp){options}"))
            }
        };
        let windowed = operation.what == What::Monitor && self.updates.pipeline;
        let acknowledges = if windowed { subcommand::ACKNOWLEDGE } else { 0 };
        let channel = self.server_number(operation.channel);
        let subcommand = subcommand::INIT | acknowledges;
        let asking = RequestHead { channel, request, subcommand };
        let item = Request::parse(&wanted).unwrap_or_default().item();
        self.say(command, out, |writer| {
            asking.write(writer);
            writer.item(Some(&item));
            if windowed {
                writer.u32(QUEUE_SIZE);
            }
        });
    }

    /// Says that an operation is not wanted any more.
    fn destroy(&self, request: u32, out: &mut Output) {
        let channel = self.server_number(self.operations[request as usize].channel);
        let named = Named { channel, request };
        self.say(Command::DestroyRequest, out, |writer| named.write(writer));
    }

    /// Executes an operation that is made.
    #[inline]
    fn execute(&mut self, request: u32, out: &mut Output) {
        let operation = &mut self.operations[request as usize];
        operation.stage = Stage::Running;
        let (what, key, number) = (operation.what, operation.key, operation.channel);
        let version = match (what, operation.sent) {
            (What::Get, _) => {
                operation.sent = Sent::Read(self.oracle.versions.begin_read(key));
                0
            }
            (What::Put, Sent::Prepare) => self.oracle.prepared_version(),
            // A version is drawn when it is sent, so that versions are sent in their order.
            (What::Put, _) => {
                let write = self.oracle.versions.begin_write(key);
                operation.sent = Sent::Write(write);
                write.version
            }
            _ => 0,
        };
        let value_bit = operation.layout.as_ref().map_or(0, |layout| layout.value_bit);
        let channel = self.server_number(number);
        let mut asking = RequestHead { channel, request, subcommand: 0 };
        match what {
            What::Get => self.say(Command::Get, out, |writer| asking.write(writer)),
            What::Put => {
                let value = self.oracle.number(key, version);
                self.put(asking, value_bit, value, out);
            }
            What::Monitor => {
                asking.subcommand = subcommand::START | subcommand::CONTROL;
                self.say(Command::Monitor, out, |writer| asking.write(writer));
            }
            What::Rpc => {
                let item = list_channels();
                self.say(Command::Rpc, out, |writer| {
                    asking.write(writer);
                    writer.item(Some(&item));
                });
            }
        }
    }

    /// Writes a value; an array is sent from one piece of memory, over and over.
    fn put(&self, asking: RequestHead, value_bit: usize, value: i64, out: &mut Output) {
        let element = match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        };
        let mut changed = [0; 8];
        changed[value_bit / 8] = 1 << (value_bit % 8);
        let size = self.oracle.size;
        self.say(Command::Put, out, |writer| {
            asking.write(writer);
            writer.size(value_bit / 8 + 1);
            writer.raw(&changed[..=value_bit / 8]);
            let Some(size) = size else { return writer.raw(&element) };
            writer.size(size as usize);
            let mut left = size as usize * 8;
            let piece = Bytes::from(element.repeat(left.min(PIECE_BYTES) / 8));
            while left > 0 {
                let count = left.min(piece.len());
                writer.share(piece.slice(..count));
                left -= count;
            }
        });
    }

    /// An operation is over: reports it, and keeps it for the next time.
    pub(super) fn finish(
        &mut self,
        request: u32,
        wrong: Option<(String, String)>,
        events: &mut Events,
    ) {
        let operation = &mut self.operations[request as usize];
        let (key, what, tag) = (operation.key, operation.what, operation.tag.take());
        operation.stage = Stage::Idle;
        let channel = &mut self.channels[operation.channel as usize];
        match what {
            What::Get => channel.idle_gets.push(request),
            What::Put => channel.idle_puts.push(request),
            What::Monitor | What::Rpc => operation.stage = Stage::Gone,
        }
        let Some(tag) = tag else { return };
        let is_wrong = wrong.is_some();
        if let Some((note, received)) = wrong {
            self.found(what, key, note, received, events);
        }
        events.done.push(Done { wrong: u32::from(is_wrong), ..Done::right(tag) });
    }

    /// Where the array of a large message begins.
    fn begin(
        operations: &[Operation],
        command: Command,
        order: Order,
        head: &[u8],
    ) -> Result<Option<(usize, Partial)>, ProtocolError> {
        if !matches!(command, Command::Get | Command::Monitor) {
            return Ok(None);
        }
        let mut reader = Reader::new(head, order);
        let answer = ResponseHead::read(&mut reader);
        if command == Command::Get && !Status::read(&mut reader).is_success() {
            return Ok(None);
        }
        let operation = operations.get(answer.request as usize);
        let Some(layout) = operation.and_then(|operation| operation.layout.as_ref()) else {
            return Ok(None);
        };
        if answer.has(subcommand::INIT) {
            return Ok(None);
        }
        let changed = bits(&mut reader);
        let mut found = Found::default();
        let walk = layout.walk(&mut reader, changed, 0, &mut found);
        let (Walk::Elements(count, next_leaf), true) = (walk, reader.is_good()) else {
            return Ok(None);
        };
        let elements = Elements::new(count, order);
        let request = answer.request;
        let at = head.len() - reader.left();
        Ok(Some((at, Partial { request, changed, next_leaf, found, elements })))
    }

    /// The end of a large message, behind its array.
    fn behind(
        &mut self,
        order: Order,
        partial: Partial,
        rest: &[u8],
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let Partial { request, changed, next_leaf, mut found, elements } = partial;
        if elements.left() > 0 {
            return Err(ProtocolError::new("an array is longer than its message"));
        }
        found.finish(&elements);
        let operation = &self.operations[request as usize];
        let Some(layout) = &operation.layout else { return Ok(()) };
        let mut reader = Reader::new(rest, order);
        layout.walk(&mut reader, changed, next_leaf, &mut found);
        let overrun = if operation.what == What::Monitor { bits(&mut reader) } else { 0 };
        reader.end()?;
        self.brought(request, changed, overrun, &found, events, out);
        Ok(())
    }

    fn control(&mut self, header: &Header, out: &mut Output) {
        match header.code {
            control::SET_ORDER => self.order = header.order,
            control::ECHO_REQUEST => {
                let code = control::ECHO_RESPONSE;
                let echo = Header::control(Sender::Client, self.order, code, header.size);
                out.put(&echo.bytes());
            }
            _ => {}
        }
    }
}

/// What is asked of the server itself: its channels.
fn list_channels() -> Item {
    let query = Structure::new("", [Field::new("op", Scalar::String)]);
    let fields = [
        Field::new("scheme", Scalar::String),
        Field::new("path", Scalar::String),
        Field::new("query", Type::Structure(query)),
    ];
    let kind = Type::Structure(Structure::new("epics:nt/NTURI:1.0", fields));
    let nodes = vec![
        Value::Structure,
        Value::text("pva"),
        Value::text(SERVER_CHANNEL),
        Value::Structure,
        Value::text("channels"),
    ];
    Item::of(kind.clone(), nodes).unwrap_or_else(|| Item::new(kind))
}

impl Dialect for PvAccess {
    fn opened(&mut self, now: Ns, _: &mut Events, _: &mut Output) -> Result<(), ProtocolError> {
        // The server speaks first, and says when all is well.
        self.echo_at = now + ECHO_EVERY_NS;
        Ok(())
    }

    #[inline]
    fn request(&mut self, now: Ns, tag: Tag, op: Op, out: &mut Output) {
        let key = op.what;
        self.echo_at = now + ECHO_EVERY_NS;
        let what = match op.operation {
            PUT => What::Put,
            MONITOR => What::Monitor,
            RPC => What::Rpc,
            CONNECT => {
                let number = self.next_passing;
                self.next_passing = self.next_passing.checked_add(1).unwrap_or(PASSING);
                self.passing.insert(number, Some(tag));
                let asking = CreateChannels(vec![(number, self.name(key))]);
                return self.say(Command::CreateChannel, out, |writer| asking.write(writer));
            }
            _ => What::Get,
        };
        if what == What::Rpc {
            self.operate(what, SERVER_KEY, tag, Sent::Nothing, out);
            let request = self.by_tag[tag as usize];
            self.operations[request as usize].key = key;
            return;
        }
        self.operate(what, key, tag, Sent::Nothing, out);
    }

    fn prepare(&mut self, _: Ns, tag: Tag, part: u64, out: &mut Output) {
        let key = self.oracle.writable_key(part);
        self.operate(What::Put, key, tag, Sent::Prepare, out);
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let mut used = 0;
        let outcome = loop {
            let operations = &self.operations;
            let begin = |command, order, head: &[u8]| Self::begin(operations, command, order, head);
            let (count, came) = match self.incoming.take(&input.bytes()[used..], &begin) {
                Ok(taken) => taken,
                Err(fault) => break Err(fault),
            };
            used += count;
            let heard = match came {
                Came::Nothing => break Ok(()),
                Came::Bytes => Ok(()),
                Came::Control(header) => {
                    self.control(&header, out);
                    Ok(())
                }
                Came::Message(command, order, body) => self.hear(command, order, body, events, out),
                Came::Kept(command, order, body) => self.hear(command, order, &body, events, out),
                Came::Behind(order, partial, rest) => {
                    self.behind(order, partial, &rest, events, out)
                }
            };
            if heard.is_err() {
                break heard;
            }
        };
        input.consume(used);
        outcome
    }

    fn deadline(&self) -> Option<Ns> {
        Some(self.echo_at)
    }

    fn timer(&mut self, now: Ns, out: &mut Output) {
        self.echo_at = now + ECHO_EVERY_NS;
        self.say(Command::Echo, out, |writer| writer.raw(ECHO));
    }

    fn cancel(&mut self, tag: Tag, out: &mut Output) {
        let Some(request) = self.by_tag.get(tag as usize).copied() else { return };
        let Some(operation) = self.operations.get_mut(request as usize) else { return };
        let was_made = operation.stage == Stage::Running;
        (operation.stage, operation.tag) = (Stage::Gone, None);
        if was_made {
            self.destroy(request, out);
        }
        // What comes before the echo's answer is the last of it.
        self.say(Command::Echo, out, |writer| {
            writer.raw(ECHO);
            writer.u32(tag);
        });
    }

    fn expire(&mut self, tag: Tag) {
        for waiting in self.passing.values_mut() {
            if *waiting == Some(tag) {
                *waiting = None;
                return;
            }
        }
        let Some(request) = self.by_tag.get(tag as usize).copied() else { return };
        if let Some(operation) = self.operations.get_mut(request as usize)
            && operation.tag == Some(tag)
        {
            operation.tag = None;
        }
    }
}
