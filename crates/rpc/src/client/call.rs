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

/// Sends the messages of a call. Dropping it before [`Sender::end`] cancels the call.
#[derive(Debug)]
pub struct Sender {
    stream: SendStream<Bytes>,
    encoding: Option<Encoding>,
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
    ended: Option<Ended>,
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

impl Client {
    /// Begins a call of `/package.Service/Method`.
    ///
    /// # Errors
    /// When the connection has ended, or metadata can't be sent.
    pub async fn open(
        &self,
        path: &str,
        options: &CallOptions,
    ) -> Result<(Sender, Receiver), Status> {
        let request = self.request(path, options)?;
        let ready = self.sender.clone().ready().await;
        let mut sender = ready.map_err(|error| broken(&error))?;
        let (response, stream) =
            sender.send_request(request, false).map_err(|error| broken(&error))?;
        let encoding = options.gzip.then_some(Encoding::Gzip);
        let receiver = Receiver {
            response: Some(response),
            body: None,
            reader: Reader::new(options.max_message_bytes, None),
            deadline: options.timeout.map(|time| Instant::now() + time),
            most_bytes: options.max_message_bytes,
            headers: Metadata::default(),
            ended: None,
        };
        Ok((Sender { stream, encoding }, receiver))
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
    /// When the call has ended; [`Receiver::next`] says how.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), Status> {
        let mut rest = frame(message, self.encoding);
        while !rest.is_empty() {
            self.stream.reserve_capacity(rest.len());
            while self.stream.capacity() == 0 {
                match poll_fn(|context| self.stream.poll_capacity(context)).await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(broken(&error)),
                    None => return Err(Status::new(Code::Unavailable, "the call has ended")),
                }
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
        let deadline = self.deadline;
        let next = self.try_next();
        let next = match deadline {
            None => next.await,
            Some(deadline) => timeout_at(deadline, next).await.unwrap_or_else(|_| {
                Err(Status::new(Code::DeadlineExceeded, "the deadline of the call has passed"))
            }),
        };
        next.unwrap_or_else(|status| {
            self.ended.get_or_insert(Ended { status, trailers: Metadata::default() });
            None
        })
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
        self.ended.unwrap_or_else(|| Ended {
            status: Status::new(Code::Cancelled, "the call was given up"),
            trailers: Metadata::default(),
        })
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
                    self.reader.push(piece);
                }
                Some(Err(error)) => return Err(broken(&error)),
                None => {
                    let trailers = body.trailers().await.map_err(|error| broken(&error))?;
                    self.body = None;
                    self.reader.finish()?;
                    self.ended = Some(ended(&trailers.unwrap_or_default(), None));
                    return Ok(None);
                }
            }
        }
    }

    fn begin(&mut self, response: http_types::Response<RecvStream>) -> Result<(), Status> {
        let (head, body) = response.into_parts();
        let http = head.status.as_u16();
        if head.headers.contains_key("grpc-status") || body.is_end_stream() || http != 200 {
            self.ended = Some(ended(&head.headers, Some(http)));
            return Ok(());
        }
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
