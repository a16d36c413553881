//! The transport between a connection's buffers and its socket: plain, or TLS. Protocols don't
//! know which. Data plane.
//!
//! Under TLS nothing is read or sent before the handshake is done, decrypted bytes wait when the
//! input has no room for them, and encrypted ones when the socket doesn't take them: hence
//! [`Transport::is_handshaking`], [`Transport::has_plaintext`] and [`Transport::has_unsent`].

use crate::handshake::Handshake;
use crate::stream::{self, FlushOutcome, ReadOutcome, Socket};
#[cfg(feature = "tls")]
use crate::tls::Session;
use crate::{Input, Output};

/// How a connection's bytes travel over its socket.
#[derive(Debug, Default)]
pub(crate) enum Transport {
    /// Unencrypted.
    #[default]
    Plain,
    /// An outgoing connection that isn't connected yet; plain once it is.
    Connecting,
    /// Encrypted. Boxed, because few connections are.
    #[cfg(feature = "tls")]
    Tls(Box<Session>),
}

impl Transport {
    /// Whether bytes may be read from the socket straight into their place.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Whether the handshake isn't done.
    #[inline]
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Connecting => true,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.is_handshaking(),
        }
    }

    /// Continues the handshake as far as the socket allows.
    pub(crate) fn handshake(&mut self, socket: &impl Socket) -> Handshake {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.handshake(socket),
            // Called when the socket is writable: the attempt has ended.
            Self::Connecting => match socket.connected() {
                Ok(()) => {
                    *self = Self::Plain;
                    Handshake::Done
                }
                Err(error) => Handshake::Failed(stream::kind(error)),
            },
            Self::Plain => Handshake::Done,
        }
    }

    /// Reads into `input`, which never holds more than `limit` bytes.
    #[inline]
    pub(crate) fn read_into(
        &mut self,
        socket: &impl Socket,
        input: &mut Input,
        limit: usize,
    ) -> ReadOutcome {
        match self {
            Self::Plain => stream::read_into(socket, input, limit),
            Self::Connecting => ReadOutcome::Blocked,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.read_into(socket, input, limit),
        }
    }

    /// Sends at most `most` bytes of `output`.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        socket: &impl Socket,
        output: &mut Output,
        most: usize,
    ) -> FlushOutcome {
        match self {
            Self::Plain => stream::flush(socket, output, most),
            Self::Connecting => FlushOutcome::Blocked,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.flush(socket, output, most),
        }
    }

    /// Whether received bytes wait outside of the socket and the input.
    #[inline]
    pub(crate) fn has_plaintext(&self) -> bool {
        match self {
            Self::Plain | Self::Connecting => false,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.has_plaintext(),
        }
    }

    /// Whether bytes wait for the socket that have left the output.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain | Self::Connecting => false,
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.has_unsent(),
        }
    }

    /// Announces the end of the connection, if the socket takes it at once.
    pub(crate) fn end(&mut self, socket: &impl Socket) {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(session) => session.end(socket),
            Self::Plain | Self::Connecting => {
                let _ = socket;
            }
        }
    }
}
