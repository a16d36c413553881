//! One connection of own frames, without its socket and clock: bytes go in, and come out of
//! [`Session::out`]. Functions that don't wait are called as their frames come; those that wait are
//! resumed by [`Session::expire`] and [`Session::stage_is`], and so answers come out of order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::super::admit::{HEALTH, current_core};
use super::super::memory::Taken;
use super::super::shared::{Shared, Stage};
use crate::model::call::{Call, Got, Info, Shared as Exchanged, Want};
use crate::model::function::{Function, Outcome, Run};
use crate::protocol::native::frame::{Header, Kind, MOST_TEXT_BYTES, PROTOBUF};
use crate::protocol::native::greeting::{ClientGreeting, ServerGreeting};
use crate::protocol::native::{Decoder, Fault, Item, Outbox};
use crate::protocol::status::{Code, Status};

/// The longest that a function sleeps at once: clocks go further.
const MOST_SLEEP: Duration = Duration::from_secs(24 * 3_600);

/// What may wait to be sent before the next calls are looked at.
const PAUSE_BYTES: usize = 256 << 10;

/// An answer from here on needs memory, or its call ends without it; smaller ones are always sent.
const LARGE_BYTES: usize = 4 << 10;

/// When a function goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// At once: it hasn't begun.
    Begin,
    At(Instant),
    /// Once the server begins to stop.
    Stop,
}

/// A call whose function waits.
struct Waiting {
    function: Outcome,
    exchanged: Exchanged,
    /// Bytes of its request.
    request_bytes: usize,
    /// What it counts as memory until it ends: its request, and what its function keeps.
    held: usize,
    /// Its request, until the function has taken it.
    request: Option<Bytes>,
    /// Its answer, once the function has sent it.
    answer: Option<Bytes>,
    wake: Wake,
    deadline: Option<Instant>,
}

impl Waiting {
    /// When there is something to do for it.
    fn due(&self) -> Option<Instant> {
        let wake = match self.wake {
            Wake::At(at) => Some(at),
            Wake::Begin | Wake::Stop => None,
        };
        [wake, self.deadline].into_iter().flatten().min()
    }
}

/// What a waiting function came to.
enum Step {
    Waits,
    Ended(Result<Bytes, Status>),
}

/// One connection.
pub(in crate::server) struct Session {
    shared: Arc<Shared>,
    carrier: &'static str,
    decoder: Decoder,
    /// Until when the greeting has to have come.
    greeting_due: Option<Instant>,
    client: Option<ClientGreeting>,
    waiting: HashMap<u64, Waiting>,
    /// What the calls that wait count as memory.
    held: usize,
    out: Outbox,
    taken: Taken,
    /// A frame isn't whole: when that is looked at next, and how many had found too little memory.
    stalled: Option<(Instant, u64)>,
    stage: Stage,
    /// What has come is looked at further once what waits has been sent.
    is_paused: bool,
    is_over: bool,
}

impl Session {
    /// A connection whose client has sent nothing yet.
    pub(in crate::server) fn new(shared: Arc<Shared>, carrier: &'static str, now: Instant) -> Self {
        Self {
            carrier,
            decoder: Decoder::new(shared.settings.max_message_bytes),
            greeting_due: Some(now + shared.settings.handshake_timeout),
            client: None,
            waiting: HashMap::new(),
            held: 0,
            out: Outbox::default(),
            taken: Taken::none(&shared.memory),
            stalled: None,
            stage: Stage::Serving,
            is_paused: false,
            is_over: false,
            shared,
        }
    }

    /// Where the bytes that come are appended; [`Session::receive`] then takes them.
    pub(in crate::server) fn space(&mut self) -> &mut BytesMut {
        self.decoder.space()
    }

    /// What waits to be sent.
    pub(in crate::server) fn out(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// Whether nothing more is to be received: what waits to be sent is the last.
    pub(in crate::server) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether [`Session::receive`] is to be called once what waits has been sent.
    pub(in crate::server) fn is_paused(&self) -> bool {
        self.is_paused && !self.is_over
    }

    /// Calls whose functions wait.
    pub(in crate::server) fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// When [`Session::expire`] has something to do.
    pub(in crate::server) fn due(&self) -> Option<Instant> {
        let calls = self.waiting.values().filter_map(Waiting::due).min();
        let stalled = self.stalled.map(|(due, _)| due);
        [calls, self.greeting_due, stalled].into_iter().flatten().min()
    }

    /// Takes what has come.
    pub(in crate::server) fn receive(&mut self, now: Instant) {
        if let Err(fault) = self.take(now) {
            self.end(Code::Internal, &fault.to_string());
        }
        self.count_memory();
        let is_partial = self.decoder.kept_bytes() > 0 && !self.is_paused && !self.is_over;
        self.stalled = is_partial.then(|| self.stalls_from(now));
    }

    /// When a frame that isn't whole is looked at.
    fn stalls_from(&self, now: Instant) -> (Instant, u64) {
        (now + self.shared.settings.take_timeout, self.shared.memory.refused())
    }

    /// The client sends no more: calls that wait end without an answer.
    pub(in crate::server) fn closed(&mut self) {
        match self.decoder.finish() {
            Ok(()) => self.is_over = true,
            Err(fault) => self.end(Code::Internal, &fault.to_string()),
        }
    }

    /// Goes on with what is due.
    pub(in crate::server) fn expire(&mut self, now: Instant) {
        if self.greeting_due.is_some_and(|due| due <= now) {
            return self.end(Code::DeadlineExceeded, "no greeting came (--handshake-timeout)");
        }
        if let Some((due, refused)) = self.stalled
            && due <= now
        {
            if self.shared.memory.refused() != refused {
                return self.give_way();
            }
            self.stalled = Some(self.stalls_from(now));
        }
        let is_due =
            |(id, call): (&u64, &Waiting)| call.due().is_some_and(|due| due <= now).then_some(*id);
        let due: Vec<_> = self.waiting.iter().filter_map(is_due).collect();
        for id in due {
            let Some(call) = self.waiting.get(&id) else { continue };
            if call.deadline.is_some_and(|deadline| deadline <= now) {
                self.remove(id);
                let words = "the deadline of the call has passed";
                self.answer(id, Err(Status::new(Code::DeadlineExceeded, words)));
            } else {
                self.resume(id, now);
            }
        }
        self.end_if_drained();
        self.count_memory();
    }

    /// The server is at this stage.
    pub(in crate::server) fn stage_is(&mut self, stage: Stage, now: Instant) {
        self.stage = stage;
        let waits = |(id, call): (&u64, &Waiting)| (call.wake == Wake::Stop).then_some(*id);
        let stopped: Vec<_> = self.waiting.iter().filter_map(waits).collect();
        stopped.into_iter().for_each(|id| self.resume(id, now));
        if stage == Stage::Forced {
            self.end_calls(&stops());
        }
        self.end_if_drained();
        self.count_memory();
    }

    fn end_if_drained(&mut self) {
        if self.stage != Stage::Serving && self.waiting.is_empty() {
            let Status { code, message, .. } = stops();
            self.end(code, &message);
        }
    }

    /// Ends a connection whose frame has not gone on while others found too little memory.
    fn give_way(&mut self) {
        let words = format!(
            "a part of a frame has waited {} s for the rest while others found no memory: send \
             frames whole",
            self.shared.settings.take_timeout.as_secs_f64()
        );
        self.end(Code::ResourceExhausted, &words);
        self.count_memory();
    }

    /// Takes a call out.
    fn remove(&mut self, id: u64) {
        if let Some(call) = self.waiting.remove(&id) {
            self.held -= call.held;
        }
    }

    /// Ends all calls that wait.
    fn end_calls(&mut self, status: &Status) {
        self.held = 0;
        let ids: Vec<_> = self.waiting.drain().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.answer(id, Err(status.clone())));
    }

    /// Says why the connection ends, once; before it, that calls have begun.
    fn end(&mut self, code: Code, why: &str) {
        if !self.is_over {
            if self.client.is_none() {
                // A client of another version reads this one's there.
                self.greet();
            }
            self.greeting_due = None;
            self.stalled = None;
            let words = "the connection ends while the call is under way: how far it has come is \
                         unknown";
            self.end_calls(&Status::new(Code::Unknown, words));
            // What it holds of further calls is not carried out.
            self.decoder = Decoder::new(self.shared.settings.max_message_bytes);
            self.push(Kind::Goodbye, 0, code as u32, &cut(why));
            self.is_over = true;
        }
    }

    fn take(&mut self, now: Instant) -> Result<(), Fault> {
        if self.client.is_none() && !self.is_over {
            let Some(client) = ClientGreeting::decode(self.decoder.buffer())? else {
                return Ok(());
            };
            self.client = Some(client);
            self.greeting_due = None;
            self.greet();
        }
        self.is_paused = false;
        while !self.is_over {
            if self.out.bytes() >= PAUSE_BYTES {
                self.is_paused = true;
                break;
            }
            let Some(item) = self.decoder.next_item()? else { break };
            match item {
                Item::Frame(header, payload) => self.call(&header, payload, now)?,
                Item::TooLarge(header) if header.kind == Kind::Call => {
                    let words = format!(
                        "a message of {} bytes is over the limit, {}: start the server with a \
                         larger --max-message",
                        header.length, self.shared.settings.max_message_bytes
                    );
                    self.refuse(header.id, Status::new(Code::ResourceExhausted, words));
                }
                Item::TooLarge(header) => return Err(Fault::Side(header.kind.name())),
            }
        }
        Ok(())
    }

    fn greet(&mut self) {
        let settings = &self.shared.settings;
        let greeting = ServerGreeting {
            max_message: u32::try_from(settings.max_message_bytes).unwrap_or(u32::MAX),
            max_calls: settings.max_streams,
            methods: self.shared.methods.names(),
        };
        greeting.encode(self.out.raw());
    }

    fn refuse(&mut self, id: u64, status: Status) {
        self.shared.counters.calls.fetch_add(1, Relaxed);
        self.answer(id, Err(status));
    }

    /// Begins a call, and ends it too where its function doesn't wait.
    fn call(&mut self, header: &Header, request: Bytes, now: Instant) -> Result<(), Fault> {
        if header.kind != Kind::Call {
            return Err(Fault::Side(header.kind.name()));
        }
        if self.waiting.contains_key(&header.id) {
            return Err(Fault::Id(header.id));
        }
        let function = match self.admit(header) {
            Ok(function) => function,
            Err(status) => {
                self.refuse(header.id, status);
                return Ok(());
            }
        };
        let counters = &self.shared.counters;
        counters.calls.fetch_add(1, Relaxed);
        counters.received.fetch_add(1, Relaxed);
        let timeout = Duration::from_micros(header.timeout_us.into());
        let timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        let info = Info {
            pid: self.shared.pid,
            core: current_core,
            carrier: self.carrier,
            metadata: Default::default(),
            timeout,
            is_stopping: false,
        };
        match &function.run {
            Run::AtOnce(run) => {
                let result = run(&info, request);
                self.answer(header.id, result);
            }
            Run::InSteps(run) => {
                // A part of what was read at once would keep all of that as long as the call waits.
                let request = Bytes::copy_from_slice(&request);
                let exchanged = Exchanged::default();
                let call = Waiting {
                    function: run(Call::new(exchanged.clone(), info)),
                    exchanged,
                    request_bytes: request.len(),
                    held: 0,
                    request: Some(request),
                    answer: None,
                    wake: Wake::Begin,
                    deadline: timeout.and_then(|timeout| now.checked_add(timeout)),
                };
                self.waiting.insert(header.id, call);
                self.resume(header.id, now);
            }
        }
        Ok(())
    }

    /// The function of a call that may be made.
    fn admit(&self, header: &Header) -> Result<Arc<Function>, Status> {
        if self.stage != Stage::Serving {
            return Err(stops());
        }
        let Some((name, function)) = self.shared.methods.get(header.method) else {
            let words = format!(
                "no method has the number {}: the server's greeting lists those that there are",
                header.method
            );
            return Err(Status::new(Code::Unimplemented, words));
        };
        if header.codec != PROTOBUF {
            let words =
                format!("the codec {} is not known here, but 0 (protobuf) is", header.codec);
            return Err(Status::new(Code::Unimplemented, words));
        }
        if let Some(tokens) = &self.shared.settings.tokens {
            let token = self.client.as_ref().map_or(&b""[..], |client| &client.token);
            if !name.starts_with(HEALTH) && !tokens.has(token) {
                let words = "a token is needed (-H 'authorization: Bearer TOKEN'), and a right one";
                return Err(Status::new(Code::Unauthenticated, words));
            }
        }
        let most = self.shared.settings.max_streams;
        if self.waiting.len() >= most as usize {
            let words =
                format!("{most} calls of this connection are outstanding: wait for answers");
            return Err(Status::new(Code::ResourceExhausted, words));
        }
        Ok(Arc::clone(function))
    }

    /// Polls the function of a waiting call.
    fn resume(&mut self, id: u64, now: Instant) {
        let is_stopping = self.stage != Stage::Serving;
        let Entry::Occupied(mut entry) = self.waiting.entry(id) else { return };
        let call = entry.get_mut();
        let stepped = step(call, is_stopping, now);
        let kept = call.exchanged.with(|exchange| exchange.kept_bytes) + call.request_bytes;
        self.held = self.held - call.held + kept;
        call.held = kept;
        let result = match stepped {
            Step::Ended(result) => result,
            Step::Waits => match self.taken.set(self.counted()) {
                Ok(()) => return,
                Err(status) => Err(status),
            },
        };
        self.remove(id);
        self.answer(id, result);
    }

    /// The answer of a call, if the client and the memory take it.
    fn room_for(&mut self, answer: Bytes) -> Result<Bytes, Status> {
        let (length, most) = (answer.len(), self.client.as_ref().map_or(0, |one| one.max_message));
        let why = if length > most as usize {
            format!("is over the client's {most}")
        } else if length >= LARGE_BYTES && self.taken.set(self.counted() + length).is_err() {
            "finds no memory (the server's --max-memory)".to_owned()
        } else {
            return Ok(answer);
        };
        let words = format!("the call was carried out, but its answer of {length} bytes {why}");
        Err(Status::new(Code::ResourceExhausted, words))
    }

    fn answer(&mut self, id: u64, result: Result<Bytes, Status>) {
        let result = result.and_then(|answer| self.room_for(answer));
        match result {
            Ok(answer) => {
                self.shared.counters.sent.fetch_add(1, Relaxed);
                self.push(Kind::Answer, id, 0, &answer);
            }
            Err(status) => {
                self.shared.counters.ended(status.code);
                self.push(Kind::Failure, id, status.code as u32, &cut(&status.message));
            }
        }
    }

    fn push(&mut self, kind: Kind, id: u64, method: u32, payload: &Bytes) {
        // A message is checked against a limit of 32 bits, a text is cut.
        let length = payload.len() as u32;
        let header = Header { length, kind, codec: PROTOBUF, id, method, timeout_us: 0 };
        self.out.push(&header, payload);
    }

    /// What counts as memory: what isn't whole, isn't sent, or is held by calls that wait.
    fn counted(&self) -> usize {
        self.decoder.kept_bytes() + self.out.bytes() + self.held
    }

    /// Counts it with what all connections may take. Without room the connection ends; answers are
    /// sent before, since their calls were carried out.
    pub(in crate::server) fn count_memory(&mut self) {
        if let Err(status) = self.taken.set(self.counted()) {
            self.end(status.code, &status.message);
            // Small answers at most are beyond it, until they are sent.
            let _ = self.taken.set(self.counted());
        }
    }
}

/// Does what a function wants until it waits or ends.
fn step(call: &mut Waiting, is_stopping: bool, now: Instant) -> Step {
    if call.wake != Wake::Begin {
        call.exchanged.with(|exchange| exchange.got = Some(Got::Done));
    }
    loop {
        // It waits for nothing but what it asks for.
        match call.function.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {
                let words = "the function has sent no answer";
                let answer = call.answer.take();
                return Step::Ended(answer.ok_or_else(|| Status::new(Code::Internal, words)));
            }
            Poll::Ready(Err(status)) => return Step::Ended(Err(status)),
            Poll::Pending => {}
        }
        let got = match call.exchanged.with(|exchange| exchange.want.take()) {
            Some(Want::Receive) => match call.request.take() {
                Some(request) => Got::Message(request, false),
                None => Got::End,
            },
            Some(Want::SendHeaders) => Got::Done,
            Some(Want::Send(message, _)) if call.answer.is_none() => {
                call.answer = Some(message);
                Got::Done
            }
            Some(Want::Send(..)) => {
                let words = "several answers to a call over own frames, which carry one";
                return Step::Ended(Err(Status::new(Code::Unimplemented, words)));
            }
            Some(Want::Sleep(time)) => {
                call.wake = Wake::At(now + time.min(MOST_SLEEP));
                return Step::Waits;
            }
            Some(Want::Stop) if is_stopping => Got::Done,
            Some(Want::Stop) => {
                call.wake = Wake::Stop;
                return Step::Waits;
            }
            None => {
                let words = "a function waits for nothing";
                return Step::Ended(Err(Status::new(Code::Internal, words)));
            }
        };
        call.exchanged.with(|exchange| exchange.got = Some(got));
    }
}

fn stops() -> Status {
    let words = "the server stops: call another one, or this one once it is back";
    Status::new(Code::Unavailable, words)
}

fn cut(text: &str) -> Bytes {
    Bytes::copy_from_slice(&text.as_bytes()[..text.floor_char_boundary(MOST_TEXT_BYTES)])
}

#[cfg(test)]
mod tests;
