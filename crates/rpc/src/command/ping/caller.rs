//! What a trial calls: one function, over any carrier or gRPC, each answer compared with the right
//! one.

use std::fs;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use prost::Message as _;
use service::Failure;

use super::super::args::{AUTHORIZATION, SessionArgs};
use super::cpus::pin;
use super::grpc::OverGrpc;
use super::rung::Within;
use crate::carriers::{CarrierAddress, Peer, Tuning, start_at, start_at_file, unconnected};
use crate::client::CallOptions;
use crate::client::native::{
    Flush, FutureClient, FutureKind, NativeClient, NativeOptions, Step, Traffic,
};
use crate::protocol::native::greeting::MOST_TOKEN_BYTES;
use crate::protocol::status::Status;
use crate::protocol::table::{Number, Sample};
use crate::writes::Writes;

/// What is before a token.
const BEARER: &str = "Bearer ";

/// The exit code of a call is for its status; here any status is a failure.
fn failed(status: Status) -> anyhow::Error {
    anyhow::Error::new(status)
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::command) enum Function {
    /// A message that comes back
    Echo,
    /// The server's total, which grows by one
    Add,
}

impl Function {
    fn path(self) -> &'static str {
        match self {
            Self::Echo => "/loadline.rpc.v1.Table/Echo",
            Self::Add => "/loadline.rpc.v1.Table/Add",
        }
    }
}

/// Whether an address is one of gRPC.
pub(in crate::command) fn is_grpc(address: &str) -> bool {
    ["grpc://", "grpcs://"].iter().any(|scheme| address.starts_with(scheme))
}

/// How own frames are sent, and their answers waited for.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct How {
    pub(super) tuning: Tuning,
    pub(super) writes: Writes,
    pub(super) reads: Option<usize>,
    pub(super) buffered: Option<Flush>,
    pub(super) future: FutureKind,
    /// Where this side runs.
    pub(super) cpu: Option<usize>,
}

/// A function that is called, as the other side knows it.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct Method {
    path: &'static str,
    /// Its number in the greeting of own frames.
    number: u32,
}

/// A connection.
pub(in crate::command) enum Caller {
    Native(Box<NativeClient>, CallOptions),
    Future(FutureClient, CallOptions),
    Grpc(Box<OverGrpc>),
    Within(Box<Within>),
}

impl Caller {
    pub(in crate::command) fn connect(
        address: &str,
        session: SessionArgs,
        how: How,
    ) -> Result<Self, Failure> {
        // A server that hangs is not waited for without end.
        let timeout = session.timeout.or(Some(session.connect_timeout));
        let session = SessionArgs { timeout, ..session };
        if is_grpc(address) {
            pin(how.cpu)?;
            return Ok(Self::Grpc(Box::new(OverGrpc::connect(address, session)?)));
        }
        let parsed: CarrierAddress = address.parse().map_err(Failure::usage)?;
        let calls = session.options()?;
        let token = token(&calls)?;
        let limit = session.connect_timeout.duration();
        let advice = match &parsed {
            CarrierAddress::Unix(path) => start_at_file("--unix", path),
            CarrierAddress::Shm(path) => start_at_file("--shm", path),
            CarrierAddress::Tcp(address) => start_at(address, false),
            _ => "`loadline serve rpc` starts one".to_owned(),
        };
        let carrier = parsed.connect(how.tuning, limit);
        let carrier = carrier.map_err(|error| unconnected(error, &advice));
        let carrier = carrier.with_context(|| format!("cannot connect to {address}"))?;
        // Behind what a carrier starts, which is the server; before a thread of this side.
        pin(how.cpu)?;
        let options = NativeOptions {
            token,
            max_message_bytes: u32::try_from(calls.max_message_bytes).unwrap_or(u32::MAX),
            connect_timeout: limit,
            writes: how.writes,
            reads: how.reads,
            buffered: how.buffered,
        };
        let client = NativeClient::connect(carrier, &options).map_err(failed);
        let client = client.with_context(|| format!("cannot connect to {address}"))?;
        if how.future == FutureKind::Caller {
            return Ok(Self::Native(Box::new(client), calls));
        }
        let client = FutureClient::of(client, how.future);
        let client = client.context("answers can't be read by a thread of its own (--future)")?;
        Ok(Self::Future(client, calls))
    }

    /// Which process is at the other end, as the system knows it.
    pub(in crate::command) fn peer(&self) -> Peer {
        match self {
            Self::Native(client, _) => client.peer(),
            Self::Future(client, _) => client.peer(),
            Self::Grpc(..) => Peer::Tcp,
            Self::Within(_) => Peer::Here,
        }
    }

    /// How long the answers until now were on their way from the thread that has read them.
    pub(in crate::command) fn handed_ns(&self) -> Option<u64> {
        match self {
            Self::Future(client, _) => Some(client.handed_ns()),
            Self::Native(..) | Self::Grpc(..) | Self::Within(_) => None,
        }
    }

    /// What has passed; within this process nothing does.
    pub(in crate::command) fn traffic(&self) -> Option<Traffic> {
        match self {
            Self::Native(client, _) => Some(client.traffic()),
            Self::Future(client, _) => Some(client.traffic()),
            Self::Grpc(client) => Some(client.traffic()),
            Self::Within(_) => None,
        }
    }

    /// Notes each write and read from now on, where they are known.
    pub(in crate::command) fn note_steps(&mut self) {
        match self {
            Self::Native(client, _) => client.note_steps(),
            Self::Future(client, _) => client.note_steps(),
            Self::Grpc(client) => client.note_steps(),
            Self::Within(_) => {}
        }
    }

    /// Those since, in order.
    pub(in crate::command) fn take_steps(&mut self) -> Vec<Step> {
        match self {
            Self::Native(client, _) => client.take_steps(),
            Self::Future(client, _) => client.take_steps(),
            Self::Grpc(client) => client.take_steps(),
            Self::Within(_) => Vec::new(),
        }
    }

    /// Finds a function by its path, which is done once.
    pub(in crate::command) fn find(&self, path: &'static str) -> Result<Method, Status> {
        let number = match self {
            Self::Native(client, _) => client.method(path)?,
            Self::Future(client, _) => client.method(path)?,
            Self::Grpc(..) | Self::Within(_) => 0,
        };
        Ok(Method { path, number })
    }

    /// One call.
    pub(in crate::command) fn call(
        &mut self,
        method: Method,
        request: &Bytes,
    ) -> Result<Bytes, Status> {
        match self {
            Self::Native(client, options) => client.call(method.number, request, options.timeout),
            Self::Future(client, options) => client.call(method.number, request, options.timeout),
            Self::Within(within) => within.call(method.path, request),
            Self::Grpc(client) => client.call(method.path, request),
        }
    }
}

/// The token of `--token-file` or `--header "authorization: Bearer TOKEN"`, which the greeting
/// carries. No other metadata of own frames is the same for all calls.
fn token(options: &CallOptions) -> Result<Bytes, Failure> {
    let mut token = Bytes::new();
    for (name, value) in options.metadata.iter() {
        let given = value.split_at_checked(BEARER.len()).filter(|(scheme, _)| {
            name == AUTHORIZATION && scheme.eq_ignore_ascii_case(BEARER.as_bytes())
        });
        let Some((_, given)) = given.filter(|_| token.is_empty()) else {
            let words = format!(
                "--header \"{name}: …\" is for grpc:// and grpcs://: own frames take one, \
                 authorization: {BEARER}TOKEN"
            );
            return Err(Failure::Usage(words));
        };
        token = Bytes::copy_from_slice(given.trim_ascii());
        if token.len() > MOST_TOKEN_BYTES {
            let bytes = token.len();
            let words = format!(
                "--header: a token of {bytes} bytes is over the {MOST_TOKEN_BYTES} of own frames"
            );
            return Err(Failure::Usage(words));
        }
    }
    Ok(token)
}

/// The calls of a trial, and what their answers have to be.
pub(in crate::command) struct Work {
    pub(in crate::command) function: Function,
    pub(in crate::command) bytes: usize,
    request: Bytes,
    method: Option<Method>,
    /// The server's total before the first call, and after the last.
    totals: Option<(i64, i64)>,
    calls: u64,
}

impl Work {
    pub(in crate::command) fn new(function: Function, bytes: usize) -> Self {
        let request = match function {
            Function::Add => Number { value: 1 }.encode_to_vec(),
            Function::Echo => {
                let blob = vec![b'x'; bytes].into();
                Sample { blob, ..Sample::default() }.encode_to_vec()
            }
        };
        let bytes = request.len();
        Self { function, bytes, request: request.into(), method: None, totals: None, calls: 0 }
    }

    /// What is sent, and with echo returned.
    pub(in crate::command) fn request(&self) -> &Bytes {
        &self.request
    }

    /// How many calls there were.
    pub(in crate::command) fn calls(&self) -> u64 {
        self.calls
    }

    /// The server's total before the first call, and after the last.
    pub(in crate::command) fn totals(&self) -> Option<(i64, i64)> {
        self.totals
    }

    /// One call, whose answer has to be right.
    pub(in crate::command) fn once(&mut self, caller: &mut Caller) -> anyhow::Result<()> {
        if let Caller::Within(within) = caller
            && let Some(total) = within.direct(1)
        {
            self.calls += 1;
            return self.is_next(total);
        }
        let method = match self.method {
            Some(method) => method,
            None => *self.method.insert(caller.find(self.function.path()).map_err(failed)?),
        };
        let answer = caller.call(method, &self.request).map_err(failed)?;
        self.calls += 1;
        match self.function {
            Function::Echo if answer == self.request => Ok(()),
            Function::Echo => bail!("a wrong answer: echo has returned another message"),
            Function::Add => {
                let Number { value } = Number::decode(answer).context("a wrong answer")?;
                self.is_next(value)
            }
        }
    }

    /// Whether a total is the one that is due.
    fn is_next(&mut self, value: i64) -> anyhow::Result<()> {
        let (first, last) = self.totals.unwrap_or((value.wrapping_sub(1), value.wrapping_sub(1)));
        let right = last.wrapping_add(1);
        if value != right {
            bail!(
                "a wrong answer: the total is {value}, and not {right}; if someone else adds at \
                 this server, use --function echo"
            );
        }
        self.totals = Some((first, value));
        Ok(())
    }
}

/// CPU time of a process, in user mode and in the kernel, in clock ticks.
pub(in crate::command) fn cpu_ticks(pid: &str) -> Option<(u64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have blanks.
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::metadata::Metadata;

    #[test]
    fn own_frames_take_a_token_and_no_other_metadata() {
        let token = |all: &[(&str, &str)]| {
            let mut metadata = Metadata::default();
            all.iter().for_each(|(name, value)| metadata.add(*name, value.as_bytes().to_vec()));
            token(&CallOptions { metadata, ..CallOptions::default() })
        };
        assert_eq!(token(&[]).ok(), Some(Bytes::new()));
        let right = Some(Bytes::from_static(b"secret"));
        for scheme in ["Bearer ", "bearer ", "BEARER  "] {
            assert_eq!(token(&[("authorization", &format!("{scheme}secret"))]).ok(), right);
        }
        let one = ("authorization", "Bearer secret");
        for wrong in [
            &[("authorization", "Basic secret")][..],
            &[("authorization", "secret")],
            &[("x", "Bearer secret")],
            &[one, ("x", "1")],
            &[one, one],
            &[("authorization", &format!("Bearer {}", "x".repeat(MOST_TOKEN_BYTES + 1)))],
        ] {
            assert!(matches!(token(wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
    }
}
