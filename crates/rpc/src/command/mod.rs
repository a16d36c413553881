//! `loadline rpc`: a client for people and scripts. Control plane.

mod args;
#[cfg(feature = "grpc")]
mod call;
#[cfg(feature = "grpc")]
mod describe;
#[cfg(feature = "grpc")]
mod input;
#[cfg(feature = "grpc")]
mod inspect;
#[cfg(feature = "grpc")]
mod ping;
#[cfg(feature = "grpc")]
mod session;
#[cfg(feature = "grpc")]
mod why;

use service::{Outcome, Run};

use args::SessionArgs;

const EXAMPLES: &str = "\
Examples:
  loadline rpc list 127.0.0.1:50051
  loadline rpc describe 127.0.0.1:50051 loadline.rpc.v1.Table
  loadline rpc call 127.0.0.1:50051 loadline.rpc.v1.Table/Add '{\"value\": 2}'
  loadline rpc call unix:/run/rpc.sock grpc.testing.TestService/FullDuplexCall - < requests.jsonl
  loadline rpc call grpcs://example my.Service/Get @request.json --proto my.proto --tls-ca ca.pem
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
    #[cfg_attr(not(feature = "grpc"), allow(dead_code))]
    session: SessionArgs,

    #[command(subcommand)]
    #[cfg_attr(not(feature = "grpc"), allow(dead_code))]
    command: Any,
}

#[derive(Debug, clap::Subcommand)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
enum Any {
    #[command(flatten)]
    Ask(RpcCommand),
    /// Measure how long a call takes: over gRPC, TCP, a Unix socket, shared memory, a pipe, MPI, or
    /// within this process
    #[cfg(feature = "grpc")]
    Ping(ping::PingArgs),
    /// Say where the time of a call goes: writes, reads, switches, CPU of both sides, and the rest
    #[cfg(feature = "grpc")]
    Why(why::WhyArgs),
    /// Show an encoding byte by byte: fields, types, values, and what its bytes are for
    #[cfg(feature = "grpc")]
    Inspect(inspect::InspectArgs),
    /// Print what each codec can, found by trying it
    #[cfg(feature = "grpc")]
    Codecs,
}

/// What is asked of a server of gRPC.
#[derive(Debug, clap::Subcommand)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
enum RpcCommand {
    /// Call a function: print its answers, a line of JSON each
    Call {
        /// The server: HOST, HOST:PORT, grpcs://HOST:PORT or unix:PATH
        address: String,
        /// The function: package.Service/Method
        method: String,
        /// The request as JSON, @FILE, or - for standard input; of a stream of requests a value
        /// each [default: one without fields]
        request: Option<String>,
    },
    /// Print the services of a server, or the functions of one
    List {
        /// The server
        address: String,
        /// The service
        service: Option<String>,
    },
    /// Print what a service, function, message or enumeration is, as a .proto file writes it
    Describe {
        /// The server
        address: String,
        /// Its name; all services without one
        symbol: Option<String>,
    },
    /// Ask whether a server, or one of its services, serves: exit code 0 if it does, 1 if not, 69
    /// if the server has none of this name
    Health {
        /// The server
        address: String,
        /// The service; without one the whole server
        service: Option<String>,
    },
}

#[cfg(not(feature = "grpc"))]
impl Run for RpcArgs {
    fn run(self) -> Outcome {
        Err(crate::left_out::left_out())
    }
}

#[cfg(feature = "grpc")]
impl Run for RpcArgs {
    fn run(self) -> Outcome {
        use session::Session;

        let Self { session, command } = self;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let command = match command {
            Any::Ask(command) => command,
            Any::Ping(args) => return ping::ping(&args, session, &runtime),
            Any::Why(args) => return why::why(&args, session, &runtime),
            Any::Inspect(args) => return inspect::inspect(&args, &session),
            Any::Codecs => return inspect::codecs(session.json),
        };
        let address = match &command {
            RpcCommand::Call { address, .. }
            | RpcCommand::List { address, .. }
            | RpcCommand::Describe { address, .. }
            | RpcCommand::Health { address, .. } => address.clone(),
        };
        let json = session.json;
        let outcome = runtime.block_on(async {
            let session = Session::begin(&address, session)?;
            match command {
                RpcCommand::Call { method, request, .. } => {
                    call::call(&session, &method, request.as_deref()).await
                }
                RpcCommand::List { service, .. } => {
                    describe::list(&session, service.as_deref(), json).await
                }
                RpcCommand::Describe { symbol, .. } => {
                    describe::describe(&session, symbol.as_deref(), json).await
                }
                RpcCommand::Health { service, .. } => {
                    call::health(&session, service.unwrap_or_default(), json).await
                }
            }
        });
        // A thread that waits for standard input is not waited for.
        runtime.shutdown_background();
        session::with_exit_code(outcome)
    }
}
