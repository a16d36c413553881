//! A journal: records that are durable, in order. A service appends what changes its state,
//! answers when the record is on the disk, and reads the records back when it starts.
//!
//! - [`Journal::append`] copies a record and returns its number; [`Journal::commit`] makes a group
//!   of what was appended, for the journal's own thread. Neither waits, so the data plane may call
//!   both.
//! - The thread writes all groups that have come, makes them durable with one fsync, and notifies
//!   the caller ([`Progress`]) that their records are *acknowledged*; or acknowledges them before,
//!   as the [`SyncPolicy`] says.
//! - [`Journal::snapshot`] begins a copy of the state that replaces all records before, whose files
//!   are then removed.
//! - [`Journal::open`] reads a snapshot's records back and those after it. After a crash they are
//!   all acknowledged ones that the policy covers, and no others but the next that were appended.
//!   What a crash can't have damaged is an error that names file and byte.
//! - [`Held`] copies a journal that goes on meanwhile, in this process or another.
//! - After a failed fsync the journal takes nothing more, for what is on the disk is unknown. With
//!   a full disk it takes nothing new until what waits has been written; or, where it is asked to
//!   refuse then, it drops what waits, and reports that ([`Progress::Refused`]).
//!
//! A journal that is open holds the lock of its directory. README.md has the format.

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

pub use backup::Held;
pub use disk::{Directory, Disk, DiskFile, read_full, write_all};
pub use error::{Damage, Error};
pub use faulty::FaultyDisk;
pub use frame::MAX_RECORD_BYTES;
pub use journal::Journal;
pub use recover::{ApplyError, Dropped, Entry, Report, check, read};
pub use shared::{Progress, Watch};
pub use snapshot::Snapshot;
pub use writer::{Options, SyncPolicy};
