//! One connection of gRPC: its calls, its end.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http_types::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

use super::super::settings::Settings;
use super::super::shared::{FORCED, NextStage, Shared, Stage, next_stage};
use super::admit::admit;
use super::answer::refuse;
use super::drive::{Driver, Progress};
use super::gate::Gate;
use super::pipe::Pipe;
use super::watch::Watch;

/// What a client may send of one call before it is asked for more, and of all of a connection: what
/// is not read yet. h2 grants each again once a third of it is taken, so that one write has both
/// grants where one is half of the other; a call that takes nothing leaves the other half, and two
/// leave nothing.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// What small frames may take, by h2's count of up to 256 bytes each, until a call has taken them.
const FRAME_BYTES: usize = 1 << 20;

/// How many calls begin before what they have answered is written.
const MOST_AT_ONCE: usize = 64;

/// Serves one connection of HTTP/2, whose preface is the beginning of `early`.
pub(in crate::server) async fn converse<S>(
    stream: S,
    early: Bytes,
    carrier: &'static str,
    shared: Arc<Shared>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Its own box, so that the task of an idle connection has no room for what beginning took.
    let begun = Box::pin(Conversation::greet(stream, early, carrier, shared)).await;
    let Some(mut conversation) = begun else { return };
    conversation.run().await;
    // A close while bytes are unread is a reset, with which the client loses the last answer.
    let linger = poll_fn(|context| conversation.pipe.poll_drop_input(context));
    let _ = timeout(FORCED, linger).await;
}

/// The least size of a header list that is read, to be refused by a status.
const HEADER_LIST_BYTES: u32 = 128 << 10;

fn builder(settings: &Settings) -> Builder {
    let mut builder = Builder::new();
    // What passes our own limit by less is refused by a status, which says more than h2's 431. h2
    // also ends a connection by the number of CONTINUATION frames: a quarter more than this takes.
    let headers = settings.max_metadata_bytes.saturating_mul(4).max(HEADER_LIST_BYTES);
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .data_frame_budget(FRAME_BYTES)
        .max_concurrent_streams(settings.max_streams)
        .max_header_list_size(headers);
    builder
}

struct Conversation<S: AsyncRead + AsyncWrite + Unpin> {
    h2: Connection<Pipe<S>, Bytes>,
    pipe: Pipe<S>,
    carrier: &'static str,
    gate: Arc<Gate>,
    /// Calls that wait for something.
    calls: JoinSet<()>,
    next_stage: NextStage,
    /// When it ends whatever is in flight.
    end: Option<Pin<Box<Sleep>>>,
    /// When it is given up, while the client takes nothing, and what had been written by then.
    stuck: Option<(Pin<Box<Sleep>>, u64)>,
    /// GOAWAY with ENHANCE_YOUR_CALM has been sent.
    is_calmed: bool,
    /// h2 has ended it, and what it has written is left to be sent.
    is_over: bool,
    shared: Arc<Shared>,
}

/// What there is to do.
enum Event {
    /// The server is at another stage.
    Stage(Stage),
    /// The client asks for too much.
    TooMuch,
    /// Nothing any more.
    End,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conversation<S> {
    /// Shakes hands, if its client does within the time for that.
    async fn greet(
        stream: S,
        early: Bytes,
        carrier: &'static str,
        shared: Arc<Shared>,
    ) -> Option<Box<Self>> {
        let limit = shared.settings.handshake_timeout;
        let watch = Watch::new(shared.settings.keepalive_min, carrier == "unix");
        let pipe = Pipe::new(stream, early, watch);
        let handshake = builder(&shared.settings).handshake(pipe.clone());
        let h2 = timeout(limit, handshake).await.ok()?.ok()?;
        Some(Box::new(Self {
            h2,
            pipe,
            carrier,
            gate: Arc::default(),
            calls: JoinSet::new(),
            next_stage: next_stage(Arc::clone(&shared), Stage::Serving),
            end: None,
            stuck: None,
            is_calmed: false,
            is_over: false,
            shared,
        }))
    }

    async fn run(&mut self) {
        loop {
            match poll_fn(|context| self.poll(context)).await {
                Event::Stage(stage) => {
                    self.next_stage = next_stage(Arc::clone(&self.shared), stage);
                    match stage {
                        Stage::Forced => self.end = Some(Box::pin(sleep(FORCED / 2))),
                        // Those that watch health hear of it first.
                        Stage::Serving | Stage::Leaving => {}
                        // GOAWAY with the largest id, and the real one once a ping is answered.
                        Stage::Draining => self.h2.graceful_shutdown(),
                    }
                }
                Event::TooMuch => {
                    self.is_calmed = true;
                    self.shared.counters.calmed.fetch_add(1, Relaxed);
                    self.h2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                    self.end = Some(Box::pin(sleep(FORCED)));
                }
                Event::End => return,
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let Poll::Pending = self.poll_bytes(context) else { return Poll::Ready(Event::End) };
        if self.pipe.is_too_much() && !self.is_calmed {
            return Poll::Ready(Event::TooMuch);
        }
        while let Poll::Ready(Some(_)) = self.calls.poll_join_next(context) {}
        let has_passed = |timer: &mut Pin<Box<Sleep>>| timer.as_mut().poll(context).is_ready();
        if self.end.as_mut().is_some_and(has_passed) {
            return Poll::Ready(Event::End);
        }
        if let Poll::Ready(stage) = self.next_stage.as_mut().poll(context) {
            return Poll::Ready(Event::Stage(stage));
        }
        Poll::Pending
    }

    /// Begins the calls that have come, and writes what there is; ready once the connection has
    /// ended.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.gate.is_sending() {
                self.pipe.sent();
            }
            let mut begun = 0;
            while begun < MOST_AT_ONCE && !self.is_over {
                match self.h2.poll_accept(context) {
                    Poll::Ready(Some(Ok((request, respond)))) => {
                        self.begin(request, respond);
                        begun += 1;
                    }
                    Poll::Ready(Some(Err(_)) | None) => self.is_over = true,
                    Poll::Pending => break,
                }
            }
            if self.is_over {
                // h2 is not polled again, so that it takes no room that comes.
                self.pipe.was_full();
            }
            match self.pipe.poll_out(context) {
                Poll::Ready(Ok(())) => {
                    self.stuck = None;
                    if self.is_over {
                        return Poll::Ready(());
                    }
                    if self.pipe.was_full() {
                        continue;
                    }
                    self.gate.clear();
                    if begun == MOST_AT_ONCE {
                        // Others have their turn before the calls that are left.
                        context.waker().wake_by_ref();
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return self.poll_stuck(context),
            }
            return Poll::Pending;
        }
    }

    /// Whether the client has taken nothing for too long.
    fn poll_stuck(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (limit, written) = (self.shared.settings.take_timeout, self.pipe.written());
        if self.stuck.as_ref().is_none_or(|(_, before)| *before != written) {
            self.stuck = Some((Box::pin(sleep(limit)), written));
        }
        let timer = self.stuck.as_mut().map(|(timer, _)| timer.as_mut().poll(context));
        timer.unwrap_or(Poll::Pending)
    }

    /// Begins a call, and ends it too where its function doesn't wait.
    fn begin(&mut self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.shared.counters.calls.fetch_add(1, Relaxed);
        let (head, body) = request.into_parts();
        let admitted = match admit(&head, &self.shared, self.carrier) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                self.shared.counters.ended(refusal.status.code);
                return refuse(respond, &refusal);
            }
        };
        let mut driver =
            Driver::new(admitted, body, respond, Arc::clone(&self.shared), Arc::clone(&self.gate));
        match driver.at_once() {
            Progress::Done => {}
            Progress::Waits => drop(self.calls.spawn(driver.run())),
            Progress::Answer(answer) => drop(self.calls.spawn(driver.deliver(answer))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    /// The size of what a function returns.
    fn size<F>(_: impl FnOnce(TcpStream, Arc<Shared>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_a_connection_has_nothing_twice() {
        let of = size(|stream, shared| converse(stream, Bytes::new(), "tcp", shared));
        assert!(of <= 256, "{of} bytes");
    }
}
