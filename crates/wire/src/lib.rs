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
//! - The server: [`Listener`], [`DatagramListener`], [`Config`], [`Server`]; several protocols in
//!   one server: [`ServerBuilder`].
//! - What waits: [`TaskPool`] runs what blocks, [`Answers`] keeps the order of answers that
//!   complete later, [`Connection::wants_input`] and [`Connection::has_pending`] pause and outlast
//!   the peer's last request meanwhile.
//! - From inside a loop: [`Loop::connect`] calls another server, [`Loop::watch`] wakes for a child
//!   or any other descriptor.
//! - Shared with the load generator's loop: [`Poller`], [`Uring`], [`stream`], [`clock`].
//! - Deterministic tests of a server with its protocol: [`simulation`].
//! - The limit of open descriptors: [`allow_descriptors`]. Control plane.
//!
//! Which of them a service needs:
//!
//! | it has | it uses |
//! |---|---|
//! | one protocol | [`Server::start`] |
//! | a protocol per listener, or datagrams | [`ServerBuilder`], with `Box<dyn Connection>` |
//! | answers that wait for a group commit | a [`TaskPool`], [`Answers`], a [`Waker`] per answer |
//! | children | their pidfd with [`Loop::watch`]; the exit comes as [`Wake::Posted`] |
//! | beacons, searches | [`Datagrams`] with a deadline, [`DatagramOptions`] for multicast |
//! | calls of other servers | [`Loop::connect`] with a protocol of its own |

#![deny(unsafe_code)]

pub mod clock;
pub mod simulation;
pub mod stream;

mod accept;
mod answers;
mod buffers;
mod closing;
mod config;
mod counters;
mod datagrams;
mod descriptors;
mod error;
mod event_loop;
mod handle;
mod handshake;
mod input;
mod kernel;
mod listen;
mod mailbox;
mod opening;
mod output;
mod poll;
mod protocol;
mod round_budget;
mod send_memory;
mod server;
mod serving;
mod shared;
mod slots;
mod system;
mod tasks;
mod timers;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_client;
#[cfg(feature = "tls")]
mod tls_pinned;
mod together;
mod transport;
mod turn;
mod unsent;
mod uring;
mod uring_batch;
mod uring_turn;
mod watching;
mod worker;

pub use answers::{AnswerId, Answers};
pub use bytes::Bytes;
pub use clock::Ns;
pub use config::{Backend, Config, ThreadIndex, WhenFull};
pub use counters::Counters;
pub use descriptors::allow_descriptors;
pub use error::ProtocolError;
pub use handle::{Loop, Watch};
pub use input::Input;
pub use listen::{DatagramListener, DatagramOptions, ListenOptions, Listener};
pub use output::Output;
pub use poll::{Event, Interest, Poller};
pub use protocol::{
    Address, Batch, Closed, Connection, Datagrams, Flow, Peer, Replies, Wake, Waker,
};
pub use send_memory::{SendHold, SendMemory};
pub use server::{Server, ServerBuilder};
pub use system::{MAX_BATCH, Outcome};
pub use tasks::{PoolFull, Task, TaskPanicked, TaskPool};
#[cfg(feature = "tls")]
pub use tls::{ClientCertificates, Tls, TlsError, TlsSettings};
#[cfg(feature = "tls")]
pub use tls_client::{TlsStream, TlsTrust};
#[cfg(feature = "tls")]
pub use tls_pinned::PinnedTls;
pub use together::wake_together;
pub use turn::deliver;
pub use uring::Uring;
