//! The lab: reads a suite, starts its targets, loads them, watches, and keeps what it saw.
//!
//! It knows no protocol by name: services are handed in (see [`plan::Registry`]). [`drive`] is data
//! plane; everything else is control plane.

pub mod cpus;
pub mod deploy;
mod descendants;
pub mod drive;
pub mod in_process;
mod last_lines;
pub mod observe;
pub mod placeholders;
pub mod plan;
pub mod run;
