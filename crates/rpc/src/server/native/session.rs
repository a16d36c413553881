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

/// The longest that nothing may come of a frame that has begun to come.
const FRAME_TIME: Duration = Duration::from_secs(30);

/// Requests below this size are copied where a function waits: a part of what was read at once
/// would keep all of it.
const COPY_BYTES: usize = 16 << 10;

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
    /// Bytes of its request, which count as memory until it ends.
    bytes: usize,
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
    /// Until when more of a frame that hasn't come whole has to have come.
    frame_due: Option<Instant>,
    client: Option<ClientGreeting>,
    waiting: HashMap<u64, Waiting>,
    out: Outbox,
    taken: Taken,
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
            frame_due: None,
            client: None,
            waiting: HashMap::new(),
            out: Outbox::default(),
            taken: Taken::none(&shared.memory),
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
        [calls, self.greeting_due, self.frame_due].into_iter().flatten().min()
    }

    /// Takes what has come.
    pub(in crate::server) fn receive(&mut self, now: Instant) {
        if let Err(fault) = self.take(now) {
            self.end(Code::Internal, &fault.to_string());
        }
        let is_partial = !self.is_over && !self.is_paused && self.decoder.kept_bytes() > 0;
        self.frame_due = is_partial.then(|| now + FRAME_TIME);
        self.count_memory();
    }

    /// The client sends no more.
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
        if self.frame_due.is_some_and(|due| due <= now) {
            let words = format!("nothing more of a frame came for {} s", FRAME_TIME.as_secs());
            return self.end(Code::DeadlineExceeded, &words);
        }
        let is_due =
            |(id, call): (&u64, &Waiting)| call.due().is_some_and(|due| due <= now).then_some(*id);
        let due: Vec<_> = self.waiting.iter().filter_map(is_due).collect();
        for id in due {
            let Some(call) = self.waiting.get(&id) else { continue };
            if call.deadline.is_some_and(|deadline| deadline <= now) {
                self.waiting.remove(&id);
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
            let ids: Vec<_> = self.waiting.drain().map(|(id, _)| id).collect();
            ids.into_iter().for_each(|id| self.answer(id, Err(stops())));
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

    /// Says why the connection ends, once.
    fn end(&mut self, code: Code, why: &str) {
        if !self.is_over {
            if self.client.is_none() {
                // A client of another version reads this one's there.
                self.greet();
            }
            (self.greeting_due, self.frame_due) = (None, None);
            self.waiting.clear();
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
                let exchanged = Exchanged::default();
                let request = match request.len() < COPY_BYTES {
                    true => Bytes::copy_from_slice(&request),
                    false => request,
                };
                let call = Waiting {
                    function: run(Call::new(exchanged.clone(), info)),
                    exchanged,
                    bytes: request.len(),
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
        if let Step::Ended(result) = step(entry.get_mut(), is_stopping, now) {
            entry.remove();
            self.answer(id, result);
        }
    }

    fn answer(&mut self, id: u64, result: Result<Bytes, Status>) {
        let most = self.client.as_ref().map_or(0, |client| client.max_message as usize);
        let result = result.and_then(|answer| match answer.len() > most {
            true => {
                let words =
                    format!("an answer of {} bytes is over the client's {most}", answer.len());
                Err(Status::new(Code::ResourceExhausted, words))
            }
            false => Ok(answer),
        });
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

    /// Counts what waits, here and in the outbox, with what all connections may take.
    pub(in crate::server) fn count_memory(&mut self) {
        let kept = |call: &Waiting| call.exchanged.with(|exchange| exchange.kept_bytes);
        let requests = self.waiting.values().map(|call| call.bytes + kept(call)).sum::<usize>();
        let bytes = self.decoder.kept_bytes() + self.out.bytes() + requests;
        if let Err(status) = self.taken.set(bytes) {
            // What has been answered is still sent: of that the client has to know.
            self.end(status.code, &status.message);
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
