//! Folders, objects with intervals of validity, and tags: the state and its rules, without I/O and
//! without a clock.
//!
//! Every change is a [`Change`], which a [`Group`] checks and numbers and [`State::apply_group`]
//! applies; the same change applied again after a restart gives the same state. A change's number
//! is its [`Revision`], and every question can be asked of any revision.

mod base;
mod change;
mod check;
mod condition;
mod contents;
mod diff;
mod divide;
mod error;
mod export;
mod filter;
mod folder;
mod glance;
mod group;
mod lead;
mod past;
mod piece;
mod query;
mod recent;
mod room;
mod seal;
mod segment;
mod shown;
mod snapshot;
mod state;
mod table;
mod tag;
mod tagging;
mod timeline;
mod value;
mod view;

pub use change::{BadEntry, Batch, Change, ColumnSpec, Entry, Numbers, Object, Versioning};
pub use condition::{Condition, Test, has_order};
pub use contents::ReadAhead;
pub use diff::{Diff, Difference};
pub use error::{
    ANSWER, ANSWER_BYTES, BATCH, BATCH_ROWS, CHANNELS, COLUMNS, COPY, FOLDERS, LISTED, Limit,
    NAME_BYTES, PICKS, ROWS, Refusal, SCHEMAS, TAGS, TEXT_BYTES,
};
pub use export::Export;
pub use folder::{Folder, Selection};
pub use glance::{Glance, Intervals, Most, Newest};
pub use group::{Added, Group};
pub use lead::{Lead, Leads};
pub use piece::{MAX_TIME, Piece, Revision, Version};
pub use query::{Canonical, Explained, Order, answers};
pub use seal::{BLOCK_BYTES, Made, Rebuilt, Seal};
pub use segment::{
    Damage, Lent, SEGMENT_HEAD, Segment, Source, index_end, index_id, index_name, segment_id,
    segment_name,
};
pub use shown::{Answer, Shown};
pub use snapshot::{BadSnapshot, Loader, Named};
pub use state::{Misplaced, State};
pub use table::{Cells, Table, WrongKind};
pub use tag::{Of, Picks, Shows, Tag, View};
pub use value::{KINDS, Kind, Value};

/// The name of what is shown without a tag; no tag has it.
pub const HEAD: &str = "HEAD";
