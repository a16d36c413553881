//! The lab's side of whole trees: steps that concern all nodes of a server, such as loading,
//! beginning, downloading and deleting 320,830 of them, or starting 2,000 jobs. Control plane.
//!
//! Each call is one step, by one client that waits: what it takes, what it costs the server's
//! process, and how long others wait for a ping meanwhile. The server is on this host.
//!
//! | file | what it holds |
//! |---|---|
//! | `workload` | `[workload]`: how large the tree is, how many jobs |
//! | `operations` | the steps |
//! | `source` | which definition: of a scale, of another shape, those of a folder |
//! | `made` | definitions and paths, made once |
//! | `names` | the digest by which a tree's nodes are compared |
//! | `exchange` | one request over a connection of its own |
//! | `process` | the server's process: CPU time, memory, until it is idle again |
//! | `site` | the server: its address, process and folder, and what it says |
//! | `others` | pings beside a step |
//! | `known` | what the server's tree should be |
//! | `bulk` | steps about all nodes |
//! | `at_once` | steps by which several clients take the whole tree at once |
//! | `cut` | steps in this program's own protocol: trees by encoding and by level |
//! | `pushed` | the step by which another client is sent what changes |
//! | `starts` | steps that start jobs |
//! | `client` | the client: a step, its time, its cost and its check |

mod at_once;
mod bulk;
mod client;
mod cut;
mod exchange;
mod known;
mod made;
mod names;
mod operations;
mod others;
mod process;
mod pushed;
mod site;
mod source;
mod starts;
mod workload;

use load::{DialectRow, Reach, Service};

pub(in crate::load) use others::percentile;
pub(in crate::load) use process::Process;

/// The service.
pub static SERVICE: Service = Service {
    name: "workflow-tree",
    doc: "Steps about a whole tree of nodes, and starts of jobs, over ecFlow's protocol.",
    read: workload::read,
    dialects: &[DialectRow::new(
        "ecflow",
        "ecFlow 5.9.2's requests, a connection for each; the server is on this host.",
        Reach::Calls,
    )],
};
