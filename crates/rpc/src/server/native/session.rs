//! One connection of own frames, without its socket and clock: bytes go in, and come out of
//! [`Session::out`]. Functions that don't wait are called as their frames come; those that wait
//! ([`Waiting`]) are resumed by what comes for them, by [`Session::expire`] and by
//! [`Session::stage_is`], and so answers come out of order.

mod answers;
mod within;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::super::memory::Taken;
use super::super::shared::{HEALTH, Shared, Stage};
use super::super::work::here;
use super::waiting::{Step, Waiting, Wake};
use super::when::When;
use crate::model::call::{Call, Info, Shared as Exchanged};
use crate::model::function::{Function, Run};
use crate::protocol::metadata::Metadata;
use crate::protocol::native::frame::{Header, Kind, MOST_TEXT_BYTES, OPEN, PROTOBUF};
use crate::protocol::native::greeting::{ClientGreeting, Method, ServerGreeting};
use crate::protocol::native::{Decoder, Fault, Item, Outbox, fields};
use crate::protocol::status::{Code, Status};
use base::many_are;

/// What memory is counted in.
const GRAIN_BYTES: usize = 1 << 10;

/// What may wait to be sent before the next calls are looked at.
const PAUSE_BYTES: usize = 256 << 10;

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
    /// How many of them wait to send a message.
    senders: usize,
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
            senders: 0,
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

    /// Appends bytes that have come.
    pub(in crate::server) fn append(&mut self, bytes: &[u8]) {
        self.decoder.append(bytes);
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
        let may_send = || self.waiting.values().any(Waiting::may_go_on_sending);
        !self.is_over && (self.is_paused || self.senders > 0 && may_send())
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
    pub(in crate::server) fn receive(&mut self, now: &When) {
        if self.senders > 0 {
            let ready = |(id, call): (&u64, &Waiting)| call.may_go_on_sending().then_some(*id);
            let ready: Vec<_> = self.waiting.iter().filter_map(ready).collect();
            ready.into_iter().for_each(|id| self.resume(id, now.get()));
        }
        if let Err(fault) = self.take(now) {
            self.end(Code::Internal, &fault.to_string());
        }
        self.count_memory();
        let is_partial = self.decoder.kept_bytes() > 0 && !self.is_paused && !self.is_over;
        self.stalled = is_partial.then(|| self.stalls_from(now.get()));
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
                let words = "the deadline of the call has passed";
                self.fail(id, Status::new(Code::DeadlineExceeded, words));
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
    fn remove(&mut self, id: u64) -> Option<Waiting> {
        let call = self.waiting.remove(&id)?;
        self.held -= call.held;
        self.senders -= usize::from(matches!(call.wake, Wake::Room(_)));
        Some(call)
    }

    /// Puts a call that waits back, with what it takes now.
    fn put(&mut self, id: u64, mut call: Waiting) {
        call.held = call.kept_bytes();
        self.held += call.held;
        self.senders += usize::from(matches!(call.wake, Wake::Room(_)));
        self.waiting.insert(id, call);
    }

    /// Ends a call that waits.
    fn fail(&mut self, id: u64, status: Status) {
        if self.remove(id).is_some() {
            self.answer(id, Err(status));
        }
    }

    /// Ends all calls that wait.
    fn end_calls(&mut self, status: &Status) {
        (self.held, self.senders) = (0, 0);
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
            let header = Header { method: code as u32, ..Header::of(Kind::Goodbye, 0) };
            self.push(header, &[], &cut(why));
            self.is_over = true;
        }
    }

    fn take(&mut self, now: &When) -> Result<(), Fault> {
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
                Item::Frame(header, payload) => self.frame(&header, payload, now)?,
                Item::TooLarge(header) if header.kind == Kind::Call => {
                    self.refuse(header.id, self.too_large(header.length as usize));
                }
                Item::TooLarge(header) if header.kind == Kind::Message => {
                    self.fail(header.id, self.too_large(header.length as usize));
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
            methods: self.shared.methods.list(),
        };
        greeting.encode(self.out.raw());
    }

    fn refuse(&mut self, id: u64, status: Status) {
        self.shared.counters.calls.fetch_add(1, Relaxed);
        self.answer(id, Err(status));
    }

    fn too_large(&self, bytes: usize) -> Status {
        let words = format!(
            "a message of {bytes} bytes is over the limit, {}: start the server with a larger \
             --max-message",
            self.shared.settings.max_message_bytes
        );
        Status::new(Code::ResourceExhausted, words)
    }

    fn frame(&mut self, header: &Header, payload: Bytes, now: &When) -> Result<(), Fault> {
        let id = header.id;
        match header.kind {
            Kind::Call => return self.call(header, payload, now),
            Kind::Cancel => {
                self.fail(id, Status::new(Code::Cancelled, "the client has given the call up"));
            }
            Kind::Message => return self.message(id, &payload, now),
            Kind::End => {
                let Some(call) = self.waiting.get_mut(&id) else { return Ok(()) };
                if !call.is_open() {
                    return Err(Fault::Ended(id));
                }
                call.end();
                self.resume_if_ready(id, now);
            }
            Kind::Credit => {
                let Some(call) = self.waiting.get_mut(&id) else { return Ok(()) };
                if !call.give(header.method) {
                    return Err(Fault::Credit(id));
                }
                self.resume_if_ready(id, now);
            }
            Kind::Answer | Kind::Failure | Kind::Goodbye | Kind::Head => {
                return Err(Fault::Side(header.kind.name()));
            }
        }
        Ok(())
    }

    /// A message of an open call. Those of a call that has ended are passed over.
    fn message(&mut self, id: u64, payload: &Bytes, now: &When) -> Result<(), Fault> {
        let Some(mut call) = self.remove(id) else { return Ok(()) };
        if !call.is_open() {
            self.put(id, call);
            return Err(Fault::Ended(id));
        }
        self.shared.counters.received.fetch_add(1, Relaxed);
        // A part of what was read at once would keep all of that as long as the call waits.
        let had_credit = call.push(Bytes::copy_from_slice(payload));
        self.put(id, call);
        if !had_credit {
            return Err(Fault::Credit(id));
        }
        if let Err(status) = self.taken.set(self.counted()) {
            self.fail(id, status);
        }
        self.resume_if_ready(id, now);
        Ok(())
    }

    fn resume_if_ready(&mut self, id: u64, now: &When) {
        let has_room = self.has_room();
        if self.waiting.get(&id).is_some_and(|call| call.is_ready(has_room)) {
            self.resume(id, now.get());
        }
    }

    /// Whether further messages of streams may wait to be sent.
    fn has_room(&self) -> bool {
        self.out.bytes() < PAUSE_BYTES
    }

    /// Begins a call, and ends it too where its function doesn't wait.
    fn call(&mut self, header: &Header, mut request: Bytes, now: &When) -> Result<(), Fault> {
        let id = header.id;
        if self.waiting.contains_key(&id) {
            return Err(Fault::Id(id));
        }
        let metadata = fields::take(header, &mut request)?;
        let (method, function) = match self.admit(header, &metadata, request.len()) {
            Ok(admitted) => admitted,
            Err(status) => {
                self.refuse(id, status);
                return Ok(());
            }
        };
        let (shared, is_open) = (&self.shared, header.has(OPEN));
        shared.counters.calls.fetch_add(1, Relaxed);
        if !is_open {
            shared.counters.received.fetch_add(1, Relaxed);
        }
        let timeout = Duration::from_micros(header.timeout_us.into());
        let timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        let info = self.info(metadata, timeout);
        match &function.run {
            Run::AtOnce(_) if is_open => {
                let words = "the function takes one message: send it with the call";
                self.answer(id, Err(Status::new(Code::Unimplemented, words)));
            }
            Run::AtOnce(run) => {
                let result = run(&info, request);
                self.answer(id, result);
            }
            Run::InSteps(run) => {
                // As above.
                let request = (!is_open).then(|| Bytes::copy_from_slice(&request));
                let exchanged = Exchanged::default();
                let kept = info.metadata.kept_bytes();
                exchanged.keep(kept);
                let function = run(Call::new(exchanged.clone(), info));
                let deadline = timeout.and_then(|timeout| now.get().checked_add(timeout));
                let streams = method.server_streams;
                let call = Waiting::new(function, exchanged, request, streams, deadline);
                self.put(id, call);
                self.resume(id, now.get());
            }
        }
        Ok(())
    }

    /// What a function knows of its call.
    fn info(&self, metadata: Metadata, timeout: Option<Duration>) -> Info {
        let (pid, carrier) = (self.shared.pid, self.carrier);
        let calls = self.shared.counters.calls.load(Relaxed);
        Info { pid, here, calls, carrier, metadata, timeout, is_stopping: false }
    }

    /// The method and function of a call that may be made.
    fn admit(
        &self,
        header: &Header,
        metadata: &Metadata,
        message_bytes: usize,
    ) -> Result<&(Method, Arc<Function>), Status> {
        if self.stage != Stage::Serving {
            return Err(stops());
        }
        let (shared, settings) = (&self.shared, &self.shared.settings);
        if message_bytes > settings.max_message_bytes {
            return Err(self.too_large(message_bytes));
        }
        check_metadata(metadata, settings.max_metadata_bytes as usize)?;
        let Some(found) = shared.methods.get(header.method) else {
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
        if let Some(tokens) = &settings.tokens {
            let token = self.client.as_ref().map_or(&b""[..], |client| &client.token);
            if !found.0.name.starts_with(HEALTH) && !tokens.has(token) {
                let words = "a token is needed (-H 'authorization: Bearer TOKEN'), and a right one";
                return Err(Status::new(Code::Unauthenticated, words));
            }
        }
        let most = settings.max_streams;
        if self.waiting.len() >= most as usize {
            let words = format!(
                "{} outstanding on this connection: wait for answers",
                many_are(most, "call")
            );
            return Err(Status::new(Code::ResourceExhausted, words));
        }
        Ok(found)
    }

    /// Goes on with the function of a waiting call, until it waits or ends.
    fn resume(&mut self, id: u64, now: Instant) {
        let is_stopping = self.stage != Stage::Serving;
        let Some(mut call) = self.remove(id) else { return };
        let result = loop {
            let has_room = self.has_room();
            let pushed = match call.resume(is_stopping, has_room, now) {
                Step::Head => self.push_head(id, &call),
                Step::Message(message) => self.push_message(id, &call, &message),
                Step::Ended(result) => break result,
                Step::Waits => {
                    if let Some(owed) = call.take_owed() {
                        let header = Header { method: owed, ..Header::of(Kind::Credit, id) };
                        self.out.push(&header, &Bytes::new());
                    }
                    self.put(id, call);
                    return match self.taken.set(self.counted()) {
                        Ok(()) => {}
                        Err(status) => self.fail(id, status),
                    };
                }
            };
            if let Err(status) = pushed {
                break Err(status);
            }
        };
        if call.ends_with_head()
            && let Err(status) = self.push_head(id, &call)
        {
            // Why the call itself has failed says more.
            return self.answer(id, result.and(Err(status)));
        }
        let trailers = call.exchanged.with(|exchange| std::mem::take(&mut exchange.trailers));
        self.answer_with(id, result, &trailers);
    }

    /// What counts as memory: what isn't whole, isn't sent, or is held by calls that wait; in whole
    /// [`GRAIN_BYTES`], so that a small call changes nothing that all connections share.
    fn counted(&self) -> usize {
        let bytes = self.decoder.kept_bytes() + self.out.bytes() + self.held;
        bytes - bytes % GRAIN_BYTES
    }

    /// Counts it with what all connections may take. Without room the connection ends; answers are
    /// sent before, since their calls were carried out: large ones have their room already.
    pub(in crate::server) fn count_memory(&mut self) {
        if let Err(status) = self.taken.set(self.counted()) {
            self.end(status.code, &status.message);
            // Small answers at most are beyond it, until they are sent.
            let _ = self.taken.set(self.counted());
        }
    }
}

/// What RFC 9113 (10.5.1) adds to each name and value, so that the limit is that of gRPC.
const FIELD_BYTES: usize = 32;

fn check_metadata(metadata: &Metadata, most: usize) -> Result<(), Status> {
    let bytes: usize =
        metadata.iter().map(|(name, value)| name.len() + value.len() + FIELD_BYTES).sum();
    if bytes > most {
        let words = format!(
            "metadata of {bytes} bytes are over the limit, {most}: send less, or start the server \
             with a larger --max-metadata"
        );
        return Err(Status::new(Code::ResourceExhausted, words));
    }
    Ok(())
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
