//! The first answer of a web server, before it is loaded: what is wrong with every answer is better
//! known before the first of them.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use http::load::{MAX_BODY_BYTES, Trust, fault_of, secured};
use http::protocol::{Ending, Part, Responses};
use wire::ProtocolError;

use super::side::Web;
use crate::exit::Failure;

/// How long the first answer may take, with the handshake, however it trickles.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer may take where another protocol was asked for and didn't answer: an address
/// that never answers has been waited for already.
const SECOND_PATIENCE: Duration = Duration::from_secs(1);

/// How an answer of HTTP begins.
const HTTP: &[u8] = b"HTTP/";

/// The most of another answer that is shown.
const SHOWN_CHARS: usize = 60;

/// What a server said to a request of HTTP.
#[derive(Debug)]
enum Answer {
    /// In HTTP: its head, with what came together with it, and what is wrong with the rest.
    Http(String, Rest),
    /// In HTTP, and wrong.
    Wrong(ProtocolError),
    /// Something else.
    Other(Vec<u8>),
    /// Nothing but this many bytes of a head: it closed the connection.
    Closed(usize),
    /// Nothing else in time.
    Late(usize),
}

/// What follows the head of an answer.
#[derive(Debug)]
enum Rest {
    /// A whole body.
    Whole,
    /// What no client of HTTP/1.1 would take for one.
    Wrong(String),
    /// This many bytes of one: the server closed the connection.
    Cut(u64),
    /// This many bytes of one in time.
    Late(u64),
}

/// Asks for the page once.
///
/// # Errors
/// When no whole answer comes, one that is no HTTP, or one with another status than the right one,
/// with what could be meant. Whether its body is the right one is for the run to say.
pub(super) fn check(web: &Web, trust: &Trust, status: u16) -> Result<(), Failure> {
    let Web { authority, address, path, .. } = web;
    let url = web.url();
    let unanswered = |error: Error| Failure::Other(anyhow::anyhow!("{url}: {error}"));
    let stream = open(address, PATIENCE).map_err(unanswered)?;
    let answer = match web.is_secure {
        false => ask(stream, web.host_field(), path),
        true => {
            let stream = secured(stream, trust, web.host());
            let stream = stream.map_err(|fault| Failure::Usage(format!("{url}: {fault}")))?;
            ask(stream, web.host_field(), path)
        }
    };
    let answer = answer.map_err(unanswered)?;
    let failure = match answer {
        Answer::Http(head, rest) => match (unexpected(web, &head, status), rest) {
            (Some(said), _) => return Err(Failure::Usage(said)),
            (None, Rest::Whole) => return Ok(()),
            (None, Rest::Wrong(fault)) => return Err(Failure::Usage(not_http(&url, &fault))),
            (None, Rest::Cut(bytes)) => format!(
                "{url} is not answered to the end: {authority} closed the connection after {bytes} \
                 bytes of the body"
            ),
            (None, Rest::Late(bytes)) => format!(
                "{url} is not answered to the end: {bytes} bytes of the body came in {} s\n  does \
                 it ever end? What is measured are whole answers",
                PATIENCE.as_secs()
            ),
        },
        Answer::Other(bytes) => return Err(Failure::Usage(other(&url, address, &bytes))),
        Answer::Wrong(fault) => {
            return Err(Failure::Usage(not_http(&url, &fault.to_string())));
        }
        Answer::Closed(bytes @ 1..) => format!(
            "{url} is not answered: {bytes} bytes came, and no whole head, before {authority} \
             closed the connection"
        ),
        Answer::Late(bytes @ 1..) => format!(
            "{url} is not answered: {bytes} bytes came in {} s, and no whole head",
            PATIENCE.as_secs()
        ),
        Answer::Closed(0) => {
            let closes = format!("{authority} takes the connection and closes it");
            return Err(unheard(web, &format!("{url} is not answered: {closes}")));
        }
        Answer::Late(0) => {
            let takes = format!("though {authority} takes the connection");
            let within = format!("{url} is not answered within {} s", PATIENCE.as_secs());
            return Err(unheard(web, &format!("{within}, {takes}")));
        }
    };
    Err(Failure::Other(anyhow::anyhow!(failure)))
}

fn not_http(url: &str, fault: &str) -> String {
    format!("{url} is answered, but not as HTTP/1.1 is: {fault}")
}

/// What is spoken at an address where `asked` is not answered, with what could be meant.
pub(super) fn spoken_at(address: &str, asked: &str) -> Option<String> {
    let stream = open(address, SECOND_PATIENCE);
    let name = match stream.and_then(|stream| ask(stream, address, "/")).ok()? {
        Answer::Http(head, _) if is_for_grpc(&head) => "grpc",
        Answer::Http(..) if asked == "grpc" => return None,
        Answer::Http(..) => {
            return Some(format!("HTTP is spoken there: try http://{address}/"));
        }
        Answer::Other(bytes) if is_tls(&bytes) => "TLS",
        Answer::Closed(_) => greeted(address).or_else(|| speaks_tls(address, "localhost"))?,
        _ => greeted(address)?,
    };
    match name {
        _ if name == asked => None,
        "TLS" => Some(format!("TLS is spoken there, and {asked} is tried without")),
        _ => Some(format!("{name} is spoken there: try {name} {address}")),
    }
}

/// The failure of a page that is answered with nothing, with what is spoken there instead.
fn unheard(web: &Web, said: &str) -> Failure {
    let Web { address, authority, path, .. } = web;
    let tls = || if web.is_secure { None } else { speaks_tls(address, web.host()) };
    match greeted(address).or_else(tls) {
        Some("TLS") => {
            let spoken = format!("TLS is spoken there: try https://{authority}{path}");
            Failure::Usage(format!("{said}\n  {spoken}"))
        }
        Some(name) => {
            Failure::Usage(format!("{said}\n  {name} is spoken there: try {name} {address}"))
        }
        None => Failure::Other(anyhow::anyhow!("{said}\n  is it HTTP that is spoken there?")),
    }
}

/// What answers a line that memcached and redis do: memcached closes a connection on which HTTP is
/// spoken without a word.
fn greeted(address: &str) -> Option<&'static str> {
    let mut stream = open(address, SECOND_PATIENCE).ok()?;
    stream.write_all(b"version\r\n").ok()?;
    let mut first = [0; 8];
    let count = stream.read(&mut first).ok()?;
    match first[..count] {
        [b'V', b'E', b'R', b'S', ..] => Some("memcached"),
        [b'-', ..] => Some("redis"),
        _ => None,
    }
}

/// Whether TLS is spoken, where a server of it has closed the connection without a word.
fn speaks_tls(address: &str, host: &str) -> Option<&'static str> {
    let stream = open(address, SECOND_PATIENCE).ok()?;
    secured(stream, &Trust::Any, host).ok().map(|_| "TLS")
}

/// Whether an alert or a handshake of TLS begins so.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 3, ..])
}

/// Whether a server of gRPC answers so what comes over HTTP/1.1.
fn is_for_grpc(answer: &str) -> bool {
    answer.contains("server of gRPC")
}

/// What is to be said of an answer with another status than the right one.
fn unexpected(web: &Web, head: &str, status: u16) -> Option<String> {
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.splitn(3, ' ').skip(1);
    let found = words.next()?.parse::<u16>().ok().filter(|found| *found != status)?;
    let reason = words.next().unwrap_or_default();
    let location = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    let url = web.url();
    let (said, advice) = match location {
        Some(location) if (300..400).contains(&found) => {
            let there = match location.starts_with('/') && !location.starts_with("//") {
                true => format!("{}{location}", url.strip_suffix(&web.path).unwrap_or(&url)),
                false => location,
            };
            (
                format!("{url} is answered with {found} to {there}; redirects are not followed"),
                format!("try {there}, or say --status {found} to measure the redirect itself"),
            )
        }
        _ if found == 400 && !web.is_secure && is_for_tls(head) => (
            format!("{url} is answered with 400 {reason}: TLS is spoken there"),
            format!("try {}", url.replacen("http://", "https://", 1)),
        ),
        _ if is_for_grpc(head) => (
            format!("{url} is answered with {found} {reason}: gRPC is spoken there"),
            format!("try grpc {}", web.address),
        ),
        _ => (
            format!("{url} is answered with {found} {reason}, not {status}"),
            format!("try another path, or say --status {found} if that is the right answer"),
        ),
    };
    Some(format!("{}\n  {}", report::one_line(&said), report::one_line(&advice)))
}

/// Whether servers such as nginx, Apache and Go's answer so what comes without TLS where that is
/// spoken.
fn is_for_tls(answer: &str) -> bool {
    let answer = answer.to_ascii_lowercase();
    ["https port", "ssl-enabled server", "https server"].iter().any(|words| answer.contains(words))
}

/// What is to be said of an answer that is no HTTP: what else may be spoken there.
fn other(url: &str, address: &str, bytes: &[u8]) -> String {
    let spoken = match bytes {
        _ if is_tls(bytes) => "TLS is spoken there: try https://".to_owned(),
        [b'E', b'R', b'R', b'O', b'R', ..] => format!("try memcached {address}"),
        [b'-', b'E', b'R', b'R', ..] => format!("try redis {address}"),
        [0xca, ..] => format!("try pvaccess {address}"),
        _ => "try NAME ADDRESS, with the name of what is spoken there".to_owned(),
    };
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().next().unwrap_or_default();
    let line: String = report::one_line(line).chars().take(SHOWN_CHARS).collect();
    format!("{url} is answered, but not in HTTP: \"{line}\"\n  {spoken}")
}

/// Asks for a page, and reads the answer to its end, as the engine does.
fn ask(mut stream: impl Read + Write, host: &str, path: &str) -> Result<Answer, Error> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    // A server may have closed the connection already, with an answer or without.
    let _ = stream.write_all(request.as_bytes());
    let (mut bytes, mut came, mut body_bytes) = (Vec::new(), 0, 0_u64);
    let mut piece = vec![0; 64 << 10];
    let mut responses = Responses::new();
    let mut head: Option<String> = None;
    let end = 'read: loop {
        match stream.read(&mut piece) {
            Ok(0) => break None,
            Ok(count) => {
                bytes.extend_from_slice(&piece[..count]);
                came += count;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => break Some(error),
        }
        let begun = bytes.len().min(HTTP.len());
        if came == bytes.len() && bytes[..begun] != HTTP[..begun] {
            return Ok(Answer::Other(bytes));
        }
        let mut used = 0;
        let rest = loop {
            match responses.read(&bytes[used..], false) {
                Ok((count, Part::Head(found))) => {
                    let start = used + count - found.bytes.len();
                    head = Some(String::from_utf8_lossy(&bytes[start..]).into());
                    used += count;
                }
                Ok((count, Part::Body(part))) => {
                    body_bytes += part.len() as u64;
                    used += count;
                    if body_bytes > MAX_BODY_BYTES {
                        let most = MAX_BODY_BYTES >> 30;
                        break Rest::Wrong(format!("its body is larger than {most} GiB"));
                    }
                }
                Ok((count, Part::End { .. })) => match bytes.len() - used - count {
                    0 => break Rest::Whole,
                    more => break Rest::Wrong(format!("{more} bytes follow its end")),
                },
                Ok((count, Part::More)) => {
                    bytes.drain(..used + count);
                    continue 'read;
                }
                Err(fault) if head.is_some() => break Rest::Wrong(fault.to_string()),
                Err(fault) => return Ok(Answer::Wrong(fault)),
            }
        };
        return Ok(Answer::Http(head.unwrap_or_default(), rest));
    };
    let is_late =
        |error: &Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    if let Some(fault) = end.as_ref().and_then(fault_of) {
        return Err(Error::other(fault));
    }
    let is_late = end.as_ref().is_some_and(is_late);
    Ok(match head {
        Some(head) if is_late => Answer::Http(head, Rest::Late(body_bytes)),
        Some(head) if end.is_none() && responses.closed() == Ending::Whole => {
            Answer::Http(head, Rest::Whole)
        }
        Some(head) => Answer::Http(head, Rest::Cut(body_bytes)),
        None if is_late => Answer::Late(came),
        None => Answer::Closed(came),
    })
}

/// A connection that is read and written until then, however slowly the other side goes on.
struct Patient {
    stream: Box<dyn Stream>,
    until: Instant,
}

trait Stream: Read + Write {
    /// Lets a read or a write take this long.
    fn allow(&self, time: Duration) -> Result<(), Error>;
}

impl Stream for TcpStream {
    fn allow(&self, time: Duration) -> Result<(), Error> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Stream for UnixStream {
    fn allow(&self, time: Duration) -> Result<(), Error> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Patient {
    /// The stream, if there is time left.
    fn stream(&mut self) -> Result<&mut dyn Stream, Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.allow(left)?;
        Ok(&mut *self.stream)
    }
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.stream()?.read(into)
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.stream()?.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.stream()?.flush()
    }
}

/// Connects. That, and all that is asked and answered, has this time together.
fn open(address: &str, patience: Duration) -> Result<Patient, Error> {
    let until = Instant::now() + patience;
    let stream: Box<dyn Stream> = match address.strip_prefix("unix:") {
        Some(path) => Box::new(UnixStream::connect(path)?),
        None => {
            let address = address.parse().map_err(Error::other)?;
            Box::new(TcpStream::connect_timeout(&address, patience)?)
        }
    };
    Ok(Patient { stream, until })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The error for a page whose server answers with these bytes.
    fn said(answer: &'static [u8], status: u16) -> Result<(), String> {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        let serve = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer).unwrap();
        });
        let (authority, path) = (address.clone(), "/x".to_owned());
        let web = Web { authority, address, path, is_secure: false };
        let said = check(&web, &Trust::System, status);
        serve.join().unwrap();
        said.map_err(|failure| failure.to_string())
    }

    /// A server that sends these bytes one by one, and another when the time is over.
    struct Trickle {
        bytes: &'static [u8],
        until: Instant,
    }

    impl Stream for Trickle {
        fn allow(&self, _: Duration) -> Result<(), Error> {
            Ok(())
        }
    }

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
            while self.bytes.is_empty() && Instant::now() < self.until {
                std::thread::yield_now();
            }
            into[0] = self.bytes.split_off_first().copied().unwrap_or(b'a');
            Ok(1)
        }
    }

    impl Write for Trickle {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn a_server_that_trickles_has_no_more_time_than_one_that_says_nothing() {
        let trickled = |bytes| {
            let until = Instant::now() + Duration::from_secs(1);
            Patient { stream: Box::new(Trickle { bytes, until }), until }
        };
        let answer = ask(trickled(b"HTTP/1.1 200 OK\r\nx: "), "x", "/").unwrap();
        assert!(matches!(answer, Answer::Late(21)), "{answer:?}");
        // The head of a record of a handshake that never ends.
        let Err(fault) = secured(trickled(b"\x16\x03\x03\x3f\xff"), &Trust::Any, "x") else {
            panic!("there was no handshake")
        };
        assert_eq!(fault.to_string(), "TLS: the server does not end the handshake in time");
    }

    #[test]
    fn what_the_engine_takes_for_an_answer_is_one() {
        let early = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(said(early, 200), Ok(()));
        assert_eq!(said(b"HTTP/1.1 200 OK\nserver: x\n\n", 200), Ok(()));
        let early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n";
        assert!(said(early, 200).unwrap_err().contains("answered with 404"));
        let wrong = said(b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", 200).unwrap_err();
        assert!(wrong.contains("is not a header"), "{wrong}");
        let cut = said(b"HTTP/1.1 200 OK\r\n", 200).unwrap_err();
        assert!(cut.contains("17 bytes came, and no whole head"), "{cut}");
    }

    #[test]
    fn an_answer_is_read_to_its_end() {
        let head = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}").into_bytes().leak() as &[u8];
        for whole in [
            "content-length: 2\r\n\r\nhi",
            "transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "\r\nas long as it takes",
        ] {
            assert_eq!(said(head(whole), 200), Ok(()), "{whole}");
        }
        for (answer, expected) in [
            ("content-length: 9\r\n\r\nhi", "closed the connection after 2 bytes of the body"),
            ("transfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n", "not as HTTP/1.1 is: "),
            ("content-length: 2\r\n\r\nhi there", "6 bytes follow its end"),
        ] {
            let said = said(head(answer), 200).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        let said = said(head("content-length: 9\r\n\r\nhi"), 404).unwrap_err();
        assert!(said.contains("answered with 200"), "the status comes first: {said}");
    }

    #[test]
    fn a_body_that_never_ends_is_given_up() {
        let until = Instant::now() + Duration::from_secs(1);
        let bytes = b"HTTP/1.1 200 OK\r\n\r\n";
        let answer = ask(Patient { stream: Box::new(Trickle { bytes, until }), until }, "x", "/");
        assert!(matches!(answer, Ok(Answer::Http(_, Rest::Late(1)))), "{answer:?}");
    }

    /// memcached closes a connection on which HTTP is spoken.
    #[test]
    fn what_is_spoken_where_http_is_not_is_found() {
        for (greeting, expected) in [
            (&b"VERSION 1.6.38\r\n"[..], "memcached is spoken there: try memcached 127.0.0.1:"),
            (b"-ERR unknown command\r\n", "redis is spoken there: try redis 127.0.0.1:"),
            (b"", "is it HTTP that is spoken there?"),
        ] {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap().to_string();
            let serve = std::thread::spawn(move || {
                let mut request = [0; 1024];
                let next = || server.accept().unwrap().0;
                assert!(next().read(&mut request).unwrap() > 0);
                let mut asked = next();
                assert_eq!(asked.read(&mut request).unwrap(), b"version\r\n".len());
                asked.write_all(greeting).unwrap();
                drop(asked);
                // Without a word on the line it is asked for TLS, too.
                if greeting.is_empty() {
                    drop(next());
                }
            });
            let (authority, path) = (address.clone(), "/x".to_owned());
            let web = Web { authority, address, path, is_secure: false };
            let said = check(&web, &Trust::System, 200).unwrap_err().to_string();
            serve.join().unwrap();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn another_status_than_the_right_one_is_answered_with_what_could_be_meant() {
        assert_eq!(said(b"HTTP/1.1 200 OK\r\n\r\n", 200), Ok(()));
        assert_eq!(said(b"HTTP/1.1 404 Not Found\r\n\r\n", 404), Ok(()));
        let missing = said(b"HTTP/1.1 404 Not Found\r\n\r\n", 200).unwrap_err();
        assert!(missing.contains("/x is answered with 404 Not Found, not 200"), "{missing}");
        assert!(missing.contains("--status 404"), "{missing}");
        let plain = b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n<title>400 The plain HTTP \
            request was sent to HTTPS port</title>";
        let secure = said(plain, 200).unwrap_err();
        assert!(secure.contains("TLS is spoken there\n  try https://127."), "{secure}");
        let grpc = b"HTTP/1.1 400 Bad Request\r\n\r\nthis is a server of gRPC, which is spoken";
        let grpc = said(grpc, 200).unwrap_err();
        assert!(grpc.contains("gRPC is spoken there\n  try grpc 127."), "{grpc}");
        let moved = said(b"HTTP/1.1 301 Moved\r\nLocation: /y/\r\n\r\n", 200).unwrap_err();
        assert!(moved.contains("/y/; redirects are not followed\n  try http://127."), "{moved}");
    }

    #[test]
    fn what_is_no_http_is_named_with_what_it_may_be() {
        for (answer, expected) in [
            (&b"ERROR\r\nERROR\r\n"[..], "not in HTTP: \"ERROR\"\n  try memcached 127.0.0.1:"),
            (b"-ERR unknown command 'GET'\r\n", "try redis 127.0.0.1:"),
            (b"\x15\x03\x01\x00\x02\x02\x16", "TLS is spoken there"),
            (b"hello\x1b[2J\n", "try NAME ADDRESS"),
        ] {
            let said = said(answer, 200).unwrap_err();
            assert!(said.contains(expected) && !said.contains('\u{1b}'), "{said}");
        }
    }
}
