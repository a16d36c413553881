//! The workload of a service that keeps values by key and adds only its clients.

use std::sync::Arc;

use wire::{Address, ProtocolError};

use super::oracle::Oracle;
use super::store::Store;
use crate::busy::Busy;
use crate::dialect::Dialect;
use crate::operation::Operation;
use crate::speaks::Speaks;
use crate::workload::{Draw, Preparation, Workload};

/// Makes a client, which checks its answers with the oracle.
pub type MakeClient<T> = fn(&Arc<Oracle>, &Speaks) -> Result<Box<T>, ProtocolError>;

impl Store {
    /// Returns the workload whose connections are made by `make`.
    pub fn with_dialects(self, make: MakeClient<dyn Dialect>) -> Arc<dyn Workload> {
        Arc::new(OverConnections { store: self, make })
    }

    /// Returns the workload whose slots call what `make` returns, without a target.
    pub fn in_process(self, make: MakeClient<dyn Busy>) -> Arc<dyn Workload> {
        Arc::new(InProcess { store: self, make })
    }
}

#[derive(Debug)]
struct OverConnections {
    store: Store,
    make: MakeClient<dyn Dialect>,
}

impl Workload for OverConnections {
    fn operations(&self) -> &[Operation] {
        self.store.operations()
    }

    fn preparation(&self) -> Preparation {
        self.store.preparation()
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        self.store.begin(operations).with_dialects(self.make)
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(self.store.draws())
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        (self.make)(&self.store.oracle, speaks)
    }
}

#[derive(Debug)]
struct InProcess {
    store: Store,
    make: MakeClient<dyn Busy>,
}

impl Workload for InProcess {
    fn operations(&self) -> &[Operation] {
        self.store.operations()
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        self.store.begin(operations).in_process(self.make)
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(self.store.draws())
    }

    fn busy(
        self: Arc<Self>,
        speaks: &Speaks,
        _: Option<&Address>,
    ) -> Result<Box<dyn Busy>, ProtocolError> {
        (self.make)(&self.store.oracle, speaks)
    }
}
