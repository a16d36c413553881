//! What can go wrong with a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use wire::ProtocolError;

use crate::protocol::Status;

/// Why a request to a server has failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no connection, or it broke.
    #[error("the connection to {0} failed: {1}")]
    Io(SocketAddr, io::Error),
    /// The server breaks the protocol.
    #[error("{0} breaks the protocol: {1}")]
    Broken(SocketAddr, ProtocolError),
    /// The server closed the connection.
    #[error("{0} closed the connection")]
    Closed(SocketAddr),
    /// The server closed the channel: its record is no more.
    #[error("the channel is closed: its record is no more")]
    ChannelClosed,
    /// The server refuses.
    #[error("{0}")]
    Refused(Status),
    /// The server has ended a monitor, without a reason.
    #[error("the server has ended the monitor")]
    Finished,
    /// No answer came in time.
    #[error("{0} did not answer within {1:?}")]
    TimedOut(SocketAddr, Duration),
    /// No server has the channel.
    #[error("no server has a channel {0:?}")]
    NotFound(String),
    /// The operation's type isn't what is put into it.
    #[error("a value of another type than the channel's")]
    WrongType,
}

impl ClientError {
    /// Whether the connection or the channel is lost, so that another may be had. So it is after
    /// bytes that are no messages: another server may have had the address for a moment.
    pub fn is_loss(&self) -> bool {
        match self {
            Self::Io(..) | Self::Closed(_) | Self::ChannelClosed | Self::Broken(..) => true,
            Self::TimedOut(..) | Self::NotFound(_) => true,
            Self::Refused(_) | Self::Finished | Self::WrongType => false,
        }
    }
}
