//! Little questions, answered as they come. Where an answer is at hand, to take a request apart in
//! full and find its handler takes longer than the answer does. Whatever is no such question goes
//! on as it would have, and all that follows it on its connection.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::{Response, StatusCode};
use hyper::body::Buf;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;

use super::guard::Guard;
use super::patient::{Patient, Requests};

/// A request's line and headers may be this long together.
pub(super) const MAX_HEAD_BYTES: usize = 16 << 10;

/// The most headers of a question.
const MAX_HEADERS: usize = 64;

/// What a connection has at first for what it reads.
const INPUT_BYTES: usize = 1 << 10;

/// Bodies up to this length are sent in one piece with their head.
const JOINED_BYTES: usize = 32 << 10;

/// A question as it came: GET in HTTP/1.1, of this server, without a body.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The path, as it is written.
    pub path: &'a str,
    /// What follows its `?`.
    pub query: &'a str,
    headers: &'a [httparse::Header<'a>],
}

impl<'a> Question<'a> {
    /// The values of a header, those that are text.
    pub fn values(self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = self.headers.iter().filter(move |one| one.name.eq_ignore_ascii_case(name));
        named.filter_map(|one| std::str::from_utf8(one.value).ok())
    }
}

/// What is answered.
pub enum Quickly {
    /// This.
    Answer(Response<Bytes>),
    /// It has to be asked again after this.
    Wait(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It is no question that is answered here.
    Other,
}

/// What answers little questions of a [`Face::Api`](super::Face::Api). It is called on the thread
/// of connections, which must not wait.
pub trait Quick: Send + Sync {
    /// The answer to a question.
    fn answer(&self, question: &Question<'_>) -> Quickly;
}

/// What the questions of one connection need.
pub(super) struct Talk {
    pub(super) quick: Arc<dyn Quick>,
    pub(super) guard: Arc<Guard>,
    pub(super) requests: Arc<Requests>,
    /// Changes when the server ends.
    pub(super) ended: watch::Receiver<()>,
}

/// What is to be done with what came.
enum Step {
    Read,
    /// The answer to what ends there.
    Send(Response<Bytes>, usize),
    Wait(Pin<Box<dyn Future<Output = ()> + Send>>),
    Other,
}

impl Talk {
    /// Answers questions until something else comes: returns what came of that. `None` once the
    /// connection has ended.
    pub(super) async fn go<S>(mut self, stream: &mut Patient<S>) -> Option<Vec<u8>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut input, mut out) = (Vec::with_capacity(INPUT_BYTES), Vec::new());
        // The host that was named and taken last.
        let mut host = Vec::new();
        let mut begun = Instant::now();
        loop {
            match self.step(&input, &mut host) {
                Step::Read => tokio::select! {
                    read = stream.read_buf(&mut input) => read.ok().filter(|read| *read > 0)?,
                    _ = self.ended.changed() => return None,
                },
                Step::Send(mut answer, ends) => {
                    let _open = self.requests.begin();
                    self.guard.add_headers(&mut answer, begun.elapsed());
                    send(stream, &answer, &mut out).await?;
                    input.drain(..ends);
                    begun = Instant::now();
                    continue;
                }
                Step::Wait(over) => {
                    let _open = self.requests.begin();
                    over.await;
                    continue;
                }
                Step::Other => return Some(input),
            };
            begun = Instant::now();
        }
    }

    fn step(&self, input: &[u8], host: &mut Vec<u8>) -> Step {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let ends = match request.parse(input) {
            Ok(httparse::Status::Complete(ends)) => ends,
            Ok(httparse::Status::Partial) if input.len() < MAX_HEAD_BYTES => return Step::Read,
            _ => return Step::Other,
        };
        let (Some(target), Some("GET"), Some(1)) = (request.path, request.method, request.version)
        else {
            return Step::Other;
        };
        let headers = &*request.headers;
        if !target.starts_with('/') || !headers.iter().all(is_plain) || !self.is_ours(headers, host)
        {
            return Step::Other;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match self.quick.answer(&Question { path, query, headers }) {
            Quickly::Answer(answer) => Step::Send(answer, ends),
            Quickly::Wait(over) => Step::Wait(over),
            Quickly::Other => Step::Other,
        }
    }

    /// Whether the one host that is named is this server's.
    fn is_ours(&self, headers: &[httparse::Header<'_>], host: &mut Vec<u8>) -> bool {
        let mut hosts = headers.iter().filter(|one| one.name.eq_ignore_ascii_case("host"));
        let (Some(named), None) = (hosts.next(), hosts.next()) else { return false };
        if named.value == *host {
            return true;
        }
        let is_taken = self.guard.takes(named.value);
        if is_taken {
            named.value.clone_into(host);
        }
        is_taken
    }
}

/// Whether a header asks for nothing that is not done here: a body, another end of the connection,
/// a part of the answer, or something of the connection itself.
fn is_plain(header: &httparse::Header<'_>) -> bool {
    const OTHER: [&str; 8] = [
        "connection",
        "content-length",
        "transfer-encoding",
        "expect",
        "upgrade",
        "te",
        "trailer",
        "range",
    ];
    let is_other = OTHER.iter().any(|other| header.name.eq_ignore_ascii_case(other));
    !is_other
        || header.name.eq_ignore_ascii_case("connection")
            && header.value.eq_ignore_ascii_case(b"keep-alive")
}

/// Sends an answer; `None` where that isn't possible any more.
async fn send<S>(stream: &mut Patient<S>, answer: &Response<Bytes>, out: &mut Vec<u8>) -> Option<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let body = answer.body();
    out.clear();
    write_head(answer, out);
    if body.len() <= JOINED_BYTES {
        out.extend_from_slice(body);
        return stream.write_all(out).await.ok();
    }
    stream.write_all_buf(&mut Buf::chain(&out[..], body.clone())).await.ok()
}

fn write_head(answer: &Response<Bytes>, out: &mut Vec<u8>) {
    let status = answer.status();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in answer.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    let mut rest = String::with_capacity(64);
    if status != StatusCode::NOT_MODIFIED {
        // Writing to a string can't fail.
        let _ = write!(rest, "content-length: {}\r\n", answer.body().len());
    }
    add_date(&mut rest);
    out.extend_from_slice(rest.as_bytes());
}

/// Adds the last line of a head, which is made once a second.
fn add_date(out: &mut String) {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(made, line)| {
        if *made != second || line.is_empty() {
            (*made, *line) = (second, format!("date: {}\r\n\r\n", httpdate::fmt_http_date(now)));
        }
        out.push_str(line);
    });
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;

    use super::*;
    use crate::{BoundHttp, Face, HttpServer, HttpSettings};

    /// Answers `/quick` with its query.
    struct Query;

    impl Quick for Query {
        fn answer(&self, question: &Question<'_>) -> Quickly {
            match question.path {
                "/quick" => Quickly::Answer(Response::new(question.query.to_owned().into())),
                "/large" => Quickly::Answer(Response::new(vec![b'x'; 1 << 20].into())),
                _ => Quickly::Other,
            }
        }
    }

    fn serve() -> HttpServer {
        let address = ([127, 0, 0, 1], 0).into();
        let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
        let bound = BoundHttp::bind(settings).expect("an address").quickly(Arc::new(Query));
        let routed = || get(async || "routed").post(async || "routed");
        let router = Router::new().route("/quick", routed()).route("/other", routed());
        bound.start(|_| router).expect("a server")
    }

    /// What is answered to these bytes, in pieces, until the server closes the connection.
    fn ask(server: &HttpServer, text: &str, piece: usize) -> String {
        let mut socket = TcpStream::connect(server.address()).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let text = text.replace("HERE", &server.address().to_string());
        for some in text.as_bytes().chunks(piece) {
            socket.write_all(some).expect("sent");
        }
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }

    const LAST: &str = "GET /other HTTP/1.1\r\nHost: HERE\r\nConnection: close\r\n\r\n";

    #[test]
    fn questions_are_answered_in_their_order_however_they_come_and_so_is_what_follows() {
        let server = serve();
        let quick = |number: u32| format!("GET /quick?{number} HTTP/1.1\r\nHOST: HERE\r\n\r\n");
        let asked = [quick(1), quick(2), LAST.replace("Connection: close\r\n", ""), quick(3)];
        let asked = asked.concat() + LAST;
        for piece in [1, 7, 4_096] {
            let answer = ask(&server, &asked, piece);
            let bodies: Vec<_> = answer.split("\r\n\r\n").skip(1).collect();
            let bodies: Vec<_> =
                bodies.iter().map(|body| body.split("HTTP/").next().unwrap_or("")).collect();
            assert_eq!(bodies, ["1", "2", "routed", "routed", "routed"], "{answer}");
            assert_eq!(answer.matches("\r\ndate: ").count(), 5);
            assert_eq!(answer.matches("\r\ncontent-security-policy: ").count(), 5);
            assert_eq!(answer.matches("\r\nserver-timing: total;dur=").count(), 5);
        }
    }

    #[test]
    fn what_asks_for_more_than_an_answer_goes_to_the_router() {
        let server = serve();
        let body =
            |text: &str| ask(&server, text, 4_096).split("\r\n\r\n").last().map(str::to_owned);
        let close = "Connection: close\r\n\r\n";
        for (head, said) in [
            ("GET /quick?a HTTP/1.1\r\nHost: HERE\r\n", "routed"),
            ("GET /quick?a HTTP/1.0\r\nHost: HERE\r\n", "routed"),
            ("POST /quick?a HTTP/1.1\r\nHost: HERE\r\n", "routed"),
            ("GET /quick?a HTTP/1.1\r\nHost: HERE\r\nRange: bytes=0-1\r\n", "routed"),
        ] {
            assert_eq!(body(&format!("{head}{close}")).as_deref(), Some(said), "{head}");
        }
        let other = "GET /quick HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
        assert!(ask(&server, other, 4_096).starts_with("HTTP/1.1 421 "));
        let two = "GET /quick HTTP/1.1\r\nHost: HERE\r\nHost: HERE\r\nConnection: close\r\n\r\n";
        assert!(ask(&server, two, 4_096).starts_with("HTTP/1.1 421 "));
        let bad = ask(&server, "GET /quick HTTP/1.1\r\nno header\r\n\r\n", 4_096);
        assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
        let long = format!("GET /quick?{} HTTP/1.1\r\nHost: HERE\r\n\r\n", "x".repeat(20_000));
        let long = ask(&server, &long, 4_096);
        assert!(long.starts_with("HTTP/1.1 431 ") || long.starts_with("HTTP/1.1 414 "), "{long}");
    }

    #[test]
    fn a_large_answer_is_sent_whole_and_an_idle_connection_holds_up_no_end() {
        let server = serve();
        let large = "GET /large HTTP/1.1\r\nHost: HERE\r\n\r\n".to_owned() + LAST;
        let answer = ask(&server, &large, 4_096);
        assert!(answer.contains(&"x".repeat(1 << 20)) && answer.ends_with("routed"));
        let mut idle = TcpStream::connect(server.address()).expect("a connection");
        let asked = format!("GET /quick?a HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
        idle.write_all(asked.as_bytes()).expect("sent");
        assert!(idle.read(&mut [0; 4_096]).expect("an answer") > 0);
        let begun = Instant::now();
        server.stop(Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(idle.read(&mut [0]).expect("its end"), 0);
    }
}
