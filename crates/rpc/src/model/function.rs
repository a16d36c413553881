//! A function by its name, with its types erased: what a carrier calls.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use prost::Message;

use super::call::{Call, Info};
use crate::protocol::message::{decode, encode};
use crate::protocol::status::Status;

/// What a call comes to.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>;

/// One message for one message, without waiting.
type AtOnce = Box<dyn Fn(&Info, Bytes) -> Result<Bytes, Status> + Send + Sync>;

/// Anything else.
type InSteps = Box<dyn Fn(Call) -> Outcome + Send + Sync>;

/// How a function is called.
pub(crate) enum Run {
    /// With its one message; it returns the one answer.
    AtOnce(AtOnce),
    /// With the call, of which it takes messages and to which it sends others.
    InSteps(InSteps),
}

/// A function.
pub(crate) struct Function {
    /// The name of its method.
    pub(crate) name: &'static str,
    /// Whether the client sends several messages.
    pub(crate) client_streams: bool,
    /// Whether the server does.
    pub(crate) server_streams: bool,
    pub(crate) run: Run,
}

impl Function {
    fn of(name: &'static str, run: Run) -> Self {
        Self { name, client_streams: false, server_streams: false, run }
    }

    /// A function of one message that returns one without waiting.
    pub(crate) fn at_once<Q, A>(
        name: &'static str,
        run: impl Fn(&Info, Q) -> Result<A, Status> + Send + Sync + 'static,
    ) -> Self
    where
        Q: Message + Default,
        A: Message,
    {
        let run = move |info: &Info, request: Bytes| Ok(encode(&run(info, decode(&request)?)?));
        Self::of(name, Run::AtOnce(Box::new(run)))
    }

    /// A function of one message as bytes that returns one without waiting.
    pub(crate) fn of_bytes(
        name: &'static str,
        run: impl Fn(Bytes) -> Result<Bytes, Status> + Send + Sync + 'static,
    ) -> Self {
        Self::of(name, Run::AtOnce(Box::new(move |_, request| run(request))))
    }

    /// A function that receives, sends and waits: one message for one, unless it says that it
    /// streams.
    pub(crate) fn in_steps<F>(
        name: &'static str,
        run: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        Self::of(name, Run::InSteps(Box::new(move |call| Box::pin(run(call)))))
    }

    /// The client sends several messages.
    pub(crate) fn client_streams(self) -> Self {
        Self { client_streams: true, ..self }
    }

    /// The server sends several messages.
    pub(crate) fn server_streams(self) -> Self {
        Self { server_streams: true, ..self }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}
