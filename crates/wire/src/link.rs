//! What lies between a connection's buffers and its socket: nothing, or TLS. A protocol knows of
//! neither; the loop asks here.
//!
//! Under TLS nothing is read or sent before a handshake has ended, decrypted bytes may wait when
//! there was no room for them, and encrypted ones when the peer did not take them. The loop asks
//! for each: [`Link::is_handshaking`], [`Link::has_plaintext`], [`Link::has_unsent`].

use rustix::fd::BorrowedFd;

use crate::stream::{self, FlushOutcome, ReadOutcome};
#[cfg(feature = "tls")]
use crate::tls::Session;
use crate::{Input, Output};

/// How far a handshake has come.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only encryption has one"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Bytes of the connection may be read and sent.
    Done,
    /// The peer has to say more first.
    Reads,
    /// The peer has to take more first.
    Writes,
    /// It has failed, or the peer has gone.
    Failed(std::io::ErrorKind),
}

/// A connection's bytes on their way to or from its socket.
#[derive(Debug, Default)]
pub(crate) enum Link {
    /// They go as they are.
    #[default]
    Plain,
    /// They are encrypted. Boxed, because few connections are.
    #[cfg(feature = "tls")]
    Tls(Box<Session>),
}

impl Link {
    /// Whether bytes may be read from the socket straight into their place.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Whether nothing may be read or sent yet.
    #[inline]
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain => false,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.is_handshaking(),
        }
    }

    /// Goes on with the handshake as far as the socket allows.
    pub(crate) fn shake(&mut self, socket: BorrowedFd<'_>) -> Handshake {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.shake(socket),
            Self::Plain => {
                let _ = socket;
                Handshake::Done
            }
        }
    }

    /// Reads into `input`, which never holds more than `limit` bytes.
    #[inline]
    pub(crate) fn read_into(
        &mut self,
        socket: BorrowedFd<'_>,
        input: &mut Input,
        limit: usize,
    ) -> ReadOutcome {
        match self {
            Self::Plain => stream::read_into(socket, input, limit),
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.read_into(socket, input, limit),
        }
    }

    /// Sends at most `most` bytes of `output`.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        socket: BorrowedFd<'_>,
        output: &mut Output,
        most: usize,
    ) -> FlushOutcome {
        match self {
            Self::Plain => stream::flush(socket, output, most),
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.flush(socket, output, most),
        }
    }

    /// Whether bytes have come that were not read yet, though the socket has no more.
    #[inline]
    pub(crate) fn has_plaintext(&self) -> bool {
        match self {
            Self::Plain => false,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.has_plaintext(),
        }
    }

    /// Whether bytes wait for the socket that are not the output's any more.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain => false,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.has_unsent(),
        }
    }

    /// Tells the peer that nothing more will be sent, as far as it takes that at once.
    pub(crate) fn end(&mut self, socket: BorrowedFd<'_>) {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.end(socket),
            Self::Plain => {
                let _ = socket;
            }
        }
    }
}
