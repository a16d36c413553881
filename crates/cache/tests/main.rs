//! The tests of the service from outside, in one program.

mod beside;
mod commands;
mod common;
mod crawler;
mod dialect;
mod hit_ratio;
mod incoming;
mod insight;
mod server;
mod simulation;
mod splits;
mod store;
mod text;
mod traces;
