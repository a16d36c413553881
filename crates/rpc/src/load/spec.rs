//! `[workload]`: how large messages are, and how many a call that streams has.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use load::tls::Secure;
use load::{Dialect, Draw, Operation, Part, Speaks, SpecError, UniformDraw, Workload};
use prost::Message as _;
use serde::Deserialize;
use wire::ProtocolError;

use super::any::{self, AnySpec, ExpectSpec};
use super::calls::Target;
use super::frames::Frames;
use super::grpc::Grpc;
use super::made::{BODIES, Made};
use super::operations::{BIDI, CALL, CLIENT_STREAM, OPERATIONS, SERVER_STREAM};
use super::options::{FramesOptions, GrpcOptions};
use super::totals::Totals;
use crate::parts::{self, LookUp, Parts, future_ns, look_up_ns};
use crate::protocol::table::Sample;
use base::many;

/// The most bytes of one message's payload.
const MAX_BYTES: usize = 64 << 20;

/// The most messages of a call.
const MAX_MESSAGES: usize = 500_000;

/// The most bytes of all messages of a call.
const MAX_CALL_BYTES: usize = 1 << 30;

/// The dialect of own frames.
pub(super) const FRAMES: &str = "frames";

/// The service's part of `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// Bytes of each message's payload.
    bytes: Option<usize>,
    /// Messages of each call that streams.
    #[serde(default = "hundred")]
    messages: usize,
    /// The method of the operation `call`: `package.Service/Method`.
    method: Option<String>,
    /// The .proto file that describes it, relative to the suite; else the server's reflection does.
    proto: Option<PathBuf>,
    /// Folders in which its imports are looked for, too.
    #[serde(default)]
    imports: Vec<PathBuf>,
    /// Its request as JSON; else requests are made of the schema.
    message: Option<String>,
    /// How many different requests are made.
    requests: Option<u32>,
    /// What a right answer is; else answers are not checked.
    #[serde(default)]
    expect: ExpectSpec,
}

fn hundred() -> usize {
    100
}

/// Reads the part of a suite that belongs to calls.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let Spec { bytes: stated, messages, method, proto, imports, message, requests, expect } =
        part.read()?;
    let bytes = stated.unwrap_or(0);
    if bytes > MAX_BYTES {
        return Err(part.error("bytes", format!("{bytes} bytes are more than {MAX_BYTES}")));
    }
    if !(1..=MAX_MESSAGES).contains(&messages) {
        let why = format!("{messages} is not from 1 to {MAX_MESSAGES} messages");
        return Err(part.error("messages", why));
    }
    if bytes * messages > MAX_CALL_BYTES {
        let (all, each) = (many(messages, "message"), many(bytes, "byte"));
        let why = format!("{all} of {each} are more than {MAX_CALL_BYTES}");
        return Err(part.error("messages", why));
    }
    let mut made = Made::new(bytes, messages, part.seed);
    let any = AnySpec { method, proto, imports, message, requests, expect };
    if any.is_said() {
        let source = any::source(&any, part, stated, messages)?;
        made.set_source(any.path().unwrap_or_default(), source);
    }
    let made = Arc::new(made);
    let target = Target { made, totals: Arc::default(), operations: Arc::default() };
    Ok(Arc::new(Rpc::new(target, part.folder.to_owned())))
}

/// The workload of one target.
#[derive(Debug)]
struct Rpc {
    target: Target,
    /// Where the suite is.
    folder: PathBuf,
    /// Made for the first connection of gRPC and shared by all.
    way: OnceLock<Result<Way, ProtocolError>>,
}

/// How a target of gRPC is asked.
#[derive(Debug)]
struct Way {
    options: GrpcOptions,
    secure: Option<Secure>,
}

impl Rpc {
    fn new(target: Target, folder: PathBuf) -> Self {
        Self { target, folder, way: OnceLock::new() }
    }

    fn grpc(&self, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        let way = self.way.get_or_init(|| {
            let options: GrpcOptions = speaks.read().map_err(|why| wrong(&why))?;
            Ok(Way { secure: options.secure(&self.folder)?, options })
        });
        let Way { options, secure } = way.as_ref().map_err(ProtocolError::clone)?;
        let grpc = Box::new(Grpc::new(options, self.target.clone()));
        Ok(match secure {
            None => grpc,
            Some(secure) => secure.encrypt(grpc),
        })
    }

    fn frames(&self, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        let target = &self.target;
        let is_stream = |one: &&usize| [SERVER_STREAM, CLIENT_STREAM, BIDI].contains(*one);
        if let Some(operation) = target.operations.iter().find(is_stream) {
            let name = &OPERATIONS[*operation].name;
            let words = format!("own frames carry no stream, and {name} is one: speak grpc");
            return Err(ProtocolError::new(words));
        }
        if target.made.is_learnt() && target.operations.contains(&CALL) {
            let words = "own frames have no reflection: say proto = \"FILE\"";
            return Err(ProtocolError::new(words));
        }
        let options: FramesOptions = speaks.read().map_err(|why| wrong(&why))?;
        Ok(Box::new(Frames::new(options.token(), target.clone())))
    }
}

fn wrong(error: &SpecError) -> ProtocolError {
    ProtocolError::new(error.to_string())
}

impl Workload for Rpc {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn check(&self, operations: &[usize]) -> Result<(), SpecError> {
        let streams = operations.iter().any(|one| [SERVER_STREAM, BIDI].contains(one));
        if streams && self.target.made.bytes == 0 {
            let why = "streams of answers need a size: say bytes = 8";
            return Err(SpecError::new("workload.bytes", why));
        }
        if operations.contains(&CALL) && !self.target.made.has_call() {
            let why = "the operation call needs a method: say method = \"package.Service/Method\"";
            return Err(SpecError::new("workload.operation", why));
        }
        Ok(())
    }

    fn message_bytes(&self) -> u64 {
        self.target.made.bytes as u64
    }

    fn parts(&self) -> Vec<(String, f64)> {
        let mut all = vec![
            ("look-up_by_name".to_owned(), look_up_ns(LookUp::ByName)),
            ("look-up_by_number".to_owned(), look_up_ns(LookUp::ByNumber)),
            ("future".to_owned(), future_ns()),
        ];
        let bytes = self.target.made.bytes;
        let message = Sample { blob: vec![7; bytes].into(), ..Sample::default() };
        // Of another method's messages nothing is known here.
        let is_known = !self.target.made.has_call();
        let message = is_known.then(|| Bytes::from(message.encode_to_vec()));
        let of = message.and_then(|message| Parts::measure(&message, parts::From::Fresh).ok());
        if let Some(Parts { encode_ns, decode_ns, .. }) = of {
            all.push((format!("encode_{bytes}_B"), encode_ns));
            all.push((format!("decode_{bytes}_B"), decode_ns));
        }
        all
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        // What a server's reflection says is that server's.
        let (made, totals) = (Made::clone(&self.target.made).into(), Arc::new(Totals::default()));
        let target = Target { made, totals, operations: operations.into() };
        Arc::new(Self::new(target, self.folder.clone()))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: BODIES })
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        match speaks.dialect.name == FRAMES {
            true => self.frames(speaks),
            false => self.grpc(speaks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::any::{Any, Check, Checked, Source};
    use super::*;

    struct Unchecked;

    impl Check for Unchecked {
        fn check(&self, _: usize, _: &[u8]) -> Checked {
            Checked::Right
        }
    }

    #[test]
    fn parts_of_a_call_are_its_look_up_its_future_and_its_message_by_its_size() {
        let names = |made: Made| {
            let (made, totals) = (Arc::new(made), Arc::default());
            let target = Target { made, totals, operations: Arc::default() };
            let parts = Rpc::new(target, PathBuf::new()).parts();
            parts.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let always = ["look-up_by_name", "look-up_by_number", "future"];
        let mut made = Made::new(100, 1, 1);
        let named = names(made.clone());
        assert_eq!(named[..3], always);
        assert_eq!(named[3..], ["encode_100_B", "decode_100_B"]);
        let any = Any { requests: Vec::new(), check: Box::new(Unchecked) };
        made.set_source("/a/B".to_owned(), Source::Known(any.into()));
        assert_eq!(names(made), always, "of another method's messages nothing is known");
    }
}
