//! A client of any server that speaks ecFlow 5.9.2's protocol: one request a connection, answered
//! before the next. Control plane.

mod follow;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use wire::PinnedTls;

use crate::definition::{Parsed, parse};
use crate::model::Tree;
use crate::protocol::frame::{HEAD_BYTES, frame, length};
use crate::protocol::{
    Answer, Body, Command, Request, SyncAnswer, SyncKind, User, read_answer, read_sync_answer,
    write,
};

pub use follow::{Follower, Seen};

/// The longest answer: that of a tree of some 5 million nodes.
const MAX_ANSWER_BYTES: u64 = 1 << 30;

/// Why a server has not done what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It can't be reached, or the connection broke.
    #[error("{address}: {why}")]
    Connection {
        /// The server.
        address: String,
        /// What the system says.
        why: std::io::Error,
    },
    /// It has refused, in its own words.
    #[error("{0}")]
    Refused(String),
    /// What it sent is no answer.
    #[error("{address} sent what is no answer of an ecFlow server of version 5: {why}")]
    Answer {
        /// The server.
        address: String,
        /// What is wrong.
        why: String,
    },
}

/// One request over a connection, and its answer.
fn converse(mut stream: impl Read + Write, request: &[u8]) -> std::io::Result<Vec<u8>> {
    use std::io::{Error, ErrorKind};
    stream.write_all(request)?;
    stream.flush()?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).map_err(|why| match why.kind() {
        ErrorKind::UnexpectedEof => {
            let text = "it closed the connection without an answer: does it encrypt? (--ssl)";
            Error::new(why.kind(), text)
        }
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "no answer in time"),
        _ => why,
    })?;
    let bytes = length(head, MAX_ANSWER_BYTES)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "what it sent has no length first"))?;
    let mut answer = Vec::new();
    stream.take(bytes).read_to_end(&mut answer).map_err(|why| match why.kind() {
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "its answer did not go on"),
        _ => why,
    })?;
    if (answer.len() as u64) < bytes {
        return Err(Error::new(ErrorKind::UnexpectedEof, "its answer ended too soon"));
    }
    Ok(answer)
}

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Client {
    address: String,
    resolved: Vec<SocketAddr>,
    host: String,
    user: User,
    within: Duration,
    tls: Option<PinnedTls>,
}

type Result<T> = std::result::Result<T, ClientError>;

impl Client {
    /// A client of the server at `HOST:PORT`, for this user; each step of a request may take
    /// `within`. Connections are encrypted where `tls` is given.
    ///
    /// # Errors
    /// When the host has no address.
    pub fn new(
        address: &str,
        user: User,
        within: Duration,
        tls: Option<PinnedTls>,
    ) -> Result<Self> {
        let failed = |why| ClientError::Connection { address: address.to_owned(), why };
        let resolved = address.to_socket_addrs().map_err(failed)?.collect();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().to_owned();
        Ok(Self { address: address.to_owned(), resolved, host, user, within, tls })
    }

    /// What the server is called.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The document of the answer to a command.
    ///
    /// # Errors
    /// When the server can't be reached, or the connection broke.
    pub fn ask(&self, command: Command) -> Result<Vec<u8>> {
        let request =
            Request { host: self.host.clone(), body: Body::User(self.user.clone(), command) };
        self.send(&write(&request))
    }

    /// The document of the answer to a request's.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn send(&self, document: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(document.len() + HEAD_BYTES);
        frame(&mut bytes, |out| out.extend_from_slice(document));
        let answer = self.exchange(&bytes);
        answer.map_err(|why| ClientError::Connection { address: self.address.clone(), why })
    }

    fn exchange(&self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        use std::io::{Error, ErrorKind};
        let mut connected = Err(Error::new(ErrorKind::NotFound, "the host has no address"));
        for address in &self.resolved {
            connected = TcpStream::connect_timeout(address, self.within);
            if connected.is_ok() {
                break;
            }
        }
        let stream = connected?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.within))?;
        stream.set_write_timeout(Some(self.within))?;
        let Some(tls) = &self.tls else { return converse(stream, request) };
        let name = self.address.rsplit_once(':').map_or("", |(name, _)| name);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let stream = tls.connect(stream, name).map_err(|why| match why.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                Error::new(why.kind(), "it closed the connection: does it encrypt (--ssl)?")
            }
            ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "no TLS in time"),
            _ => why,
        })?;
        converse(stream, request)
    }

    fn bad(&self, why: impl ToString) -> ClientError {
        ClientError::Answer { address: self.address.clone(), why: why.to_string() }
    }

    /// Has a command carried out.
    ///
    /// # Errors
    /// When it is refused, or as of [`ask`](Self::ask).
    pub fn command(&self, command: Command) -> Result<()> {
        match read_answer(&self.ask(command)?) {
            Ok(Answer::Error(why)) => Err(ClientError::Refused(why.trim_end().to_owned())),
            Ok(Answer::Standard(0 | 3)) => Ok(()),
            Ok(other) => Err(self.bad(format!("{other:?}"))),
            Err(why) => Err(self.bad(why)),
        }
    }

    /// The text that answers a command: a definition, a node, or another.
    ///
    /// # Errors
    /// When it is refused, or as of [`ask`](Self::ask).
    pub fn text(&self, command: Command) -> Result<String> {
        match read_answer(&self.ask(command)?) {
            Ok(Answer::Error(why)) => Err(ClientError::Refused(why.trim_end().to_owned())),
            Ok(Answer::Text(text) | Answer::Definition(text)) => Ok(text.into_owned()),
            Ok(other) => Err(self.bad(format!("{other:?}"))),
            Err(why) => Err(self.bad(why)),
        }
    }

    /// The tree as it is now, with all states.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn tree(&self) -> Result<Tree> {
        let command = Command::Sync {
            kind: SyncKind::Full,
            handle: 0,
            state_change_no: 0,
            modify_change_no: 0,
        };
        match read_sync_answer(&self.ask(command)?) {
            Ok(SyncAnswer::Whole(text)) => self.parse(&text),
            Ok(SyncAnswer::Refused(why)) => Err(ClientError::Refused(why.into_owned())),
            Ok(SyncAnswer::Since { .. }) => Err(self.bad("changes instead of all")),
            Err(why) => Err(self.bad(why)),
        }
    }

    fn parse(&self, text: &str) -> Result<Tree> {
        let parsed = parse(text, &self.address).map_err(|why| self.bad(why))?;
        let Parsed { tree, .. } = parsed;
        Ok(tree)
    }
}
