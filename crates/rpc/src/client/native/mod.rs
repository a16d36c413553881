//! A client of own frames, over any carrier: it sends and receives what a [`ClientSession`] wants.
//! Calls may be outstanding side by side ([`NativeClient::start`], [`NativeClient::next_reply`]);
//! [`NativeClient::call`] is one alone. Calls with streams begin with [`NativeClient::open`].
//! [`FutureClient`] has a thread that reads, so that several threads may call by one connection.

mod future;
mod meter;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::carriers::{Carrier, Peer};
use crate::protocol::native::greeting::ClientGreeting;
use crate::protocol::native::{Begin, ClientSession, Event, What};
use crate::protocol::status::{Code, Ended, Status};
use crate::writes::{Cuts, Sending, Writes};

pub(super) use meter::Meter;

pub use future::{CallFuture, FutureClient, FutureKind};
pub use meter::{Step, Traffic};

/// When a buffer is flushed, which gathers what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Flush {
    /// With each write, so that it gathers nothing
    Each,
    /// Once a message is whole
    Message,
}

/// How long is waited for what a server has sent last, once it takes nothing.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the server's ends of calls that are given up are waited for.
const GIVEN_UP: Duration = Duration::from_secs(5);

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
    /// Into how many reads an answer is divided; without it all that has come is read.
    pub reads: Option<usize>,
    /// When a buffer is flushed, which gathers writes and takes all that can be read.
    pub buffered: Option<Flush>,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            token: Bytes::new(),
            max_message_bytes: 64 << 20,
            connect_timeout: Duration::from_secs(10),
            writes: Writes::default(),
            reads: None,
            buffered: None,
        }
    }
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
    session: ClientSession,
    sending: Sending,
    reading: Cuts,
    input: Box<[u8]>,
    meter: Meter,
    /// The call under way, and how long it may take once this side first waits for it.
    untimed: Option<(u64, Duration)>,
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
        let (token, max_message) = (options.token.clone(), options.max_message_bytes);
        let writes = match options.buffered {
            Some(Flush::Message) => Writes::Buffer,
            _ => options.writes,
        };
        let mut client = Self {
            carrier,
            session: ClientSession::new(&ClientGreeting { max_message, token }),
            sending: Sending::new(writes),
            reading: Cuts::of_reads(options.reads.filter(|_| options.buffered.is_none())),
            input: vec![0; INPUT_BYTES].into(),
            meter: Meter::default(),
            untimed: None,
        };
        let until = Instant::now() + options.connect_timeout;
        client.flush()?;
        while client.session.is_greeting() {
            if Instant::now() >= until {
                let words = match client.meter.traffic.reads {
                    0 => {
                        "nothing has come (--connect-timeout): is this the port of a server of own \
                         frames? One of gRPC is called by grpc://HOST:PORT"
                    }
                    _ => "a part of a greeting has come, and not the rest (--connect-timeout)",
                };
                return Err(unavailable(words));
            }
            client.read(Some(until))?;
        }
        // A server that takes no client says so right behind its greeting.
        match client.session.broken() {
            Some(status) => Err(status.clone()),
            None => Ok(client),
        }
    }

    /// The number of a method of one message for one message, `/package.Service/Method`.
    ///
    /// # Errors
    /// When the server has none of this name, or it is one of streams.
    pub fn method(&self, name: &str) -> Result<u32, Status> {
        unary(&self.session, name)
    }

    /// Which process is at the other end, as the system knows it.
    pub fn peer(&self) -> Peer {
        self.carrier.peer()
    }

    /// The number of any method.
    ///
    /// # Errors
    /// When the server has none of this name.
    pub fn any_method(&self, name: &str) -> Result<u32, Status> {
        self.session.method(name).map(|(number, _)| number)
    }

    /// Calls that have no end yet; those given up count until it has come.
    pub fn outstanding(&self) -> usize {
        self.session.outstanding()
    }

    /// Whether the connection has ended.
    pub fn is_broken(&self) -> bool {
        self.session.broken().is_some()
    }

    /// What has passed until now.
    pub fn traffic(&self) -> Traffic {
        Traffic { waits: self.carrier.waits(), ..self.meter.traffic }
    }

    /// Notes each write and read from now on.
    pub fn note_steps(&mut self) {
        self.meter.note_steps();
    }

    /// Those since, in order, and notes no more; 1,024 at most.
    pub fn take_steps(&mut self) -> Vec<Step> {
        self.meter.take_steps()
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
        self.start_with(method, request, &Begin::within(timeout, Instant::now))
    }

    /// Begins a call with metadata.
    ///
    /// # Errors
    /// As [`NativeClient::start`].
    pub fn start_with(
        &mut self,
        method: u32,
        request: &Bytes,
        how: &Begin<'_>,
    ) -> Result<u64, Status> {
        Ok(self.session.call(method, request, how)?.id)
    }

    /// Begins a call whose messages [`NativeClient::send`] sends.
    ///
    /// # Errors
    /// As [`NativeClient::start`].
    pub fn open(&mut self, method: u32, how: &Begin<'_>) -> Result<u64, Status> {
        self.session.open(method, how)
    }

    /// Sends a message of an open call, once the server has room for it. What comes meanwhile is
    /// kept for [`NativeClient::next_event`]. A call that has ended takes it without effect.
    ///
    /// # Errors
    /// When the message is larger than the server takes, or the connection has ended.
    pub fn send(&mut self, id: u64, message: &Bytes) -> Result<(), Status> {
        let mut again = false;
        while !self.session.send(id, message)? {
            self.receive(std::mem::replace(&mut again, true), None)?;
        }
        self.flush()
    }

    /// As [`NativeClient::send`], without waiting for the server to have room for it: returns
    /// whether it had any. What is sent waits for room on its way, as [`NativeClient::flush`] does.
    ///
    /// # Errors
    /// As [`NativeClient::send`].
    pub fn send_now(&mut self, id: u64, message: &Bytes) -> Result<bool, Status> {
        let has_room = self.session.send(id, message)?;
        self.flush()?;
        Ok(has_room)
    }

    /// Ends the messages of an open call.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn end(&mut self, id: u64) -> Result<(), Status> {
        self.session.end(id);
        self.flush()
    }

    /// Gives a call up: it ends with [`Code::Cancelled`], and the server learns of it.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn cancel(&mut self, id: u64) -> Result<(), Status> {
        self.session.cancel(id);
        self.flush()
    }

    /// One call: waits for its answer, for as long as `timeout` from when it first has to wait.
    /// What happens to other calls is kept.
    ///
    /// # Errors
    /// As the call ends, or the connection.
    pub fn call(
        &mut self,
        method: u32,
        request: &Bytes,
        timeout: Option<Duration>,
    ) -> Result<Bytes, Status> {
        self.call_with(method, request, &Begin { timeout, ..Begin::default() })
    }

    /// One call with metadata.
    ///
    /// # Errors
    /// As [`NativeClient::call`].
    pub fn call_with(
        &mut self,
        method: u32,
        request: &Bytes,
        how: &Begin<'_>,
    ) -> Result<Bytes, Status> {
        // A call doesn't overtake those begun before it.
        let is_first = self.session.outstanding() == 0 && self.session.out().is_empty();
        if is_first
            && self.session.broken().is_none()
            && let Some(result) = self.carrier.call_within(method, request, how)
        {
            return result;
        }
        let id = self.start_with(method, request, how)?;
        self.untimed = how.timeout.filter(|_| how.now.is_none()).map(|timeout| (id, timeout));
        let (mut answer, mut again) = (None, false);
        loop {
            while let Some(event) = self.session.next_event_of(id) {
                if let Some(result) = settle(event.what, &mut answer) {
                    return result;
                }
            }
            self.receive(std::mem::replace(&mut again, true), None)?;
        }
    }

    /// The next call that has ended; `None` when none is outstanding, or only such as are given up,
    /// whose ends the server hasn't sent within 5 s. Of streams that is their end: their messages
    /// are [`NativeClient::next_event`]'s.
    ///
    /// # Errors
    /// When the connection has ended; no call is outstanding then.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Status> {
        while let Some(Event { id, what }) = self.next_event()? {
            if let Some(result) = settle(what, &mut None) {
                return Ok(Some(Reply { id, result }));
            }
        }
        Ok(None)
    }

    /// The next thing that happens to a call; `None` as [`NativeClient::next_reply`] has it.
    ///
    /// # Errors
    /// When the connection has ended; no call is outstanding then.
    pub fn next_event(&mut self) -> Result<Option<Event>, Status> {
        self.flush_unless_over()?;
        let (mut again, mut until) = (false, None);
        loop {
            if let Some(event) = self.session.next_event() {
                return Ok(Some(event));
            }
            if self.session.outstanding() == 0 {
                return match self.session.broken() {
                    Some(status) => Err(status.clone()),
                    None => Ok(None),
                };
            }
            if !self.session.has_wanted() {
                let now = Instant::now();
                if *until.get_or_insert(now + GIVEN_UP) <= now {
                    return Ok(None);
                }
            }
            self.receive(std::mem::replace(&mut again, true), until)?;
        }
    }

    /// As [`NativeClient::next_event`], without waiting for it: `None` where nothing has come.
    /// What is to be sent may wait for room, as [`NativeClient::flush`] does.
    ///
    /// # Errors
    /// As [`NativeClient::next_event`].
    pub fn event_now(&mut self) -> Result<Option<Event>, Status> {
        if let Some(event) = self.session.next_event() {
            return Ok(Some(event));
        }
        self.flush()?;
        let now = Instant::now();
        self.read(Some(now))?;
        // A server that goes on sending puts no deadline off.
        self.session.expire(now);
        Ok(self.session.next_event())
    }

    /// What has ended before the connection did is still given out.
    fn flush_unless_over(&mut self) -> Result<(), Status> {
        match self.session.broken() {
            Some(_) => Ok(()),
            None => self.flush(),
        }
    }

    /// Sends all that has begun. While there is no room, answers are taken; what finds none until
    /// a call's deadline is sent by the next flush.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn flush(&mut self) -> Result<(), Status> {
        self.flush_until_due(false, None).map(drop)
    }

    /// As [`NativeClient::flush`]; returns whether no deadline, nor the time `until`, has come
    /// before all was sent. What is left of calls that are given up is waited for where their end
    /// `is_awaited`.
    fn flush_until_due(
        &mut self,
        is_awaited: bool,
        until: Option<Instant>,
    ) -> Result<bool, Status> {
        if let Some(status) = self.session.broken() {
            return Err(status.clone());
        }
        while !self.session.out().is_empty() {
            let (out, carrier) = (self.session.out(), &mut self.carrier);
            match self.sending.with_slices(out, |slices| carrier.send(slices)) {
                Ok(count) => {
                    self.sending.sent(out, count);
                    self.meter.has_written(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let deadline = self.deadline(until);
                    if !is_awaited && !self.session.has_wanted() {
                        return Ok(true);
                    }
                    match self.carrier.wait_for_room(deadline) {
                        Ok(true) => drop(self.read(None)?),
                        Ok(false) => {}
                        Err(error) => return Err(self.session.breaks(unavailable(error))),
                    }
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        self.session.expire(Instant::now());
                        return Ok(false);
                    }
                }
                // What the server has sent last says why.
                Err(error) => {
                    let until = Instant::now() + LAST_WORDS;
                    while self.session.broken().is_none()
                        && Instant::now() < until
                        && self.read(Some(until)).is_ok()
                    {}
                    let words = format!("the connection broke: {error}");
                    return Err(self.session.breaks(unavailable(words)));
                }
            }
        }
        Ok(true)
    }

    /// Sends what waits, and takes what has come, or waits for that until the first deadline, or
    /// the time `until`. Where it is waited `again` for the same, what comes meanwhile doesn't put
    /// that off.
    fn receive(&mut self, again: bool, until: Option<Instant>) -> Result<(), Status> {
        if !self.flush_until_due(true, until)? {
            return Ok(());
        }
        if let Some(status) = self.session.broken() {
            return Err(status.clone());
        }
        // An answer that is there needs no clock.
        if !again && self.read_now()? {
            return Ok(());
        }
        let deadline = self.deadline(until);
        let is_over = again && deadline.is_some_and(|deadline| deadline <= Instant::now());
        if is_over || !self.read(deadline)? && deadline.is_some() {
            self.session.expire(Instant::now());
        }
        Ok(())
    }

    /// The first deadline, or the time `until`. The time of the call under way begins now, if it
    /// hasn't.
    fn deadline(&mut self, until: Option<Instant>) -> Option<Instant> {
        if let Some((id, timeout)) = self.untimed.take()
            && let Some(deadline) = Instant::now().checked_add(timeout)
        {
            self.session.ends_by(id, deadline);
        }
        self.session.deadline().into_iter().chain(until).min()
    }

    /// Reads once, until a time, and takes what has come; returns whether anything has.
    fn read(&mut self, until: Option<Instant>) -> Result<bool, Status> {
        let most = self.most();
        let read = self.carrier.receive(&mut self.input[..most], until);
        self.take(read)
    }

    /// As [`NativeClient::read`], without waiting.
    fn read_now(&mut self) -> Result<bool, Status> {
        let most = self.most();
        let read = self.carrier.receive_now(&mut self.input[..most]);
        self.take(read)
    }

    /// How much is read at once.
    fn most(&self) -> usize {
        let all = self.input.len();
        // A greeting is no frame.
        if self.session.is_greeting() { all } else { self.reading.next(all) }
    }

    fn take(&mut self, read: io::Result<usize>) -> Result<bool, Status> {
        match read {
            Ok(0) => Err(self.session.closed()),
            Ok(count) => {
                self.meter.has_read(count);
                let came = self.input.get(..count).unwrap_or_default();
                if !self.session.is_greeting() {
                    self.reading.pass(came);
                }
                self.session.receive(came).map(|()| true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.session.breaks(unavailable(format!("cannot read: {error}")))),
        }
    }
}

/// The number of a method of one message for one message.
fn unary(session: &ClientSession, name: &str) -> Result<u32, Status> {
    let (number, method) = session.method(name)?;
    if method.is_unary() {
        return Ok(number);
    }
    let words = format!("the method {name} is one of streams, not of one message for another");
    Err(Status::new(Code::Unimplemented, words))
}

/// The result of a call of one message for another, once it has come; messages of a stream are
/// kept in `answer`, of which there has to be one.
fn settle(what: What, answer: &mut Option<Bytes>) -> Option<Result<Bytes, Status>> {
    match what {
        What::Head(_) => None,
        What::Message(message) => {
            *answer = Some(message);
            None
        }
        What::Answer(answer, _) => Some(Ok(answer)),
        What::Ended(Ended { status, .. }) if status.code == Code::Ok => {
            Some(Ok(answer.take().unwrap_or_default()))
        }
        What::Ended(Ended { status, .. }) => Some(Err(status)),
    }
}

impl fmt::Debug for NativeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeClient")
            .field("carrier", &self.carrier)
            .field("outstanding", &self.outstanding())
            .finish_non_exhaustive()
    }
}
