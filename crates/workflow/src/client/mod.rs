//! A client of any server that speaks ecFlow 5.9.2's protocol: one request a connection, answered
//! before the next. Control plane.

mod follow;
mod levels;
mod pushed;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use wire::PinnedTls;

use crate::binary;
use crate::definition::{Parsed, parse, parse_kept};
use crate::model::{Marks, NodeId, Passed, Tree};
use crate::protocol::frame::{HEAD_BYTES, frame, length};
use crate::protocol::{
    Answer, Body, Command, Encoding, Header, NodeCommand, Request, ServerCommand, SyncAnswer,
    SyncKind, User, header, is_spoken, read_answer, read_own, read_passed, read_sync_answer, write,
};

pub use follow::{Follower, MISSED, Seen};
pub use levels::{Brought, Levels, Touched};

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

/// Portions of a tree, what of their nodes is not in them, and the states that nodes have come to
/// since, by path.
type Portions = (Tree, Marks, Passed<String>);

/// An answer: its document, or, of this program's own protocol, how its tree is written, and that.
type Answered = (Option<Encoding>, Vec<u8>);

/// The most that is reserved for an answer before it comes.
const RESERVED_BYTES: usize = 64 << 20;

/// The longest line before an answer of this program's own protocol.
const LINE_BYTES: usize = 128;

impl ClientError {
    /// Whether no connection was made, so that the server can't have done what was asked.
    #[must_use]
    pub fn is_refused_connection(&self) -> bool {
        use std::io::ErrorKind;
        let Self::Connection { why, .. } = self else { return false };
        matches!(
            why.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::NotFound
        )
    }

    /// Whether the answer is longer than what is taken, or none.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        let Self::Connection { why, .. } = self else { return false };
        why.kind() == std::io::ErrorKind::InvalidData
    }
}

/// One request over a connection, and its answer.
fn converse(mut stream: impl Read + Write, request: &[u8]) -> std::io::Result<Answered> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut answer = Vec::new();
    let encoding = receive(stream, MAX_ANSWER_BYTES, &mut answer)?;
    Ok((encoding, answer))
}

/// Reads an answer of at most `most` bytes into `into`; returns how its tree is written, where it
/// is in this program's own protocol.
pub(crate) fn receive(
    mut stream: impl Read,
    most: u64,
    into: &mut Vec<u8>,
) -> std::io::Result<Option<Encoding>> {
    use std::io::{Error, ErrorKind};
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).map_err(|why| match why.kind() {
        ErrorKind::UnexpectedEof => {
            let text = "it closed the connection without an answer: does it encrypt? (--ssl)";
            Error::new(why.kind(), text)
        }
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "no answer in time"),
        _ => why,
    })?;
    let bad = |why: &str| Error::new(ErrorKind::InvalidData, why.to_owned());
    let (encoding, bytes) = if head[0] == header::FIRST {
        let (encoding, bytes) = own_line(&mut stream, head.to_vec())?;
        if bytes > most {
            return Err(bad(&format!("an answer of {bytes} bytes: {most} are taken")));
        }
        (Some(encoding), bytes)
    } else {
        let bytes = length(head, most);
        let text = "no server of ecFlow's protocol is there: what it sent has no length first";
        (None, bytes.map_err(|_| bad(text))?)
    };
    into.reserve(usize::try_from(bytes).unwrap_or(0).min(RESERVED_BYTES));
    stream.take(bytes).read_to_end(into).map_err(|why| match why.kind() {
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "its answer did not go on"),
        _ => why,
    })?;
    if (into.len() as u64) < bytes {
        return Err(Error::new(ErrorKind::UnexpectedEof, "its answer ended too soon"));
    }
    Ok(encoding)
}

/// The line before an answer of this program's own protocol: as much of it as there is always, and
/// then byte by byte to its end.
fn own_line(stream: &mut impl Read, mut line: Vec<u8>) -> std::io::Result<(Encoding, u64)> {
    use std::io::{Error, ErrorKind};
    let begun = line.len();
    line.resize(header::SHORTEST_ANSWER, 0);
    stream.read_exact(&mut line[begun..])?;
    loop {
        match read_own(&line) {
            Ok(Some((found, _))) => return Ok(found),
            Ok(None) if line.len() < LINE_BYTES => {}
            Ok(None) => return Err(Error::new(ErrorKind::InvalidData, "a line without an end")),
            Err(why) => return Err(Error::new(ErrorKind::InvalidData, why.to_string())),
        }
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.extend(byte);
    }
}

/// A connection, encrypted or not.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

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
        self.send(&write(&self.request(command)))
    }

    /// The document of the answer to a request's.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn send(&self, document: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(document.len() + HEAD_BYTES);
        frame(&mut bytes, |out| out.extend_from_slice(document));
        match self.exchange(&bytes).map_err(|why| self.broken(why))? {
            (None, answer) => Ok(answer),
            (Some(_), _) => Err(self.bad("an answer to another request")),
        }
    }

    /// What the server sends to a request of whatever protocol, both as they go over a connection.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn relay(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let relayed = self.connected(|stream| {
            stream.write_all(bytes)?;
            stream.flush()?;
            let mut answer = Vec::new();
            stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
            Ok(answer)
        });
        relayed.map_err(|why| self.broken(why))
    }

    /// Whether the server is one of this program's, and so speaks its own protocol, too: asked in
    /// ecFlow's.
    ///
    /// # Errors
    /// When it is refused, or as of [`ask`](Self::ask).
    pub fn is_own(&self) -> Result<bool> {
        Ok(is_spoken(&self.text(Command::Server(ServerCommand::StatsText))?))
    }

    /// Portions of the tree of a server of this program: what the client lacks of them.
    fn cut(&self, header: &Header) -> Result<Portions> {
        let answer = self.exchange(&self.request_of(header)).map_err(|why| self.broken(why))?;
        self.portions(header, answer)
    }

    fn request_of(&self, header: &Header) -> Vec<u8> {
        let kind = SyncKind::Changes;
        let sync = Command::Sync { kind, handle: 0, state_change_no: 0, modify_change_no: 0 };
        let mut request = Vec::new();
        header.write(&mut request);
        frame(&mut request, |out| out.extend(write(&self.request(sync))));
        request
    }

    /// Reads what answers a header.
    fn portions(&self, header: &Header, (encoding, answer): Answered) -> Result<Portions> {
        let Some(encoding) = encoding else {
            return Err(match read_answer(&answer) {
                Ok(Answer::Error(why)) => ClientError::Refused(why.trim_end().to_owned()),
                Ok(other) => self.bad(format!("{other:?}")),
                Err(why) => self.bad(why),
            });
        };
        let (passed, answer) = match header.wants_states {
            true => read_passed(&answer).ok_or_else(|| self.bad("no states before its tree"))?,
            false => (Passed::default(), answer.as_slice()),
        };
        let (tree, marks) = match encoding {
            Encoding::Binary => {
                let read = binary::read(answer).map_err(|why| self.bad(why))?;
                (read.tree, read.marks)
            }
            Encoding::Text => {
                let text = std::str::from_utf8(answer).map_err(|why| self.bad(why))?;
                let parsed = parse_kept(text, &self.address).map_err(|why| self.bad(why))?;
                (parsed.tree, parsed.marks)
            }
        };
        let passed = self.named(passed, &tree)?;
        Ok((tree, marks, passed))
    }

    /// States by the paths of nodes, which stand there by their places in the tree.
    fn named(&self, passed: Passed<usize>, tree: &Tree) -> Result<Passed<String>> {
        let Passed { states, missed } = passed;
        if states.is_empty() {
            return Ok(Passed { states: Vec::new(), missed });
        }
        let ids: Vec<NodeId> = tree.walk(NodeId::ROOT).collect();
        let states = states.into_iter().map(|(place, state)| {
            let id =
                ids.get(place).ok_or_else(|| self.bad("a state of a node that isn't there"))?;
            Ok((tree.path(*id), state))
        });
        Ok(Passed { states: states.collect::<Result<_>>()?, missed })
    }

    fn broken(&self, why: std::io::Error) -> ClientError {
        ClientError::Connection { address: self.address.clone(), why }
    }

    fn request(&self, command: Command) -> Request {
        Request { host: self.host.clone(), body: Body::User(self.user.clone(), command) }
    }

    fn exchange(&self, request: &[u8]) -> std::io::Result<Answered> {
        self.connected(|stream| converse(stream, request))
    }

    /// Has `talk` use a connection.
    fn connected<T>(
        &self,
        talk: impl FnOnce(&mut dyn Stream) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        let (mut stream, _) = self.connect()?;
        talk(&mut *stream)
    }

    /// A connection, and the socket below it.
    fn connect(&self) -> std::io::Result<(Box<dyn Stream>, TcpStream)> {
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
        let socket = stream.try_clone()?;
        let Some(tls) = &self.tls else { return Ok((Box::new(stream), socket)) };
        let name = self.address.rsplit_once(':').map_or("", |(name, _)| name);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let stream = tls.connect(stream, name).map_err(|why| match why.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                Error::new(why.kind(), "it closed the connection: does it encrypt (--ssl)?")
            }
            ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "no TLS in time"),
            _ => why,
        })?;
        Ok((Box::new(stream), socket))
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

    /// What a server of this program says of the commands of a task whose job is submitted or
    /// active, a line each: that one waits for a place, still runs, or has ended; of `/`, that
    /// commands have taken all places for long. ecFlow's servers say nothing.
    ///
    /// # Errors
    /// When it is refused, or as of [`ask`](Self::ask).
    pub fn why_commands(&self, path: &str) -> Result<Option<String>> {
        match read_answer(&self.ask(Command::Node(NodeCommand::Why, path.to_owned()))?) {
            Ok(Answer::Error(why)) => Err(ClientError::Refused(why.trim_end().to_owned())),
            Ok(Answer::Text(text)) => Ok(Some(text.into_owned())),
            Ok(_) => Ok(None),
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
