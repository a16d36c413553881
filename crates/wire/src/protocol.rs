//! The traits that a protocol implements to be served, and their types.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::{Input, Ns, Output, ProtocolError};

/// What a connection wants after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Keep the connection open.
    Continue,
    /// Send the output, then close.
    Close,
}

/// Why [`Connection::resume`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time that [`Connection::deadline`] named has come.
    Timer,
    /// Another thread or connection called [`Waker::wake`].
    Posted,
    /// Output that was full, or that the socket had not taken at once, is now all sent: there is
    /// room for more.
    Drained,
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The peer closed it.
    ByPeer,
    /// The protocol asked for it with [`Flow::Close`].
    ByUs,
    /// The peer broke the protocol.
    ProtocolError(ProtocolError),
    /// The socket failed, or was idle for too long (`TimedOut`).
    Socket(std::io::ErrorKind),
    /// The unsent bytes of all connections exceeded [`SendMemory`](crate::SendMemory), and this
    /// peer had taken none for the longest time.
    SlowPeer,
    /// The server is stopping.
    Stopping,
}

/// The address of a peer or a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IPv4 or IPv6 address with a port.
    Internet(SocketAddr),
    /// A Unix socket's path. A client's is usually empty.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl std::str::FromStr for Address {
    type Err = String;

    /// Parses the form that `Display` writes: `127.0.0.1:0`, `[::1]:5075`, `unix:/run/it.sock`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: needs a path after it, as in unix:/run/it.sock".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Internet).map_err(|_| {
                format!("{text:?} is neither an IP address with a port nor unix:PATH")
            }),
        }
    }
}

/// The peer of a connection, and a way to wake the connection from elsewhere.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The peer's address.
    pub address: Address,
    /// Wakes this connection from any thread.
    pub waker: Waker,
}

/// Wakes one connection from any thread; [`Connection::resume`] is then called with
/// [`Wake::Posted`] on the connection's own thread. Waking one that has ended has no effect.
#[derive(Clone)]
pub struct Waker(pub(crate) std::sync::Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// A waker that calls `wake`, for loops and tests.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(wake))
    }

    /// Requests a call of [`Connection::resume`]; several requests may be merged into one call.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// Server side of one connection. `now` is its only clock.
pub trait Connection {
    /// The connection is open. A server that sends first does so here.
    ///
    /// # Errors
    /// A [`ProtocolError`] closes the connection once the output is sent.
    fn opened(&mut self, now: Ns, peer: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        let _ = (now, peer, out);
        Ok(Flow::Continue)
    }

    /// Bytes were received. Consumes every complete message, answers into `out`, and pauses when
    /// [`Output::is_full`]; an unfinished message stays in `input`.
    ///
    /// # Errors
    /// A [`ProtocolError`] closes the connection once the output is sent.
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError>;

    /// An event other than received bytes. It may come while earlier output still waits: a
    /// protocol that pushes checks whether `out` is full before it appends, and continues on
    /// [`Wake::Drained`]. If no output waits but input does, [`Connection::receive`] follows.
    ///
    /// # Errors
    /// A [`ProtocolError`] closes the connection once the output is sent.
    fn resume(&mut self, now: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        let _ = (now, why, out);
        Ok(Flow::Continue)
    }

    /// When [`Connection::resume`] is to be called with [`Wake::Timer`], if at all. Read after
    /// every other call; that call has to move a time that has come.
    fn deadline(&self) -> Option<Ns> {
        None
    }

    /// The destination of the next bytes, if the protocol knows it: the loop reads an 80 MB array
    /// straight into it instead of through [`Input`]. Read after each call of
    /// [`Connection::receive`]; bytes that are in the input already are copied there first.
    fn place(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// The first `count` bytes of [`Connection::place`] are filled; the next `place` begins after
    /// them. [`Connection::receive`] follows, possibly with an empty input.
    fn placed(&mut self, count: usize) {
        let _ = count;
    }

    /// An unfinished message has filled the input to its limit. May put an error message into
    /// `out`: it is sent, and the connection is closed with a protocol error.
    fn too_large(&mut self, out: &mut Output) {
        let _ = out;
    }

    /// Whether the protocol takes more input. While it is false, the peer is not read from and
    /// [`Connection::receive`] is not called: how a protocol pauses whose answers wait for
    /// something other than the peer. Read after every call; it may change in
    /// [`Connection::resume`].
    fn wants_input(&self) -> bool {
        true
    }

    /// Whether answers are still to come. While it is true, neither the end of the peer's input,
    /// nor the idle time-out, nor a server that stops and drains closes the connection.
    fn has_pending(&self) -> bool {
        false
    }

    /// Whether the peer may still send something when the last answer is sent: the socket is then
    /// read from until the peer ends, for bytes that are not read reset a connection, and with it
    /// the answer. Otherwise it is closed at once, which saves three system calls.
    fn lingers(&self) -> bool {
        true
    }

    /// Whether a server that stops resets a connection without anything pending: a client whose
    /// request is on its way then knows that it was not carried out, and may ask again.
    fn resets_at_stop(&self) -> bool {
        false
    }

    /// The connection has ended; nothing more can be sent. The only call for an outgoing
    /// connection that couldn't be made.
    fn closed(&mut self, why: Closed) {
        let _ = why;
    }
}

/// A connection whose protocol is chosen at run time: a server with listeners of several protocols
/// serves `Box<dyn Connection>`. A server with one protocol names its type and pays nothing.
impl<C: Connection + ?Sized> Connection for Box<C> {
    fn opened(&mut self, now: Ns, peer: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        (**self).opened(now, peer, out)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        (**self).receive(now, input, out)
    }

    fn resume(&mut self, now: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        (**self).resume(now, why, out)
    }

    fn deadline(&self) -> Option<Ns> {
        (**self).deadline()
    }

    fn place(&mut self) -> Option<&mut [u8]> {
        (**self).place()
    }

    fn placed(&mut self, count: usize) {
        (**self).placed(count);
    }

    fn too_large(&mut self, out: &mut Output) {
        (**self).too_large(out);
    }

    fn wants_input(&self) -> bool {
        (**self).wants_input()
    }

    fn has_pending(&self) -> bool {
        (**self).has_pending()
    }

    fn lingers(&self) -> bool {
        (**self).lingers()
    }

    fn resets_at_stop(&self) -> bool {
        (**self).resets_at_stop()
    }

    fn closed(&mut self, why: Closed) {
        (**self).closed(why);
    }
}

/// A protocol over the datagram sockets of one thread: a batch of datagrams in, datagrams to any
/// address out. `now` is its only clock.
pub trait Datagrams {
    /// The sockets are bound. `waker` wakes the protocol from any thread.
    fn opened(&mut self, now: Ns, waker: &Waker, out: &mut Replies) {
        let _ = (now, waker, out);
    }

    /// Answers a batch; a datagram without an answer is simply skipped.
    fn datagrams(&mut self, now: Ns, batch: &Batch, replies: &mut Replies);

    /// An event other than datagrams: the deadline, or a wake. Whatever is put into `out` is sent,
    /// also where no datagram asked for it.
    fn resume(&mut self, now: Ns, why: Wake, out: &mut Replies) {
        let _ = (now, why, out);
    }

    /// When [`Datagrams::resume`] is to be called with [`Wake::Timer`], if at all. Read after
    /// every other call; that call has to move a time that has come.
    fn deadline(&self) -> Option<Ns> {
        None
    }
}

/// The most memory that an empty [`Batch`] keeps.
const KEPT_BATCH_BYTES: usize = 256 * 1024;

/// Datagrams received in one turn, all by one socket; or datagrams to send.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    entries: Vec<Datagram>,
    socket: usize,
}

#[derive(Debug)]
struct Datagram {
    address: Address,
    range: std::ops::Range<usize>,
    socket: usize,
}

/// Datagrams to send, each to its own address.
pub type Replies = Batch;

impl Batch {
    /// The number of the socket by which the datagrams came, and by which replies go unless they
    /// name another: its place in the list that [`ServerBuilder::datagrams`] was given.
    ///
    /// [`ServerBuilder::datagrams`]: crate::ServerBuilder::datagrams
    pub fn socket(&self) -> usize {
        self.socket
    }

    pub(crate) fn set_socket(&mut self, socket: usize) {
        self.socket = socket;
    }

    /// Appends a datagram from or to `address`.
    #[inline]
    pub fn push(&mut self, address: Address, datagram: &[u8]) {
        self.compose(address, |bytes| bytes.extend_from_slice(datagram));
    }

    /// Appends a datagram to `address`, to be sent by the socket with this number.
    pub fn push_by(&mut self, socket: usize, address: Address, datagram: &[u8]) {
        let own = std::mem::replace(&mut self.socket, socket);
        self.push(address, datagram);
        self.socket = own;
    }

    /// Appends a datagram that `write` formats in place. It must only append.
    #[inline]
    pub fn compose(&mut self, address: Address, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let range = start..self.bytes.len();
        self.entries.push(Datagram { address, range, socket: self.socket });
    }

    /// The number of the socket that the datagram at `index` came or goes by.
    pub(crate) fn socket_of(&self, index: usize) -> Option<usize> {
        self.entries.get(index).map(|entry| entry.socket)
    }

    /// The datagram at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<(&Address, &[u8])> {
        let entry = self.entries.get(index)?;
        Some((&entry.address, &self.bytes[entry.range.clone()]))
    }

    /// The datagrams, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Address, &[u8])> {
        self.entries.iter().map(|entry| (&entry.address, &self.bytes[entry.range.clone()]))
    }

    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all datagrams and keeps the memory, up to what a usual batch needs.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BATCH_BYTES);
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, Batch};

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in ["127.0.0.1:80", "[::1]:5075", "unix:/run/it.sock"] {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
        for text in ["", "unix:", "localhost", "127.0.0.1", "1.2.3.4:99999"] {
            text.parse::<Address>().expect_err(text);
        }
    }

    #[test]
    fn a_batch_keeps_datagrams_apart_empty_ones_too() {
        let mut batch = Batch::default();
        let at = |port| Address::Internet(([127, 0, 0, 1], port).into());
        batch.push(at(1), b"one");
        batch.push(at(2), b"");
        batch.compose(at(3), |bytes| bytes.extend_from_slice(b"three"));
        batch.push_by(2, at(4), b"four");
        assert_eq!((batch.socket_of(2), batch.socket_of(3)), (Some(0), Some(2)));
        let all: Vec<_> = batch.iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(all, [&b"one"[..], b"", b"three", b"four"]);
        assert_eq!(batch.get(2), Some((&at(3), &b"three"[..])));
        batch.clear();
        assert!(batch.is_empty() && batch.get(0).is_none());
    }
}
