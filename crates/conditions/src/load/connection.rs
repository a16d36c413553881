//! One slot's connection of HTTP/1.1: a request, and its answer read straight into place. To a
//! little answer a client of libraries takes longer than a server does, and a large one it copies
//! once more: it would be measured instead of the server.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use load::{Operation, Outcome};
use wire::ProtocolError;

use super::written::not_done;

/// How long a server may be silent; the engine's own time-out is shorter.
const SILENCE: Duration = Duration::from_secs(60);

/// The most bytes of an answer's head, and of its body: more than a server sends.
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_BODY_BYTES: usize = 512 << 20;

/// The most headers of an answer.
const MAX_HEADERS: usize = 64;

/// The most bytes of what is kept of an error.
const SAID_BYTES: usize = 400;

/// Why there is no answer that can be used.
#[derive(Debug)]
pub(super) enum Failed {
    /// The server answers with an error.
    Answered {
        /// The status.
        status: u16,
        /// The beginning of what it says.
        said: String,
    },
    /// The connection is of no use any more.
    Broken(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// An error is an answer to this number of operations; without an answer the slot ends.
pub(super) fn outcome(
    operation: &Operation,
    operations: u32,
    asked: Result<Outcome, Failed>,
) -> Result<Outcome, ProtocolError> {
    match asked {
        Ok(outcome) => Ok(outcome),
        Err(Failed::Answered { status, said }) => {
            // Too Many Requests, Service Unavailable (RFC 6585, 4; RFC 9110, 15.6.4).
            let is_refusal = matches!(status, 429 | 503);
            Ok(not_done(operation, operations, is_refusal, format!("status {status}: {said}")))
        }
        Err(Failed::Broken(why)) => Err(ProtocolError::new(why.to_string())),
    }
}

/// What an answer's head says.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    /// `ETag`.
    pub(super) tag: Option<String>,
    /// `Repr-Digest`.
    pub(super) digest: Option<String>,
    /// The revision that it was made at.
    pub(super) revision: Option<u64>,
    /// How long the server took by its own clock: `Server-Timing`.
    pub(super) server_ns: Option<f64>,
    length: usize,
    is_last: bool,
}

/// The bytes of an answer, whose memory is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Body {
    bytes: Vec<u8>,
    length: usize,
}

impl Body {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn read(&mut self, begun: &[u8], length: usize, from: &mut TcpStream) -> io::Result<()> {
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        self.bytes[..begun.len()].copy_from_slice(begun);
        from.read_exact(&mut self.bytes[begun.len()..length])?;
        self.length = length;
        Ok(())
    }
}

/// The connection, made with the first request and anew where the server has closed it.
#[derive(Debug)]
pub(super) struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    request: Vec<u8>,
    input: Box<[u8; MAX_HEAD_BYTES]>,
}

impl Connection {
    pub(super) fn new(address: SocketAddr) -> Self {
        let input = Box::new([0; MAX_HEAD_BYTES]);
        Self { address, stream: None, request: Vec::new(), input }
    }

    /// Leaves the connection: the next request makes another one. Returns whether the server had
    /// closed it before, where there was one.
    pub(super) fn leave(&mut self) -> Option<bool> {
        self.stream.take().map(|stream| has_ended(&stream))
    }

    /// Asks for a path with its query, unless the answer is still that of `tag`: its head has
    /// status 304 then.
    pub(super) fn get(
        &mut self,
        target: std::fmt::Arguments<'_>,
        tag: Option<&str>,
        body: &mut Body,
    ) -> Result<Head, Failed> {
        self.request.clear();
        write!(self.request, "GET {target} HTTP/1.1\r\nhost: {}\r\n", self.address)?;
        if let Some(tag) = tag {
            write!(self.request, "if-none-match: {tag}\r\n")?;
        }
        self.request.extend(b"\r\n");
        let is_kept = self.stream.is_some();
        match self.exchange(body) {
            // The server has closed it while nothing was asked.
            Err(error) if is_kept && is_closed(&error) => checked(self.exchange(body)?, body),
            head => checked(head?, body),
        }
    }

    /// Makes a change.
    pub(super) fn post(
        &mut self,
        target: &str,
        sent: &[u8],
        body: &mut Body,
    ) -> Result<Head, Failed> {
        self.request.clear();
        let (address, length) = (self.address, sent.len());
        write!(
            self.request,
            "POST {target} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        )?;
        self.request.extend(sent);
        checked(self.exchange(body)?, body)
    }

    fn exchange(&mut self, body: &mut Body) -> io::Result<Head> {
        let done = self.try_exchange(body);
        if done.as_ref().map_or(true, |head| head.is_last) {
            self.stream = None;
        }
        done
    }

    fn try_exchange(&mut self, body: &mut Body) -> io::Result<Head> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect(self.address)?),
        };
        stream.write_all(&self.request)?;
        let mut filled = 0;
        let (head, ends) = loop {
            match stream.read(&mut self.input[filled..])? {
                0 if filled == self.input.len() => return Err(bad("a head that is too long")),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
            if let Some(found) = read_head(&self.input[..filled])? {
                break found;
            }
        };
        let begun = &self.input[ends..filled];
        if begun.len() > head.length {
            return Err(bad("more bytes than the length that is stated"));
        }
        body.read(begun, head.length, stream)?;
        Ok(head)
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, SILENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    Ok(stream)
}

/// Whether the server has closed a connection on which nothing is awaited.
fn has_ended(stream: &TcpStream) -> bool {
    let looked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    looked.map_or_else(|error| error.kind() != ErrorKind::WouldBlock, |read| read == 0)
}

fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

fn bad(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the answer can't be read: {why}"))
}

/// What a status below 300 says, or 304.
fn checked(head: Head, body: &Body) -> Result<Head, Failed> {
    if head.status < 300 || head.status == 304 {
        return Ok(head);
    }
    let said = &body.bytes()[..body.length.min(SAID_BYTES)];
    let said = String::from_utf8_lossy(said).into_owned();
    Err(Failed::Answered { status: head.status, said })
}

/// An answer's head with its length, once it is whole.
fn read_head(input: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let ends = match answer.parse(input).map_err(|why| bad(&why.to_string()))? {
        httparse::Status::Complete(ends) => ends,
        httparse::Status::Partial => return Ok(None),
    };
    let status = answer.code.unwrap_or_default();
    let mut head = Head { status, is_last: answer.version != Some(1), ..Head::default() };
    let mut length = None;
    for header in &*answer.headers {
        let value = std::str::from_utf8(header.value).map_err(|_| bad("a header is no text"))?;
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            length = Some(value.trim().parse().map_err(|_| bad("its length is no number"))?);
        } else if is("connection") {
            head.is_last |= value.eq_ignore_ascii_case("close");
        } else if is("etag") {
            head.tag = Some(value.to_owned());
        } else if is("repr-digest") {
            head.digest = Some(value.to_owned());
        } else if is("server-timing") {
            head.server_ns = server_ns(value);
        } else if is(crate::protocol::REVISION) {
            head.revision = value.parse().ok();
        }
    }
    let has_none = status == 304 || status == 204;
    head.length = if has_none { 0 } else { length.ok_or_else(|| bad("it states no length"))? };
    match head.length <= MAX_BODY_BYTES {
        true => Ok(Some((head, ends))),
        false => Err(bad("it is too long")),
    }
}

/// The first duration of `Server-Timing`, which is in ms.
fn server_ns(value: &str) -> Option<f64> {
    let mut parts = value.split([';', ',']).map(str::trim);
    let took_ms: f64 = parts.find_map(|part| part.strip_prefix("dur="))?.parse().ok()?;
    (took_ms.is_finite() && took_ms >= 0.0).then_some(took_ms * 1e6)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nabc";
        for end in 0..text.len() - 3 {
            assert!(read_head(&text[..end]).expect("a beginning").is_none(), "{end}");
        }
        let (head, ends) = read_head(text).expect("a head").expect("all of it");
        assert_eq!((head.status, head.tag.as_deref(), head.length), (200, Some("\"a\""), 3));
        assert_eq!(&text[ends..], b"abc");
        for text in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
            assert!(read_head(text.as_bytes()).is_err(), "{text}");
        }
        let (head, _) = read_head(b"HTTP/1.0 304 X\r\n\r\n").expect("a head").expect("all of it");
        assert!(head.is_last && head.length == 0);
    }

    #[test]
    fn the_time_that_a_server_took_is_the_first_duration_that_it_names() {
        assert_eq!(server_ns("total;dur=0.125"), Some(125_000.0));
        assert_eq!(server_ns("cache;desc=\"hit\", db;dur=2, app;dur=3"), Some(2e6));
        for value in ["", "total", "total;dur=", "dur=x", "dur=-1", "dur=inf", "dur=NaN"] {
            assert_eq!(server_ns(value), None, "{value}");
        }
    }

    #[test]
    fn a_connection_that_the_server_has_closed_meanwhile_is_told_from_one_that_it_keeps() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let at = listener.local_addr().expect("bound");
        let connected = || {
            let mut connection = Connection::new(at);
            connection.stream = Some(connect(at).expect("a connection"));
            (connection, listener.accept().expect("a client").0)
        };
        let (mut kept, _open) = connected();
        assert_eq!((kept.leave(), kept.leave()), (Some(false), None));
        let (mut closed, socket) = connected();
        drop(socket);
        // Until the end has come.
        let stream = closed.stream.as_mut().expect("connected");
        assert_eq!(stream.read(&mut [0]).expect("its end"), 0);
        assert_eq!(closed.leave(), Some(true));
    }

    #[test]
    fn a_question_is_asked_again_where_the_server_has_closed_the_connection_before() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let mut connection = Connection::new(listener.local_addr().expect("bound"));
        let server = std::thread::spawn(move || {
            for _ in 0..3 {
                let (mut socket, _) = listener.accept().expect("a client");
                let _ = socket.read(&mut [0; 4_096]).expect("a request");
                socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").expect("sent");
            }
        });
        let mut body = Body::default();
        for _ in 0..2 {
            let head = connection.get(format_args!("/"), None, &mut body).expect("an answer");
            assert_eq!((head.status, body.bytes()), (200, &b"ab"[..]));
        }
        // A change might be made twice: it is not repeated.
        assert!(matches!(connection.post("/", b"{}", &mut body), Err(Failed::Broken(_))));
        connection.post("/", b"{}", &mut body).expect("an answer");
        server.join().expect("done");
    }
}
