//! `loadline rpc call` over own frames, with what `ping` and `why` can plant. Control plane.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost_reflect::MethodDescriptor;
use service::{Failure, Outcome};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::args::SessionArgs;
use super::call::{self, CallArgs};
use super::input::Read1;
use super::ping::caller::Caller;
use super::session::{exit, failure};
use crate::client::Schema;
use crate::client::native::{FutureClient, NativeClient};
use crate::protocol::metadata::Metadata;
use crate::protocol::native::{Begin, Event, What};
use crate::protocol::status::{Code, Ended, Status};

/// How long a stream pauses while neither a request nor an answer is there.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a call goes no further.
enum Stop {
    /// It has ended, or the connection has.
    Status(Status),
    /// What is typed is wrong, or an answer can't be printed.
    Failure(Failure),
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failure(Failure::Other(error))
    }
}

/// Calls a function. Its messages are those of this program's own functions, unless `--proto` says
/// what it takes.
pub(super) fn call(args: &CallArgs, mut session: SessionArgs) -> Outcome {
    if let Some(served) = args.to.serve_rank()? {
        return Ok(served);
    }
    let files = std::mem::take(&mut session.proto);
    let schema = match files.is_empty() {
        true => Schema::of_program(),
        false => Schema::of_files(&files, &session.import).map_err(failure)?,
    };
    let method = schema.method(&args.method).map_err(failure)?;
    let mut requests = call::requests(&method, args.request.as_deref())?;
    if !method.is_client_streaming() {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        requests = runtime.block_on(call::one(requests))?;
    }
    // `ping` has one of its own where none is typed.
    let timeout = session.timeout.map(|time| time.duration());
    let mut server = None;
    let called = match args.to.caller(session, &mut server)? {
        Caller::Native(mut client, _) => converse(&mut client, timeout, &method, requests),
        Caller::Future(client, _) => promised(&client, timeout, &method, requests),
        Caller::Grpc(_) | Caller::Within(_) => {
            Err(Status::new(Code::Internal, "this address has no own frames").into())
        }
    };
    match called {
        Ok(ended) => Ok(exit(&ended)),
        Err(Stop::Status(status)) => Ok(exit(&ended(status))),
        Err(Stop::Failure(failure)) => Err(failure),
    }
}

fn ended(status: Status) -> Ended {
    Ended { status, trailers: Metadata::default() }
}

/// The next request, if there is one.
fn next(requests: &mut Receiver<Read1>) -> Result<Option<Bytes>, Stop> {
    let next = requests.blocking_recv().transpose();
    next.map_err(|why| Stop::Failure(Failure::Usage(why)))
}

/// Sends all requests, and prints what comes meanwhile and then.
fn converse(
    client: &mut NativeClient,
    timeout: Option<Duration>,
    method: &MethodDescriptor,
    mut requests: Receiver<Read1>,
) -> Result<Ended, Stop> {
    let number = client.any_method(&call::path(method))?;
    let how = Begin::within(timeout, Instant::now);
    if method.is_client_streaming() {
        let id = client.open(number, &how)?;
        if let Some(ended) = send_all(client, id, method, &mut requests)? {
            return Ok(ended);
        }
    } else {
        let request = next(&mut requests)?.unwrap_or_default();
        client.start_with(number, &request, &how)?;
    }
    while let Some(event) = client.next_event()? {
        if let Some(ended) = show(event, method)? {
            return Ok(ended);
        }
    }
    Err(Status::new(Code::Internal, "the call has no end").into())
}

/// Sends all requests of a stream as they come, and prints what comes meanwhile: a server that
/// finds no room for its answers takes no requests. Returns the end where the call has one before.
fn send_all(
    client: &mut NativeClient,
    id: u64,
    method: &MethodDescriptor,
    requests: &mut Receiver<Read1>,
) -> Result<Option<Ended>, Stop> {
    let mut unsent = None;
    loop {
        let mut is_idle = true;
        if unsent.is_none() {
            match requests.try_recv() {
                Ok(request) => {
                    unsent = Some(request.map_err(|why| Stop::Failure(Failure::Usage(why)))?);
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    // A connection that has broken is found with what came before it.
                    let _ = client.end(id);
                    return Ok(None);
                }
            }
        }
        let sent = unsent.as_ref().map(|request| client.send_now(id, request));
        match sent.transpose() {
            Ok(Some(true)) => (unsent, is_idle) = (None, false),
            // It stays wrong: answers without end would put it off.
            Err(status) if !client.is_broken() => return Err(status.into()),
            // What came before a connection broke says more, and is shown first.
            Ok(_) | Err(_) => {}
        }
        // One at a time: answers without end don't keep requests back.
        if let Some(event) = client.event_now()? {
            is_idle = false;
            if let Some(ended) = show(event, method)? {
                return Ok(Some(ended));
            }
        }
        if is_idle {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Prints what is an answer; returns the end of a call.
fn show(event: Event, method: &MethodDescriptor) -> Result<Option<Ended>, Stop> {
    match event.what {
        What::Head(_) => {}
        What::Message(message) => call::print(message, method.output())?,
        What::Answer(message, _) => {
            call::print(message, method.output())?;
            return Ok(Some(ended(Status::ok())));
        }
        What::Ended(ended) => return Ok(Some(ended)),
    }
    Ok(None)
}

/// Calls for an answer that another thread reads.
fn promised(
    client: &FutureClient,
    timeout: Option<Duration>,
    method: &MethodDescriptor,
    mut requests: Receiver<Read1>,
) -> Result<Ended, Stop> {
    let number = client.method(&call::path(method))?;
    let request = next(&mut requests)?.unwrap_or_default();
    let answer = client.call(number, &request, timeout)?;
    call::print(answer, method.output())?;
    Ok(ended(Status::ok()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::client::native::NativeOptions;
    use crate::client::native::tests::{Endless, METHOD};

    type Sent = Result<Option<Ended>, Stop>;

    /// Sends these to a server that answers without end; returns its count of frames, too.
    fn send_to_endless(messages: &[Bytes]) -> (Sent, usize) {
        let (carrier, sent) = Endless::new();
        let client = NativeClient::connect(Box::new(carrier), &NativeOptions::default());
        let mut client = client.expect("a greeting");
        let schema = Schema::of_program();
        let method = schema.method("grpc.testing.TestService/FullDuplexCall").expect("a method");
        let number = client.any_method(METHOD).expect("a method");
        let (sender, mut requests) = tokio::sync::mpsc::channel(messages.len());
        for message in messages {
            sender.try_send(Ok(message.clone())).expect("room");
        }
        drop(sender);
        let how = Begin::within(Some(Duration::from_secs(60)), Instant::now);
        let id = client.open(number, &how).expect("a call");
        let ended = send_all(&mut client, id, &method, &mut requests);
        (ended, sent.load(Relaxed))
    }

    #[test]
    fn requests_of_a_stream_are_sent_while_answers_come_without_end() {
        let (ended, sent) = send_to_endless(&[Bytes::new(), Bytes::new()]);
        assert!(matches!(ended, Ok(None)), "all are sent before the call ends");
        assert_eq!(sent, 4, "the call, two requests, and their end");
    }

    #[test]
    fn a_request_that_is_too_large_ends_the_call_while_answers_come_without_end() {
        // The server takes nine bytes.
        let (ended, _) = send_to_endless(&[Bytes::from_static(&[0; 10])]);
        let Err(Stop::Status(status)) = ended else { panic!("it is refused") };
        assert_eq!(status.code, Code::ResourceExhausted);
        assert!(status.to_string().contains("10 bytes"), "{status}");
    }
}
