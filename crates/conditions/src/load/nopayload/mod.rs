//! The workload of NoPayloadDB's interface: the question of every job, in the five scenarios of the
//! reference's own measurements (`scenario_insert.py` of nopayloadtesting). The dialects are REST,
//! as our server answers it, and PostgreSQL with the reference's tables and query.

mod http;
mod made;
#[cfg(feature = "postgres")]
mod postgres;

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "postgres")]
use load::Advisor;
use load::{
    Caller, DialectRow, Draw, Operation, Part, Preparation, Reach, Service, Speaks, SpecError,
    UniformDraw, Workload,
};
use serde::Deserialize;
use wire::{Address, ProtocolError};

use made::{Made, OPERATIONS};

/// The row for the lab.
pub static SERVICE: Service = Service {
    name: "nopayloaddb",
    doc: "NoPayloadDB's question of every job: what each list of a tag shows.",
    read,
    dialects: &[
        DialectRow::new("nopayloaddb", "The requests of docs/nopayloaddb.md.", Reach::Calls),
        POSTGRES,
    ],
};

const POSTGRES: DialectRow = {
    let doc = "PostgreSQL: the tables and the query of NoPayloadDB's reference.";
    let row = DialectRow::new("postgres-nopayloaddb", doc, Reach::Calls);
    #[cfg(feature = "postgres")]
    let row = row.with_counters(&super::postgres::Activity);
    #[cfg(not(feature = "postgres"))]
    let row = row.lacking("this program was built without its feature `postgres`");
    row
};

/// How long one part of the preparation may take: the last one builds the index of a peer.
const PART_WITHIN: Duration = Duration::from_secs(20 * 60);

/// How much there is: payload types of one tag, and payload IOVs of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scenario {
    Tiny,
    TinyModerate,
    Moderate,
    HeavyUsage,
    WorstCase,
}

impl Scenario {
    fn sizes(self) -> (u32, u32) {
        match self {
            Self::Tiny => (10, 10),
            Self::TinyModerate => (10, 200),
            Self::Moderate => (100, 200),
            Self::HeavyUsage => (100, 5_000),
            Self::WorstCase => (200, 26_000),
        }
    }
}

/// `[workload]`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    scenario: Scenario,
}

fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let Spec { scenario } = part.read()?;
    let (types, iovs) = scenario.sizes();
    Ok(Arc::new(Questions(Arc::new(Made { types, iovs, seed: part.seed }))))
}

/// The workload of any target: it changes nothing once it is prepared.
#[derive(Debug)]
struct Questions(Arc<Made>);

impl Workload for Questions {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn message_bytes(&self) -> u64 {
        made::ROW_BYTES * u64::from(self.0.types)
    }

    fn preparation(&self) -> Preparation {
        let Made { types, iovs, seed } = *self.0;
        Preparation {
            parts: self.0.parts(),
            bytes: 250 * u64::from(types) * u64::from(iovs),
            // A list is made with its first part.
            is_in_order: true,
            within: Some(PART_WITHIN),
            about: format!("{types} payload types {iovs} IOVs, seed {seed}"),
        }
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: u64::from(self.0.iovs) })
    }

    #[cfg(feature = "postgres")]
    fn advisor(self: Arc<Self>, speaks: &Speaks, address: &Address) -> Option<Box<dyn Advisor>> {
        match address {
            Address::Internet(address) if speaks.dialect.name != "nopayloaddb" => {
                postgres::advisor(*address, &self.0)
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
        let made = Arc::clone(&self.0);
        match speaks.dialect.name {
            "nopayloaddb" => Ok(Box::new(http::Slot::new(*address, made))),
            #[cfg(feature = "postgres")]
            _ => Ok(Box::new(postgres::Slot::connect(*address, made)?)),
            #[cfg(not(feature = "postgres"))]
            _ => Err(ProtocolError::new(speaks.dialect.missing.unwrap_or("it has no client"))),
        }
    }
}
