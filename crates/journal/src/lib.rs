//! A journal: records that are durable, in order. A service appends what changes its state,
//! answers when the record is on the disk, and reads the records back when it starts.
//!
//! - [`Journal::append`] copies a record and returns its number; [`Journal::commit`] hands what was
//!   appended to the journal's own thread. Neither waits, so the data plane may call both.
//! - The thread writes all that has come, makes it durable with one call, and notifies the caller
//!   ([`Progress`]): a record is *acknowledged* when its group is durable ([`SyncPolicy`]).
//! - [`Journal::snapshot`] begins a copy of the state that stands for all records before, whose
//!   files are then removed.
//! - [`Journal::open`] hands on a snapshot's records and those after it. After a crash they hold
//!   all acknowledged ones, and no others but the next that were appended. What a crash can't have
//!   damaged is an error that names file and byte.
//! - After a failed fsync the journal takes nothing more, for what is on the disk is unknown. With
//!   a full disk it takes nothing new until what waits has been written.
//!
//! The directory has to be locked by whoever opens it, as `service` does. README.md has the format.

#![deny(unsafe_code)]

mod backup;
mod disk;
mod error;
mod faulty;
mod frame;
mod journal;
mod log;
mod names;
mod read;
mod recover;
mod shared;
mod snapshot;
mod writer;

pub use disk::{Directory, Disk, DiskFile};
pub use error::{Damage, Error};
pub use faulty::FaultyDisk;
pub use frame::MAX_RECORD_BYTES;
pub use journal::{Journal, Options};
pub use recover::{Dropped, Entry, Refusal, Report, check};
pub use shared::{Progress, Watch};
pub use snapshot::Snapshot;
pub use writer::SyncPolicy;
