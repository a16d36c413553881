//! The service as the lab sees it: its operations and its dialect.
//!
//! Values are 64-bit numbers, or arrays of them whose elements are all alike. They count: a write
//! by the lab gives its record the next version, and a target that writes by itself counts up by
//! one. So a value that is stale is found, and what is left out can be counted.

mod elements;
mod incoming;
mod layout;
mod made;
mod operations;
mod oracle;
mod pvaccess;
mod workload;

pub use operations::{CONNECT, GET, MONITOR, PUT, RPC};
pub use oracle::Oracle;
pub use pvaccess::{PvAccess, Updates};

use load::{DialectRow, Reach, Service};

/// The service.
pub static SERVICE: Service = Service {
    name: "records",
    doc: "Live records of typed values and big arrays, over EPICS pvAccess.",
    read: workload::read,
    dialects: &[DialectRow::new(
        "pvaccess",
        "pvAccess over TCP; monitors have the usual queue of 4. Options: `pipeline = true` \
         acknowledges updates, `shared = true` looks at arrays in memory that the server shares.",
        Reach::Stream,
    )
    .with_options::<Updates>()],
};
