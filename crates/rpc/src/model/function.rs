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
    pub(crate) run: Run,
}

impl Function {
    /// A function of one message that returns one without waiting.
    pub(crate) fn at_once<Q, A>(
        name: &'static str,
        run: impl Fn(&Info, Q) -> Result<A, Status> + Send + Sync + 'static,
    ) -> Self
    where
        Q: Message + Default,
        A: Message,
    {
        let run = move |info: &Info, request| Ok(encode(&run(info, decode(request)?)?));
        Self { name, run: Run::AtOnce(Box::new(run)) }
    }

    /// A function of one message as bytes that returns one without waiting.
    pub(crate) fn of_bytes(
        name: &'static str,
        run: impl Fn(Bytes) -> Result<Bytes, Status> + Send + Sync + 'static,
    ) -> Self {
        Self { name, run: Run::AtOnce(Box::new(move |_, request| run(request))) }
    }

    /// A function that receives, sends and waits.
    pub(crate) fn in_steps<F>(
        name: &'static str,
        run: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        Self { name, run: Run::InSteps(Box::new(move |call| Box::pin(run(call)))) }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}
