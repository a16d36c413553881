//! One call: what is sent, and what comes.

use std::future::poll_fn;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http_types::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};
use tokio::time::{Instant, timeout_at};

use super::connect::Client;
use super::options::CallOptions;
use crate::protocol::compression::Encoding;
use crate::protocol::frames::{Reader, frame};
use crate::protocol::metadata::{Metadata, from_base64, is_binary, to_base64};
use crate::protocol::status::{Code, Ended, Status};
use crate::protocol::{percent, timeout};

/// A first message of at most this many bytes is handed to h2 at once, and leaves by one write with
/// the head of its call; others wait for room, which h2 has once the head has left.
const AT_ONCE_BYTES: usize = 1 << 10;

/// Sends the messages of a call. Dropping it before [`Sender::end`] cancels the call.
#[derive(Debug)]
pub struct Sender {
    stream: SendStream<Bytes>,
    encoding: Option<Encoding>,
    deadline: Option<Instant>,
    /// Nothing was sent yet.
    is_first: bool,
}

/// Receives those of the answer.
#[derive(Debug)]
pub struct Receiver {
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    reader: Reader,
    deadline: Option<Instant>,
    most_bytes: usize,
    headers: Metadata,
    /// The end, where the head has a status: it counts if neither data nor trailers follow.
    in_head: Option<Ended>,
    ended: Option<Ended>,
}

/// The end of a call that has none.
fn given_up() -> Ended {
    let status = Status::new(Code::Cancelled, "the call was given up");
    Ended { status, trailers: Metadata::default() }
}

fn broken(error: &h2::Error) -> Status {
    match error.reason().filter(|_| error.is_reset()) {
        Some(reason) => {
            let words = format!("the server has reset the call: {reason}");
            Status::new(Code::of_reset(reason.into()), words)
        }
        None => Status::new(Code::Unavailable, format!("the connection broke: {error}")),
    }
}

/// Waits for what a call needs, until its deadline.
async fn in_time<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let Some(deadline) = deadline else { return work.await };
    let late = || Status::new(Code::DeadlineExceeded, "the deadline of the call has passed");
    match timeout_at(deadline, work).await {
        // A server may see it first, and reset the call.
        Ok(Err(status)) if status.code == Code::Cancelled && deadline <= Instant::now() => {
            Err(late())
        }
        Ok(done) => done,
        Err(_) => Err(late()),
    }
}

impl Client {
    /// Calls `/package.Service/Method` with one message, for one.
    ///
    /// # Errors
    /// As the call ends, or where its answer isn't one message.
    pub async fn call(
        &self,
        path: &str,
        request: &[u8],
        options: &CallOptions,
    ) -> Result<Bytes, Ended> {
        let failed = |status| Ended { status, trailers: Metadata::default() };
        let (mut sender, mut receiver) = self.open(path, options).await.map_err(failed)?;
        // The receiver reports how a call ends.
        let _ = sender.send(request).await;
        let _ = sender.end();
        receiver.only().await.map(|(answer, _)| answer)
    }

    /// Begins a call of `/package.Service/Method`.
    ///
    /// # Errors
    /// When the connection has ended, metadata can't be sent, or the server takes no further call
    /// in time.
    pub async fn open(
        &self,
        path: &str,
        options: &CallOptions,
    ) -> Result<(Sender, Receiver), Status> {
        let request = self.request(path, options)?;
        let deadline = options.timeout.map(|time| Instant::now() + time);
        let ready = self.sender.clone().ready();
        let ready = async { ready.await.map_err(|error| broken(&error)) };
        let mut sender = in_time(deadline, ready).await?;
        let (response, stream) =
            sender.send_request(request, false).map_err(|error| broken(&error))?;
        let encoding = options.gzip.then_some(Encoding::Gzip);
        let receiver = Receiver {
            response: Some(response),
            body: None,
            reader: Reader::new(options.max_message_bytes, None),
            deadline,
            most_bytes: options.max_message_bytes,
            headers: Metadata::default(),
            in_head: None,
            ended: None,
        };
        Ok((Sender { stream, encoding, deadline, is_first: true }, receiver))
    }

    fn request(&self, path: &str, options: &CallOptions) -> Result<Request<()>, Status> {
        let wrong = |why: &dyn std::fmt::Display| {
            Status::new(Code::InvalidArgument, format!("the call can't be sent: {why}"))
        };
        let uri = format!("{}://{}{path}", self.scheme, self.authority);
        let mut request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(uri)
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .header("grpc-accept-encoding", "gzip, zstd")
            .header("user-agent", concat!("loadline/", env!("CARGO_PKG_VERSION")));
        if let Some(time) = options.timeout {
            request = request.header("grpc-timeout", timeout::format(time));
        }
        if options.gzip {
            request = request.header("grpc-encoding", "gzip");
        }
        for (name, value) in options.metadata.iter() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|why| wrong(&why))?;
            let value = match is_binary(name.as_str()) {
                true => HeaderValue::from_str(&to_base64(value)),
                false => HeaderValue::from_bytes(value),
            };
            request = request.header(name, value.map_err(|why| wrong(&why))?);
        }
        request.body(()).map_err(|why| wrong(&why))
    }
}

impl Sender {
    /// Sends a message, as the server has room for it.
    ///
    /// # Errors
    /// When the call has ended, or its deadline has passed; [`Receiver::next`] says how.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), Status> {
        let mut rest = frame(message, self.encoding);
        if std::mem::take(&mut self.is_first) && rest.len() <= AT_ONCE_BYTES {
            return self.stream.send_data(rest, false).map_err(|error| broken(&error));
        }
        while !rest.is_empty() {
            self.stream.reserve_capacity(rest.len());
            while self.stream.capacity() == 0 {
                let room = poll_fn(|context| self.stream.poll_capacity(context));
                let room = async {
                    match room.await {
                        Some(room) => room.map_err(|error| broken(&error)),
                        None => Err(Status::new(Code::Unavailable, "the call has ended")),
                    }
                };
                in_time(self.deadline, room).await?;
            }
            let piece = rest.split_to(self.stream.capacity().min(rest.len()));
            self.stream.send_data(piece, false).map_err(|error| broken(&error))?;
        }
        Ok(())
    }

    /// Says that there are no more messages.
    ///
    /// # Errors
    /// When the call has ended.
    pub fn end(&mut self) -> Result<(), Status> {
        self.stream.send_data(Bytes::new(), true).map_err(|error| broken(&error))
    }
}

impl Receiver {
    /// The next message; `None` once the call has ended, which [`Receiver::ended`] describes.
    pub async fn next(&mut self) -> Option<Bytes> {
        if self.ended.is_some() {
            return None;
        }
        in_time(self.deadline, self.try_next()).await.unwrap_or_else(|status| {
            self.ended.get_or_insert(Ended { status, trailers: Metadata::default() });
            None
        })
    }

    /// The one message of an answer, and the metadata behind it.
    ///
    /// # Errors
    /// As the call ends, or where its answer isn't one message.
    pub async fn only(&mut self) -> Result<(Bytes, Metadata), Ended> {
        let (answer, mut count) = (self.next().await, 1);
        while self.next().await.is_some() {
            count += 1;
        }
        let Ended { status, trailers } = self.ended.take().unwrap_or_else(given_up);
        let words = match answer {
            _ if status.code != Code::Ok => return Err(Ended { status, trailers }),
            Some(answer) if count == 1 => return Ok((answer, trailers)),
            Some(_) => format!("the answer has {count} messages, and one is due"),
            None => "the answer has no message, and one is due".to_owned(),
        };
        Err(Ended { status: Status::new(Code::Unimplemented, words), trailers })
    }

    /// Metadata before the first message.
    pub fn headers(&self) -> &Metadata {
        &self.headers
    }

    /// Its status, as far as it is known.
    pub(super) fn status(&self) -> Status {
        let unknown = || Status::new(Code::Unknown, "the call goes on");
        self.ended.as_ref().map_or_else(unknown, |ended| ended.status.clone())
    }

    /// How the call ended, once [`Receiver::next`] has returned `None`.
    pub fn ended(self) -> Ended {
        self.ended.unwrap_or_else(given_up)
    }

    async fn try_next(&mut self) -> Result<Option<Bytes>, Status> {
        if let Some(response) = &mut self.response {
            let response = response.await.map_err(|error| broken(&error))?;
            self.response = None;
            self.begin(response)?;
        }
        loop {
            let most_bytes = self.most_bytes;
            let next = self.reader.next().map_err(|status| own_limit(status, most_bytes))?;
            if let Some((message, _)) = next {
                return Ok(Some(message));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match body.data().await {
                Some(Ok(piece)) => {
                    // The server has more to send than it may only if it breaks the protocol.
                    let _ = body.flow_control().release_capacity(piece.len());
                    self.in_head = self.in_head.take().filter(|_| piece.is_empty());
                    self.reader.push(piece);
                }
                Some(Err(error)) => return Err(broken(&error)),
                None => {
                    let trailers = body.trailers().await.map_err(|error| broken(&error))?;
                    self.body = None;
                    self.reader.finish()?;
                    let in_head = self.in_head.take().filter(|_| trailers.is_none());
                    let of_trailers = || ended(&trailers.unwrap_or_default(), None);
                    self.ended = Some(in_head.unwrap_or_else(of_trailers));
                    return Ok(None);
                }
            }
        }
    }

    fn begin(&mut self, response: http_types::Response<RecvStream>) -> Result<(), Status> {
        let (head, body) = response.into_parts();
        let http = head.status.as_u16();
        if body.is_end_stream() || http != 200 {
            self.ended = Some(ended(&head.headers, Some(http)));
            return Ok(());
        }
        let kind = head.headers.get("content-type").map_or(&b"application/grpc"[..], |one| {
            let kind = one.as_bytes().split(|byte| *byte == b';').next();
            kind.unwrap_or_default().trim_ascii()
        });
        if ![&b"application/grpc"[..], b"application/grpc+proto"].contains(&kind) {
            let kind = String::from_utf8_lossy(kind);
            let words = format!("the answer is \"{kind}\", not application/grpc");
            return Err(Status::new(Code::Unknown, words));
        }
        let has_status = head.headers.contains_key("grpc-status");
        self.in_head = has_status.then(|| ended(&head.headers, None));
        let named = head.headers.get("grpc-encoding").map_or(&b""[..], HeaderValue::as_bytes);
        let Some(encoding) = Encoding::of(named) else {
            let named = String::from_utf8_lossy(named);
            let words = format!("the answer is compressed with \"{named}\", which isn't known");
            return Err(Status::new(Code::Internal, words));
        };
        self.reader = Reader::new(self.most_bytes, encoding);
        self.headers = metadata(&head.headers);
        self.body = Some(body);
        Ok(())
    }
}

/// A message over the limit is refused here, not by the server, whose words the reader has.
fn own_limit(status: Status, most_bytes: usize) -> Status {
    match status.code {
        Code::ResourceExhausted => {
            let words = format!(
                "a message of the answer is larger than {most_bytes} bytes: allow more with \
                 --max-message"
            );
            Status::new(Code::ResourceExhausted, words)
        }
        _ => status,
    }
}

/// The end of a call, by its trailers, or by the status of HTTP where there is none of gRPC.
fn ended(headers: &HeaderMap, http: Option<u16>) -> Ended {
    let text = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    let number = text("grpc-status").map(|value| {
        std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(2)
    });
    let message = text("grpc-message").map(percent::decode);
    let status = match (number, http) {
        (Some(number), _) => {
            let details = text("grpc-status-details-bin").and_then(from_base64);
            let details = details.and_then(|all| all.into_iter().next()).unwrap_or_default();
            Status { code: Code::of(number), message: message.unwrap_or_default(), details }
        }
        (None, Some(http)) if http != 200 => {
            let words = format!("an answer of HTTP without grpc-status, with status {http}");
            Status::new(Code::of_http(http), words)
        }
        (None, _) => Status::new(Code::Unknown, "the answer has no grpc-status"),
    };
    Ended { status, trailers: metadata(headers) }
}

/// The metadata of an application.
fn metadata(headers: &HeaderMap) -> Metadata {
    let mut metadata = Metadata::default();
    for (name, value) in headers {
        let name = name.as_str();
        if name == "content-type" || name.starts_with("grpc-") {
            continue;
        }
        match from_base64(value.as_bytes()).filter(|_| is_binary(name)) {
            Some(values) => values.into_iter().for_each(|value| metadata.add(name, value)),
            None => metadata.add(name, value.as_bytes().to_vec()),
        }
    }
    metadata
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use h2::server::SendResponse;
    use http_types::Response;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::super::metered::Shared;
    use super::*;

    /// What a call comes to, whose server does this with it.
    fn called(
        request: &[u8],
        time: Duration,
        serve: impl Fn(SendResponse<Bytes>),
    ) -> Result<Bytes, Status> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (one, two) = UnixStream::pair().expect("a pair");
            let serving = async {
                let mut server = h2::server::handshake(two).await.expect("a client");
                // What is dropped would be reset.
                let mut kept = Vec::new();
                while let Some(Ok((request, respond))) = server.accept().await {
                    kept.push(request.into_body());
                    serve(respond);
                }
            };
            let calling = async {
                let client = Client::begin(one, "a".to_owned(), "http", Shared::default())
                    .await
                    .expect("a server");
                let options = CallOptions { timeout: Some(time), ..CallOptions::default() };
                let called = client.call("/a.B/C", request, &options).await;
                called.map_err(|ended| ended.status)
            };
            let both = async {
                tokio::select! {
                    called = calling => called,
                    () = serving => panic!("the server has ended"),
                }
            };
            timeout(Duration::from_secs(30), both).await.expect("it ends")
        })
    }

    /// An answer of messages, each one byte, and its status.
    fn answer(mut respond: SendResponse<Bytes>, messages: usize, status: &'static str) {
        let mut stream = respond.send_response(Response::new(()), false).expect("sent");
        for _ in 0..messages {
            stream.send_data(frame(b"x", None), false).expect("sent");
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(status));
        stream.send_trailers(trailers).expect("sent");
    }

    #[test]
    fn a_deadline_ends_a_call_whose_request_finds_no_room() {
        // Its window is not granted again, as nothing takes what comes.
        let kept = RefCell::new(Vec::new());
        let called = called(&vec![7; 1 << 20], Duration::from_millis(20), |respond| {
            kept.borrow_mut().push(respond);
        });
        assert_eq!(called.expect_err("late").code, Code::DeadlineExceeded);
    }

    #[test]
    fn an_answer_is_one_message_and_a_status_of_ok() {
        let minute = Duration::from_secs(60);
        for (messages, status, right) in [
            (1, "0", Ok("x")),
            (1, "13", Err(Code::Internal)),
            (0, "0", Err(Code::Unimplemented)),
            (2, "0", Err(Code::Unimplemented)),
        ] {
            let called = called(b"y", minute, |respond| answer(respond, messages, status));
            let called = called.as_deref().map_err(|status| status.code);
            assert_eq!(called, right.map(str::as_bytes), "{messages} messages, status {status}");
        }
    }

    #[test]
    fn a_call_that_is_reset_when_its_deadline_has_passed_is_late() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let reset = || async { Err::<(), _>(Status::new(Code::Cancelled, "reset")) };
            let hour = Duration::from_secs(3_600);
            for (deadline, right) in [
                (None, Code::Cancelled),
                (Some(Instant::now()), Code::DeadlineExceeded),
                (Some(Instant::now() + hour), Code::Cancelled),
            ] {
                let code = in_time(deadline, reset()).await.expect_err("no answer").code;
                assert_eq!(code, right, "{deadline:?}");
            }
        });
    }

    #[test]
    fn an_answer_of_another_content_type_is_none() {
        for (kind, right) in [
            ("application/grpc", Ok("x")),
            ("application/grpc+proto", Ok("x")),
            ("application/grpc; charset=utf-8", Ok("x")),
            ("application/grpc+json", Err(Code::Unknown)),
            ("text/html", Err(Code::Unknown)),
        ] {
            let called = called(b"y", Duration::from_secs(60), |mut respond| {
                let head = Response::builder().header("content-type", kind).body(());
                let head = head.expect("a head");
                let mut stream = respond.send_response(head, false).expect("sent");
                stream.send_data(frame(b"x", None), false).expect("sent");
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                stream.send_trailers(trailers).expect("sent");
            });
            let called = called.as_deref().map_err(|status| status.code);
            assert_eq!(called, right.map(str::as_bytes), "{kind}");
        }
    }

    #[test]
    fn a_status_in_the_head_of_an_answer_counts_where_nothing_follows() {
        for (has_message, has_trailers, right) in [
            (false, false, Err(Code::FailedPrecondition)),
            (true, false, Err(Code::Unknown)),
            (true, true, Ok("x")),
        ] {
            let called = called(b"y", Duration::from_secs(60), |mut respond| {
                let head = Response::builder().header("grpc-status", "9").body(()).expect("a head");
                let mut stream = respond.send_response(head, false).expect("sent");
                if has_message {
                    stream.send_data(frame(b"x", None), false).expect("sent");
                }
                if has_trailers {
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", HeaderValue::from_static("0"));
                    stream.send_trailers(trailers).expect("sent");
                } else {
                    stream.send_data(Bytes::new(), true).expect("sent");
                }
            });
            let called = called.as_deref().map_err(|status| status.code);
            assert_eq!(called, right.map(str::as_bytes), "{has_message} {has_trailers}");
        }
    }
}
