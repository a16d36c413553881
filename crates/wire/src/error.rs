//! A broken protocol.

use std::borrow::Cow;

/// The peer broke the protocol in a way that its connection does not survive.
///
/// An answer that names the mistake may be put into the output first: it is sent before the
/// connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProtocolError(Cow<'static, str>);

impl ProtocolError {
    /// An error with this message, a sentence without a full stop.
    pub fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self(what.into())
    }
}
