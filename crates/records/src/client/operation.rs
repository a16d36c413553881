//! Operations on channels: one begins once and is then used any number of times.

use std::time::{Duration, Instant};

use wire::ProtocolError;

use super::connection::{Channel, Client};
use super::error::ClientError;
use super::stream::Message;
use crate::protocol::messages::{self, ResponseHead, subcommand};
use crate::protocol::{Bits, Command, Item, Request, Status, Type, zeros};

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Reading.
    Get,
    /// Writing.
    Put,
    /// Writing and then reading, as one step that no other change comes between.
    PutGet,
    /// Processing the record.
    Process,
    /// Calling.
    Call,
    /// Subscribing. With a window, the server sends at most that many updates before they are
    /// acknowledged; the request needs `pipeline=true`, too.
    Monitor {
        /// How many.
        window: Option<u32>,
    },
}

impl OperationKind {
    pub(super) fn command(self) -> Command {
        match self {
            Self::Get => Command::Get,
            Self::Put => Command::Put,
            Self::PutGet => Command::PutGet,
            Self::Process => Command::Process,
            Self::Call => Command::Rpc,
            Self::Monitor { .. } => Command::Monitor,
        }
    }
}

/// An operation that has begun.
#[derive(Debug)]
pub struct Operation {
    pub(super) channel: u32,
    pub(super) request: u32,
    pub(super) client_id: u32,
    what: OperationKind,
    /// What was read last: fields that were never sent are zeros and nothing.
    item: Option<Item>,
    /// The type of what a put-get writes, which may have other fields than what it reads.
    put_kind: Option<Type>,
    /// Updates that were not yet acknowledged.
    unacknowledged: u32,
}

impl Operation {
    /// The type of what is read; none where there is none.
    pub fn kind(&self) -> Option<&Type> {
        self.item.as_ref().map(Item::kind)
    }

    /// The type of what is written; none where nothing is.
    pub fn put_kind(&self) -> Option<&Type> {
        match self.what {
            OperationKind::Put => self.kind(),
            OperationKind::PutGet => self.put_kind.as_ref(),
            _ => None,
        }
    }

    /// What was read last.
    pub fn item(&self) -> Option<&Item> {
        self.item.as_ref()
    }
}

/// An update of a monitor.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Which fields have changed.
    pub changed: Bits,
    /// Of which fields values were lost on the server's side.
    pub overrun: Bits,
    /// The record as far as it was ever sent.
    pub item: Item,
}

impl Client {
    /// Begins an operation.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn begin(
        &mut self,
        channel: &Channel,
        what: OperationKind,
        request: &Request,
    ) -> Result<Operation, ClientError> {
        let number = self.add_begin(channel, what, request);
        self.stream.flush()?;
        let answer = self.answer(what.command(), number, channel.client_id)?;
        self.begun(channel, number, what, &answer)
    }

    /// Writes what begins an operation, to be sent with more. Returns its number.
    pub(super) fn add_begin(
        &mut self,
        channel: &Channel,
        what: OperationKind,
        request: &Request,
    ) -> u32 {
        let number = self.number();
        let window = if let OperationKind::Monitor { window } = what { window } else { None };
        let room = if window.is_some() { subcommand::ACKNOWLEDGE } else { 0 };
        let head = messages::RequestHead {
            channel: channel.server_id,
            request: number,
            subcommand: subcommand::INIT | room,
        };
        let item = request.item();
        self.add(what.command(), |writer| {
            head.write(writer);
            writer.item(Some(&item));
            window.into_iter().for_each(|window| writer.u32(window));
        });
        number
    }

    /// The operation that has begun with this answer.
    pub(super) fn begun(
        &mut self,
        channel: &Channel,
        number: u32,
        what: OperationKind,
        answer: &Message,
    ) -> Result<Operation, ClientError> {
        let mut reader = answer.reader();
        ResponseHead::read(&mut reader);
        let status = Status::read(&mut reader);
        let (mut kind, mut put_kind) = (None, None);
        if status.is_success() {
            if what == OperationKind::PutGet {
                put_kind = reader.kind(&mut self.stream.known);
            }
            if !matches!(what, OperationKind::Call | OperationKind::Process) {
                kind = reader.kind(&mut self.stream.known);
            }
        }
        reader.end().map_err(|fault| self.broken(fault))?;
        if !status.is_success() {
            return Err(ClientError::Refused(status));
        }
        let item = kind.map(Item::new);
        let (channel, client_id) = (channel.server_id, channel.client_id);
        let unacknowledged = 0;
        Ok(Operation { channel, request: number, client_id, what, item, put_kind, unacknowledged })
    }

    /// Has the server forget an operation.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn end(&mut self, operation: &Operation) -> Result<(), ClientError> {
        let named = messages::Named { channel: operation.channel, request: operation.request };
        self.updates.retain(|(request, _)| *request != operation.request);
        self.say(Command::DestroyRequest, |writer| named.write(writer))
    }

    /// Waits for the answer to an operation's message; the channel may be closed meanwhile.
    fn answer(
        &mut self,
        command: Command,
        request: u32,
        client_id: u32,
    ) -> Result<Message, ClientError> {
        let deadline = self.deadline();
        loop {
            if self.closed.contains(&client_id) {
                return Err(ClientError::ChannelClosed);
            }
            let Some(message) = self.step(deadline)? else { continue };
            let of = message.reader().u32();
            if message.command == command && of == request {
                return Ok(message);
            }
            if message.command == Command::Monitor {
                self.updates.push_back((of, message));
            }
        }
    }

    fn ask(
        &mut self,
        operation: &Operation,
        subcommand: u8,
        body: impl FnOnce(&mut crate::protocol::Writer<'_, wire::Output>),
    ) -> Result<(), ClientError> {
        let Operation { channel, request, .. } = *operation;
        self.say(operation.what.command(), |writer| {
            messages::RequestHead { channel, request, subcommand }.write(writer);
            body(writer);
        })
    }

    fn status_of(&mut self, operation: &Operation) -> Result<Message, ClientError> {
        let command = operation.what.command();
        let answer = self.answer(command, operation.request, operation.client_id)?;
        let mut reader = answer.reader();
        ResponseHead::read(&mut reader);
        let status = Status::read(&mut reader);
        reader.end().map_err(|fault| self.broken(fault))?;
        if status.is_success() { Ok(answer) } else { Err(ClientError::Refused(status)) }
    }

    /// Reads, with an operation that gets or puts: what was read is then the operation's item.
    /// Returns which fields the server sent.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn get(&mut self, operation: &mut Operation) -> Result<Bits, ClientError> {
        let get = match operation.what {
            OperationKind::Put | OperationKind::PutGet => subcommand::GET,
            _ => 0,
        };
        self.ask(operation, get, |_| {})?;
        self.fields_of(operation)
    }

    /// The fields that an answer brings.
    fn fields_of(&mut self, operation: &mut Operation) -> Result<Bits, ClientError> {
        let answer = self.status_of(operation)?;
        let mut reader = answer.reader();
        ResponseHead::read(&mut reader);
        Status::read(&mut reader);
        self.read_fields(operation, &mut reader)
    }

    pub(super) fn read_fields(
        &mut self,
        operation: &mut Operation,
        reader: &mut crate::protocol::Reader<'_>,
    ) -> Result<Bits, ClientError> {
        let kind = operation.kind().cloned();
        let kind = kind.ok_or_else(|| self.broken(ProtocolError::new("a value without a type")))?;
        // What is kept from before stays where nothing new is sent.
        let mut nodes = operation.item.take().map_or_else(|| zeros(&kind), Item::into_nodes);
        let changed = reader.changed(&kind, &mut self.stream.known, &mut nodes);
        let is_good = reader.end();
        operation.item = Item::of(kind, nodes);
        is_good.map_err(|fault| self.broken(fault))?;
        Ok(changed)
    }

    /// Writes the fields of `item` that `fields` has.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn put(
        &mut self,
        operation: &Operation,
        fields: &Bits,
        item: &Item,
    ) -> Result<(), ClientError> {
        self.say_put(operation, fields, item)?;
        self.status_of(operation).map(drop)
    }

    /// Writes the fields of `item` that `fields` has, and reads: what was read is then the
    /// operation's item. Returns which fields the server sent.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn put_get(
        &mut self,
        operation: &mut Operation,
        fields: &Bits,
        item: &Item,
    ) -> Result<Bits, ClientError> {
        self.say_put(operation, fields, item)?;
        self.fields_of(operation)
    }

    fn say_put(
        &mut self,
        operation: &Operation,
        fields: &Bits,
        item: &Item,
    ) -> Result<(), ClientError> {
        if operation.put_kind() != Some(item.kind()) {
            return Err(ClientError::WrongType);
        }
        self.ask(operation, 0, |writer| writer.changed(item.kind(), fields, item.nodes()))
    }

    /// Has the record processed.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn process(&mut self, operation: &Operation) -> Result<(), ClientError> {
        self.ask(operation, 0, |_| {})?;
        self.status_of(operation).map(drop)
    }

    /// Calls with an argument, and returns the answer.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn call(
        &mut self,
        operation: &Operation,
        argument: &Item,
    ) -> Result<Option<Item>, ClientError> {
        self.ask(operation, 0, |writer| writer.item(Some(argument)))?;
        let answer = self.status_of(operation)?;
        let mut reader = answer.reader();
        ResponseHead::read(&mut reader);
        Status::read(&mut reader);
        let item = reader.item(&mut self.stream.known);
        reader.end().map_err(|fault| self.broken(fault))?;
        Ok(item)
    }

    /// Starts or stops the updates.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn run(&mut self, monitor: &Operation, is_running: bool) -> Result<(), ClientError> {
        let start = if is_running { subcommand::START } else { 0 };
        self.ask(monitor, subcommand::CONTROL | start, |_| {})
    }

    /// The next update of a monitor; none, when nothing comes within `wait`.
    ///
    /// # Errors
    /// When the server ends the monitor, or the connection breaks.
    pub fn next(
        &mut self,
        monitor: &mut Operation,
        wait: Duration,
    ) -> Result<Option<Update>, ClientError> {
        let deadline = Instant::now() + wait;
        let mine = |(request, _): &(u32, Message)| *request == monitor.request;
        let message = loop {
            if let Some(at) = self.updates.iter().position(mine)
                && let Some((_, message)) = self.updates.remove(at)
            {
                break message;
            }
            if self.closed.contains(&monitor.client_id) {
                return Err(ClientError::ChannelClosed);
            }
            match self.step(deadline) {
                Ok(Some(message)) if message.command == Command::Monitor => {
                    let request = message.reader().u32();
                    self.updates.push_back((request, message));
                }
                Ok(_) => {}
                Err(ClientError::TimedOut(..)) => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        self.update(monitor, &message).map(Some)
    }

    fn update(
        &mut self,
        monitor: &mut Operation,
        message: &Message,
    ) -> Result<Update, ClientError> {
        let mut reader = message.reader();
        let head = ResponseHead::read(&mut reader);
        if head.has(subcommand::DESTROY) {
            let status = Status::read(&mut reader);
            if !status.is_success() {
                return Err(ClientError::Refused(status));
            }
            if reader.left() == 0 {
                return Err(ClientError::Finished);
            }
        }
        let changed = self.read_fields(monitor, &mut reader)?;
        let kind = monitor.kind().map_or(1, Type::width);
        let overrun = Bits::read(&mut reader, kind);
        reader.end().map_err(|fault| self.broken(fault))?;
        if let OperationKind::Monitor { window: Some(window) } = monitor.what {
            monitor.unacknowledged += 1;
            // `Protocol-Operation-Monitor.md`, "Acknowledgement Algorithm".
            if monitor.unacknowledged > window / 2 {
                let count = std::mem::take(&mut monitor.unacknowledged);
                self.ask(monitor, subcommand::ACKNOWLEDGE, |writer| writer.u32(count))?;
            }
        }
        let item = monitor.item.clone();
        let item = item.ok_or_else(|| self.broken(ProtocolError::new("a value without a type")))?;
        Ok(Update { changed, overrun, item })
    }
}
