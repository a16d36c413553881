//! What is asked of a server of gRPC. Control plane.

use service::Outcome;

use super::args::{RpcCommand, SessionArgs};
use super::call::CallArgs;
use super::session::{self, Session};
use super::{call, describe, frames};

/// Calls a function, over gRPC or own frames.
pub(super) fn call(args: &CallArgs, session: SessionArgs) -> Outcome {
    if args.to.is_of_frames() {
        return frames::call(args, session);
    }
    args.to.check_bare()?;
    let (method, request) = (&args.method, args.request.as_deref());
    within(&args.to.address, session, async |session| call::call(session, method, request).await)
}

/// Asks for what isn't a call.
pub(super) fn ask(command: RpcCommand, session: SessionArgs) -> Outcome {
    let json = session.json;
    match command {
        RpcCommand::List { address, service } => within(&address, session, async |session| {
            describe::list(session, service.as_deref(), json).await
        }),
        RpcCommand::Describe { address, symbol } => within(&address, session, async |session| {
            describe::describe(session, symbol.as_deref(), json).await
        }),
        RpcCommand::Health { address, service } => within(&address, session, async |session| {
            call::health(session, service.unwrap_or_default(), json).await
        }),
    }
}

/// Works with a server, on a runtime of its own.
fn within(
    address: &str,
    args: SessionArgs,
    work: impl AsyncFnOnce(&Session) -> Outcome,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let session = Session::begin(address, args)?;
        work(&session).await
    });
    // A thread that waits for standard input is not waited for.
    runtime.shutdown_background();
    session::with_exit_code(outcome)
}
