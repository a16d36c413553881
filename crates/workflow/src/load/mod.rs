//! The lab's side of workflows: the workload of tasks that are asked about, and the dialect that
//! speaks it to any server of ecFlow's protocol.
//!
//! | file | what it holds |
//! |---|---|
//! | `workload` | `[workload]`: which tasks there are, and what is loaded beside them |
//! | `operations` | the operations |
//! | `numbers` | the numbers by which a client follows |
//! | `requests` | requests as bytes |
//! | `made` | what requests say, made once, and the definition that prepares a target |
//! | `target` | what the tasks' labels and meters should be |
//! | `follower`, `runs` | of that: what a client that follows has, and who changes states |
//! | `ecflow` | the dialect |
//! | `tree` | another workload: steps about whole trees, and starts of jobs |
//! | `generate` | a definition of any size, with the counts of ECMWF's own performance tests |
//! | `builds` | another shape, with the counts of that by which ECMWF measures how jobs are made |
//! | `spread` | of both: a number of things over places |
//! | `folder` | the definitions of a folder as one |
//! | `rungs` | what ladders measure in a process: printing, checkpoints, snapshots, shared texts |

mod builds;
mod ecflow;
mod folder;
mod follower;
mod generate;
mod made;
mod numbers;
mod operations;
mod requests;
mod rungs;
mod runs;
mod spread;
mod target;
mod tree;
mod workload;

pub use builds::{generate_builds, write_scripts};
pub use ecflow::EcFlow;
pub use folder::of_folder;
pub use generate::{Counts, SCALES, generate};
pub use operations::{
    CHILD_LABEL, EVENT, GET, INIT_COMPLETE, LABEL, METER, PING, QUERY_LABEL, QUERY_METER, REQUEUE,
    SYNC, SYNC_FULL,
};

pub use rungs::{Figure, RUNGS, Rung, Site};

pub(crate) use numbers::Numbers;
pub use tree::SERVICE as TREE;

use load::{DialectRow, Reach, Service};

/// The service.
pub static SERVICE: Service = Service {
    name: "workflow",
    doc: "Tasks whose labels, meters and events are changed and asked for, over ecFlow's protocol.",
    read: workload::read,
    dialects: &[DialectRow::new(
        "ecflow",
        "ecFlow 5.9.2's requests, a connection for each.",
        Reach::Stream,
    )],
};
