//! One call as its function sees it. A function that receives, sends or waits is a future, and
//! asks its carrier for each of these by a [`Want`]; the carrier polls it, does what is wanted, and
//! hands over what came of it. So a function knows no socket, clock or runtime. A call that is
//! cancelled, or whose deadline has passed, is a future that is dropped: its function goes no
//! further.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

use crate::protocol::message::{decode, decode_part, encode};
use crate::protocol::metadata::Metadata;
use crate::protocol::prefix::{PREFIX_BYTES, take_prefix};
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
    /// Whole messages that have come and are not taken yet, each behind its prefix, none of them
    /// compressed.
    pub(crate) inbox: Bytes,
    /// Whether the function gathers small messages; they are sent when it waits for anything.
    pub(crate) gathers: bool,
    /// What it has gathered, while it waits or once it has ended.
    pub(crate) outbox: Outbox,
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
        let (before, more) = (self.bytes.len(), PREFIX_BYTES + length);
        if before + more > OUTBOX_BYTES {
            return false;
        }
        if self.bytes.capacity() - before < more {
            // The more there are, the more will follow.
            self.bytes.reserve(more.max(3 * before).min(OUTBOX_BYTES - before));
        }
        // It is shorter than the outbox.
        let [a, b, c, d] = (length as u32).to_be_bytes();
        self.bytes.put_slice(&[0, a, b, c, d]);
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
    /// The calls that the process has had, with this one.
    pub(crate) calls: u64,
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
    /// Messages of the exchange's inbox, which it has taken at once.
    ready: Bytes,
    /// What it has gathered since it went on; nothing where its carrier doesn't want that.
    outbox: Option<Outbox>,
    /// What was known of it when it began.
    pub(crate) info: Info,
}

impl Call {
    pub(crate) fn new(shared: Shared, info: Info) -> Self {
        let outbox = shared.with(|exchange| exchange.gathers.then(Outbox::default));
        Self { shared, ready: Bytes::new(), outbox, info }
    }

    /// Waits for what it wants. What it has gathered is its carrier's meanwhile, which sends it, or
    /// leaves it.
    async fn ask(&mut self, want: Want) -> Got {
        let mut want = Some(want);
        let Self { shared, outbox, .. } = self;
        poll_fn(|_| {
            shared.with(|exchange| {
                if let Some(want) = want.take() {
                    exchange.want = Some(want);
                    exchange.outbox = outbox.as_mut().map(std::mem::take).unwrap_or_default();
                    return Poll::Pending;
                }
                let got = exchange.got.take();
                if let (Some(_), Some(outbox)) = (&got, outbox.as_mut()) {
                    *outbox = std::mem::take(&mut exchange.outbox);
                }
                got.map_or(Poll::Pending, Poll::Ready)
            })
        })
        .await
    }

    /// The length of the next of the messages that are there.
    fn next_ready(&mut self) -> Option<usize> {
        if self.ready.is_empty() {
            self.shared.with(|exchange| std::mem::swap(&mut exchange.inbox, &mut self.ready));
        }
        take_prefix(&mut self.ready)
    }

    /// The next message as bytes, and whether it came compressed; `None` at the end.
    pub(crate) async fn receive_bytes(&mut self) -> Option<(Bytes, bool)> {
        if let Some(length) = self.next_ready() {
            return Some((self.ready.split_to(length), false));
        }
        match self.ask(Want::Receive).await {
            Got::Message(bytes, was_compressed) => Some((bytes, was_compressed)),
            Got::Done | Got::End => None,
        }
    }

    /// The next message, and whether it came compressed; `None` at the end.
    pub(crate) async fn receive_marked<M: Message + Default>(
        &mut self,
    ) -> Result<Option<(M, bool)>, Status> {
        if let Some(length) = self.next_ready() {
            let message = decode_part(&self.ready, self.ready.get(..length).unwrap_or_default())?;
            self.ready.advance(length);
            return Ok(Some((message, false)));
        }
        let Some((bytes, was_compressed)) = self.receive_bytes().await else { return Ok(None) };
        Ok(Some((decode(&bytes)?, was_compressed)))
    }

    /// The next message; `None` at the end.
    pub(crate) async fn receive<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        Ok(self.receive_marked().await?.map(|(message, _)| message))
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
        if !self.outbox.as_mut().is_some_and(|outbox| outbox.take(message)) {
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

impl Drop for Call {
    /// What it has sent before its end is sent, whichever that is.
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take() {
            self.shared.with(|exchange| exchange.outbox = outbox);
        }
    }
}
