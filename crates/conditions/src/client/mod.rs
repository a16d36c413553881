//! A client for the interface over HTTP. Control plane.

mod encrypted;

use std::io::{ErrorKind, Read as _, Write};
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::protocol::{
    ASKED_BY_POST, BASE, CompactBody, CompactedBody, ErrorBody, FORM_TYPE, INSERT_TYPE, REVISION,
    percent_encode,
};
use encrypted::{agent, config};

pub use encrypted::Trust;

/// The most bytes of an answer: more than a server sends.
const MAX_ANSWER_BYTES: u64 = 512 << 20;

/// The most bytes of parameters that are asked in a query: a server reads a head of 16 KiB, and
/// what is between may read less.
const MAX_QUERY_BYTES: usize = 8 << 10;

/// How long the last line of an export is, with its digest.
const DIGEST_LINE_BYTES: usize = "sha-256=:".len() + 44 + ":\n".len();

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server can't be reached, or breaks off.
    #[error("{server}: {why}")]
    Connection {
        /// Which.
        server: String,
        /// The error.
        why: String,
    },
    /// The server refuses the request.
    #[error("{}: {}", body.error, body.fix)]
    Refused {
        /// The status.
        status: u16,
        /// Why, and what can be done.
        body: ErrorBody,
    },
    /// What it answers can't be read.
    #[error("{server} answers what can't be read: {why}")]
    Unreadable {
        /// Which.
        server: String,
        /// The error.
        why: String,
    },
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its body.
    pub body: Vec<u8>,
    /// The revision that it was made at, where the server says so.
    pub revision: Option<u64>,
    /// Its tag (`ETag`), by which the same answer is known again.
    pub tag: Option<String>,
}

/// Resolves names as ureq does, and addresses at once: within a time-out ureq starts a thread for
/// each request that resolves even an address.
#[derive(Debug, Default)]
struct Addresses(DefaultResolver);

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let Some(address) = uri.authority().and_then(|at| at.as_str().parse::<SocketAddr>().ok())
        else {
            return self.0.resolve(uri, config, timeout);
        };
        let mut one = self.empty();
        one.push(address);
        Ok(one)
    }
}

/// An agent that is not encrypted, and starts no thread for a request to an address.
pub(crate) fn direct(config: Config) -> ureq::Agent {
    ureq::Agent::with_parts(config, DefaultConnector::default(), Addresses::default())
}

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    server: String,
    /// What the addresses of its requests begin with.
    origin: String,
    token: Option<String>,
    timeout: Duration,
    agent: ureq::Agent,
}

impl Client {
    /// A client of the server at `ADDRESS:PORT`. A request may take this long.
    pub fn new(server: &str, token: Option<String>, timeout: Duration) -> Self {
        let (server, origin) = (server.to_owned(), format!("http://{server}"));
        let agent = direct(config(timeout).build());
        Self { server, origin, token, timeout, agent }
    }

    /// A client of the server at this address, whose connections are encrypted.
    ///
    /// # Errors
    /// When the PEM can't be used.
    pub fn encrypted(
        server: SocketAddr,
        trust: &Trust<'_>,
        token: Option<String>,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let origin = match trust.name {
            Some(name) => format!("https://{name}:{}", server.port()),
            None => format!("https://{server}"),
        };
        let agent = agent(server, trust, timeout)?;
        Ok(Self { server: server.to_string(), origin, token, timeout, agent })
    }

    /// Asks `path`, below the interface's own, with these parameters.
    ///
    /// # Errors
    /// When there is no answer, or it is a refusal, or leads elsewhere.
    pub fn get(&self, path: &str, parameters: &[(&str, String)]) -> Result<Response, ClientError> {
        self.read(self.ask(path, parameters, false))
    }

    /// The same, unless the answer is still that of `tag`: then there is none.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn get_unless(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        tag: &str,
    ) -> Result<Option<Response>, ClientError> {
        let asked = self.agent.get(self.url(path, parameters)).header("if-none-match", tag).call();
        match asked {
            Ok(answer) if answer.status() == 304 => Ok(None),
            asked => self.read(asked).map(Some),
        }
    }

    /// Asks for the slice of a time.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn slice(&self, parameters: &[(&str, String)]) -> Result<Response, ClientError> {
        let at_once = [("redirect", "false".to_owned())];
        self.get("/slice", &[parameters, &at_once].concat())
    }

    /// Asks in a query, or in a body where that is too long for a head.
    fn ask(&self, path: &str, parameters: &[(&str, String)], is_endless: bool) -> Answered {
        let query = query(parameters);
        match query.len() > MAX_QUERY_BYTES && ASKED_BY_POST.contains(&path) {
            true => {
                let asked = self.limited(self.posting(path), is_endless);
                asked.content_type(FORM_TYPE).send(&query)
            }
            false => self.limited(self.agent.get(self.url(path, parameters)), is_endless).call(),
        }
    }

    /// A request whose answer may take as long as a client waits or, where it `is_endless`, in
    /// which no silence is longer.
    fn limited<B>(
        &self,
        request: ureq::RequestBuilder<B>,
        is_endless: bool,
    ) -> ureq::RequestBuilder<B> {
        if !is_endless {
            return request;
        }
        let silence = Some(self.timeout);
        let limited = request.config().timeout_global(None).timeout_connect(silence);
        limited.timeout_per_read(silence).timeout_per_write(silence).build()
    }

    fn url(&self, path: &str, parameters: &[(&str, String)]) -> String {
        let mark = if parameters.is_empty() { "" } else { "?" };
        format!("{}{BASE}{path}{mark}{}", self.origin, query(parameters))
    }

    /// Asks for an export, and writes it as it comes; returns its length. It may be of any length:
    /// no silence in it is longer than a request may take.
    ///
    /// # Errors
    /// As [`Client::get`], and when it can't be written. Other bytes than the server's digest is of
    /// are refused at their end, when they have been written.
    pub fn export(
        &self,
        parameters: &[(&str, String)],
        out: &mut dyn Write,
    ) -> anyhow::Result<u64> {
        // The library that reads answers drops trailers.
        let asked = [parameters, &[("digest", "true".to_owned())]].concat();
        let mut answer = self.ask("/export", &asked, true).map_err(|why| self.unanswered(why))?;
        if !answer.status().is_success() {
            return Ok(self.read(Ok(answer))?.body.len() as u64);
        }
        let mut body = answer.body_mut().as_reader();
        let (mut buffer, mut hash, mut bytes) = (vec![0; 1 << 16], Sha256::new(), 0);
        // What may be the last line.
        let mut kept = Vec::new();
        loop {
            let read = body.read(&mut buffer).map_err(|why| self.broken(why.into()))?;
            if read == 0 {
                break;
            }
            kept.extend_from_slice(&buffer[..read]);
            let ready = kept.len().saturating_sub(DIGEST_LINE_BYTES);
            out.write_all(&kept[..ready])?;
            hash.update(&kept[..ready]);
            kept.drain(..ready);
            bytes += ready as u64;
        }
        match kept == format!("{}\n", digest(hash)).as_bytes() {
            true => Ok(bytes),
            false => {
                let why = "its last line is not the digest of what comes before: ask again, and \
                           look for what changes answers on their way";
                Err(self.unreadable(why).into())
            }
        }
    }

    /// Asks for JSON.
    ///
    /// # Errors
    /// As [`Client::get`], and when the answer is no JSON.
    pub fn get_json(&self, path: &str, parameters: &[(&str, String)]) -> Result<Json, ClientError> {
        self.json(&self.get(path, parameters)?)
    }

    /// Makes a change, and returns its revision once it is on the server's disk.
    ///
    /// # Errors
    /// When there is no answer, in which case it may have been made or not, or it is refused.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<u64, ClientError> {
        let body = serde_json::to_vec(body).map_err(|why| self.unreadable(why))?;
        self.send(path, "application/json", &body)
    }

    /// Inserts what is in the binary form, and returns the revision once it is on the disk.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn insert(&self, insertion: &[u8]) -> Result<u64, ClientError> {
        self.send("/objects", INSERT_TYPE, insertion)
    }

    /// Has the server compact what is sealed, however long that takes.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn compact(&self) -> Result<CompactedBody, ClientError> {
        let asked = self.posting("/compact").config().timeout_global(None).build();
        let body = serde_json::to_vec(&CompactBody {}).map_err(|why| self.unreadable(why))?;
        let done = self.read(asked.content_type("application/json").send(&body[..]))?;
        serde_json::from_slice(&done.body).map_err(|why| self.unreadable(why))
    }

    fn posting(&self, path: &str) -> ureq::RequestBuilder<ureq::typestate::WithBody> {
        let request = self.agent.post(format!("{}{BASE}{path}", self.origin));
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn send(&self, path: &str, kind: &str, body: &[u8]) -> Result<u64, ClientError> {
        let request = self.posting(path).content_type(kind);
        let made = self.json(&self.read(request.send(body))?)?;
        made["revision"].as_u64().ok_or_else(|| self.unreadable("it names no revision"))
    }

    fn json(&self, response: &Response) -> Result<Json, ClientError> {
        serde_json::from_slice(&response.body).map_err(|why| self.unreadable(why))
    }

    /// Refuses bytes that are not those of the digest that the server states.
    fn check(&self, stated: Option<&str>, body: &[u8]) -> Result<(), ClientError> {
        // A proxy may have added digests of other kinds (RFC 9530, 3).
        let mut digests = stated.into_iter().flat_map(|all| all.split(',')).map(str::trim);
        let stated = digests.find(|digest| digest.starts_with("sha-256="));
        let is_other = |stated: &&str| *stated != digest(Sha256::new_with_prefix(body));
        match stated.filter(is_other) {
            Some(stated) => {
                Err(self.unreadable(format!("its bytes are not those of the digest {stated}")))
            }
            None => Ok(()),
        }
    }

    fn unreadable(&self, why: impl ToString) -> ClientError {
        ClientError::Unreadable { server: self.server.clone(), why: why.to_string() }
    }

    /// Why an answer has not even begun.
    fn unanswered(&self, why: ureq::Error) -> ClientError {
        let fix = match kind(&why) {
            Some(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                match self.is_encrypted() {
                    true => "where it doesn't encrypt, leave --tls-ca out",
                    false => "where it encrypts, add --tls-ca FILE",
                }
            }
            _ => return self.broken(why),
        };
        let why = format!(
            "it ended the connection without an answer: its log says why, unless it was killed; \
             {fix}"
        );
        ClientError::Connection { server: self.server.clone(), why }
    }

    fn is_encrypted(&self) -> bool {
        self.origin.starts_with("https:")
    }

    fn broken(&self, why: ureq::Error) -> ClientError {
        let kind = kind(&why);
        let why = match (why, kind) {
            (ureq::Error::Timeout(_), _) => {
                let seconds = self.timeout.as_secs_f64();
                format!("no answer in {seconds} s: may it take longer (--timeout)?")
            }
            (_, Some(ErrorKind::ConnectionRefused)) => {
                "no server is there: `loadline serve conditions --data DIR` starts one".to_owned()
            }
            (_, Some(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)) => {
                "it broke off its answer: its log says why, unless it was killed".to_owned()
            }
            (why, _) => said(&why.to_string(), self.is_encrypted()),
        };
        ClientError::Connection { server: self.server.clone(), why }
    }

    fn read(&self, answer: Answered) -> Result<Response, ClientError> {
        let mut answer = answer.map_err(|why| self.unanswered(why))?;
        let status = answer.status().as_u16();
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let revision = header(REVISION).and_then(|text| text.parse().ok());
        let (stated, tag) = (header("repr-digest"), header("etag"));
        let length = answer.body().content_length().unwrap_or(0).min(MAX_ANSWER_BYTES);
        let mut body = Vec::with_capacity(length as usize);
        let mut reader = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).reader();
        reader.read_to_end(&mut body).map_err(|why| self.broken(why.into()))?;
        if status < 300 {
            self.check(stated.as_deref(), &body)?;
            return Ok(Response { body, revision, tag });
        }
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| ErrorBody {
            error: format!("{} answers with status {status}", self.server),
            fix: String::from_utf8_lossy(&body).trim().chars().take(400).collect(),
            object: None,
        });
        Err(ClientError::Refused { status, body })
    }
}

fn kind(why: &ureq::Error) -> Option<ErrorKind> {
    match why {
        ureq::Error::Io(why) => Some(why.kind()),
        _ => None,
    }
}

/// A digest as the server states it (RFC 9530).
fn digest(hash: Sha256) -> String {
    format!("sha-256=:{}:", STANDARD.encode(hash.finalize()))
}

/// Parameters as a query or a form has them.
fn query(parameters: &[(&str, String)]) -> String {
    let written =
        parameters.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
    written.collect::<Vec<_>>().join("&")
}

/// What a library says of a connection, in words that name what to do.
fn said(why: &str, is_encrypted: bool) -> String {
    let known = [
        (
            "http parse fail",
            false,
            "it doesn't answer in HTTP: where it encrypts, add --tls-ca FILE",
        ),
        ("InvalidContentType", true, "it doesn't encrypt: leave --tls-ca out"),
        (
            "CaUsedAsEndEntity",
            true,
            "its certificate is that of an authority (CA:TRUE), and no server's: make one with \
             CA:FALSE, as openssl req -addext basicConstraints=critical,CA:FALSE does, or one that \
             an authority signs",
        ),
        ("UnknownIssuer", true, "no authority of --tls-ca has signed its certificate"),
        ("BadSignature", true, "no authority of --tls-ca has signed its certificate"),
        (
            "not valid for name",
            true,
            "its certificate is for another name or address: --tls-name NAME says which",
        ),
    ];
    let found = known.iter().find(|(sign, is_of, _)| why.contains(sign) && *is_of == is_encrypted);
    found.map_or(why.to_owned(), |(.., words)| format!("{words} ({why})"))
}

/// An answer, whatever its status.
type Answered = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// What comes of a question that is answered so.
    fn asked<T>(head: &str, body: &str, ask: impl FnOnce(&Client) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let server = listener.local_addr().expect("bound").to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}");
        let sent = format!("{head}\r\n\r\n{body}");
        let thread = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let _ = socket.read(&mut [0; 4_096]);
            socket.write_all(sent.as_bytes()).expect("sent");
        });
        let answer = ask(&Client::new(&server, None, Duration::from_secs(60)));
        thread.join().expect("done");
        answer
    }

    /// What is answered to the first question.
    fn answered(head: &str) -> Result<Json, ClientError> {
        asked(head, "{}", |client| client.get_json("/folders", &[]))
    }

    #[test]
    fn an_export_whose_last_line_is_not_its_digest_is_refused() {
        let export = |body: &str| {
            let mut out = Vec::new();
            asked("200 OK", body, |client| client.export(&[], &mut out)).map(|_| out)
        };
        let line = |bytes: &str| format!("{}\n", digest(Sha256::new_with_prefix(bytes)));
        for text in ["", "{}\n", &"x".repeat(200_000)] {
            let right = format!("{text}{}", line(text));
            assert!(export(&right).expect("an export") == text.as_bytes());
            let wrong = [format!("{text}y{}", line(text)), right[1..].to_owned(), text.to_owned()];
            for body in wrong {
                let why = export(&body).expect_err("refused").to_string();
                assert!(why.contains("its last line is not the digest"), "{why}");
            }
        }
    }

    #[test]
    fn other_bytes_than_the_server_states_are_refused() {
        let of = |bytes: &str| STANDARD.encode(Sha256::digest(bytes));
        let right = format!("200 OK\r\nRepr-Digest: sha-256=:{}:", of("{}"));
        assert_eq!(answered(&right).expect("an answer"), serde_json::json!({}));
        let wrong = format!("200 OK\r\nRepr-Digest: sha-256=:{}:", of("[]"));
        let why = answered(&wrong).expect_err("refused").to_string();
        assert!(why.contains("not those of the digest sha-256"), "{why}");
    }

    #[test]
    fn an_answer_leads_nowhere() {
        assert_eq!(answered("200 OK").expect("an answer"), serde_json::json!({}));
        for place in ["http://127.0.0.2:1/x", "//127.0.0.2:1/x", "/x"] {
            let why = answered(&format!("307 Temporary Redirect\r\nLocation: {place}"));
            let why = why.expect_err("refused").to_string();
            assert!(why.contains("status 307"), "{why}");
        }
    }
}
