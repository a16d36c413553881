//! What the server says: the greeting, channels, operations and their answers.

use std::sync::Arc;

use load::{Done, Events};
use wire::{Output, ProtocolError};

use super::super::elements::Elements;
use super::super::layout::{Found, Layout, Walk, bits};
use super::super::made::{ChannelState, Sent, Stage, What};
use super::{ECHO, PASSING, PvAccess};
use crate::protocol::messages::{
    ChannelCreated, DestroyChannel, Introduction, ResponseHead, subcommand,
};
use crate::protocol::{Command, Order, Reader, Status, Value};

impl PvAccess {
    /// A whole message, small or kept.
    pub(super) fn hear(
        &mut self,
        command: Command,
        order: Order,
        body: &[u8],
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let mut reader = Reader::new(body, order);
        match command {
            Command::Get | Command::Put | Command::Monitor | Command::Rpc => {
                self.answered(command, &mut reader, events, out)?;
            }
            Command::Validation => {
                let introduction = Introduction {
                    buffer_bytes: 0x10000,
                    registry_size: 0x7fff,
                    quality: 0,
                    method: Arc::from("anonymous"),
                    item: None,
                };
                self.say(Command::Validation, out, |writer| introduction.write(writer));
            }
            Command::Validated => {
                let status = Status::read(&mut reader);
                if !status.is_success() {
                    return Err(ProtocolError::new(format!("the server refused: {}", status.text)));
                }
                events.ready = true;
            }
            Command::CreateChannel => {
                let created = ChannelCreated::read(&mut reader);
                reader.end()?;
                self.created(&created, out)?;
            }
            Command::DestroyChannel => {
                let destroyed = DestroyChannel::read(&mut reader);
                reader.end()?;
                let Some(tag) = self.passing.remove(&destroyed.client_id) else {
                    return Err(ProtocolError::new("the server has destroyed a channel"));
                };
                events.done.extend(tag.map(Done::right));
            }
            Command::Echo => {
                let asked = body.strip_prefix(ECHO).and_then(|tag| tag.first_chunk::<4>());
                let tag = asked.map(|tag| match order {
                    Order::Little => u32::from_le_bytes(*tag),
                    Order::Big => u32::from_be_bytes(*tag),
                });
                events.done.extend(tag.map(|tag| Done { tag, ..Done::default() }));
            }
            // Words for a log, and what a later version may say.
            _ => {}
        }
        reader.end()
    }

    pub(super) fn created(
        &mut self,
        created: &ChannelCreated,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let ChannelCreated { client_id, server_id, ref status } = *created;
        if !status.is_success() {
            let place = self.channels.get(client_id as usize);
            let name = place.map_or_else(|| Arc::from("a record"), |place| self.name(place.key));
            return Err(ProtocolError::new(format!("there is no channel {name}: {}", status.text)));
        }
        if client_id >= PASSING {
            let destroying = DestroyChannel { server_id, client_id };
            self.say(Command::DestroyChannel, out, |writer| destroying.write(writer));
            return Ok(());
        }
        let Some(channel) = self.channels.get_mut(client_id as usize) else {
            return Err(ProtocolError::new("a channel is there that was not asked for"));
        };
        let before = std::mem::replace(&mut channel.state, ChannelState::Open(server_id));
        let ChannelState::Asked(waiting) = before else {
            return Err(ProtocolError::new("a channel is there twice"));
        };
        for request in waiting {
            if self.operations[request as usize].stage == Stage::Making {
                self.make(request, out);
            }
        }
        Ok(())
    }

    /// The answer to an operation.
    #[inline]
    pub(super) fn answered(
        &mut self,
        command: Command,
        reader: &mut Reader<'_>,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let answer = ResponseHead::read(reader);
        let request = answer.request;
        let is_making = answer.has(subcommand::INIT);
        let is_update = command == Command::Monitor && !is_making;
        let status = if is_update { Status::ok() } else { Status::read(reader) };
        reader.end()?;
        if is_making {
            return self.made(request, &status, reader, events, out);
        }
        let Some(operation) = self.operations.get(request as usize) else {
            return Err(ProtocolError::new("an answer to an operation that was not asked for"));
        };
        if operation.stage == Stage::Gone {
            return Ok(());
        }
        if !status.is_success() {
            let wrong = ("the server refused".to_owned(), status.text.to_string());
            self.finish(request, Some(wrong), events);
            return Ok(());
        }
        match operation.what {
            What::Put => {
                if let Sent::Write(write) = operation.sent {
                    self.oracle.versions.end_write(operation.key, write);
                }
                if operation.tag.is_some() {
                    let count = self.oracle.size.unwrap_or(1);
                    events.elements += count;
                    events.payload_bytes += count * 8;
                }
                self.finish(request, None, events);
            }
            What::Rpc => {
                let name = self.name(operation.key);
                let item = reader.item(&mut self.known);
                let is_there = item.as_ref().is_some_and(|item| {
                    matches!(item.get("value"), Some(Value::Strings(all)) if all.contains(&name))
                });
                let wrong = (!is_there)
                    .then(|| ("the record is not in the list".to_owned(), format!("{item:?}")));
                self.finish(request, wrong, events);
            }
            What::Get | What::Monitor => {
                if is_update && answer.has(subcommand::DESTROY) {
                    self.finish(request, None, events);
                    return Ok(());
                }
                return self.value(request, reader, events, out);
            }
        }
        Ok(())
    }

    /// The whole value of a small message.
    #[inline]
    pub(super) fn value(
        &mut self,
        request: u32,
        reader: &mut Reader<'_>,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let operation = &self.operations[request as usize];
        let is_update = operation.what == What::Monitor;
        let Some(layout) = &operation.layout else {
            return Err(ProtocolError::new("a value comes before its type"));
        };
        let changed = bits(reader);
        let mut found = Found::default();
        let mut from = 0;
        while let Walk::Elements(count, next) = layout.walk(reader, changed, from, &mut found) {
            let mut elements = Elements::new(count, self.order);
            if elements.left() > reader.left() as u64 {
                return Err(ProtocolError::new("an array is longer than its message"));
            }
            elements.take(reader.take(count * 8));
            found.finish(&elements);
            from = next;
        }
        let overrun = if is_update { bits(reader) } else { 0 };
        reader.end()?;
        if let Some(place) = found.place {
            self.look(&place, &mut found)?;
        }
        self.brought(request, changed, overrun, &found, events, out);
        Ok(())
    }

    /// An operation is made, or refused.
    pub(super) fn made(
        &mut self,
        request: u32,
        status: &Status,
        reader: &mut Reader<'_>,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let Some(operation) = self.operations.get_mut(request as usize) else {
            return Err(ProtocolError::new("an answer to an operation that was not asked for"));
        };
        if !status.is_success() {
            let wrong = ("the server refused to make it".to_owned(), status.text.to_string());
            self.finish(request, Some(wrong), events);
            return Ok(());
        }
        if operation.what != What::Rpc {
            let kind = reader.kind(&mut self.known);
            reader.end()?;
            let kind = kind.ok_or(ProtocolError::new("an operation without a type"))?;
            let layout = Layout::of(&kind, self.updates.shared)?;
            let is_array = self.oracle.size.is_some();
            if layout.is_array != is_array {
                let is = if layout.is_array { "an array" } else { "a plain number" };
                let what = format!(
                    "{}: its value is {is}; mind workload.size",
                    self.name(self.operations[request as usize].key)
                );
                return Err(ProtocolError::new(what));
            }
            self.operations[request as usize].layout = Some(Arc::new(layout));
        }
        match self.operations[request as usize].stage {
            Stage::Making => self.execute(request, out),
            // It was cancelled while it was made.
            Stage::Gone => self.destroy(request, out),
            Stage::Idle | Stage::Running => {}
        }
        Ok(())
    }
}
