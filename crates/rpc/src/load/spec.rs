//! `[workload]`: how large messages are, and how many a call that streams has.

use std::sync::Arc;

use load::{Dialect, Draw, Operation, Part, Speaks, SpecError, UniformDraw, Workload};
use serde::Deserialize;
use wire::ProtocolError;

use super::grpc::{Grpc, Target};
use super::made::{BODIES, Made};
use super::operations::{ADD, BIDI, OPERATIONS, SERVER_STREAM};
use super::totals::Totals;

/// The most bytes of one message's payload.
const MAX_BYTES: usize = 64 << 20;

/// The most messages of a call.
const MAX_MESSAGES: usize = 500_000;

/// The most bytes of all messages of a call.
const MAX_CALL_BYTES: usize = 1 << 30;

/// The service's part of `[workload]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// Bytes of each message's payload.
    #[serde(default)]
    bytes: usize,
    /// Messages of each call that streams.
    #[serde(default = "hundred")]
    messages: usize,
}

fn hundred() -> usize {
    100
}

/// `speaks = { grpc = { authority = "example.org" } }`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    /// Which server is asked for, where several share an address.
    #[serde(default = "localhost")]
    authority: String,
}

fn localhost() -> String {
    "localhost".to_owned()
}

/// Reads the part of a suite that belongs to calls.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let Spec { bytes, messages } = part.read()?;
    if bytes > MAX_BYTES {
        return Err(part.error("bytes", format!("{bytes} bytes are more than {MAX_BYTES}")));
    }
    if !(1..=MAX_MESSAGES).contains(&messages) {
        let why = format!("{messages} is not from 1 to {MAX_MESSAGES} messages");
        return Err(part.error("messages", why));
    }
    if bytes * messages > MAX_CALL_BYTES {
        let why = format!("{messages} messages of {bytes} bytes are more than {MAX_CALL_BYTES}");
        return Err(part.error("messages", why));
    }
    let made = Arc::new(Made::new(bytes, messages, part.seed));
    Ok(Arc::new(Rpc(Target { made, totals: Arc::default(), adds: false })))
}

/// The workload of one target.
#[derive(Debug)]
struct Rpc(Target);

impl Workload for Rpc {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn check(&self, operations: &[usize]) -> Result<(), SpecError> {
        let streams = operations.iter().any(|one| [SERVER_STREAM, BIDI].contains(one));
        if streams && self.0.made.bytes == 0 {
            let why = "streams of answers need a size: say bytes = 8";
            return Err(SpecError::new("workload.bytes", why));
        }
        Ok(())
    }

    fn message_bytes(&self) -> u64 {
        self.0.made.bytes as u64
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        let (made, totals) = (Arc::clone(&self.0.made), Arc::new(Totals::default()));
        Arc::new(Self(Target { made, totals, adds: operations.contains(&ADD) }))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: BODIES })
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        let options = speaks.read::<Options>();
        let Options { authority } =
            options.map_err(|error| ProtocolError::new(error.to_string()))?;
        Ok(Box::new(Grpc::new(authority, self.0.clone())))
    }
}
