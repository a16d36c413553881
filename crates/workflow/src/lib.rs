//! The `workflow` service: suites of tasks, with triggers, limits, times and jobs, as ecFlow 5.9.2
//! serves them.
//!
//! [`model`] holds the tree and its rules, [`definition`] reads and prints its text, [`protocol`]
//! is the requests and answers of ecFlow's clients, [`script`] makes jobs of scripts; none of them
//! does I/O.

#![deny(unsafe_code)]

pub mod definition;
pub mod model;
pub mod protocol;
pub mod script;
