//! What is asked of a server of gRPC. Control plane.

use service::Outcome;

use super::args::{RpcCommand, SessionArgs};
use super::session::{self, Session};
use super::{call, describe};

/// Asks it, on a runtime of its own.
pub(super) fn ask(command: RpcCommand, session: SessionArgs) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
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
