//! Many channels at once: requests are pipelined, so that a thousand of them take a few round trips
//! and not thousands.

use std::collections::HashMap;

use super::connection::{Channel, Client};
use super::error::ClientError;
use super::operation::{Operation, OperationKind};
use super::stream::Message;
use crate::protocol::messages::{self, ChannelCreated, CreateChannels, ResponseHead};
use crate::protocol::{Command, Request, Status};

/// The depth of the pipeline. The requests fit into a socket's buffer: so neither side waits for
/// the other to read while it writes.
const AT_ONCE: usize = 256;

/// What an answer is waited for.
struct Pending {
    /// The number that the answer begins with.
    number: u32,
    /// The client's number of the channel, which may be closed meanwhile.
    channel: u32,
    /// Whose answer it is, among all.
    place: usize,
}

/// One of many: each may fail by itself.
type Each<T> = Result<T, ClientError>;

impl Client {
    /// Opens channels: for each name its channel, or why the server has none.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn channels(&mut self, names: &[&str]) -> Result<Vec<Each<Channel>>, ClientError> {
        let mut all = Vec::with_capacity(names.len());
        for some in names.chunks(AT_ONCE) {
            let mut asked = Vec::with_capacity(some.len());
            for (place, name) in some.iter().enumerate() {
                let number = self.number();
                let asking = CreateChannels(vec![(number, (*name).into())]);
                self.add(Command::CreateChannel, |writer| asking.write(writer));
                asked.push(Pending { number, channel: number, place: all.len() + place });
            }
            let first = all.len();
            let mut opened: Vec<_> = some.iter().map(|_| None).collect();
            self.receive_all(Command::CreateChannel, asked, |client, place, answer| {
                let channel = answer.and_then(|answer| client.opened(names[place], &answer));
                opened[place - first] = Some(channel);
            })?;
            all.extend(opened.into_iter().flatten());
        }
        Ok(all)
    }

    fn opened(&mut self, name: &str, answer: &Message) -> Each<Channel> {
        let made = self.read(answer, ChannelCreated::read)?;
        if !made.status.is_success() {
            return Err(ClientError::Refused(made.status));
        }
        let ChannelCreated { server_id, client_id, .. } = made;
        Ok(Channel { server_id, client_id, name: name.to_owned() })
    }

    /// Begins the same operation on each of these channels.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn begin_all(
        &mut self,
        channels: &[&Channel],
        what: OperationKind,
        request: &Request,
    ) -> Result<Vec<Each<Operation>>, ClientError> {
        let mut all = Vec::with_capacity(channels.len());
        for some in channels.chunks(AT_ONCE) {
            let mut asked = Vec::with_capacity(some.len());
            for (place, channel) in some.iter().enumerate() {
                let number = self.add_begin(channel, what, request);
                asked.push(Pending { number, channel: channel.client_id, place });
            }
            let mut begun: Vec<_> = some.iter().map(|_| None).collect();
            self.receive_all(what.command(), asked, |client, place, answer| {
                let begin = |answer: Message| {
                    let number = answer.reader().u32();
                    client.begun(some[place], number, what, &answer)
                };
                begun[place] = Some(answer.and_then(begin));
            })?;
            all.extend(begun.into_iter().flatten());
        }
        Ok(all)
    }

    /// Reads once with each of these operations, as they are answered: `each` gets the place of one
    /// among them, and the operation with its item.
    ///
    /// # Errors
    /// When the connection breaks: what is left isn't read.
    pub fn get_all(
        &mut self,
        operations: Vec<Operation>,
        mut each: impl FnMut(usize, Each<Operation>),
    ) -> Result<(), ClientError> {
        let mut left: Vec<_> = operations.into_iter().map(Some).collect();
        for first in (0..left.len()).step_by(AT_ONCE) {
            let some = first..left.len().min(first + AT_ONCE);
            let mut asked = Vec::with_capacity(some.len());
            for (place, operation) in some.clone().zip(left[some].iter().flatten()) {
                let &Operation { channel, request, client_id, .. } = operation;
                let asking = messages::RequestHead { channel, request, subcommand: 0 };
                self.add(Command::Get, |writer| asking.write(writer));
                asked.push(Pending { number: request, channel: client_id, place });
            }
            self.receive_all(Command::Get, asked, |client, place, answer| {
                let Some(operation) = left[place].take() else { return };
                each(place, answer.and_then(|answer| client.got(operation, &answer)));
            })?;
        }
        Ok(())
    }

    fn got(&mut self, mut operation: Operation, answer: &Message) -> Each<Operation> {
        let mut reader = answer.reader();
        ResponseHead::read(&mut reader);
        let status = Status::read(&mut reader);
        if !status.is_success() {
            return Err(ClientError::Refused(status));
        }
        self.read_fields(&mut operation, &mut reader)?;
        Ok(operation)
    }

    /// Sends what is buffered, and hands on each answer as it comes.
    fn receive_all(
        &mut self,
        command: Command,
        asked: Vec<Pending>,
        mut take: impl FnMut(&mut Self, usize, Each<Message>),
    ) -> Result<(), ClientError> {
        self.stream.flush()?;
        let mut left: HashMap<u32, Pending> =
            asked.into_iter().map(|asked| (asked.number, asked)).collect();
        while !left.is_empty() {
            let message = self.step(self.deadline())?;
            let closed = std::mem::take(&mut self.closed);
            for channel in &closed {
                let gone: Vec<u32> = left
                    .values()
                    .filter(|asked| asked.channel == *channel)
                    .map(|asked| asked.number)
                    .collect();
                for asked in gone.iter().filter_map(|number| left.remove(number)) {
                    take(self, asked.place, Err(ClientError::ChannelClosed));
                }
            }
            self.closed = closed;
            let Some(message) = message else { continue };
            let number = message.reader().u32();
            if message.command == command
                && let Some(asked) = left.remove(&number)
            {
                take(self, asked.place, Ok(message));
            } else if message.command == Command::Monitor {
                self.updates.push_back((number, message));
            }
        }
        Ok(())
    }
}
