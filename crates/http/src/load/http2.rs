//! The client side of one HTTP/2 connection under load (RFC 9113), by h2: every request is a stream
//! of its own, so that answers come in any order. h2 reads and writes two buffers in place of a
//! socket, and is called whenever bytes have come or a request is due; it needs no runtime. It
//! allocates for each request, where HTTP/1.1 does not.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::load::kv::Keys;
use ::load::tls::Spoken;
use ::load::{Dialect, Events, Op, Tag};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http_types::response::Parts as ResponseHead;
use wire::{Bytes, Input, Ns, Output, ProtocolError};

use crate::protocol::{Head, MAX_HEAD_BYTES};

use super::answer::{Answer, too_large};
use super::limits::MAX_UNREAD_BYTES;
use super::pipe::Pipe;
use super::prototype::Prototype;
use super::request::Request;
use super::requests::{LONGEST_KEY_BYTES, Requests};

/// What a server may send of one answer, and of all of a connection, before more is asked for. An
/// answer is checked as it comes, so that this bounds what a read brings, not what is kept.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// How long the head of a frame is.
const FRAME_HEAD_BYTES: usize = 9;

/// The type of the frame with which a server begins (SETTINGS).
const SETTINGS: u8 = 4;

/// How far a request is.
#[derive(Default)]
enum State {
    /// There is none.
    #[default]
    Free,
    /// It waits until the connection is made, or takes another stream.
    Waiting,
    /// Its answer has not begun.
    Asked(ResponseFuture),
    /// The body is coming.
    Answered(RecvStream),
    /// The server takes no more requests on this connection and has not looked at this one.
    Refused,
    /// The connection has ended before the answer.
    Cut,
}

/// A request under way, by its tag.
#[derive(Default)]
struct Exchange {
    state: State,
    answer: Answer,
    operation: usize,
    key: u64,
}

/// What has come of one more look at an exchange.
enum Step {
    /// Something, and there may be more.
    Moved,
    /// Nothing: more has to come.
    Waits,
    /// The answer is whole, or given up on.
    Done { is_right: bool },
}

struct Link {
    connection: Connection<Pipe, Bytes>,
    sender: SendRequest<Bytes>,
}

/// The client side of one connection.
pub(super) struct Http2 {
    requests: Arc<Requests>,
    prototypes: Arc<[Prototype]>,
    pipe: Pipe,
    /// None before the connection is made, and after it has ended.
    link: Option<Link>,
    /// Whether the server has begun to speak HTTP/2.
    is_greeted: bool,
    exchanges: Vec<Exchange>,
    waiting: VecDeque<Tag>,
    /// The head of an answer, as lines.
    lines: Vec<u8>,
}

impl Http2 {
    pub(super) fn new(requests: &Arc<Requests>, prototypes: &Arc<[Prototype]>) -> Self {
        Self {
            requests: Arc::clone(requests),
            prototypes: Arc::clone(prototypes),
            pipe: Pipe::default(),
            link: None,
            is_greeted: false,
            exchanges: Vec::new(),
            waiting: VecDeque::new(),
            lines: Vec::new(),
        }
    }

    /// Says the client's preface and settings.
    fn begin(&mut self) -> Result<(), ProtocolError> {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(MAX_HEAD_BYTES as u32);
        let handshake = pin!(builder.handshake::<Pipe, Bytes>(self.pipe.clone()));
        match handshake.poll(&mut context()) {
            Poll::Ready(Ok((sender, connection))) => {
                self.link = Some(Link { connection, sender });
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(broken(&error)),
            Poll::Pending => Err(ProtocolError::new("HTTP/2: the preface could not be written")),
        }
    }

    /// Goes on as far as the bytes that have come allow.
    fn advance(&mut self, events: &mut Events) -> Result<(), ProtocolError> {
        loop {
            let Some(link) = &mut self.link else { return Ok(()) };
            let polled = Pin::new(&mut link.connection).poll(&mut context());
            let mut has_moved = self.ask();
            for tag in 0..self.exchanges.len() {
                has_moved |= self.look(tag, events);
            }
            match polled {
                // The server has said that it takes no more, and has answered all that it took.
                Poll::Ready(Ok(())) => {
                    self.link = None;
                    events.close = true;
                }
                Poll::Ready(Err(error)) => {
                    self.link = None;
                    return Err(broken(&error));
                }
                Poll::Pending if !has_moved => return Ok(()),
                Poll::Pending => {}
            }
        }
    }

    /// Begins the streams of waiting requests, as many as the server allows. Returns whether there
    /// was any.
    fn ask(&mut self) -> bool {
        let Self { requests, prototypes, link, exchanges, waiting, is_greeted, .. } = self;
        let Some(link) = link.as_mut().filter(|_| *is_greeted) else { return false };
        let mut has_moved = false;
        while let Some(tag) = waiting.front() {
            let exchange = &mut exchanges[*tag as usize];
            if matches!(exchange.state, State::Waiting) {
                let Poll::Ready(Ok(())) = link.sender.poll_ready(&mut context()) else { break };
                let prototype = &prototypes[exchange.operation];
                let message = prototype.about(&requests.keys, exchange.key);
                let body = prototype.body(&requests.keys, exchange.key);
                let Ok((answer, mut stream)) = link.sender.send_request(message, body.is_none())
                else {
                    break;
                };
                if let Some(body) = body {
                    // What goes wrong with it, goes wrong with its answer.
                    let _ = stream.send_data(body, true);
                }
                exchange.state = State::Asked(answer);
                has_moved = true;
            }
            waiting.pop_front();
        }
        has_moved
    }

    /// Reads what has come of one answer. Returns whether anything has.
    fn look(&mut self, tag: usize, events: &mut Events) -> bool {
        let Self { requests, exchanges, lines, .. } = self;
        let exchange = &mut exchanges[tag];
        let Some(request) = requests.requests.get(exchange.operation) else { return false };
        let asked = (request, &requests.keys, exchange.key);
        let mut has_moved = false;
        loop {
            match exchange.step(asked, lines) {
                Step::Waits => return has_moved,
                Step::Moved => has_moved = true,
                Step::Done { is_right } => {
                    exchange.answer.report(tag as Tag, is_right, asked, events);
                    exchange.state = State::Free;
                    return true;
                }
            }
        }
    }

    /// The most bytes of as many requests as have been under way together.
    fn asked_bytes(&self) -> usize {
        let bytes = self.requests.requests.iter().map(|one| one.bytes.len(LONGEST_KEY_BYTES));
        bytes.max().unwrap_or(0) as usize * self.exchanges.len()
    }

    /// Whether the bytes so far are the server's first frame, as far as they go.
    fn greet(&mut self, bytes: &[u8], events: &mut Events) -> Result<bool, ProtocolError> {
        if self.is_greeted || bytes.len() < FRAME_HEAD_BYTES {
            return Ok(self.is_greeted);
        }
        if bytes[3] != SETTINGS {
            let said = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
            return Err(ProtocolError::new(format!(
                "no HTTP/2 is spoken at this port, but {said:?}: leave `version` out for HTTP/1.1"
            )));
        }
        self.is_greeted = true;
        events.ready = true;
        Ok(true)
    }
}

impl Exchange {
    fn step(&mut self, (request, keys, key): (&Request, &Keys, u64), lines: &mut Vec<u8>) -> Step {
        let fault = match &mut self.state {
            State::Free | State::Waiting | State::Refused | State::Cut => return Step::Waits,
            State::Asked(answer) => match Pin::new(answer).poll(&mut context()) {
                Poll::Pending => return Step::Waits,
                Poll::Ready(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    self.answer.clear();
                    lines.clear();
                    let expected = &request.expected;
                    if head.status != expected.status || !expected.headers.is_empty() {
                        write_lines(&head, lines);
                    }
                    let head = Head::written(head.status.as_u16(), lines);
                    self.answer.begin(request, keys, key, &head);
                    self.state = State::Answered(body);
                    return Step::Moved;
                }
                Poll::Ready(Err(error)) => error,
            },
            State::Answered(body) => match body.poll_data(&mut context()) {
                Poll::Pending => return Step::Waits,
                Poll::Ready(None) => return Step::Done { is_right: self.answer.end(request) },
                Poll::Ready(Some(Ok(piece))) => {
                    let _ = body.flow_control().release_capacity(piece.len());
                    if self.answer.body(request, &piece) {
                        return Step::Moved;
                    }
                    self.answer.give_up(&too_large().to_string(), &piece);
                    return Step::Done { is_right: false };
                }
                Poll::Ready(Some(Err(error))) => error,
            },
        };
        if fault.is_go_away() && fault.is_remote() && fault.reason() == Some(Reason::NO_ERROR) {
            self.state = State::Refused;
        } else if fault.is_io() || fault.is_go_away() {
            self.state = State::Cut;
        } else {
            self.answer.give_up(&cause(&fault), &[]);
            return Step::Done { is_right: false };
        }
        Step::Moved
    }
}

/// h2 is called again whenever anything has changed, so that no task waits to be woken.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn broken(error: &h2::Error) -> ProtocolError {
    ProtocolError::new(cause(error))
}

/// Who has done what. The library's own words leave that open.
fn cause(error: &h2::Error) -> String {
    let Some(reason) = error.reason() else { return format!("HTTP/2: {error}") };
    let who = match (error.is_remote(), error.is_library(), error.is_reset()) {
        (true, _, true) => "the server reset the request",
        (true, _, false) => "the server ended the connection (GOAWAY)",
        (_, true, true) => "the server broke the protocol in an answer",
        (_, true, false) => "the server broke the protocol",
        (false, false, _) => return format!("HTTP/2: {error}"),
    };
    // What a server says with GOAWAY follows the reason, quoted and escaped.
    let text = error.to_string();
    let words = text.find(" (b\"").map_or("", |start| &text[start..]);
    format!("HTTP/2: {who}: {reason:?}, {}{words}", meaning(reason))
}

/// What a reason means (RFC 9113, 7).
fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::NO_ERROR => "no error",
        Reason::PROTOCOL_ERROR => "a frame that is not allowed there, or a malformed message",
        Reason::INTERNAL_ERROR => "an error of its own",
        Reason::FLOW_CONTROL_ERROR => "more data than the window allows",
        Reason::SETTINGS_TIMEOUT => "settings not acknowledged in time",
        Reason::STREAM_CLOSED => "a frame on a stream that had ended",
        Reason::FRAME_SIZE_ERROR => "a frame of a wrong size",
        Reason::REFUSED_STREAM => "refused before it was looked at",
        Reason::CANCEL => "no longer wanted",
        Reason::COMPRESSION_ERROR => "headers that can't be decompressed",
        Reason::CONNECT_ERROR => "a tunnel's connection failed",
        Reason::ENHANCE_YOUR_CALM => "more load than is taken",
        Reason::INADEQUATE_SECURITY => "TLS that is too weak",
        Reason::HTTP_1_1_REQUIRED => "HTTP/1.1 is wanted: leave `version` out",
        _ => "a reason that HTTP/2 doesn't know",
    }
}

/// Writes a head as HTTP/1.1 would, for the comparison and for findings.
fn write_lines(head: &ResponseHead, lines: &mut Vec<u8>) {
    lines.extend_from_slice(format!("HTTP/2 {}\r\n", head.status.as_u16()).as_bytes());
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines.extend_from_slice(b"\r\n");
}

impl Spoken for Http2 {
    fn check_unsent(&self, bytes: usize) -> Result<(), ProtocolError> {
        if bytes <= MAX_UNREAD_BYTES || bytes <= MAX_UNREAD_BYTES + self.asked_bytes() {
            return Ok(());
        }
        let limit = MAX_UNREAD_BYTES >> 20;
        Err(ProtocolError::new(format!(
            "HTTP/2: the server sends PING, SETTINGS or the like and doesn't read what it is \
             answered: more than {limit} MiB of that wait to be sent"
        )))
    }
}

impl Dialect for Http2 {
    fn opened(
        &mut self,
        _now: Ns,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        self.begin()?;
        let advanced = self.advance(events);
        self.pipe.send(out);
        advanced
    }

    fn request(&mut self, _now: Ns, tag: Tag, op: Op, out: &mut Output) {
        let index = tag as usize;
        if self.exchanges.len() <= index {
            self.exchanges.resize_with(index + 1, Exchange::default);
        }
        let exchange = &mut self.exchanges[index];
        exchange.answer.clear();
        (exchange.operation, exchange.key) = (op.operation, op.what);
        exchange.state = State::Waiting;
        self.waiting.push_back(tag);
        if self.ask()
            && let Some(link) = &mut self.link
        {
            // Nothing has come since the last call: only what is to be sent is written.
            let _ = Pin::new(&mut link.connection).poll(&mut context());
            self.pipe.send(out);
        }
    }

    fn receive(
        &mut self,
        _now: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        if !self.greet(input.bytes(), events)? {
            return Ok(());
        }
        self.pipe.receive(input.bytes());
        input.consume(input.len());
        let advanced = self.advance(events);
        self.pipe.send(out);
        advanced?;
        self.check_unsent(out.len())
    }

    fn closed(&mut self, _now: Ns, events: &mut Events) -> Result<(), ProtocolError> {
        if !self.is_greeted {
            return Err(ProtocolError::new(
                "the target closed the connection before it spoke HTTP/2: leave `version` out for \
                 HTTP/1.1",
            ));
        }
        self.pipe.close();
        self.advance(events)?;
        let is_cut = |exchange: &Exchange| {
            matches!(exchange.state, State::Asked(_) | State::Answered(_) | State::Cut)
        };
        match self.exchanges.iter().any(is_cut) {
            true => Err(ProtocolError::new("the target closed the connection")),
            false => Ok(()),
        }
    }

    fn may_repeat(&self, tag: Tag) -> bool {
        let Some(exchange) = self.exchanges.get(tag as usize) else { return false };
        let request = self.requests.requests.get(exchange.operation);
        match exchange.state {
            State::Waiting | State::Refused => true,
            State::Free => false,
            State::Asked(_) | State::Answered(_) | State::Cut => {
                request.is_some_and(|request| request.is_idempotent)
            }
        }
    }

    fn repeat(&mut self, _out: &mut Output) {
        (self.link, self.pipe, self.is_greeted) = (None, Pipe::default(), false);
        self.waiting.clear();
        for (tag, exchange) in self.exchanges.iter_mut().enumerate() {
            if !matches!(exchange.state, State::Free) {
                exchange.state = State::Waiting;
                self.waiting.push_back(tag as Tag);
            }
        }
    }

    fn expire(&mut self, tag: Tag) {
        // A stream that is dropped is reset: its answer is not waited for.
        if let Some(exchange) = self.exchanges.get_mut(tag as usize) {
            exchange.state = State::Free;
        }
    }
}
