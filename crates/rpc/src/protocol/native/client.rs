//! The client's side of a connection of own frames, without its socket and clock: calls go in and
//! bytes come out of [`ClientSession::out`], bytes go in by [`ClientSession::receive`] and what
//! they say comes out of [`ClientSession::next_event`].

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::fault::Fault;
use super::fields;
use super::frame::{Header, Kind, METADATA, OPEN, WINDOW_BYTES, cost};
use super::greeting::{ClientGreeting, Method, ServerGreeting};
use super::numbers::ByNumber;
use super::{Decoder, Item, Outbox};
use crate::protocol::metadata::Metadata;
use crate::protocol::status::{Code, Ended, Status};
use base::{many, many_are};

/// What has happened to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number that [`ClientSession::call`] has returned.
    pub id: u64,
    /// What it is.
    pub what: What,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Metadata before the first message.
    Head(Metadata),
    /// A message of a stream.
    Message(Bytes),
    /// The one answer, and the end of the call.
    Answer(Bytes, Metadata),
    /// The end of the call.
    Ended(Ended),
}

/// An outstanding call.
#[derive(Debug)]
struct Outstanding {
    /// Until when it waits.
    deadline: Option<Instant>,
    /// It has been given up; the server's end of it is still to come.
    is_given_up: bool,
    /// This side may still send messages.
    is_open: bool,
    /// The head of its answer has come.
    has_head: bool,
    /// What this side may send of them.
    credit: i64,
    /// What the server may send.
    window: i64,
    /// What was taken of it and is not given back yet.
    owed: u32,
}

/// How a call is made.
#[derive(Clone, Debug, Default)]
pub struct Begin<'a> {
    /// Metadata, where there are any.
    pub metadata: Option<&'a Metadata>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// When it is made; needed where there is a `timeout`.
    pub now: Option<Instant>,
}

impl Begin<'_> {
    /// A call made now, that may take this long.
    pub fn within(timeout: Option<Duration>, now: impl FnOnce() -> Instant) -> Self {
        Self { metadata: None, timeout, now: timeout.map(|_| now()) }
    }

    fn deadline(&self) -> Option<Instant> {
        self.now?.checked_add(self.timeout?)
    }
}

/// One connection.
#[derive(Debug)]
pub struct ClientSession {
    decoder: Decoder,
    out: Outbox,
    methods: HashMap<String, (u32, Method)>,
    max_message: u32,
    max_calls: u32,
    /// The server's greeting is still to come.
    is_greeting: bool,
    calls: ByNumber<Outstanding>,
    /// No call's deadline is earlier; that of one that has ended may be later.
    first_due: Option<Instant>,
    events: VecDeque<Event>,
    next_id: u64,
    broken: Option<Status>,
}

impl ClientSession {
    /// A connection that begins with this greeting.
    pub fn new(greeting: &ClientGreeting) -> Self {
        let mut out = Outbox::default();
        greeting.encode(out.raw());
        Self {
            decoder: Decoder::new(greeting.max_message as usize),
            out,
            methods: HashMap::new(),
            max_message: 0,
            max_calls: 0,
            is_greeting: true,
            calls: ByNumber::default(),
            first_due: None,
            events: VecDeque::new(),
            next_id: 1,
            broken: None,
        }
    }

    /// What waits to be sent.
    pub fn out(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// Whether the server's greeting is still to come.
    pub fn is_greeting(&self) -> bool {
        self.is_greeting && self.broken.is_none()
    }

    /// Why the connection has ended, if it has.
    pub fn broken(&self) -> Option<&Status> {
        self.broken.as_ref()
    }

    /// Calls that have no end yet; those given up count until it has come.
    pub fn outstanding(&self) -> usize {
        self.calls.len()
    }

    /// Whether a call is outstanding that isn't given up, or the server's greeting.
    pub fn has_wanted(&self) -> bool {
        self.is_greeting() || self.calls.iter().any(|(_, call)| !call.is_given_up)
    }

    /// The number and kind of a method, `/package.Service/Method`.
    ///
    /// # Errors
    /// When the server has none of this name.
    pub fn method(&self, name: &str) -> Result<(u32, &Method), Status> {
        let found = self.methods.get(name).map(|(number, method)| (*number, method));
        found.ok_or_else(|| {
            let others = many(self.methods.len(), "other");
            let words = format!("the server has no method {name} ({others})");
            Status::new(Code::Unimplemented, words)
        })
    }

    /// A number for a new call.
    fn begin(&mut self, how: &Begin<'_>, is_open: bool) -> Result<Header, Status> {
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        if self.calls.len() >= self.max_calls as usize {
            let words =
                format!("{} outstanding, as many as may be", many_are(self.max_calls, "call"));
            return Err(Status::new(Code::ResourceExhausted, words));
        }
        let id = self.next_id;
        self.next_id += 1;
        let timeout_us = how.timeout.map_or(0, in_us);
        let window = WINDOW_BYTES.into();
        let call = Outstanding {
            deadline: None,
            is_given_up: false,
            is_open,
            has_head: false,
            credit: window,
            window,
            owed: 0,
        };
        self.calls.insert(id, call);
        if let Some(deadline) = how.deadline() {
            self.ends_by(id, deadline);
        }
        Ok(Header { timeout_us, ..Header::of(Kind::Call, id) })
    }

    /// Begins a call with its one message, and returns its header as it was written.
    ///
    /// # Errors
    /// When as many calls are outstanding as the server allows, the message or its metadata are
    /// larger than it takes, or the connection has ended.
    pub fn call(
        &mut self,
        method: u32,
        request: &Bytes,
        how: &Begin<'_>,
    ) -> Result<Header, Status> {
        self.fits(request)?;
        let prefix = prefix(how)?;
        let header = self.begin(how, false)?;
        let length = (prefix.len() + request.len()) as u32;
        let flags = if prefix.is_empty() { 0 } else { METADATA };
        let header = Header { length, method, flags, ..header };
        self.out.push_parts(&header, &prefix, request);
        Ok(header)
    }

    /// Begins a call whose messages follow, and returns its number.
    ///
    /// # Errors
    /// As [`ClientSession::call`].
    pub fn open(&mut self, method: u32, how: &Begin<'_>) -> Result<u64, Status> {
        let prefix = prefix(how)?;
        let header = self.begin(how, true)?;
        let flags = OPEN | if prefix.is_empty() { 0 } else { METADATA };
        let header = Header { length: prefix.len() as u32, method, flags, ..header };
        self.out.push_parts(&header, &prefix, &Bytes::new());
        Ok(header.id)
    }

    fn fits(&self, message: &Bytes) -> Result<(), Status> {
        if message.len() <= self.max_message as usize {
            return Ok(());
        }
        let words = format!(
            "a message of {} bytes is over the server's {}",
            message.len(),
            self.max_message
        );
        Err(Status::new(Code::ResourceExhausted, words))
    }

    /// Adds a message to an open call; `false` while there is no credit for it. A call that has
    /// ended takes it without effect: its end is an event.
    ///
    /// # Errors
    /// When the message is larger than the server takes, or the connection has ended.
    pub fn send(&mut self, id: u64, message: &Bytes) -> Result<bool, Status> {
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        self.fits(message)?;
        let Some(call) = self.calls.get_mut(&id).filter(|call| call.is_open) else {
            return Ok(true);
        };
        if call.credit <= 0 {
            return Ok(false);
        }
        call.credit -= cost(message);
        let header = Header { length: message.len() as u32, ..Header::of(Kind::Message, id) };
        self.out.push(&header, message);
        Ok(true)
    }

    /// Ends the messages of an open call.
    pub fn end(&mut self, id: u64) {
        if let Some(call) = self.calls.get_mut(&id).filter(|call| call.is_open) {
            call.is_open = false;
            self.out.push(&Header::of(Kind::End, id), &Bytes::new());
        }
    }

    /// Gives a call up: the server learns of it, and it ends with [`Code::Cancelled`].
    pub fn cancel(&mut self, id: u64) {
        let words = "the call was given up";
        self.give_up(id, Status::new(Code::Cancelled, words));
    }

    fn give_up(&mut self, id: u64, status: Status) {
        if let Some(call) = self.calls.get_mut(&id).filter(|call| !call.is_given_up) {
            (call.is_given_up, call.is_open) = (true, false);
            self.out.push(&Header::of(Kind::Cancel, id), &Bytes::new());
            // What it had brought is no longer wanted.
            self.events.retain(|event| event.id != id);
            let ended = Ended { status, trailers: Metadata::default() };
            self.events.push_back(Event { id, what: What::Ended(ended) });
        }
    }

    /// Sets the deadline of a call that is outstanding.
    pub fn ends_by(&mut self, id: u64, deadline: Instant) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.deadline = Some(deadline);
            let others = self.first_due.filter(|_| self.calls.len() > 1);
            self.first_due = Some(others.map_or(deadline, |first| first.min(deadline)));
        }
    }

    /// When [`ClientSession::expire`] is to be called: with the first deadline of an outstanding
    /// call, or with an earlier one of a call that has ended.
    pub fn deadline(&self) -> Option<Instant> {
        self.first_due.filter(|_| !self.calls.is_empty())
    }

    /// Ends the calls whose deadlines have passed.
    pub fn expire(&mut self, now: Instant) {
        if self.first_due.is_none_or(|first| first > now) {
            return;
        }
        let deadlines = self.calls.iter().filter(|(_, call)| !call.is_given_up);
        let deadlines = deadlines.filter_map(|(id, call)| Some((*id, call.deadline?)));
        let (due, later): (Vec<_>, Vec<_>) = deadlines.partition(|(_, deadline)| *deadline <= now);
        self.first_due = later.into_iter().map(|(_, deadline)| deadline).min();
        for (id, _) in due {
            let words = "the deadline of the call has passed";
            self.give_up(id, Status::new(Code::DeadlineExceeded, words));
        }
    }

    /// The next thing that has happened. Taking a message gives its credit back.
    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.taken(&event);
        Some(event)
    }

    /// The next thing that has happened to one call; those of others stay.
    pub fn next_event_of(&mut self, id: u64) -> Option<Event> {
        let event = match self.events.front() {
            Some(first) if first.id == id => self.events.pop_front()?,
            _ => {
                let at = self.events.iter().position(|event| event.id == id)?;
                self.events.remove(at)?
            }
        };
        self.taken(&event);
        Some(event)
    }

    fn taken(&mut self, event: &Event) {
        if let What::Message(message) = &event.what
            && let Some(call) = self.calls.get_mut(&event.id)
        {
            call.owed = call.owed.saturating_add(cost(message) as u32);
            if call.owed >= WINDOW_BYTES / 2 {
                call.window += i64::from(call.owed);
                let header = Header { method: call.owed, ..Header::of(Kind::Credit, event.id) };
                call.owed = 0;
                self.out.push(&header, &Bytes::new());
            }
        }
    }

    /// Takes what the server has sent.
    ///
    /// # Errors
    /// When it breaks the protocol; the connection has ended then. A goodbye is no error: what came
    /// before it is still to be taken.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Status> {
        self.decoder.append(bytes);
        let taken = self.take();
        taken.map_err(|fault| {
            let code = if self.is_greeting { Code::Unavailable } else { Code::Internal };
            self.breaks(Status::new(code, fault.to_string()))
        })
    }

    /// The server sends no more; returns why.
    pub fn closed(&mut self) -> Status {
        let words = match self.decoder.finish() {
            Ok(()) => "the server has closed the connection".to_owned(),
            Err(fault) => fault.to_string(),
        };
        self.breaks(Status::new(Code::Unavailable, words))
    }

    /// Ends the connection, and all outstanding calls with it; the first reason stays.
    pub fn breaks(&mut self, status: Status) -> Status {
        self.calls.clear();
        self.broken.get_or_insert(status).clone()
    }

    fn take(&mut self) -> Result<(), Fault> {
        if self.is_greeting {
            let Some(greeting) = ServerGreeting::decode(self.decoder.buffer())? else {
                return Ok(());
            };
            (self.max_message, self.max_calls) = (greeting.max_message, greeting.max_calls);
            let numbered = greeting.methods.into_iter().zip(0..);
            self.methods =
                numbered.map(|(method, at)| (method.name.clone(), (at, method))).collect();
            self.is_greeting = false;
        }
        while self.broken.is_none() {
            let Some(item) = self.decoder.next_item()? else { break };
            match item {
                Item::TooLarge(header) => self.too_large(&header)?,
                Item::Frame(header, payload) => self.frame(&header, payload)?,
            }
        }
        Ok(())
    }

    /// A message that isn't taken ends its call.
    fn too_large(&mut self, header: &Header) -> Result<(), Fault> {
        let words = format!("an answer of {} bytes is too large", header.length);
        let status = Status::new(Code::ResourceExhausted, words);
        match header.kind {
            Kind::Message => {
                self.of(header.id)?;
                self.give_up(header.id, status);
                Ok(())
            }
            Kind::Answer => self.ends(header.id, What::Ended(ended(status, Metadata::default()))),
            _ => Err(Fault::Side(header.kind.name())),
        }
    }

    fn of(&mut self, id: u64) -> Result<&mut Outstanding, Fault> {
        self.calls.get_mut(&id).ok_or(Fault::Id(id))
    }

    fn frame(&mut self, header: &Header, mut payload: Bytes) -> Result<(), Fault> {
        let id = header.id;
        let metadata = fields::take(header, &mut payload)?;
        match header.kind {
            Kind::Call | Kind::Cancel => Err(Fault::Side(header.kind.name())),
            Kind::Answer => self.ends(id, What::Answer(payload, metadata)),
            Kind::End => self.ends(id, What::Ended(ended(Status::ok(), metadata))),
            Kind::Failure => {
                let status = fields::status(header, payload)?;
                self.ends(id, What::Ended(ended(status, metadata)))
            }
            Kind::Goodbye => {
                let status = fields::status(header, payload)?;
                self.breaks(status);
                Ok(())
            }
            Kind::Head => {
                let metadata = fields::read_block(payload)?;
                if std::mem::replace(&mut self.of(id)?.has_head, true) {
                    return Err(Fault::Head(id));
                }
                self.happens(id, What::Head(metadata))
            }
            Kind::Message => {
                let call = self.of(id)?;
                if call.window <= 0 {
                    return Err(Fault::Credit(id));
                }
                call.window -= cost(&payload);
                self.happens(id, What::Message(payload))
            }
            Kind::Credit => {
                let call = self.of(id)?;
                call.credit += i64::from(header.method);
                match call.credit > WINDOW_BYTES.into() {
                    true => Err(Fault::Credit(id)),
                    false => Ok(()),
                }
            }
        }
    }

    /// Something has happened to a call that goes on.
    fn happens(&mut self, id: u64, what: What) -> Result<(), Fault> {
        if !self.of(id)?.is_given_up {
            self.events.push_back(Event { id, what });
        }
        Ok(())
    }

    fn ends(&mut self, id: u64, what: What) -> Result<(), Fault> {
        match self.calls.entry(id) {
            Entry::Occupied(call) => {
                if !call.remove().is_given_up {
                    self.events.push_back(Event { id, what });
                }
                Ok(())
            }
            Entry::Vacant(_) => Err(Fault::Id(id)),
        }
    }
}

/// A timeout as frames have it. One of less than a microsecond is one, and a longer one than fits
/// is the client's alone: for the server it is without end.
fn in_us(timeout: Duration) -> u32 {
    // No division of 128 bits, which takes as long as all the rest of a header.
    let us = u64::from(timeout.subsec_nanos().div_ceil(1_000));
    let us = timeout.as_secs().saturating_mul(1_000_000).saturating_add(us);
    us.max(1).try_into().unwrap_or(0)
}

fn ended(status: Status, trailers: Metadata) -> Ended {
    Ended { status, trailers }
}

/// The metadata of a call as its frame has them; nothing where there are none.
fn prefix(how: &Begin<'_>) -> Result<Bytes, Status> {
    let some = how.metadata.filter(|metadata| metadata.iter().next().is_some());
    let Some(metadata) = some else { return Ok(Bytes::new()) };
    fields::prefix(metadata).ok_or_else(|| {
        let words = "metadata of a call are over 64 KiB, what own frames carry";
        Status::new(Code::ResourceExhausted, words)
    })
}

#[cfg(test)]
mod tests;
