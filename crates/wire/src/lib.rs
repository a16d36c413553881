//! Bytes and the loops that move them: the seam between a protocol and its sockets.
//!
//! A protocol is a state machine over bytes ([`Connection`], [`Datagrams`]). The loop owns the
//! sockets, the buffers and the clock, so the same protocol code serves a server, a load
//! generator, a fuzzer and a golden test.
//!
//! This crate is data plane, save for binding sockets and starting and stopping a server: after
//! warm-up nothing here allocates or takes a contended lock per operation. Allocations happen when
//! a connection opens, a message arrives in several reads, or a peer doesn't read.
//!
//! - The traits: [`Connection`], [`Datagrams`], [`Input`], [`Output`]; [`deliver`] drives a
//!   protocol without a socket.
//! - Encryption under a connection, invisible to protocols: `Tls`, with the feature `tls`.
//! - The server: [`Listener`], [`DatagramListener`], [`Config`], [`Server`].
//! - Shared with the load generator's loop: [`Poller`], [`stream`], [`clock`].
//! - HTTP/1.1 as a client writes and reads it: [`http`].
//! - The limit of open descriptors: [`allow_descriptors`]. Control plane.
//! - A metrics page over HTTP: [`Page`]. Control plane.

#![deny(unsafe_code)]

pub mod clock;
pub mod http;
pub mod stream;

mod accept;
mod buffers;
mod closing;
mod counters;
mod datagrams;
mod descriptors;
mod input;
mod listen;
mod mailbox;
mod output;
mod page;
mod poll;
mod protocol;
mod server;
mod slots;
mod timers;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_client;
mod transport;
mod turn;
mod uring;
mod uring_turn;
mod worker;

pub use bytes::Bytes;
pub use counters::Counters;
pub use descriptors::allow_descriptors;
pub use input::Input;
pub use listen::{DatagramListener, ListenOptions, Listener};
pub use output::Output;
pub use page::Page;
pub use poll::{Event, Interest, Poller};
pub use protocol::{
    Address, Batch, Closed, Connection, Datagrams, Flow, Ns, Peer, ProtocolError, Replies, Wake,
    Waker,
};
pub use server::{Backend, Config, Server, ThreadIndex, WhenFull};
#[cfg(feature = "tls")]
pub use tls::{ClientCertificates, Tls, TlsError, TlsSettings};
#[cfg(feature = "tls")]
pub use tls_client::{TlsStream, TlsTrust};
pub use turn::deliver;
