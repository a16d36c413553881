//! One connection: messages in, messages out. Data plane, but for how channels are made.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use wire::{Address, Closed, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake};

use super::channel::{Channel, Identity, SERVICE_CHANNEL, Target};
use super::in_flight::Sending;
use super::inbox::Inbox;
use super::operations::{Action, Context, Operations, begin, go_on};
use super::ready::ReadyMonitors;
use super::respond::{refuse, respond};
use super::search::{answer_search, found};
use super::service::{Service, count};
use crate::model::Rights;
use crate::protocol::messages::{
    ChannelCreated, CreateChannels, DestroyChannel, FieldType, GetField, Introduction, Named,
    Offer, RequestHead, Search, Text, subcommand,
};
use crate::protocol::{
    Body, Command, Frame, Frames, Header, Order, Reader, Registry, Sender, Severity, Status,
    control, divide,
};

/// The most bytes of a message of a client that has not introduced itself: an introduction with
/// long names fits.
const MAX_FIRST_BYTES: usize = 16 << 10;

/// The server side of one connection.
#[derive(Debug)]
pub struct RecordsConnection {
    service: Arc<Service>,
    frames: Frames,
    known: Registry,
    identity: Option<Identity>,
    /// The address of the other end, without its port.
    address: Arc<str>,
    channels: HashMap<u32, Channel, RandomState>,
    operations: Operations,
    next_channel: u32,
    inbox: Arc<Inbox>,
    ready: ReadyMonitors,
    sending: Sending,
}

impl RecordsConnection {
    /// A connection to `service`.
    pub fn new(service: Arc<Service>) -> Self {
        // Until the client has introduced itself.
        let most_bytes = service.limits.message_bytes.min(MAX_FIRST_BYTES);
        let inbox = Arc::default();
        let sending = Sending::new(&service.in_flight, &inbox);
        service.connected(&inbox);
        let frames = Frames::new(Sender::Client, most_bytes, service.pool.clone());
        Self {
            frames: frames.counted(service.unfinished.clone()),
            service,
            known: Registry::default(),
            identity: None,
            address: Arc::from(""),
            channels: HashMap::default(),
            operations: Operations::default(),
            next_channel: 1,
            inbox,
            ready: ReadyMonitors::default(),
            sending,
        }
    }

    #[inline]
    fn handle(
        &mut self,
        command: Command,
        order: Order,
        body: &Body<'_>,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let mut reader = body.reader(order);
        match command {
            Command::Get
            | Command::Put
            | Command::PutGet
            | Command::Monitor
            | Command::Process
            | Command::Array
            | Command::Rpc => return self.operate(command, &mut reader, out),
            Command::Validation => self.validate(&mut reader, out)?,
            Command::Echo => respond(out, Command::Echo, |writer| writer.raw(reader.rest())),
            Command::Search => {
                let search = Search::read(&mut reader);
                reader.end()?;
                let hits = found(&self.service, &search);
                answer_search(&self.service, &search, &hits, None, out);
            }
            Command::CreateChannel => self.create(&mut reader, out)?,
            Command::DestroyChannel => {
                let named = DestroyChannel::read(&mut reader);
                reader.end()?;
                if self.close_channel(named.server_id) {
                    respond(out, Command::DestroyChannel, |writer| named.write(writer));
                }
            }
            Command::DestroyRequest | Command::CancelRequest => {
                let named = Named::read(&mut reader);
                reader.end()?;
                self.end_operation(command, named);
            }
            Command::GetField => self.get_field(&mut reader, out)?,
            // Texts for people, and commands that are unused or unknown, are ignored, as by peers.
            _ => {}
        }
        Ok(())
    }

    fn validate(&mut self, reader: &mut Reader<'_>, out: &mut Output) -> Result<(), ProtocolError> {
        let said = Introduction::read(reader, &mut self.known);
        reader.end()?;
        let text = |name: &str| said.item.as_ref().and_then(|item| item.text(name)).map(Arc::from);
        let status = match &*said.method {
            "ca" | "anonymous" | "" => {
                let is_named = &*said.method == "ca";
                let user = text("user").filter(|_| is_named);
                let user = user.unwrap_or_else(|| Arc::from("anonymous"));
                let host = text("host").unwrap_or_else(|| Arc::from(""));
                self.frames.set_limit(self.service.limits.message_bytes);
                self.identity = Some(Identity { user, host, address: Arc::clone(&self.address) });
                Status::ok()
            }
            method => Status::error(format!("{method:?} is not a method of introduction here")),
        };
        respond(out, Command::Validated, |writer| status.write(writer));
        Ok(())
    }

    fn create(&mut self, reader: &mut Reader<'_>, out: &mut Output) -> Result<(), ProtocolError> {
        let asked = CreateChannels::read(reader);
        reader.end()?;
        let Some(identity) = self.identity.clone() else {
            return Err(ProtocolError::new("a channel is asked for before the introduction"));
        };
        for (client_id, name) in asked.0 {
            let (server_id, status) = match self.open_channel(client_id, &name, &identity) {
                Ok(server_id) => (server_id, Status::ok()),
                Err(why) => (u32::MAX, Status::error(why)),
            };
            let made = ChannelCreated { client_id, server_id, status };
            respond(out, Command::CreateChannel, |writer| made.write(writer));
        }
        Ok(())
    }

    fn open_channel(
        &mut self,
        client_id: u32,
        name: &str,
        identity: &Identity,
    ) -> Result<u32, String> {
        let most = self.service.limits.channels;
        if self.channels.len() >= most {
            return Err(format!("a connection has at most {most} channels"));
        }
        let target = match name {
            SERVICE_CHANNEL => Target::Service,
            _ => self
                .service
                .find(name)
                .map(Target::Record)
                .ok_or_else(|| format!("there is no record {name:?}"))?,
        };
        let rights =
            |name: &str| self.service.access.rights(name, &identity.user, &identity.address);
        let rights = match &target {
            // Identityever uses a group uses its records.
            Target::Record(record) => {
                let inner = record.records().map(|one| rights(one.name()));
                inner.fold(rights(name), Rights::min)
            }
            Target::Service => rights(name),
        };
        if rights == Rights::None {
            return Err(format!("{} may not use {name:?}", identity.user));
        }
        while self.channels.contains_key(&self.next_channel) || self.next_channel == u32::MAX {
            self.next_channel = self.next_channel.wrapping_add(1);
        }
        let server_id = self.next_channel;
        self.next_channel = server_id.wrapping_add(1);
        let channel = Channel { server_id, client_id, target, may_put: rights == Rights::Write };
        self.channels.insert(server_id, channel);
        Ok(server_id)
    }

    /// Closes a channel with all its operations. Returns whether it was open.
    fn close_channel(&mut self, server_id: u32) -> bool {
        let was_open = self.channels.remove(&server_id).is_some();
        if was_open {
            self.operations.retain(|_, operation| operation.channel != server_id);
        }
        was_open
    }

    #[inline]
    fn operate(
        &mut self,
        command: Command,
        reader: &mut Reader<'_>,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let head = RequestHead::read(reader);
        reader.end()?;
        let Self { service, known, inbox, channels, operations, identity, sending, .. } = self;
        let channel = channels.get(&head.channel);
        let Some(channel) = channel else {
            // The channel may have been closed while this was on its way.
            if head.has(subcommand::INIT) {
                refuse(out, command, head, "there is no such channel");
            }
            return Ok(());
        };
        let mut context =
            Context { service, known, inbox, identity: identity.as_ref(), sending, out };
        if head.has(subcommand::INIT) {
            if operations.contains_key(&head.request) {
                return Err(ProtocolError::new("the number of an operation is used for another"));
            }
            if operations.len() >= service.limits.operations {
                refuse(out, command, head, "too many operations on one connection");
                return Ok(());
            }
            if let Some(running) = begin(&mut context, command, head, channel, reader)? {
                operations.insert(head.request, running);
            }
            return Ok(());
        }
        // One that has ended may be asked for things that were on their way.
        let Some(running) = operations.get_mut(&head.request) else { return Ok(()) };
        if running.channel != head.channel {
            return Err(ProtocolError::new("an operation is asked for through another channel"));
        }
        go_on(&mut context, command, head, channel, &mut running.what, reader)?;
        if head.has(subcommand::DESTROY) {
            operations.remove(&head.request);
        }
        Ok(())
    }

    fn end_operation(&mut self, command: Command, named: Named) {
        let Some(running) = self.operations.get_mut(&named.request) else { return };
        if running.channel != named.channel {
            return;
        }
        match &mut running.what {
            Action::Monitor(monitor) if command == Command::CancelRequest => {
                monitor.is_running = false;
            }
            _ if command == Command::CancelRequest => {}
            _ => {
                self.operations.remove(&named.request);
            }
        }
    }

    fn get_field(
        &mut self,
        reader: &mut Reader<'_>,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let asked = GetField::read(reader);
        reader.end()?;
        let channel = self.channels.get(&asked.channel);
        let kind = match channel.map(|channel| &channel.target) {
            Some(Target::Record(record)) => match record.kind().field(&asked.path) {
                Some((_, kind)) => Ok(kind.clone()),
                None => Err(format!("{} has no field {:?}", record.name(), asked.path)),
            },
            Some(Target::Service) => Err("this channel can only be called".to_owned()),
            None => Err("there is no such channel".to_owned()),
        };
        let (status, kind) = match kind {
            Ok(kind) => (Status::ok(), Some(kind)),
            Err(why) => (Status::error(why), None),
        };
        let answer = FieldType { request: asked.request, status, kind };
        respond(out, Command::GetField, |writer| answer.write(writer));
        Ok(())
    }

    /// Closes the channels of destroyed records, with a message for each.
    fn close_gone(&mut self, out: &mut Output) {
        let is_gone = |channel: &&Channel| match &channel.target {
            Target::Record(record) => record.is_gone(),
            Target::Service => false,
        };
        let mut gone: Vec<_> = self.channels.values().filter(is_gone).cloned().collect();
        // In the order of their numbers, as the map has none.
        gone.sort_unstable_by_key(|channel| channel.server_id);
        for Channel { server_id, client_id, .. } in gone {
            self.close_channel(server_id);
            let named = DestroyChannel { server_id, client_id };
            respond(out, Command::DestroyChannel, |writer| named.write(writer));
        }
    }

    /// Divides what was written after the first `before` bytes into segments, where that is set.
    fn divide(&self, out: &mut Output, before: usize) {
        if let Some(most) = self.service.limits.segment_bytes {
            divide(out, before, most);
        }
    }

    fn push(&mut self, now: Ns, out: &mut Output) {
        if self.inbox.has_gone() {
            self.close_gone(out);
        }
        let Self { ready, inbox, operations, service, sending, .. } = self;
        ready.serve(now, inbox, operations, service, sending, out);
    }
}

impl Connection for RecordsConnection {
    fn opened(&mut self, _now: Ns, peer: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        self.inbox.open(peer.waker.clone());
        self.address = match &peer.address {
            Address::Internet(address) => Arc::from(address.ip().to_canonical().to_string()),
            Address::Unix(_) => Arc::from("local"),
        };
        let order = Header::control(Sender::Server, Order::Little, control::SET_ORDER, 0);
        out.put(&order.bytes());
        let methods = ["anonymous", "ca"].map(Arc::from).to_vec();
        let offer = Offer { buffer_bytes: 0x10000, registry_size: 0x7FFF, methods };
        respond(out, Command::Validation, |writer| offer.write(writer));
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        self.sending.settle(out);
        let before = out.len();
        let mut used = 0;
        let result = loop {
            if out.is_full() {
                break Ok(Flow::Continue);
            }
            let (taken, frame) = match self.frames.next(&input.bytes()[used..]) {
                Ok(found) => found,
                Err(fault) => break Err(fault),
            };
            used += taken;
            match frame {
                Some(Frame::Message { command, order, body, .. }) => {
                    if let Err(fault) = self.handle(command, order, &body, out) {
                        break Err(fault);
                    }
                }
                Some(Frame::Control(header)) if header.code == control::ECHO_REQUEST => {
                    let code = control::ECHO_RESPONSE;
                    let echo = Header::control(Sender::Server, Order::Little, code, header.size);
                    out.put(&echo.bytes());
                }
                Some(Frame::Control(_)) => {}
                None if taken > 0 => {}
                None => break Ok(Flow::Continue),
            }
        };
        input.consume(used);
        if let Err(fault) = &result {
            let text = format!("closing: {fault}").into();
            let notice = Text { request: 0, severity: Severity::Fatal, text };
            respond(out, Command::Message, |writer| notice.write(writer));
        } else {
            self.push(now, out);
        }
        self.divide(out, before);
        result
    }

    fn resume(&mut self, now: Ns, _why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        self.sending.settle(out);
        if self.inbox.takes_check() && self.sending.is_stalled(now, out) {
            // The message is cut off: what is unsent of it would keep its array.
            out.clear(0);
            self.sending.release();
            count(&self.service.counts.stalled, 1);
            return Err(ProtocolError::new("the client does not read, and others need the memory"));
        }
        let before = out.len();
        self.push(now, out);
        self.divide(out, before);
        Ok(Flow::Continue)
    }

    fn deadline(&self) -> Option<Ns> {
        self.ready.deadline()
    }

    fn place(&mut self) -> Option<&mut [u8]> {
        self.frames.place()
    }

    fn placed(&mut self, count: usize) {
        self.frames.placed(count);
    }

    fn closed(&mut self, _why: Closed) {
        // Subscriptions end with them.
        self.operations.clear();
        self.channels.clear();
        self.sending.release();
        // What is warm for the next messages of others is soon there again.
        self.service.pool.clear();
    }
}
