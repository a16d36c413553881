//! A connection of gRPC, which `ping` and `why` compare own frames with.

#[cfg(not(feature = "grpc"))]
pub(super) use left_out::OverGrpc;
#[cfg(feature = "grpc")]
pub(super) use whole::OverGrpc;

#[cfg(feature = "grpc")]
mod whole {
    use bytes::Bytes;
    use service::Failure;
    use tokio::runtime::{Builder, Runtime};

    use crate::client::native::{Step, Traffic};
    use crate::client::{CallOptions, Client};
    use crate::command::args::SessionArgs;
    use crate::command::session::Session;
    use crate::protocol::status::Status;

    /// A connection, and the runtime that its task is on.
    pub(in crate::command) struct OverGrpc {
        runtime: Runtime,
        client: Client,
        options: CallOptions,
    }

    impl OverGrpc {
        pub(in crate::command::ping) fn connect(
            address: &str,
            session: SessionArgs,
        ) -> Result<Self, Failure> {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let session = Session::begin(address, session)?;
            let client = runtime.block_on(session.connect())?;
            Ok(Self { runtime, client, options: session.options })
        }

        /// One call.
        pub(in crate::command::ping) fn call(
            &mut self,
            path: &str,
            request: &Bytes,
        ) -> Result<Bytes, Status> {
            let Self { runtime, client, options } = self;
            let answer = runtime.block_on(client.call(path, request, options));
            answer.map_err(|ended| ended.status)
        }

        /// What has passed. The waits aren't known: a runtime looks for bytes between its tasks,
        /// too, and counts only those times when it has none to run.
        pub(in crate::command::ping) fn traffic(&self) -> Traffic {
            self.client.traffic()
        }

        /// Notes each write and read from now on.
        pub(in crate::command::ping) fn note_steps(&self) {
            self.client.note_steps();
        }

        /// Those since, in order.
        pub(in crate::command::ping) fn take_steps(&self) -> Vec<Step> {
            self.client.take_steps()
        }
    }
}

/// Without gRPC there is no such connection.
#[cfg(not(feature = "grpc"))]
mod left_out {
    use bytes::Bytes;
    use service::Failure;

    use crate::client::native::{Step, Traffic};
    use crate::command::args::SessionArgs;
    use crate::protocol::status::Status;

    /// None can be made.
    pub(in crate::command) enum OverGrpc {}

    impl OverGrpc {
        pub(in crate::command::ping) fn connect(_: &str, _: SessionArgs) -> Result<Self, Failure> {
            Err(crate::left_out::left_out())
        }

        pub(in crate::command::ping) fn call(
            &mut self,
            _: &str,
            _: &Bytes,
        ) -> Result<Bytes, Status> {
            match *self {}
        }

        pub(in crate::command::ping) fn traffic(&self) -> Traffic {
            match *self {}
        }

        pub(in crate::command::ping) fn note_steps(&self) {
            match *self {}
        }

        pub(in crate::command::ping) fn take_steps(&self) -> Vec<Step> {
            match *self {}
        }
    }
}
