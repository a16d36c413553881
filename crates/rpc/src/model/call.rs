//! One call as its function sees it. A function that receives, sends or waits is a future, and
//! asks its carrier for each of these by a [`Want`]; the carrier polls it, does what is wanted, and
//! hands over what came of it. So a function knows no socket, clock or runtime. A call that is
//! cancelled, or whose deadline has passed, is a future that is dropped: its function goes no
//! further.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message;

use crate::protocol::frames::PREFIX_BYTES;
use crate::protocol::message::{decode, encode};
use crate::protocol::metadata::Metadata;
use crate::protocol::status::{Code, Status};

/// What a function asks of its carrier.
#[derive(Clone, Debug)]
pub(crate) enum Want {
    /// The next message.
    Receive,
    /// To send what comes before the first message, now.
    SendHeaders,
    /// To send a message; `true` asks for compression, `false` for none, neither leaves it to the
    /// carrier.
    Send(Bytes, Option<bool>),
    /// To go on after this time.
    Sleep(Duration),
    /// To go on once the server begins to stop.
    Stop,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Got {
    /// It is done.
    Done,
    /// A message, and whether it came compressed.
    Message(Bytes, bool),
    /// There are no more messages.
    End,
}

/// What function and carrier hand each other.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) want: Option<Want>,
    pub(crate) got: Option<Got>,
    /// Messages that have come and are not taken yet, and whether they came compressed.
    pub(crate) inbox: VecDeque<(Bytes, bool)>,
    /// Where the carrier gathers small messages: they are sent when the function waits for
    /// anything.
    pub(crate) outbox: Option<Outbox>,
    /// Metadata that is sent before the first message.
    pub(crate) headers: Metadata,
    /// Metadata behind the last one.
    pub(crate) trailers: Metadata,
    /// What the function keeps of the messages that it has received.
    pub(crate) kept_bytes: usize,
}

/// Small messages, each behind its prefix, that leave together.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: BytesMut,
    pub(crate) messages: u64,
}

/// What an outbox has at most.
pub(crate) const OUTBOX_BYTES: usize = 16 << 10;

impl Outbox {
    /// Takes a message, if it has room for it.
    fn take(&mut self, message: &impl Message) -> bool {
        let length = message.encoded_len();
        let before = self.bytes.len();
        if before + PREFIX_BYTES + length > OUTBOX_BYTES {
            return false;
        }
        self.bytes.reserve(PREFIX_BYTES + length);
        self.bytes.put_u8(0);
        // It is shorter than the outbox.
        self.bytes.put_u32(length as u32);
        self.messages += 1;
        // There is room.
        message.encode(&mut self.bytes).is_ok()
    }
}

/// The half of an exchange that each side has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Exchange>>);

impl Shared {
    /// Looks at the exchange, or changes it.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Exchange) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where a function runs, and what its carrier has done until now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Here {
    pub(crate) core: u32,
    /// Reads that brought something.
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Those of both, and to wait.
    pub(crate) system_calls: u64,
}

/// What is known of a call when it begins.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    /// The process that serves.
    pub(crate) pid: u32,
    /// Says where the caller runs, and what its carrier has done.
    pub(crate) here: fn() -> Here,
    /// The connection: "tcp" or "unix", with "+tls" where it is encrypted.
    pub(crate) carrier: &'static str,
    /// The metadata of the request, as it came; none for a function that runs at once.
    pub(crate) metadata: Metadata,
    /// How long the client waits.
    pub(crate) timeout: Option<Duration>,
    /// Whether the server has begun to stop.
    pub(crate) is_stopping: bool,
}

/// A call under way.
#[derive(Debug)]
pub(crate) struct Call {
    shared: Shared,
    /// Messages of the exchange that it has taken at once, with whether they came compressed.
    ready: VecDeque<(Bytes, bool)>,
    /// What was known of it when it began.
    pub(crate) info: Info,
}

impl Call {
    pub(crate) fn new(shared: Shared, info: Info) -> Self {
        Self { shared, ready: VecDeque::new(), info }
    }

    async fn ask(&mut self, want: Want) -> Got {
        let mut want = Some(want);
        poll_fn(|_| {
            self.shared.with(|exchange| {
                if let Some(want) = want.take() {
                    exchange.want = Some(want);
                    return Poll::Pending;
                }
                exchange.got.take().map_or(Poll::Pending, Poll::Ready)
            })
        })
        .await
    }

    /// The next message as bytes, and whether it came compressed; `None` at the end.
    pub(crate) async fn receive_bytes(&mut self) -> Option<(Bytes, bool)> {
        if self.ready.is_empty() {
            self.shared.with(|exchange| std::mem::swap(&mut exchange.inbox, &mut self.ready));
        }
        if let Some(there) = self.ready.pop_front() {
            return Some(there);
        }
        match self.ask(Want::Receive).await {
            Got::Message(bytes, was_compressed) => Some((bytes, was_compressed)),
            Got::Done | Got::End => None,
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn receive<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        self.receive_bytes().await.map(|(bytes, _)| decode(bytes)).transpose()
    }

    /// The one message of a call that has one.
    pub(crate) async fn receive_only(&mut self) -> Result<(Bytes, bool), Status> {
        let wrong = |count| {
            Err(Status::new(Code::Unimplemented, format!("{count} came where one request has to")))
        };
        let Some(first) = self.receive_bytes().await else { return wrong("no message") };
        match self.receive_bytes().await {
            None => Ok(first),
            Some(_) => wrong("several messages"),
        }
    }

    /// Sends a message, once there is room for it.
    pub(crate) async fn send(&mut self, message: &impl Message) {
        let is_taken = self
            .shared
            .with(|exchange| exchange.outbox.as_mut().is_some_and(|outbox| outbox.take(message)));
        if !is_taken {
            self.ask(Want::Send(encode(message), None)).await;
        }
    }

    /// Sends a message, compressed or not.
    pub(crate) async fn send_compressed(&mut self, message: &impl Message, compress: bool) {
        self.ask(Want::Send(encode(message), Some(compress))).await;
    }

    /// Sends the headers before there is a message.
    pub(crate) async fn send_headers(&mut self) {
        self.ask(Want::SendHeaders).await;
    }

    /// Waits.
    pub(crate) async fn sleep(&mut self, time: Duration) {
        if !time.is_zero() {
            self.ask(Want::Sleep(time)).await;
        }
    }

    /// Waits until the server begins to stop.
    pub(crate) async fn server_stops(&mut self) {
        self.ask(Want::Stop).await;
    }

    /// Notes that it keeps this much of what it has received, which counts as memory of messages.
    pub(crate) fn keep(&self, bytes: usize) {
        self.shared.with(|exchange| exchange.kept_bytes += bytes);
    }

    /// Notes that it keeps this much less.
    pub(crate) fn release(&self, bytes: usize) {
        self.shared.with(|exchange| {
            exchange.kept_bytes = exchange.kept_bytes.saturating_sub(bytes);
        });
    }

    /// Adds metadata that is sent before the first message.
    pub(crate) fn add_header(&self, name: impl Into<String>, value: impl Into<Bytes>) {
        self.shared.with(|exchange| exchange.headers.add(name, value));
    }

    /// Adds metadata that is sent behind the last message.
    pub(crate) fn add_trailer(&self, name: impl Into<String>, value: impl Into<Bytes>) {
        self.shared.with(|exchange| exchange.trailers.add(name, value));
    }
}
