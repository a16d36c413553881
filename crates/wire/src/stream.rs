//! The socket side of [`Input`] and [`Output`]: reads, writes and connects without blocking.
//!
//! The server loop and the load generator share it. Every socket here is non-blocking.

use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType, connect as connect_socket, ipproto, recv, send, sendmsg, shutdown,
    socket_with, sockopt,
};

use crate::output::MAX_PIECES;
use crate::{Address, Input, Output, ProtocolError};

/// The least growth of a buffer, so that a large message takes few reads.
const GROW_BYTES: usize = 64 * 1024;

/// An empty buffer of at least this size isn't grown.
pub(crate) const FAIR_BYTES: usize = 4 * 1024;

/// A connected socket as loops use it: no call blocks. `AGAIN` stands for one that would.
pub trait Socket {
    /// Receives once. No bytes at all are the peer's end.
    ///
    /// # Errors
    /// The socket's error, or why nothing was received.
    fn receive(&self, space: &mut [u8]) -> Result<usize, Errno>;

    /// Sends once, and returns how many bytes the socket took.
    ///
    /// # Errors
    /// The socket's error, or why nothing was sent.
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Sends several pieces with one vectored write.
    ///
    /// # Errors
    /// The socket's error, or why nothing was sent.
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno>;

    /// Shuts down the sending side: the peer reads what was sent, and then the end.
    ///
    /// # Errors
    /// When the connection has ended.
    fn end_sending(&self) -> Result<(), Errno>;

    /// Has the connection be reset when the socket is closed, as far as it can be.
    fn reset_at_close(&self) {}

    /// Returns the outcome of a [`connect`] once the socket is writable.
    ///
    /// # Errors
    /// Why it failed.
    fn connected(&self) -> Result<(), Errno>;
}

/// The kernel's sockets.
impl<T: AsFd> Socket for T {
    #[inline]
    fn receive(&self, space: &mut [u8]) -> Result<usize, Errno> {
        recv(self, space, RecvFlags::empty()).map(|(count, _)| count)
    }

    #[inline]
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        send(self, bytes, SendFlags::NOSIGNAL)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut control = SendAncillaryBuffer::default();
        sendmsg(self, pieces, &mut control, SendFlags::NOSIGNAL)
    }

    fn end_sending(&self) -> Result<(), Errno> {
        shutdown(self, Shutdown::Write)
    }

    fn reset_at_close(&self) {
        // One that can't be set is closed as others are.
        let _ = sockopt::set_socket_linger(self, Some(Duration::ZERO));
    }

    fn connected(&self) -> Result<(), Errno> {
        sockopt::socket_error(self)?
    }
}

/// The outcome of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// This many bytes, at least one.
    Bytes(usize),
    /// Nothing yet.
    Blocked,
    /// The peer will send nothing more.
    Closed,
    /// The socket failed.
    Failed(ErrorKind),
    /// Nothing was read, as the buffer holds as much as it may of one unfinished message.
    Full(ProtocolError),
}

/// The outcome of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOutcome {
    /// All is sent.
    Done,
    /// The requested number of bytes is sent, and the socket takes more.
    More,
    /// The socket takes no more for now.
    Blocked,
    /// The socket failed.
    Failed(ErrorKind),
}

/// Reads once into `input`, which never holds more than `limit` bytes.
#[inline]
pub fn read_into(socket: &impl Socket, input: &mut Input, limit: usize) -> ReadOutcome {
    // An empty buffer of a fair size is used without growing it.
    let is_fair = input.is_empty() && input.capacity() >= FAIR_BYTES;
    let at_least = if is_fair { 1 } else { GROW_BYTES };
    match input.space(at_least, limit) {
        Ok(space) => {
            let outcome = read(socket, space);
            if let ReadOutcome::Bytes(count) = outcome {
                input.filled(count);
            }
            outcome
        }
        Err(fault) => ReadOutcome::Full(fault),
    }
}

/// Reads once into `space`, which isn't empty.
#[inline]
pub fn read(socket: &impl Socket, space: &mut [u8]) -> ReadOutcome {
    loop {
        return match socket.receive(space) {
            Ok(0) => ReadOutcome::Closed,
            Ok(count) => ReadOutcome::Bytes(count),
            Err(Errno::AGAIN) => ReadOutcome::Blocked,
            Err(Errno::INTR) => continue,
            Err(error) => ReadOutcome::Failed(kind(error)),
        };
    }
}

/// Sends at most `most` bytes of `output`: copied bytes alone with one plain write, shared slices
/// with as few vectored writes as the limit on pieces allows.
#[inline]
pub fn flush(socket: &impl Socket, output: &mut Output, most: usize) -> FlushOutcome {
    let mut left = most;
    while !output.is_empty() {
        if left == 0 {
            return FlushOutcome::More;
        }
        let (asked, sent) = match output.plain() {
            Some(bytes) => {
                let bytes = &bytes[..bytes.len().min(left)];
                (bytes.len(), socket.send(bytes))
            }
            None => send_pieces(socket, output, left),
        };
        match sent {
            Ok(count) => {
                output.advance(count);
                left -= count;
                // A short write means a full socket: another write would only return EAGAIN.
                if count < asked {
                    return FlushOutcome::Blocked;
                }
            }
            Err(Errno::AGAIN) => return FlushOutcome::Blocked,
            Err(Errno::INTR) => {}
            Err(error) => return FlushOutcome::Failed(kind(error)),
        }
    }
    FlushOutcome::Done
}

/// One vectored write. Returns the bytes requested, and the kernel's result.
fn send_pieces(
    socket: &impl Socket,
    output: &Output,
    most: usize,
) -> (usize, Result<usize, Errno>) {
    let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
    let count = output.pieces(most, &mut pieces);
    let asked = pieces[..count].iter().map(|piece| piece.len()).sum();
    (asked, socket.send_pieces(&pieces[..count]))
}

/// Starts a non-blocking connect to `address`, with Nagle's algorithm off. Once the socket is
/// writable, [`connected`] returns the outcome.
///
/// # Errors
/// When the attempt fails at once; a Unix listener's full backlog is `WouldBlock`.
pub fn connect(address: &Address) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, outcome) = match address {
        Address::Internet(internet) => {
            let family = family(internet);
            let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let outcome = connect_socket(&socket, internet);
            (socket, outcome)
        }
        Address::Unix(path) => {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            let outcome = connect_socket(&socket, &SocketAddrUnix::new(path)?);
            (socket, outcome)
        }
    };
    match outcome {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// A non-blocking datagram socket that sends to and receives from `address` only.
///
/// # Errors
/// When the system refuses, or the address is a Unix socket's.
pub fn connect_datagrams(address: &Address) -> io::Result<OwnedFd> {
    let Address::Internet(internet) = address else {
        return Err(io::Error::new(ErrorKind::Unsupported, "datagrams need an internet address"));
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family(internet), SocketType::DGRAM, flags, None)?;
    connect_socket(&socket, internet)?;
    Ok(socket)
}

/// Returns the outcome of a [`connect`] whose socket has become writable.
///
/// # Errors
/// Why it failed.
pub fn connected(socket: impl AsFd) -> io::Result<()> {
    Ok(Socket::connected(&socket)?)
}

pub(crate) fn family(address: &std::net::SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

pub(crate) fn kind(error: Errno) -> ErrorKind {
    io::Error::from(error).kind()
}

#[cfg(test)]
mod tests {
    use super::{FlushOutcome, ReadOutcome, flush, read_into};
    use crate::{Bytes, Input, Output};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        near.set_nonblocking(true).expect("non-blocking");
        (near, far)
    }

    #[test]
    fn bytes_go_through_up_to_the_limits_and_the_end_is_distinct() {
        let (near, mut far) = pair();
        let mut output = Output::new(100);
        output.put(b"hello ");
        output.share(Bytes::from(vec![b'x'; 5000]));
        assert_eq!(flush(&near, &mut output, 10), FlushOutcome::More);
        assert_eq!(flush(&near, &mut output, 1 << 20), FlushOutcome::Done);
        let mut got = [0; 5006];
        far.read_exact(&mut got).expect("all bytes");
        assert!(got.starts_with(b"hello xxxx"));

        let mut input = Input::new();
        assert_eq!(read_into(&near, &mut input, 8), ReadOutcome::Blocked);
        flush(
            &far,
            &mut {
                let mut all = Output::new(1);
                all.put(&[7; 20]);
                all
            },
            99,
        );
        assert_eq!(read_into(&near, &mut input, 8), ReadOutcome::Bytes(8));
        assert!(matches!(read_into(&near, &mut input, 8), ReadOutcome::Full(_)));
        input.consume(8);
        assert_eq!(read_into(&near, &mut input, 99), ReadOutcome::Bytes(12));
        drop(far);
        assert_eq!(read_into(&near, &mut input, 99), ReadOutcome::Closed);
        output.put(b"late");
        assert!(matches!(flush(&near, &mut output, 99), FlushOutcome::Failed(_)));
    }

    #[test]
    fn a_peer_that_does_not_read_blocks_and_loses_nothing() {
        let (near, mut far) = pair();
        let mut output = Output::new(1);
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|at| (at % 251) as u8).collect();
        output.share(Bytes::from(bytes.clone()));
        assert_eq!(flush(&near, &mut output, usize::MAX), FlushOutcome::Blocked);
        let mut got = Vec::new();
        let mut chunk = vec![0; 100_000];
        while got.len() < bytes.len() {
            let count = far.read(&mut chunk).expect("read");
            got.extend_from_slice(&chunk[..count]);
            flush(&near, &mut output, usize::MAX);
        }
        assert!(got == bytes && output.is_empty());
    }
}
