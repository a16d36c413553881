//! Bytes and the loops that move them: the seam between a protocol and its sockets.
//!
//! A protocol is a state machine over bytes ([`Connection`], [`Datagrams`]). The loop owns the
//! sockets, the buffers and the clock, so the same protocol code serves a server, a load
//! generator, a fuzzer and a golden test.
//!
//! This crate is data plane, save for binding sockets and starting and stopping a server: after
//! warm-up nothing here allocates or takes a contended lock per operation. What allocates is a
//! connection that opens, a message that comes in several reads, and a peer that doesn't read.
//!
//! - The seam: [`Connection`], [`Datagrams`], [`Input`], [`Output`]; [`deliver`] drives it
//!   without a socket.
//! - Encryption under a connection, which no protocol knows of: `Tls`, with the feature `tls`.
//! - The server: [`Listener`], [`DatagramListener`], [`Config`], [`Server`].
//! - What the load generator's loop shares with it: [`Poller`], [`stream`], [`clock`].
//! - What a client of web services says and reads: [`http`].
//! - Room for many connections: [`allow_descriptors`]. Control plane.
//! - A page made anew for whoever asks, such as a service's counters: [`Page`]. Control plane.

#![deny(unsafe_code)]

pub mod clock;
pub mod http;
pub mod stream;

mod accept;
mod counters;
mod datagrams;
mod descriptors;
mod input;
mod link;
mod listen;
mod mailbox;
mod output;
mod page;
mod pass;
mod poll;
mod protocol;
mod ring;
mod server;
mod slots;
mod timers;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_client;
mod together;
mod worker;

pub use bytes::Bytes;
pub use counters::Counters;
pub use descriptors::allow_descriptors;
pub use input::Input;
pub use listen::{DatagramListener, ListenOptions, Listener};
pub use output::Output;
pub use page::Page;
pub use pass::deliver;
pub use poll::{Event, Interest, Poller};
pub use protocol::{
    Address, Batch, Closed, Connection, Datagrams, Flow, Ns, Peer, ProtocolError, Replies, Wake,
    Waker,
};
pub use server::{Calls, Config, Server, ThreadIndex, WhenFull};
#[cfg(feature = "tls")]
pub use tls::{ClientCertificates, Tls, TlsError, TlsSettings};
#[cfg(feature = "tls")]
pub use tls_client::{TlsStream, TlsTrust};
