//! The crate's integration tests: one program, one module for each subject.

mod closing;
mod common;
mod datagrams;
mod descriptors;
mod fairness;
mod greeting;
mod idle;
mod large_in;
mod large_out;
mod limits;
mod outgoing;
mod push;
mod services;
mod simulation;
mod splitting;
mod stopping;
mod threads;
mod timers;
#[cfg(feature = "tls")]
mod tls;
mod uring;
