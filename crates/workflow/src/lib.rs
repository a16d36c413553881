//! The `workflow` service: suites of tasks, with triggers, limits, times and jobs, as ecFlow 5.9.2
//! serves them.
//!
//! [`model`] holds the tree and its rules, [`definition`] reads and prints its text,
//! [`mod@binary`] its bytes, [`protocol`] is the requests and answers of ecFlow's clients,
//! [`script`] makes jobs of scripts, [`lint`] says what is wrong with a definition, [`simulate`]
//! what would run when, [`history`] what a log says of runs, [`traffic`] is recorded requests; none
//! of them does I/O. [`server`] and [`client`] do.
//! [`load`] is the workload and dialect of the lab.

#![deny(unsafe_code)]

pub mod binary;
pub mod client;
pub mod definition;
pub mod history;
pub mod lint;
pub mod load;
pub mod model;
pub mod protocol;
pub mod script;
pub mod server;
pub mod simulate;
pub mod traffic;

mod command;
mod serve;
mod slices;
mod words;

use service::{Service, Subcommand};

/// The service's row: `loadline serve workflow` and `loadline workflow`.
pub static SERVICE: Service = Service {
    name: "workflow",
    doc: "Serve suites of tasks to ecFlow's clients, and run their jobs",
    is_hidden: false,
    serve: Subcommand::of::<serve::WorkflowArgs>(),
    command: Some((
        "Check and simulate definitions; see and steer any ecFlow server",
        Subcommand::of::<command::WorkflowCommandArgs>(),
    )),
};
