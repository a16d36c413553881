//! Folders, objects with intervals of validity, and tags: the state and its rules, without I/O and
//! without a clock.
//!
//! Every change is a [`Change`], which a [`Group`] checks and numbers and [`State::apply_group`]
//! applies; the same change applied again after a restart gives the same state. A change's number
//! is its [`Revision`], and every question can be asked of any revision.

mod change;
mod check;
mod error;
mod folder;
mod group;
mod past;
mod piece;
mod query;
mod state;
mod table;
mod timeline;
mod value;

pub use change::{BadEntry, Batch, Change, ColumnSpec, Entry, Numbers, Object, Versioning};
pub use error::{
    ANSWER, BATCH, BATCH_ROWS, CHANNELS, COLUMNS, FOLDERS, Limit, ROWS, Refusal, TAGS, TEXT_BYTES,
};
pub use folder::{Answer, Folder, Selection, Version};
pub use group::{Added, Group};
pub use piece::{MAX_TIME, Piece, Revision};
pub use query::{Canonical, Explained, Order};
pub use state::{Misplaced, Shows, State, Tag};
pub use table::{Cells, Table, WrongKind};
pub use value::{KINDS, Kind, Value};

/// The name of what is shown without a tag; no tag has it.
pub const HEAD: &str = "HEAD";
