//! A service's workload: which operations there are, what has to be there before them, what each
//! slot asks, and the clients that ask it and check the answers.

use std::sync::Arc;
use std::time::Duration;

use wire::{Address, ProtocolError};

use crate::advisor::Advisor;
use crate::busy::Busy;
use crate::caller::Caller;
use crate::dialect::Dialect;
use crate::mix::{Mix, Ops};
use crate::operation::Operation;
use crate::part::SpecError;
use crate::speaks::Speaks;

pub use crate::mix::Op;

/// What a service is asked, and what it should answer. The same object is shared by all slots that
/// load one target; what it knows of the target (an oracle) is behind locks or atomics of its own.
pub trait Workload: std::fmt::Debug + Send + Sync {
    /// The operations; [`Op::operation`] is an index into them. They are the same at every call.
    fn operations(&self) -> &[Operation];

    /// Whether these operations can be done together. `[workload]` has been read by then.
    ///
    /// # Errors
    /// Names the key that stands against it.
    fn check(&self, operations: &[usize]) -> Result<(), SpecError> {
        let _ = operations;
        Ok(())
    }

    /// The size of the largest usual message, in bytes; 0 is small. Beyond 1 MB the host's own
    /// speed of copying is measured beside the load.
    fn message_bytes(&self) -> u64 {
        0
    }

    /// What an operation has besides its way to a target, each measured by itself in this process:
    /// a name, whose words `_` joins, and nanoseconds. They are listed with the floors of `--cost`;
    /// nothing unless a workload says otherwise.
    fn parts(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// What is written before the load begins; nothing unless a workload says otherwise.
    fn preparation(&self) -> Preparation {
        Preparation::default()
    }

    /// The same workload about a target that has just been prepared. `operations` are those that
    /// any group of clients does.
    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload>;

    /// What one slot asks, drawn from `seed`: the same for every target with the same seed.
    fn draw(&self, seed: u64) -> Box<dyn Draw>;

    /// The client side of one connection, for dialects over a stream or in datagrams.
    ///
    /// # Errors
    /// When the workload has no such client.
    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        Err(no_client(speaks))
    }

    /// The client side of one slot whose calls block, connected to the target at `address`.
    ///
    /// # Errors
    /// When it can't be connected, or the workload has no such client.
    fn caller(
        self: Arc<Self>,
        speaks: &Speaks,
        address: &Address,
    ) -> Result<Box<dyn Caller>, ProtocolError> {
        let _ = address;
        Err(no_client(speaks))
    }

    /// What looks at the target at `address` while it is loaded, for dialects that have such a
    /// thing. It may connect; nothing is measured meanwhile.
    fn advisor(self: Arc<Self>, speaks: &Speaks, address: &Address) -> Option<Box<dyn Advisor>> {
        let _ = (speaks, address);
        None
    }

    /// The client side of one slot whose calls take nanoseconds. Without a target there is no
    /// `address`.
    ///
    /// # Errors
    /// As [`Workload::caller`].
    fn busy(
        self: Arc<Self>,
        speaks: &Speaks,
        address: Option<&Address>,
    ) -> Result<Box<dyn Busy>, ProtocolError> {
        let _ = address;
        Err(no_client(speaks))
    }
}

fn no_client(speaks: &Speaks) -> ProtocolError {
    let (name, reach) = (speaks.dialect.name, speaks.dialect.reach);
    ProtocolError::new(format!("the workload has no client for {name} ({reach:?})"))
}

/// What is written before the load begins: parts, numbered from 0, each of which is one request: a
/// key and its value, a thousand rows, or a whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// How many parts there are.
    pub parts: u64,
    /// How large the target's state is then, in bytes, as an estimate; 0 is unknown.
    pub bytes: u64,
    /// Whether a part is sent only once the one before it is answered. Otherwise slots share the
    /// parts, and each has 64 or more of them under way.
    pub is_in_order: bool,
    /// How long the answer to one part may take; as long as any other unless stated.
    pub within: Option<Duration>,
    /// A text that is the same where what is written is the same: data that a target keeps from
    /// run to run are named after it.
    pub about: String,
}

/// Draws operations about numbers, each equally often.
#[derive(Clone, Copy, Debug)]
pub struct UniformDraw {
    /// [`Op::what`] is below this.
    pub below: u64,
}

impl Draw for UniformDraw {
    #[inline]
    fn draw(&mut self, mix: &mut Mix, ops: &mut Ops) {
        while ops.has_room() {
            let operation = mix.operation();
            ops.push(Op { operation, what: mix.below(self.below) });
        }
    }
}

/// Draws what one slot asks.
pub trait Draw: Send {
    /// Pushes the next operations, at least one: as many as there is room for, where they don't
    /// depend on answers. [`Mix::operation`] says which operation the suite wants next.
    fn draw(&mut self, mix: &mut Mix, ops: &mut Ops);

    /// The operation that begins stream number `index` of all that a group of clients subscribes
    /// to.
    fn subscribe(&mut self, operation: usize, index: u64) -> Op {
        Op { operation, what: index }
    }
}
