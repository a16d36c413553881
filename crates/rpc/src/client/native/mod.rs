//! A client of own frames, over any carrier. Calls may be outstanding side by side
//! ([`NativeClient::start`], [`NativeClient::next_reply`]); [`NativeClient::call`] is one alone.

mod sending;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::carriers::Carrier;
use crate::protocol::native::frame::{Header, Kind, PROTOBUF};
use crate::protocol::native::greeting::{ClientGreeting, ServerGreeting};
use crate::protocol::native::{Decoder, Fault, Item, Outbox};
use crate::protocol::status::{Code, Status};

pub use sending::Writes;

/// What one read takes at most.
const INPUT_BYTES: usize = 64 << 10;

/// How a client connects.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// The server's token; none where empty.
    pub token: Bytes,
    /// The most bytes of an answer.
    pub max_message_bytes: u32,
    /// How long the greeting may take.
    pub connect_timeout: Duration,
    /// How requests are divided into writes.
    pub writes: Writes,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            token: Bytes::new(),
            max_message_bytes: 64 << 20,
            connect_timeout: Duration::from_secs(10),
            writes: Writes::default(),
        }
    }
}

/// What has passed over a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Writes, and their bytes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads that brought something.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Waits for bytes or room by a system call of their own.
    pub waits: u64,
}

/// An outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// Until when it waits.
    Waits(Option<Instant>),
    /// Its deadline has passed; the server's answer is still to come.
    GivenUp,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The number that [`NativeClient::start`] has returned.
    pub id: u64,
    /// The answer, or how the call failed.
    pub result: Result<Bytes, Status>,
}

/// A connection.
pub struct NativeClient {
    carrier: Box<dyn Carrier>,
    decoder: Decoder,
    out: Outbox,
    sending: sending::Sending,
    input: Box<[u8]>,
    methods: HashMap<String, u32>,
    max_message: u32,
    max_calls: u32,
    /// The server's greeting is still to come.
    is_greeting: bool,
    calls: HashMap<u64, Pending>,
    replies: VecDeque<Reply>,
    next_id: u64,
    broken: Option<Status>,
    traffic: Traffic,
}

fn unavailable(words: impl fmt::Display) -> Status {
    Status::new(Code::Unavailable, words.to_string())
}

impl NativeClient {
    /// Greets the server.
    ///
    /// # Errors
    /// When no server of own frames answers in time.
    pub fn connect(carrier: Box<dyn Carrier>, options: &NativeOptions) -> Result<Self, Status> {
        let mut client = Self {
            carrier,
            decoder: Decoder::new(options.max_message_bytes as usize),
            out: Outbox::default(),
            sending: sending::Sending::new(options.writes),
            input: vec![0; INPUT_BYTES].into(),
            methods: HashMap::new(),
            max_message: 0,
            max_calls: 0,
            is_greeting: true,
            calls: HashMap::new(),
            replies: VecDeque::new(),
            next_id: 1,
            broken: None,
            traffic: Traffic::default(),
        };
        let (token, max_message) = (options.token.clone(), options.max_message_bytes);
        ClientGreeting { max_message, token }.encode(client.out.raw());
        let until = Instant::now() + options.connect_timeout;
        client.flush()?;
        let greeting = loop {
            match ServerGreeting::decode(client.decoder.buffer()).map_err(unavailable)? {
                Some(greeting) => break greeting,
                None if Instant::now() >= until => {
                    return Err(unavailable("no greeting has come (--connect-timeout)"));
                }
                None => client.read(Some(until))?,
            }
        };
        (client.max_message, client.max_calls) = (greeting.max_message, greeting.max_calls);
        client.is_greeting = false;
        client.methods = greeting.methods.into_iter().zip(0..).collect();
        // A server that takes no client says so right behind its greeting.
        client.take_all()?;
        match client.broken {
            Some(status) => Err(status),
            None => Ok(client),
        }
    }

    /// The number of a method, `/package.Service/Method`.
    ///
    /// # Errors
    /// When the server has none of this name, or doesn't carry it by own frames.
    pub fn method(&self, name: &str) -> Result<u32, Status> {
        self.methods.get(name).copied().ok_or_else(|| {
            let words = format!(
                "the server has no method {name} of one message for one message ({} others)",
                self.methods.len()
            );
            Status::new(Code::Unimplemented, words)
        })
    }

    /// Calls that have no answer yet; those given up count until it has come.
    pub fn outstanding(&self) -> usize {
        self.calls.len()
    }

    /// What has passed until now.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Begins a call, and returns its number. It is sent by [`NativeClient::flush`], or by what
    /// waits for an answer.
    ///
    /// # Errors
    /// When as many calls are outstanding as the server allows, the message is larger than it
    /// takes, or the connection has ended.
    pub fn start(
        &mut self,
        method: u32,
        request: &Bytes,
        timeout: Option<Duration>,
    ) -> Result<u64, Status> {
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        if self.calls.len() >= self.max_calls as usize {
            let words = format!("{} calls are outstanding, as many as may be", self.max_calls);
            return Err(Status::new(Code::ResourceExhausted, words));
        }
        let length = u32::try_from(request.len()).ok().filter(|length| *length <= self.max_message);
        let Some(length) = length else {
            let words = format!(
                "a message of {} bytes is over the server's {}",
                request.len(),
                self.max_message
            );
            return Err(Status::new(Code::ResourceExhausted, words));
        };
        let id = self.next_id;
        self.next_id += 1;
        // A deadline of less than a microsecond is one, and a longer one than fits is the client's.
        let in_us = |timeout: Duration| timeout.as_nanos().div_ceil(1_000).max(1);
        let timeout_us = timeout.map_or(0, in_us).try_into().unwrap_or(u32::MAX);
        let header = Header { length, kind: Kind::Call, codec: PROTOBUF, id, method, timeout_us };
        self.sending.note(&header);
        self.out.push(&header, request);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.calls.insert(id, Pending::Waits(deadline));
        Ok(id)
    }

    /// One call: waits for its answer. Those of other calls are kept, for
    /// [`NativeClient::next_reply`].
    ///
    /// # Errors
    /// As the call ends, or the connection.
    pub fn call(
        &mut self,
        method: u32,
        request: &Bytes,
        timeout: Option<Duration>,
    ) -> Result<Bytes, Status> {
        let id = self.start(method, request, timeout)?;
        self.flush()?;
        loop {
            if let Some(at) = self.replies.iter().position(|reply| reply.id == id) {
                let reply = self.replies.remove(at);
                let missing = || Err(Status::new(Code::Internal, "the answer is gone"));
                return reply.map_or_else(missing, |reply| reply.result);
            }
            self.receive()?;
        }
    }

    /// The next call that has ended; `None` when none is outstanding.
    ///
    /// # Errors
    /// When the connection has ended; no call is outstanding then.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Status> {
        self.flush()?;
        loop {
            if let Some(reply) = self.replies.pop_front() {
                return Ok(Some(reply));
            }
            if self.calls.is_empty() {
                return Ok(None);
            }
            self.receive()?;
        }
    }

    /// Sends all calls that have begun. While there is no room, answers are taken.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn flush(&mut self) -> Result<(), Status> {
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        while !self.out.is_empty() {
            match self.sending.send(&mut *self.carrier, &mut self.out) {
                Ok(count) => {
                    self.traffic.writes += 1;
                    self.traffic.written_bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.traffic.waits += 1;
                    match self.carrier.wait(true, self.deadline()) {
                        Ok(true) => self.read(None)?,
                        Ok(false) => self.expire(),
                        Err(error) => return Err(self.breaks(unavailable(error))),
                    }
                }
                // What the server has sent last says why.
                Err(error) => {
                    while self.broken.is_none() && self.read(None).is_ok() {}
                    return Err(self.breaks(unavailable(format!("the connection broke: {error}"))));
                }
            }
        }
        Ok(())
    }

    /// The first deadline of an outstanding call.
    fn deadline(&self) -> Option<Instant> {
        let deadlines = self.calls.values().map(|call| match call {
            Pending::Waits(deadline) => *deadline,
            Pending::GivenUp => None,
        });
        deadlines.flatten().min()
    }

    /// Waits for answers, or the first deadline.
    fn receive(&mut self) -> Result<(), Status> {
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        self.read(self.deadline())?;
        self.expire();
        Ok(())
    }

    /// Ends the calls whose deadlines have passed.
    fn expire(&mut self) {
        let Some(first) = self.deadline() else { return };
        let now = Instant::now();
        if now < first {
            return;
        }
        for (id, call) in &mut self.calls {
            if matches!(call, Pending::Waits(Some(deadline)) if *deadline <= now) {
                *call = Pending::GivenUp;
                let words = "the deadline of the call has passed";
                let result = Err(Status::new(Code::DeadlineExceeded, words));
                self.replies.push_back(Reply { id: *id, result });
            }
        }
    }

    /// Reads once, until a time, and takes the answers.
    fn read(&mut self, until: Option<Instant>) -> Result<(), Status> {
        if until.is_some() {
            self.traffic.waits += 1;
            match self.carrier.wait(false, until) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(self.breaks(unavailable(error))),
            }
        }
        match self.carrier.receive(&mut self.input) {
            Ok(0) => {
                let fault = self.decoder.finish().err();
                let why = fault
                    .map_or("the server has closed the connection".to_owned(), |fault| {
                        fault.to_string()
                    });
                return Err(self.breaks(unavailable(why)));
            }
            Ok(count) => {
                self.traffic.reads += 1;
                self.traffic.read_bytes += count as u64;
                let piece = self.input.get(..count).unwrap_or_default();
                self.decoder.space().extend_from_slice(piece);
            }
            Err(error) => return Err(self.breaks(unavailable(format!("cannot read: {error}")))),
        }
        if self.is_greeting {
            return Ok(());
        }
        self.take_all()
    }

    /// Takes all frames that have come whole.
    fn take_all(&mut self) -> Result<(), Status> {
        self.take().map_err(|fault| self.breaks(Status::new(Code::Internal, fault.to_string())))
    }

    fn take(&mut self) -> Result<(), Fault> {
        while let Some(item) = self.decoder.next_item()? {
            let (header, result) = match item {
                Item::TooLarge(header) => {
                    let words = format!("an answer of {} bytes is too large", header.length);
                    (header, Err(Status::new(Code::ResourceExhausted, words)))
                }
                Item::Frame(header, payload) if header.kind == Kind::Answer => {
                    (header, Ok(payload))
                }
                Item::Frame(header, payload) => {
                    let code = Code::of(i32::try_from(header.method).unwrap_or(-1));
                    (header, Err(Status::new(code, String::from_utf8_lossy(&payload))))
                }
            };
            match (header.kind, result) {
                (Kind::Call, _) => return Err(Fault::Side(header.kind.name())),
                (Kind::Goodbye, Err(status)) => {
                    self.breaks(status);
                    return Ok(());
                }
                (_, result) => match self.calls.remove(&header.id) {
                    Some(Pending::Waits(_)) => {
                        self.replies.push_back(Reply { id: header.id, result });
                    }
                    Some(Pending::GivenUp) => {}
                    None => return Err(Fault::Id(header.id)),
                },
            }
        }
        Ok(())
    }

    /// Ends the connection, and all outstanding calls with it; the first reason stays.
    fn breaks(&mut self, status: Status) -> Status {
        self.calls.clear();
        self.broken.get_or_insert(status).clone()
    }
}

impl fmt::Debug for NativeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeClient")
            .field("carrier", &self.carrier)
            .field("outstanding", &self.calls.len())
            .finish_non_exhaustive()
    }
}
