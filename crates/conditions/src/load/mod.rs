//! The workload of the lab: slices of many folders, as jobs read them, and objects that are
//! inserted and read again. Every value is computed anew from the seed, and compared.

mod caller;
mod made;
mod operations;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use load::{
    Caller, DialectRow, Draw, Operation, Part, Preparation, Reach, Service, Speaks, SpecError,
    UniformDraw, Workload,
};
use wire::{Address, ProtocolError};

use caller::Slot;
use made::{Made, Spec};
use operations::OPERATIONS;

/// The service's row for the lab.
pub static SERVICE: Service = Service {
    name: "conditions",
    doc: "Values with intervals of validity, read by slices of many folders, inserted and found.",
    read,
    dialects: &[DialectRow::new("conditions", "The requests of docs/conditions.md.", Reach::Calls)],
};

/// How long one part of the preparation may take.
const PART_WITHIN: Duration = Duration::from_secs(60);

fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let spec: Spec = part.read()?;
    spec.check().map_err(|(key, why)| part.error(key, why))?;
    Ok(Arc::new(Conditions::new(Made { spec, seed: part.seed })))
}

/// The workload of one target.
#[derive(Debug)]
struct Conditions {
    made: Made,
    slots: AtomicU32,
}

impl Conditions {
    fn new(made: Made) -> Self {
        Self { made, slots: AtomicU32::new(0) }
    }
}

impl Workload for Conditions {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn message_bytes(&self) -> u64 {
        let Spec { folders, channels, floats, .. } = self.made.spec;
        u64::from(folders) * u64::from(channels) * (24 + 4 * u64::from(floats))
    }

    fn preparation(&self) -> Preparation {
        let Spec { folders, channels, intervals, floats, .. } = self.made.spec;
        let rows = u64::from(folders) * u64::from(channels) * u64::from(intervals);
        Preparation {
            parts: self.made.parts(),
            bytes: rows * (72 + 4 * u64::from(floats)),
            // A folder is made with its first part.
            is_in_order: true,
            within: Some(PART_WITHIN),
            about: String::new(),
        }
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        Arc::new(Self::new(self.made))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: u64::from(self.made.spec.intervals) })
    }

    fn caller(
        self: Arc<Self>,
        _: &Speaks,
        address: &Address,
    ) -> Result<Box<dyn Caller>, ProtocolError> {
        let Address::Internet(address) = address else {
            return Err(ProtocolError::new("the target has to be at ADDRESS:PORT"));
        };
        let channel = self.slots.fetch_add(1, Relaxed);
        Ok(Box::new(Slot::new(*address, self.made, channel)))
    }
}
