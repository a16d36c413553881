//! The service from outside: its protocol, its server without a socket, its load.

mod connection;
mod golden;
mod groups;
mod load;
mod memory;
mod session;
mod simulation;
