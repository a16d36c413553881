//! One connection to a server: introduction, channels, and waiting for answers. What is done with
//! channels is added in `operation` and `many`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::error::ClientError;
use super::stream::{Message, Stream};
use crate::protocol::messages::{
    ChannelCreated, CreateChannels, DestroyChannel, FieldType, GetField, Introduction, Offer, Text,
};
use crate::protocol::{
    Command, Field, Item, MAX_MESSAGE_BYTES, Scalar, Sender, Severity, Status, Structure, Type,
    Value, Writer, divide, message,
};
use wire::{Output, ProtocolError};

/// How many texts of a server are kept until they are asked for.
const MAX_TEXTS: usize = 64;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long an answer may take.
    pub timeout: Duration,
    /// The user and host of the introduction; anonymous, when it is `None`.
    pub identity: Option<(String, String)>,
    /// The largest message that is read.
    pub most_message_bytes: usize,
    /// The most bytes of one segment of what is sent; without it, messages are sent in one piece.
    pub segment_bytes: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        let timeout = Duration::from_secs(5);
        let most_message_bytes = MAX_MESSAGE_BYTES;
        Self { timeout, identity: None, most_message_bytes, segment_bytes: None }
    }
}

/// An open channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The server's number for it.
    pub server_id: u32,
    /// The client's.
    pub client_id: u32,
    /// What it is called.
    pub name: String,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    pub(super) stream: Stream,
    settings: Settings,
    next_number: u32,
    /// Updates of monitors that came while another answer was awaited.
    pub(super) updates: VecDeque<(u32, Message)>,
    /// The newest texts of the server, at most [`MAX_TEXTS`].
    texts: VecDeque<Text>,
    /// The channels that the server has closed, by the client's numbers.
    pub(super) closed: Vec<u32>,
}

impl Client {
    /// Connects and introduces itself.
    ///
    /// # Errors
    /// When the server can't be reached, or doesn't speak this protocol.
    pub fn connect(address: SocketAddr, settings: Settings) -> Result<Self, ClientError> {
        let stream = Stream::connect(address, settings.timeout, settings.most_message_bytes)?;
        let mut client = Self {
            stream,
            settings,
            next_number: 1,
            updates: VecDeque::new(),
            texts: VecDeque::new(),
            closed: Vec::new(),
        };
        client.introduce()?;
        Ok(client)
    }

    fn introduce(&mut self) -> Result<(), ClientError> {
        let offer = self.wait(|message| message.command == Command::Validation)?;
        let offer = self.read(&offer, Offer::read)?;
        let is_known = offer.methods.iter().any(|method| &**method == "ca");
        let item = self.settings.identity.as_ref().filter(|_| is_known).map(|(user, host)| {
            let fields = ["user", "host"].map(|name| Field::new(name, Scalar::String));
            Item::new(Type::Structure(Structure::new("", fields)))
                .with("user", Value::text(user))
                .with("host", Value::text(host))
        });
        let method = if item.is_some() { "ca" } else { "anonymous" };
        let said = Introduction {
            buffer_bytes: 0x10000,
            registry_size: 0x7FFF,
            quality: 0,
            method: method.into(),
            item,
        };
        self.say(Command::Validation, |writer| said.write(writer))?;
        let answer = self.wait(|message| message.command == Command::Validated)?;
        self.succeeded(&answer)
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.stream.address()
    }

    /// The newest texts of the server for people, since the last call.
    pub fn texts(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.texts).into()
    }

    /// How many bytes were received and sent.
    pub fn bytes(&self) -> (u64, u64) {
        self.stream.bytes()
    }

    /// Opens a channel.
    ///
    /// # Errors
    /// When the server has none of that name, or the connection breaks.
    pub fn channel(&mut self, name: &str) -> Result<Channel, ClientError> {
        let client_id = self.number();
        let asked = CreateChannels(vec![(client_id, name.into())]);
        self.say(Command::CreateChannel, |writer| asked.write(writer))?;
        let answer = self.wait(|message| {
            let mut reader = message.reader();
            message.command == Command::CreateChannel && reader.u32() == client_id
        })?;
        let made = self.read(&answer, ChannelCreated::read)?;
        if !made.status.is_success() {
            return Err(ClientError::Refused(made.status));
        }
        Ok(Channel { server_id: made.server_id, client_id, name: name.to_owned() })
    }

    /// Closes a channel with all its operations.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn close(&mut self, channel: &Channel) -> Result<(), ClientError> {
        let &Channel { server_id, client_id, .. } = channel;
        let named = DestroyChannel { server_id, client_id };
        self.say(Command::DestroyChannel, |writer| named.write(writer))?;
        while !self.closed.contains(&client_id) {
            self.step(self.deadline())?;
        }
        self.closed.retain(|had| *had != client_id);
        Ok(())
    }

    /// The type of a channel's field; of the whole record, when `path` is empty.
    ///
    /// # Errors
    /// When there is no such field, or the connection breaks.
    pub fn describe(&mut self, channel: &Channel, path: &str) -> Result<Type, ClientError> {
        let request = self.number();
        let asked = GetField { channel: channel.server_id, request, path: path.into() };
        self.say(Command::GetField, |writer| asked.write(writer))?;
        let answer = self.wait(|message| {
            message.command == Command::GetField && message.reader().u32() == request
        })?;
        let mut reader = answer.reader();
        let answer = FieldType::read(&mut reader, &mut self.stream.known);
        reader.end().map_err(|fault| self.broken(fault))?;
        match answer.kind {
            Some(kind) => Ok(kind),
            None if answer.status.is_success() => {
                Err(self.broken(ProtocolError::new("a description without a type")))
            }
            None => Err(ClientError::Refused(answer.status)),
        }
    }

    pub(super) fn number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.timeout
    }

    pub(super) fn broken(&self, fault: ProtocolError) -> ClientError {
        ClientError::Broken(self.address(), fault)
    }

    pub(super) fn say(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Writer<'_, Output>),
    ) -> Result<(), ClientError> {
        self.add(command, body);
        self.stream.flush()
    }

    /// Writes a message that is sent with the next flush.
    pub(super) fn add(&mut self, command: Command, body: impl FnOnce(&mut Writer<'_, Output>)) {
        let order = self.stream.order;
        let before = self.stream.output.len();
        message(&mut self.stream.output, Sender::Client, order, command, body);
        if let Some(most) = self.settings.segment_bytes {
            divide(&mut self.stream.output, before, most);
        }
    }

    pub(super) fn read<T>(
        &self,
        message: &Message,
        read: impl FnOnce(&mut crate::protocol::Reader<'_>) -> T,
    ) -> Result<T, ClientError> {
        let mut reader = message.reader();
        let read = read(&mut reader);
        reader.end().map_err(|fault| self.broken(fault))?;
        Ok(read)
    }

    fn succeeded(&self, message: &Message) -> Result<(), ClientError> {
        let status = self.read(message, Status::read)?;
        if status.is_success() { Ok(()) } else { Err(ClientError::Refused(status)) }
    }

    /// Waits for a message that `is_it`; keeps updates of monitors for later.
    pub(super) fn wait(
        &mut self,
        is_it: impl Fn(&Message) -> bool,
    ) -> Result<Message, ClientError> {
        let deadline = self.deadline();
        loop {
            let Some(message) = self.step(deadline)? else { continue };
            if is_it(&message) {
                return Ok(message);
            }
            if message.command == Command::Monitor {
                let request = message.reader().u32();
                self.updates.push_back((request, message));
            }
        }
    }

    /// The next message, if it is none that is dealt with at once.
    pub(super) fn step(&mut self, deadline: Instant) -> Result<Option<Message>, ClientError> {
        let Some(message) = self.stream.receive(deadline)? else {
            return Err(ClientError::TimedOut(self.address(), self.settings.timeout));
        };
        match message.command {
            Command::Message => {
                let text = self.read(&message, Text::read)?;
                if text.severity == Severity::Fatal && text.request == 0 {
                    return Err(ClientError::Refused(Status::error(&text.text)));
                }
                if self.texts.len() == MAX_TEXTS {
                    self.texts.pop_front();
                }
                self.texts.push_back(text);
                Ok(None)
            }
            Command::DestroyChannel => {
                let named = self.read(&message, DestroyChannel::read)?;
                let is_ours = named.client_id.wrapping_sub(1) < self.next_number.wrapping_sub(1);
                if is_ours && !self.closed.contains(&named.client_id) {
                    self.closed.push(named.client_id);
                }
                Ok(None)
            }
            _ => Ok(Some(message)),
        }
    }
}
