//! What a call comes to: one of gRPC's codes, a text, and details.

use std::fmt;

use bytes::Bytes;

use super::metadata::Metadata;

macro_rules! codes {
    ($($name:ident = $number:literal $word:literal;)*) => {
        /// The codes of gRPC (statuscodes.md).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $word] $name = $number,)*
        }

        impl Code {
            /// The code of a number; an unknown one is [`Code::Unknown`].
            pub fn of(number: i32) -> Self {
                match number {
                    $($number => Self::$name,)*
                    _ => Self::Unknown,
                }
            }

            /// Its name as gRPC writes it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    Ok = 0 "OK";
    Cancelled = 1 "CANCELLED";
    Unknown = 2 "UNKNOWN";
    InvalidArgument = 3 "INVALID_ARGUMENT";
    DeadlineExceeded = 4 "DEADLINE_EXCEEDED";
    NotFound = 5 "NOT_FOUND";
    AlreadyExists = 6 "ALREADY_EXISTS";
    PermissionDenied = 7 "PERMISSION_DENIED";
    ResourceExhausted = 8 "RESOURCE_EXHAUSTED";
    FailedPrecondition = 9 "FAILED_PRECONDITION";
    Aborted = 10 "ABORTED";
    OutOfRange = 11 "OUT_OF_RANGE";
    Unimplemented = 12 "UNIMPLEMENTED";
    Internal = 13 "INTERNAL";
    Unavailable = 14 "UNAVAILABLE";
    DataLoss = 15 "DATA_LOSS";
    Unauthenticated = 16 "UNAUTHENTICATED";
}

impl Code {
    /// The code of an answer of HTTP without `grpc-status` (http-grpc-status-mapping.md).
    #[cfg(feature = "grpc")]
    pub(crate) fn of_http(status: u16) -> Self {
        match status {
            400 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::Unimplemented,
            429 | 502..=504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }

    /// The code of a stream that was reset (PROTOCOL-HTTP2.md, "Errors").
    #[cfg(feature = "grpc")]
    pub(crate) fn of_reset(reason: u32) -> Self {
        match reason {
            7 => Self::Unavailable,
            8 => Self::Cancelled,
            11 => Self::ResourceExhausted,
            12 => Self::PermissionDenied,
            _ => Self::Internal,
        }
    }
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The code.
    pub code: Code,
    /// The message for people.
    pub message: String,
    /// `google.rpc.Status` as bytes, where there are details; else empty.
    pub details: Bytes,
}

impl Status {
    /// A status without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Bytes::new() }
    }

    /// All went well.
    pub fn ok() -> Self {
        Self::new(Code::Ok, "")
    }

    /// A status with details, each a message by its type.
    #[cfg(feature = "grpc")]
    pub(crate) fn with_details(
        code: Code,
        message: String,
        details: Vec<prost_types::Any>,
    ) -> Self {
        if details.is_empty() {
            return Self::new(code, message);
        }
        let whole =
            super::proto::StatusProto { code: code as i32, message: message.clone(), details };
        Self { code, message, details: prost::Message::encode_to_vec(&whole).into() }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.name())?;
        if !self.message.is_empty() {
            f.write_str(": ")?;
        }
        for char in self.message.chars() {
            // Another program's text must not command a terminal.
            match char.is_control() && !matches!(char, '\n' | '\t') {
                true => write!(f, "{}", char.escape_default())?,
                false => write!(f, "{char}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Status {}

/// What a call ended with: a status, and metadata behind the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The status.
    pub status: Status,
    /// Metadata behind the answer.
    pub trailers: Metadata,
}
