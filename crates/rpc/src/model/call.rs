//! One call as its function sees it. A function that receives, sends or waits is a future, and
//! asks its carrier for each of these by a [`Want`]; the carrier polls it, does what is wanted, and
//! hands over what came of it. So a function knows no socket, clock or runtime. A call that is
//! cancelled, or whose deadline has passed, is a future that is dropped: its function goes no
//! further.

use std::future::poll_fn;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
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
pub(crate) struct Shared {
    exchange: Arc<Mutex<Exchange>>,
    /// What the function keeps of what it has received. It is apart, as what is kept may be dropped
    /// while the exchange is locked, or lie in it.
    kept: Arc<AtomicUsize>,
}

impl Shared {
    /// Looks at the exchange, or changes it.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Exchange) -> R) -> R {
        change(&mut self.exchange.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that the function keeps this much, until its call ends.
    pub(crate) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Relaxed);
    }

    /// All that counts as memory of what both sides hand each other: what the function keeps, and
    /// what has come for it. [`Held`] counts what a function has, as it takes and drops it. A
    /// carrier adds what is its own, bytes that aren't whole and messages that wait to be sent,
    /// whenever the function has gone on or messages have come, and takes the sum of the memory of
    /// all calls.
    pub(crate) fn kept_bytes(&self) -> usize {
        let come = self.with(|exchange| {
            let got = match &exchange.got {
                Some(Got::Message(message, _)) => message.len(),
                _ => 0,
            };
            got + exchange.inbox.len()
        });
        self.kept.load(Relaxed) + come
    }

    /// Counts this much until what is returned is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        let mut held = Held { kept: Arc::clone(&self.kept), bytes: 0 };
        held.set(bytes);
        held
    }
}

/// What is counted as kept by a function, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    kept: Arc<AtomicUsize>,
    bytes: usize,
}

impl Held {
    /// Counts this much, by one operation at most: streams do it for each message.
    pub(crate) fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(0) => return,
            Some(more) => self.kept.fetch_add(more, Relaxed),
            None => self.kept.fetch_sub(self.bytes - bytes, Relaxed),
        };
        self.bytes = bytes;
    }

    /// Counts this much more.
    #[cfg(feature = "grpc")]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.set(self.bytes + bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// What has come, or was made of it: as long as a function has it, it counts as memory of messages,
/// by the bytes that have come, or what it takes in their place.
#[derive(Debug)]
pub(crate) struct Received<T> {
    value: T,
    held: Held,
}

impl<T> Received<T> {
    /// A part of it, or what is made of it.
    #[cfg(feature = "grpc")]
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Received<U> {
        Received { value: change(self.value), held: self.held }
    }

    /// Counts this much in place of the bytes that have come: what is made of them takes it.
    #[cfg(feature = "grpc")]
    pub(crate) fn count(&mut self, bytes: usize) {
        self.held.set(bytes);
    }
}

impl<T> Deref for Received<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Bytes count as long as there is any part of them.
impl AsRef<[u8]> for Received<Bytes> {
    fn as_ref(&self) -> &[u8] {
        &self.value
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
    /// Messages of the exchange's inbox, which it has taken at once, and their count.
    ready: Bytes,
    ready_held: Held,
    /// What it has gathered since it went on; nothing where its carrier doesn't want that.
    outbox: Option<Outbox>,
    /// What was known of it when it began.
    pub(crate) info: Info,
}

impl Call {
    pub(crate) fn new(shared: Shared, info: Info) -> Self {
        let outbox = shared.with(|exchange| exchange.gathers.then(Outbox::default));
        let ready_held = shared.hold(0);
        Self { shared, ready: Bytes::new(), ready_held, outbox, info }
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
            self.ready = self.shared.with(|exchange| std::mem::take(&mut exchange.inbox));
            self.ready_held.set(self.ready.len());
        }
        take_prefix(&mut self.ready)
    }

    /// Takes the next of the messages that are there. They count together until the last of them is
    /// taken, whose count goes on as its own.
    fn take_ready(&mut self, length: usize) -> Held {
        self.ready.advance(length);
        let mut held = self.shared.hold(0);
        if self.ready.is_empty() {
            // It would keep their room.
            self.ready = Bytes::new();
            std::mem::swap(&mut held, &mut self.ready_held);
        }
        held.set(length);
        held
    }

    /// The next message as bytes, all of whose parts count until they are dropped; `None` at the
    /// end.
    #[cfg(feature = "grpc")]
    pub(crate) async fn receive_bytes(&mut self) -> Option<Bytes> {
        let (value, held) = match self.next_ready() {
            // A part would keep all that is there.
            Some(length) => {
                (Bytes::copy_from_slice(&self.ready[..length]), self.take_ready(length))
            }
            None => {
                let value = self.receive_new().await?.0;
                let held = self.shared.hold(value.len());
                (value, held)
            }
        };
        Some(Bytes::from_owner(Received { value, held }))
    }

    /// The next message that is not there yet, and whether it came compressed.
    async fn receive_new(&mut self) -> Option<(Bytes, bool)> {
        match self.ask(Want::Receive).await {
            Got::Message(bytes, was_compressed) => Some((bytes, was_compressed)),
            Got::Done | Got::End => None,
        }
    }

    /// The next message, and whether it came compressed; `None` at the end.
    pub(crate) async fn receive_marked<M: Message + Default>(
        &mut self,
    ) -> Result<Option<(Received<M>, bool)>, Status> {
        if let Some(length) = self.next_ready() {
            let value = decode_part(&self.ready, self.ready.get(..length).unwrap_or_default())?;
            return Ok(Some((Received { value, held: self.take_ready(length) }, false)));
        }
        let Some((bytes, was_compressed)) = self.receive_new().await else { return Ok(None) };
        let (value, held) = (decode(&bytes)?, self.shared.hold(bytes.len()));
        Ok(Some((Received { value, held }, was_compressed)))
    }

    /// The next message; `None` at the end.
    #[cfg(feature = "grpc")]
    pub(crate) async fn receive<M: Message + Default>(
        &mut self,
    ) -> Result<Option<Received<M>>, Status> {
        Ok(self.receive_marked().await?.map(|(message, _)| message))
    }

    /// The one message of a call that has one, and whether it came compressed.
    pub(crate) async fn receive_only<M: Message + Default>(
        &mut self,
    ) -> Result<(Received<M>, bool), Status> {
        let first = self.receive_marked().await?.ok_or_else(|| not_one("no message"))?;
        self.ends().await.map(|()| first)
    }

    /// As bytes.
    #[cfg(feature = "grpc")]
    pub(crate) async fn receive_only_bytes(&mut self) -> Result<Bytes, Status> {
        let first = self.receive_bytes().await.ok_or_else(|| not_one("no message"))?;
        self.ends().await.map(|()| first)
    }

    /// There is no further message.
    async fn ends(&mut self) -> Result<(), Status> {
        match self.next_ready().is_none() && self.receive_new().await.is_none() {
            true => Ok(()),
            false => Err(not_one("several messages")),
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

    /// Counts this much beside the bytes that have come, until what is returned is dropped.
    #[cfg(feature = "grpc")]
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        self.shared.hold(bytes)
    }

    /// Notes that it keeps this much beside the bytes that have come, until its end.
    #[cfg(feature = "grpc")]
    pub(crate) fn keep_until_end(&self, bytes: usize) {
        self.shared.keep(bytes);
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

fn not_one(count: &str) -> Status {
    Status::new(Code::Unimplemented, format!("{count} came where one request has to"))
}

impl Drop for Call {
    /// What it has sent before its end is sent, whichever that is.
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take() {
            self.shared.with(|exchange| exchange.outbox = outbox);
        }
    }
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::protocol::frames::frame;
    use crate::protocol::message::Anything;

    #[test]
    fn messages_that_are_there_count_together_and_the_last_of_them_once() {
        let shared = Shared::default();
        let inbox = frame(&[8, 1], None).repeat(3);
        shared.with(|exchange| exchange.inbox = inbox.into());
        assert_eq!(shared.kept_bytes(), 21);
        let info = Info {
            pid: 1,
            here: Here::default,
            calls: 1,
            carrier: "tcp",
            metadata: Metadata::default(),
            timeout: None,
            is_stopping: false,
        };
        let mut call = Call::new(shared.clone(), info);
        let mut next = || {
            let mut received = std::pin::pin!(call.receive_marked::<Anything>());
            match received.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Some((message, _)))) => (message, shared.kept_bytes()),
                other => panic!("{other:?}"),
            }
        };
        let all = [next(), next(), next()];
        assert_eq!(all.each_ref().map(|(_, kept)| *kept), [23, 25, 6]);
        drop(all);
        assert_eq!(shared.kept_bytes(), 0, "before it waits for the next");
    }
}
