//! The workload of the lab: slices of many folders, as jobs read them, and objects that are
//! inserted and read again. Every value is known from the seed, and compared.
//!
//! Peers hold the same objects in tables of their own and answer the same operations: each is a
//! dialect, and what it answers is checked as our own server's answers are.

mod browse;
mod bulk;
mod check;
mod connection;
mod http;
mod loopback;
mod made;
mod nopayload;
mod operations;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod spec;
#[cfg(feature = "sqlite")]
mod sqlite;
mod there;
mod written;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
use load::Advisor;
use load::{
    Caller, DialectRow, Draw, Operation, Part, Preparation, Reach, Service, Speaks, SpecError,
    UniformDraw, Workload,
};
use wire::{Address, ProtocolError};

use made::Made;
use operations::{Do, OPERATIONS};
use options::{PostgresOptions, SqliteOptions};
use spec::{Long, Spec};

pub use nopayload::SERVICE as NOPAYLOADDB;

/// What the lab can ask, the service's own operations first.
pub static SERVICES: [&Service; 2] = [&SERVICE, &NOPAYLOADDB];

/// The service's row for the lab.
pub static SERVICE: Service = Service {
    name: "conditions",
    doc: "Values with intervals of validity, read by slices of many folders, inserted and found.",
    read,
    dialects: &[
        DialectRow::new("conditions", "The requests of docs/conditions.md.", Reach::Calls),
        postgres("postgres-gist", "PostgreSQL: ranges of time under a GiST index."),
        postgres("postgres-lateral", "PostgreSQL: the latest row before the time, by channel."),
        postgres("postgres-vector", "PostgreSQL: a row for all channels of a folder."),
        postgres("postgres-naive", "PostgreSQL: `since <= t and until > t`."),
        SQLITE,
        DialectRow::new(
            "loopback",
            "As many bytes as a slice has, and nothing else.",
            Reach::Calls,
        ),
    ],
};

/// A dialect of PostgreSQL.
#[cfg(feature = "postgres")]
const fn postgres(name: &'static str, doc: &'static str) -> DialectRow {
    let row = DialectRow::new(name, doc, Reach::Calls).with_options::<PostgresOptions>();
    row.with_counters(&postgres::Activity)
}

/// A dialect of PostgreSQL, which this program can't speak.
#[cfg(not(feature = "postgres"))]
const fn postgres(name: &'static str, doc: &'static str) -> DialectRow {
    let row = DialectRow::new(name, doc, Reach::Calls).with_options::<PostgresOptions>();
    row.lacking("this program was built without its feature `postgres`")
}

/// The dialect of SQLite, which the client's own process carries out.
const SQLITE: DialectRow = {
    let doc = "SQLite in the client's process: the latest row before the time, by channel.";
    let row = DialectRow::new("sqlite", doc, Reach::Calls).with_options::<SqliteOptions>();
    match cfg!(feature = "sqlite") {
        true => row,
        false => row.lacking("this program was built without its feature `sqlite`"),
    }
};

/// How long one part of the preparation may take: the last one builds the index of a peer.
const PART_WITHIN: Duration = Duration::from_secs(20 * 60);

fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    if part.table.contains_key("written_by") {
        return there::read(part);
    }
    let spec: Spec = part.read()?;
    spec.check().map_err(|(key, why)| part.error(key, why))?;
    Ok(Arc::new(Conditions::new(Made::new(spec, part.seed), Does::default())))
}

/// The options of a target's dialect.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn read_options<T: serde::de::DeserializeOwned>(speaks: &Speaks) -> Result<T, ProtocolError> {
    speaks.read().map_err(|error| ProtocolError::new(error.message))
}

/// The workload of one target.
#[derive(Debug)]
struct Conditions {
    made: Arc<Made>,
    slots: AtomicU32,
    does: Does,
}

/// What is particular of what slots do.
#[derive(Clone, Copy, Debug, Default)]
struct Does {
    /// They are jobs, each of which is connected from the beginning on.
    jobs: bool,
    /// One loads everything anew: nothing is prepared.
    loads: bool,
}

impl Conditions {
    fn new(made: Made, does: Does) -> Self {
        Self { made: Arc::new(made), slots: AtomicU32::new(0), does }
    }
}

impl Workload for Conditions {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn check(&self, operations: &[usize]) -> Result<(), SpecError> {
        let appends = operations.iter().any(|one| Do::of(*one) == Do::Append);
        if appends && self.made.spec.long != Long::None {
            let why = "append goes on from intervals one after another: leave `long` out";
            return Err(SpecError::new("workload.long", why));
        }
        let loads = operations.iter().filter(|one| Do::of(**one) == Do::Load).count();
        if loads > 0 && loads < operations.len() {
            let why = "load makes everything anew: give it a suite of its own, without others";
            return Err(SpecError::new("workload.operation", why));
        }
        Ok(())
    }

    fn message_bytes(&self) -> u64 {
        24 * self.made.spec.objects() + 4 * self.made.spec.values()
    }

    fn preparation(&self) -> Preparation {
        if self.does.loads {
            return Preparation::default();
        }
        let spec = &self.made.spec;
        let bytes = u64::from(spec.intervals) * (72 * spec.objects() + 4 * spec.values());
        Preparation {
            parts: self.made.parts(),
            bytes,
            // A folder is made with its first part.
            is_in_order: true,
            within: Some(PART_WITHIN),
            about: self.made.about(),
        }
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        let is_any = |wanted: Do| operations.iter().any(|one| Do::of(*one) == wanted);
        let does = Does { jobs: is_any(Do::Job), loads: is_any(Do::Load) };
        Arc::new(Self::new(self.made.again(), does))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: u64::from(self.made.spec.intervals) })
    }

    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    fn advisor(self: Arc<Self>, speaks: &Speaks, address: &Address) -> Option<Box<dyn Advisor>> {
        match (speaks.dialect.name, address) {
            #[cfg(feature = "sqlite")]
            ("sqlite", _) => Some(Box::new(sqlite::Itself)),
            #[cfg(feature = "postgres")]
            (name, Address::Internet(address)) => {
                postgres::advisor(name, read_options(speaks).ok()?, *address, &self.made)
            }
            _ => None,
        }
    }

    fn caller(
        self: Arc<Self>,
        speaks: &Speaks,
        address: &Address,
    ) -> Result<Box<dyn Caller>, ProtocolError> {
        let Address::Internet(address) = address else {
            return Err(ProtocolError::new("the target has to be at ADDRESS:PORT"));
        };
        let (made, channel) = (Arc::clone(&self.made), self.slots.fetch_add(1, Relaxed));
        if self.does.loads && channel > 0 {
            return Err(ProtocolError::new("load is the work of one slot: connections = 1"));
        }
        match speaks.dialect.name {
            "conditions" => {
                let mut slot = http::Slot::new(*address, made, channel);
                if self.does.jobs {
                    slot.connect()?;
                }
                Ok(Box::new(slot))
            }
            "loopback" => match loopback::Slot::connect(*address, &made) {
                Ok(slot) => Ok(Box::new(slot)),
                Err(error) => Err(ProtocolError::new(error.to_string())),
            },
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                Ok(Box::new(sqlite::Slot::open(read_options(speaks)?, *address, made, channel)?))
            }
            #[cfg(feature = "postgres")]
            name => postgres::caller(name, read_options(speaks)?, *address, made, channel),
            #[cfg(not(feature = "postgres"))]
            _ => Err(ProtocolError::new(speaks.dialect.missing.unwrap_or("it has no client"))),
        }
    }
}
