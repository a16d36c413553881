//! `loadline rpc`: a client for people and scripts. Control plane.

mod args;
#[cfg(feature = "grpc")]
mod ask;
#[cfg(feature = "grpc")]
mod call;
#[cfg(feature = "grpc")]
mod describe;
#[cfg(feature = "grpc")]
mod frames;
#[cfg(feature = "grpc")]
mod input;
#[cfg(feature = "grpc")]
mod inspect;
mod ping;
#[cfg(feature = "grpc")]
mod session;
mod why;

use service::{Outcome, Run};

#[cfg(not(feature = "grpc"))]
use crate::left_out::{AnyArgs as CallArgs, AnyArgs as InspectArgs};
use args::{RpcCommand, SessionArgs};
#[cfg(feature = "grpc")]
use {call::CallArgs, inspect::InspectArgs};

const EXAMPLES: &str = "\
Examples:
  loadline rpc list 127.0.0.1:50051
  loadline rpc describe 127.0.0.1:50051 loadline.rpc.v1.Table
  loadline rpc call 127.0.0.1:50051 loadline.rpc.v1.Table/Add '{\"value\": 2}'
  loadline rpc call unix:/run/rpc.sock grpc.testing.TestService/FullDuplexCall - < requests.jsonl
  loadline rpc call grpcs://example my.Service/Get @request.json --proto my.proto --tls-ca ca.pem
  loadline rpc call shm:/run/rpc.shm loadline.rpc.v1.Table/Who          by own frames
  loadline rpc health 127.0.0.1:50051
  loadline rpc ping tcp:127.0.0.1:50051
  loadline rpc ping 'pipe:loadline serve rpc --pipe' --function echo --bytes 1000
  mpirun -np 2 loadline rpc ping mpi:              rank 0 asks, the others serve
  loadline rpc ping tcp:127.0.0.1:50051 --writes field --nagle     the 44 ms of two small writes
  loadline rpc why tcp:127.0.0.1:50051 --writes field --nagle
  loadline rpc inspect --codec julia '21 05 61 62 63 64 65'
  loadline rpc codecs

What functions take is asked of the server's reflection, or read from --proto. Requests and answers
are JSON, a line each where there are several. A call that ends with another status than OK has the
exit code 64 + its number: 69 is NOT_FOUND, 78 UNAVAILABLE; so has one whose reflection ends so. It
is 1 where no connection was made.";

/// Arguments of `loadline rpc`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RpcArgs {
    #[command(flatten)]
    session: SessionArgs,

    #[command(subcommand)]
    command: Any,
}

#[derive(Debug, clap::Subcommand)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
enum Any {
    /// Call a function: print its answers, a line of JSON each
    Call(CallArgs),
    #[command(flatten)]
    Ask(RpcCommand),
    /// Measure how long a call takes: over gRPC, TCP, a Unix socket, shared memory, a pipe, MPI, or
    /// within this process
    Ping(ping::PingArgs),
    /// Say where the time of a call goes: writes, reads, switches, CPU of both sides, and the rest
    Why(why::WhyArgs),
    /// Show an encoding byte by byte: fields, types, values, and what its bytes are for
    Inspect(InspectArgs),
    /// Print what each codec can, found by trying it
    Codecs,
}

impl Run for RpcArgs {
    fn run(self) -> Outcome {
        let Self { session, command } = self;
        match command {
            Any::Ping(args) => ping::ping(&args, session),
            Any::Why(args) => why::why(&args, session),
            #[cfg(feature = "grpc")]
            Any::Call(args) => ask::call(&args, session),
            #[cfg(feature = "grpc")]
            Any::Ask(command) => ask::ask(command, session),
            #[cfg(feature = "grpc")]
            Any::Inspect(args) => inspect::inspect(&args, &session),
            #[cfg(feature = "grpc")]
            Any::Codecs => inspect::codecs(session.json),
            #[cfg(not(feature = "grpc"))]
            Any::Call(_) | Any::Ask(_) | Any::Inspect(_) | Any::Codecs => {
                Err(crate::left_out::left_out())
            }
        }
    }
}
