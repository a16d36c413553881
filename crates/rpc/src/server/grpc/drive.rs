//! Drives one call: does what its function wants, until that ends, the client gives up, its
//! deadline passes, or the server ends it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::super::memory::Taken;
use super::super::shared::{Shared, Stage};
use super::admit::Admitted;
use super::answer::{head, only_trailers, trailers};
use super::end::{End, Waiting, no_message, only, passed, several_messages, until};
use super::gate::Gate;
use crate::model::call::{Call, Got, Info, Outbox, Shared as Exchanged, Want};
use crate::model::function::{Outcome, Run};
use crate::protocol::compression::Encoding;
use crate::protocol::frames::{APART_BYTES, Reader, frame, pieces};
use crate::protocol::metadata::Metadata;
use crate::protocol::status::{Code, Status};

/// An answer of at most this many bytes is handed to h2 at once, as one piece; a longer one waits
/// for room.
const AT_ONCE_BYTES: usize = APART_BYTES;

/// Messages that have come are given to a function together, up to this many bytes of them.
const INBOX_BYTES: usize = 16 << 10;

/// A longer message is compressed, where the client has compressed its own.
const COMPRESSED_FROM_BYTES: usize = 64;

/// How far a call is once its connection's task has tried to end it without waiting.
pub(super) enum Progress {
    /// It has ended.
    Done,
    /// It waits.
    Waits,
    /// It has an answer that waits for room.
    Answer(Bytes),
}

/// The stream of the answer.
enum Answer {
    /// Nothing is sent yet.
    Unsent(SendResponse<Bytes>),
    Begun(SendStream<Bytes>),
}

/// A call that waits for its client.
struct Stalled {
    timer: Pin<Box<Sleep>>,
    /// The call's progress when the timer began, and how many calls had found too little memory.
    since: (u64, u64),
}

/// One call.
pub(super) struct Driver {
    admitted: Admitted,
    body: RecvStream,
    /// The body has ended.
    is_ended: bool,
    /// The client has reset the stream.
    is_broken: bool,
    /// What has come and is still taken from the client's window.
    unreleased: usize,
    reader: Reader,
    /// The bytes of what is on its way to the function, or of its answer.
    given: usize,
    answer: Answer,
    /// The compression that the head of the answer names, and its messages may have.
    named: Option<Encoding>,
    deadline: Option<(Instant, Option<Pin<Box<Sleep>>>)>,
    /// Ready once the server ends all calls.
    forced: Option<Waiting>,
    taken: Taken,
    /// Pieces of messages that were received and sent.
    progress: u64,
    stalled: Option<Stalled>,
    exchanged: Exchanged,
    shared: Arc<Shared>,
    gate: Arc<Gate>,
}

impl Driver {
    pub(super) fn new(
        admitted: Admitted,
        body: RecvStream,
        respond: SendResponse<Bytes>,
        shared: Arc<Shared>,
        gate: Arc<Gate>,
    ) -> Self {
        let reader = Reader::new(shared.settings.max_message_bytes, admitted.encoding);
        let deadline = admitted.info.timeout.map(|time| (Instant::now() + time, None));
        let named = admitted.accepted.filter(|_| admitted.encoding.is_some());
        Self {
            admitted,
            body,
            is_ended: false,
            is_broken: false,
            unreleased: 0,
            reader,
            given: 0,
            answer: Answer::Unsent(respond),
            named,
            deadline,
            forced: None,
            taken: Taken::none(&shared.memory),
            progress: 0,
            stalled: None,
            exchanged: Exchanged::default(),
            shared,
            gate,
        }
    }

    /// Ends the call, if its function doesn't wait, all of its request has come, and there is room
    /// for the answer.
    pub(super) fn at_once(&mut self) -> Progress {
        let Run::AtOnce(run) = &self.admitted.function.run else { return Progress::Waits };
        let context = &mut Context::from_waker(Waker::noop());
        while !self.is_ended {
            match self.body.poll_data(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    // The client has more to send than it may only if it breaks the protocol.
                    let _ = self.body.flow_control().release_capacity(piece.len());
                    self.reader.push(piece);
                }
                Poll::Ready(Some(Err(_))) => {
                    self.end(Err(End::GivenUp));
                    return Progress::Done;
                }
                Poll::Ready(None) => self.is_ended = true,
                Poll::Pending => return Progress::Waits,
            }
        }
        let result = only(&mut self.reader).and_then(|message| {
            self.shared.counters.received.fetch_add(1, Relaxed);
            run(&self.admitted.info, message)
        });
        let answer = match result {
            Ok(answer) => answer,
            Err(status) => {
                self.finish(&status);
                return Progress::Done;
            }
        };
        if answer.len() > AT_ONCE_BYTES || !self.gate.is_open() {
            return self.later(answer);
        }
        if self.has_passed() {
            self.finish(&passed());
            return Progress::Done;
        }
        let compression = self.compression(answer.len(), None);
        let put = match self.put_now(frame(&answer, compression)) {
            Ok(Some(_)) => return self.later(answer),
            Ok(None) => {
                self.shared.counters.sent.fetch_add(1, Relaxed);
                Ok(())
            }
            Err(end) => Err(end),
        };
        self.end(put);
        Progress::Done
    }

    /// Counts an answer that waits, whatever its compressed form takes later.
    fn later(&mut self, answer: Bytes) -> Progress {
        self.given = answer.len();
        match self.count() {
            Ok(()) => Progress::Answer(answer),
            Err(status) => {
                self.finish(&status);
                Progress::Done
            }
        }
    }

    /// Sends the answer of a function that has ended.
    pub(super) async fn deliver(mut self, answer: Bytes) {
        let sent = self.send(answer, None).await;
        self.end(sent);
    }

    /// Calls the function, and does what it wants until it ends.
    pub(super) async fn run(mut self) {
        let function = Arc::clone(&self.admitted.function);
        let result = match &function.run {
            Run::AtOnce(run) => match self.receive_only().await {
                Ok(message) => match run(&self.admitted.info, message) {
                    Ok(answer) => self.send(answer, None).await,
                    Err(status) => Err(status.into()),
                },
                Err(end) => Err(end),
            },
            Run::InSteps(run) => {
                // Metadata is there once, with the call, and counts as kept by it.
                let kept = self.admitted.info.metadata.kept_bytes();
                // Compressed messages are framed one by one.
                let gathers = self.named.is_none();
                self.exchanged.keep(kept);
                self.exchanged.with(|exchange| exchange.gathers = gathers);
                let metadata = std::mem::take(&mut self.admitted.info.metadata);
                let info = Info { metadata, ..self.admitted.info.clone() };
                self.steps(run(Call::new(self.exchanged.clone(), info))).await
            }
        };
        self.end(result);
    }

    /// Ends the call as its function, or what came before, has.
    fn end(&mut self, result: Result<(), End>) {
        match result {
            Ok(()) => self.finish(&Status::ok()),
            Err(End::Status(status)) => self.finish(&status),
            Err(End::GivenUp) => self.shared.counters.ended(Code::Cancelled),
        }
    }

    async fn steps(&mut self, mut function: Outcome) -> Result<(), End> {
        loop {
            self.count()?;
            // It waits for nothing but what it asks for.
            let polled = function.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(result) = polled {
                // What it has sent comes before its end, whichever that is.
                self.flush().await?;
                return Ok(result?);
            }
            self.count()?;
            let Some(want) = self.exchanged.with(|exchange| exchange.want.take()) else {
                let words = "a function waits for nothing";
                return Err(Status::new(Code::Internal, words).into());
            };
            let got = self.grant(want).await?;
            self.exchanged.with(|exchange| exchange.got = Some(got));
            // It is the exchange's now.
            self.given = 0;
        }
    }

    async fn grant(&mut self, want: Want) -> Result<Got, End> {
        if !matches!(want, Want::Receive) {
            self.flush().await?;
        }
        match want {
            Want::Receive => {
                let Some((message, was_compressed)) = self.receive().await? else {
                    return Ok(Got::End);
                };
                self.receive_more();
                return Ok(Got::Message(self.reader.apart(message), was_compressed));
            }
            Want::SendHeaders => drop(self.begin()?),
            Want::Send(message, compress) => self.send(message, compress).await?,
            Want::Sleep(time) => self.wait(Box::pin(sleep(time))).await?,
            Want::Stop => {
                let wait = until(Arc::clone(&self.shared), Stage::Leaving);
                self.wait(wait).await?;
            }
        }
        Ok(Got::Done)
    }

    async fn wait(&mut self, mut waiting: Waiting) -> Result<(), End> {
        self.reader.shrink();
        poll_fn(|context| {
            if let Poll::Ready(end) = self.poll_end(context) {
                return Poll::Ready(Err(end));
            }
            waiting.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// What ends a call before its function does.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.take_body(context);
        // While the body goes on, it breaks where its stream is reset.
        let is_reset = self.is_ended
            && match &mut self.answer {
                Answer::Unsent(respond) => respond.poll_reset(context).is_ready(),
                Answer::Begun(stream) => stream.poll_reset(context).is_ready(),
            };
        if is_reset || self.is_broken {
            return Poll::Ready(End::GivenUp);
        }
        if let Some((at, timer)) = &mut self.deadline {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(*at)));
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(passed().into());
            }
        }
        let shared = &self.shared;
        let forced = self.forced.get_or_insert_with(|| until(Arc::clone(shared), Stage::Forced));
        let words = "the server stops: call another one, or this one once it is back";
        forced.as_mut().poll(context).map(|()| Status::new(Code::Unavailable, words).into())
    }

    fn has_passed(&self) -> bool {
        self.deadline.as_ref().is_some_and(|(at, _)| *at <= Instant::now())
    }

    /// Takes what has come of the body, even while its function waits: h2 keeps each frame by
    /// itself, and ends the connection where small ones are many. It stays taken from the client's
    /// window.
    fn take_body(&mut self, context: &mut Context<'_>) {
        while !self.is_ended {
            match self.body.poll_data(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    self.unreleased += piece.len();
                    self.progress += 1;
                    self.reader.push(piece);
                }
                Poll::Ready(Some(Err(_))) => {
                    self.is_broken = true;
                    return;
                }
                Poll::Ready(None) => self.is_ended = true,
                Poll::Pending => return,
            }
        }
    }

    /// Gives back all of the client's window but this much.
    fn release(&mut self, keep: usize) {
        let released = self.unreleased.saturating_sub(keep);
        if released == 0 {
            return;
        }
        self.unreleased -= released;
        // The client has more to send than it may only if it breaks the protocol.
        let _ = self.body.flow_control().release_capacity(released);
    }

    /// Counts what the call keeps, but for what the client's window already limits.
    fn count(&mut self) -> Result<(), Status> {
        let kept = self.exchanged.kept_bytes();
        let partial = self.reader.kept_bytes().saturating_sub(self.unreleased);
        self.taken.set(partial + kept + self.given)
    }

    /// Gives the function small messages that have come already. Compressed ones stay as they are
    /// until their turn: what they decompress to may be large.
    fn receive_more(&mut self) {
        if self.admitted.encoding.is_some() {
            return;
        }
        let (whole, messages) = self.reader.next_whole(INBOX_BYTES);
        if messages > 0 {
            self.shared.counters.received.fetch_add(messages, Relaxed);
            self.exchanged.with(|exchange| exchange.inbox = self.reader.apart(whole));
            self.release(self.reader.kept_bytes());
        }
    }

    /// The next message. Before it is waited for, what was gathered is sent.
    async fn receive(&mut self) -> Result<Option<(Bytes, bool)>, End> {
        loop {
            let next = self.reader.next()?;
            self.given = next.as_ref().map_or(0, |(message, _)| message.len());
            self.release(if next.is_some() { self.reader.kept_bytes() } else { 0 });
            self.count()?;
            if next.is_some() {
                self.shared.counters.received.fetch_add(1, Relaxed);
                return Ok(next);
            }
            if self.is_ended {
                self.reader.finish()?;
                return Ok(None);
            }
            self.flush().await?;
            let before = self.progress;
            poll_fn(|context| {
                if let Poll::Ready(end) = self.poll_end(context) {
                    return Poll::Ready(Err(end));
                }
                if self.progress != before || self.is_ended {
                    return Poll::Ready(Ok(()));
                }
                self.reader.shrink();
                match self.taken.bytes() {
                    0 => Poll::Pending,
                    _ => self.poll_stalled(context).map(Err),
                }
            })
            .await?;
        }
    }

    /// Ends a call that has waited for its client for too long, if others have found too little
    /// memory meanwhile; else a client may take its time.
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<End> {
        let limit = self.shared.settings.take_timeout;
        let now = (self.progress, self.shared.memory.refused());
        loop {
            let begin = || Stalled { timer: Box::pin(sleep(limit)), since: now };
            let stalled = self.stalled.get_or_insert_with(begin);
            std::task::ready!(stalled.timer.as_mut().poll(context));
            let (progress, refused) = stalled.since;
            self.stalled = None;
            if progress == now.0 && refused != now.1 {
                let words = format!(
                    "the client has taken and sent nothing for {} s while others found no memory: \
                     read answers as they come, send messages whole, and end what has no more",
                    limit.as_secs_f64()
                );
                return Poll::Ready(Status::new(Code::ResourceExhausted, words).into());
            }
        }
    }

    async fn receive_only(&mut self) -> Result<Bytes, End> {
        let Some((first, _)) = self.receive().await? else { return Err(no_message().into()) };
        // It counts with what else the call has until the client has ended its side.
        let _held = self.exchanged.hold(std::mem::take(&mut self.given));
        match self.receive().await? {
            None => Ok(first),
            Some(_) => Err(several_messages().into()),
        }
    }

    /// How a message is compressed, if that is asked for, or the client does it.
    fn compression(&mut self, length: usize, compress: Option<bool>) -> Option<Encoding> {
        if compress.is_some() && matches!(self.answer, Answer::Unsent(_)) {
            self.named = self.admitted.accepted;
        }
        self.named.filter(|_| compress.unwrap_or(length >= COMPRESSED_FROM_BYTES))
    }

    /// Sends what comes before the first message, once.
    fn begin(&mut self) -> Result<&mut SendStream<Bytes>, End> {
        if let Answer::Unsent(respond) = &mut self.answer {
            let (content_type, named) = (&self.admitted.content_type, self.named);
            let response =
                self.exchanged.with(|exchange| head(content_type, named, &exchange.headers));
            let stream = respond.send_response(response, false).map_err(|_| End::GivenUp)?;
            self.answer = Answer::Begun(stream);
        }
        match &mut self.answer {
            Answer::Begun(stream) => Ok(stream),
            Answer::Unsent(_) => Err(End::GivenUp),
        }
    }

    /// Hands over these bytes, or returns them where there is no room for them at the client, or in
    /// what waits for the socket.
    fn put_now(&mut self, bytes: Bytes) -> Result<Option<Bytes>, End> {
        let length = bytes.len();
        if !self.gate.is_open() {
            return Ok(Some(bytes));
        }
        let stream = self.begin()?;
        stream.reserve_capacity(length);
        if stream.capacity() < length {
            return Ok(Some(bytes));
        }
        stream.send_data(bytes, false).map_err(|_| End::GivenUp)?;
        self.gate.add(length);
        Ok(None)
    }

    /// Sends a message, as there is room for it.
    async fn send(&mut self, message: Bytes, compress: Option<bool>) -> Result<(), End> {
        if u32::try_from(message.len()).is_err() {
            let words = format!("an answer of {} bytes is over 4 GiB", message.len());
            return Err(Status::new(Code::ResourceExhausted, words).into());
        }
        if self.has_passed() {
            return Err(passed().into());
        }
        let length = message.len();
        let pieces = pieces(message, self.compression(length, compress));
        let sent = pieces.iter().map(Bytes::len).sum::<usize>();
        let waits = match &self.admitted.function.run {
            // Its request and its answer are gone.
            Run::AtOnce(_) => {
                self.given = 0;
                self.count()?;
                self.taken_by(sent)?
            }
            // It keeps what it has made the message of.
            Run::InSteps(_) => self.taken_by(sent + length)?,
        };
        for piece in pieces {
            self.put(piece).await?;
        }
        drop(waits);
        self.shared.counters.sent.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Sends the messages that were gathered.
    async fn flush(&mut self) -> Result<(), End> {
        let Outbox { bytes, messages } =
            self.exchanged.with(|exchange| std::mem::take(&mut exchange.outbox));
        if messages == 0 {
            return Ok(());
        }
        if self.has_passed() {
            return Err(passed().into());
        }
        let waits = self.taken_by(bytes.len())?;
        self.put(bytes.freeze()).await?;
        drop(waits);
        self.shared.counters.sent.fetch_add(messages, Relaxed);
        Ok(())
    }

    /// Hands these bytes to h2, as there is room for them.
    async fn put(&mut self, mut rest: Bytes) -> Result<(), End> {
        // What ends the call is looked at where it waits, which is often enough: the gate shuts.
        if (1..=AT_ONCE_BYTES).contains(&rest.len()) {
            let Some(waits) = self.put_now(rest)? else {
                self.progress += 1;
                return Ok(());
            };
            rest = waits;
        }
        while !rest.is_empty() {
            let length = rest.len();
            let room = poll_fn(|context| self.poll_room(context, length)).await?;
            let piece = rest.split_to(room.min(length));
            self.progress += 1;
            let (gate, stream) = (Arc::clone(&self.gate), self.begin()?);
            gate.add(piece.len());
            stream.send_data(piece, false).map_err(|_| End::GivenUp)?;
        }
        Ok(())
    }

    /// Counts what waits to be sent.
    fn taken_by(&self, bytes: usize) -> Result<Taken, Status> {
        let mut taken = Taken::none(&self.shared.memory);
        taken.set(bytes)?;
        Ok(taken)
    }

    /// How many of these bytes there is room for, both at the client and in what waits for the
    /// socket.
    fn poll_room(&mut self, context: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, End>> {
        if let Poll::Ready(end) = self.poll_end(context) {
            return Poll::Ready(Err(end));
        }
        // It waits in most cases.
        self.reader.shrink();
        if self.gate.poll_open(context).is_pending() {
            return self.poll_stalled(context).map(Err);
        }
        let stream = match self.begin() {
            Ok(stream) => stream,
            Err(end) => return Poll::Ready(Err(end)),
        };
        stream.reserve_capacity(wanted);
        loop {
            match stream.capacity() {
                0 => {}
                room => return Poll::Ready(Ok(room)),
            }
            match stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(_) => return Poll::Ready(Err(End::GivenUp)),
                Poll::Pending => return self.poll_stalled(context).map(Err),
            }
        }
    }

    /// Sends the end of the answer.
    fn finish(&mut self, status: &Status) {
        self.shared.counters.ended(status.code);
        let (has_headers, metadata) = self.exchanged.with(|exchange| {
            let has_headers = exchange.headers.iter().next().is_some();
            (has_headers, std::mem::take(&mut exchange.trailers))
        });
        if has_headers || status.code == Code::Ok {
            // Where it fails, the stream is gone.
            let _ = self.begin();
        }
        self.finish_with(status, &metadata);
    }

    fn finish_with(&mut self, status: &Status, metadata: &Metadata) {
        // As above.
        match &mut self.answer {
            Answer::Unsent(respond) => {
                let response = only_trailers(&self.admitted.content_type, status, metadata);
                let _ = respond.send_response(response, true);
            }
            Answer::Begun(stream) => {
                let _ = stream.send_trailers(trailers(status, metadata));
            }
        }
    }
}
