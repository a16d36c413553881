//! How the other side broke the protocol.

use base::many;
use std::fmt;

/// What is shown of bytes that are no greeting.
pub(super) const MOST_SHOWN: usize = 16;

/// What ends a connection: the other side broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The greeting begins with other bytes than the magic: with these, as many as there are.
    Magic([u8; MOST_SHOWN], usize),
    /// The other side speaks TLS.
    Tls,
    /// The other side speaks this version.
    Version(u16),
    /// A greeting is longer than it may be, by this count of bytes.
    Greeting(usize),
    /// A name in the table of methods is no UTF-8.
    Name,
    /// A frame of an unknown kind.
    Kind(u8),
    /// A frame with flags that are not known.
    Flags(u16),
    /// A frame of a kind, with a payload that is longer than it may be.
    Length(&'static str, u32),
    /// Metadata or details that don't end where they have to, or hold a name that is no UTF-8.
    Payload(&'static str),
    /// A frame that this side may not send.
    Side(&'static str),
    /// The number of a call that is outstanding already, or of an answer to no call.
    Id(u64),
    /// A message of a call whose messages have ended.
    Ended(u64),
    /// A second head of an answer.
    Head(u64),
    /// A message for which its sender had no credit, or a credit of more than there can be.
    Credit(u64),
    /// The connection ended within a frame or greeting, after this many of its bytes.
    Torn(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(first, length) => {
                let first = &first[..(*length).min(MOST_SHOWN)];
                let why = match first {
                    [b'H', b'T', b'T', b'P', b'/', ..] => "an answer of HTTP/1",
                    // The length of a frame, and its kind: SETTINGS.
                    [_, _, _, 4, ..] => "HTTP/2, as gRPC has it: call it by grpc://HOST:PORT",
                    _ => "something else",
                };
                write!(
                    f,
                    "the other side doesn't speak own frames: what came is \"{}\", {why}",
                    first.escape_ascii()
                )
            }
            Self::Tls => f.write_str(
                "the other side speaks TLS, which clients of own frames don't: call it by \
                 grpcs://HOST:PORT with --tls-ca FILE",
            ),
            Self::Version(theirs) => {
                write!(
                    f,
                    "the other side speaks version {theirs} of own frames, which isn't known here"
                )
            }
            Self::Greeting(bytes) => write!(f, "a greeting of {bytes} bytes is too long"),
            Self::Name => f.write_str("the name of a method is no UTF-8"),
            Self::Kind(kind) => write!(f, "a frame of the unknown kind {kind}"),
            Self::Flags(flags) => write!(f, "a frame with the unknown flags {flags:#06x}"),
            Self::Length(kind, bytes) => {
                write!(f, "a frame of the kind \"{kind}\" with {bytes} bytes is too long")
            }
            Self::Payload(what) => write!(f, "the {what} of a frame can't be read"),
            Self::Side(kind) => write!(f, "a frame of the kind \"{kind}\" from the wrong side"),
            Self::Id(id) => write!(f, "call {id} is outstanding already, or was never made"),
            Self::Ended(id) => write!(f, "a message of call {id}, whose messages have ended"),
            Self::Head(id) => write!(f, "a second head of the answer to call {id}"),
            Self::Credit(id) => write!(f, "call {id} has sent or given more than its credit"),
            Self::Torn(bytes) => {
                let bytes = many(*bytes, "byte");
                write!(f, "the connection ended {bytes} into a frame or greeting")
            }
        }
    }
}

impl std::error::Error for Fault {}
