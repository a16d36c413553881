//! Why a change or a question is refused.

use super::piece::{MAX_TIME, Revision};
use super::segment::Damage;
use crate::nopayload::model::Refused;

/// The beginning of what is quoted: a name that is none may be as long as a request.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

/// Why a change or a question is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such folder.
    #[error("there is no folder {:?}", cut(.0))]
    NoFolder(String),
    /// There is no such tag.
    #[error("there is no tag {:?}", cut(.0))]
    NoTag(String),
    /// There is no tag that is known by this number.
    #[error("there is no tag of revision {0}: it was deleted, or never made")]
    NoNumber(Revision),
    /// There is no such column.
    #[error("folder {:?} has no column {:?}", cut(.0), cut(.1))]
    NoColumn(String, String),
    /// There is no channel of that name or number.
    #[error("folder {:?} has no channel {:?}", cut(.0), cut(.1))]
    NoChannel(String, String),
    /// The revision is still to come.
    #[error("there is no revision {0} yet; the last one is {1}")]
    NoRevision(u64, u64),
    /// The name, or the path, has another meaning already.
    #[error("{0} {name:?} is there already", name = cut(.1))]
    Exists(&'static str, String),
    /// A name that can't be one.
    #[error("{name:?} is no name of a {0}", name = cut(.1))]
    BadName(&'static str, String),
    /// A description that is too long, by its bytes.
    #[error("a description of {0} bytes: it has {TEXT_BYTES} at most")]
    LongDescription(usize),
    /// No interval of time.
    #[error("[{0}, {1}) is no interval: times are 0 to {MAX_TIME}, and since < until")]
    BadInterval(u64, u64),
    /// Columns that differ from the folder's.
    #[error("the payload's columns are not those of folder {0:?}")]
    BadPayload(String),
    /// An object that meets another in a folder of one version.
    #[error(
        "object [{since}, {until}) of channel {channel} meets [{met_since}, {met_until}) \
         in folder {folder:?}, which has one version"
    )]
    Overlap {
        /// The folder.
        folder: String,
        /// The object's place in its list, from 0.
        place: usize,
        /// The object's channel.
        channel: u32,
        /// Its first time.
        since: u64,
        /// The first time after it.
        until: u64,
        /// The first time of what it meets.
        met_since: u64,
        /// The first time after that.
        met_until: u64,
    },
    /// A tag that is locked.
    #[error("tag {0:?} is locked")]
    Locked(String),
    /// A tag that a locked global tag picks.
    #[error("tag {0:?} is picked by the global tag {1:?}, which is locked")]
    LockedBy(String, String),
    /// A tag that is needed.
    #[error("tag {0:?} is picked by the global tag {1:?}")]
    Picked(String, String),
    /// A tag that is needed for what was shown until a revision.
    #[error("tag {0:?} was picked by the global tag {1:?} until revision {2}")]
    WasPicked(String, String, Revision),
    /// A tag that can't pick others.
    #[error("tag {0:?} is no global tag")]
    NotGlobal(String),
    /// A folder, of which there are no global tags.
    #[error("{0:?} is a folder: global tags are of folder sets")]
    NoSet(String),
    /// Nothing is picked there.
    #[error("the global tag {0:?} picks no tag for {1:?}")]
    NoPick(String, String),
    /// Something that only folders of several versions have.
    #[error("folder {0:?} has one version: it takes no tags of users")]
    OneVersion(String),
    /// Something that only folders of one version have.
    #[error("folder {0:?} has several versions: nothing is truncated there")]
    ManyVersions(String),
    /// A tag of another folder, or that is no tag of users.
    #[error("tag {0:?} is of {1:?}, {2}")]
    OtherTag(String, String, &'static str),
    /// A batch of an insertion, by its place, that inserts nothing.
    #[error("batch {0} of the insertion has no objects")]
    NoObjects(usize),
    /// More than a limit allows.
    #[error("{0} are more than {1}, the limit of {2}")]
    TooMany(u64, u64, &'static str),
    /// What is asked for, or would be changed, is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// By the rules of NoPayloadDB's interface.
    #[error(transparent)]
    Nopayload(#[from] Refused),
}

/// What there may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub most: u64,
    /// Of what.
    pub what: &'static str,
}

impl Limit {
    pub(super) const fn of(most: u64, what: &'static str) -> Self {
        Self { most, what }
    }

    /// Refuses more than the limit.
    ///
    /// # Errors
    /// When there are more.
    pub fn check(self, count: usize) -> Result<(), Refusal> {
        let count = count as u64;
        if count > self.most {
            return Err(Refusal::TooMany(count, self.most, self.what));
        }
        Ok(())
    }
}

/// Folders and folder sets.
pub const FOLDERS: Limit = Limit::of(100_000, "folders and folder sets");
/// Columns of a folder.
pub const COLUMNS: Limit = Limit::of(1_024, "columns of a folder");
/// Times that the columns of a folder change: each list of them is kept.
pub const SCHEMAS: Limit = Limit::of(1_024, "changes of a folder's columns");
/// Columns in all lists of a folder's columns together: a change of one name makes a new list.
pub const LISTED: Limit = Limit::of(65_536, "columns of a folder's, counted anew at each change");
/// Pieces of a tag that is cloned: readers wait for as many as one insertion may have.
pub const COPY: Limit = Limit::of(1_000_000, "objects of a tag that is cloned");
/// What a global tag has picked, each time that it was changed.
pub const PICKS: Limit = Limit::of(100_000, "picks of a global tag, earlier ones too");
/// Channels of a folder.
pub const CHANNELS: Limit = Limit::of(1_000_000, "channels of a folder");
/// Rows, and objects, of a folder.
pub const ROWS: Limit = Limit::of(1 << 31, "rows of a folder");
/// What the numbers of rows and objects have room for.
pub(super) const NUMBERS: Limit = Limit::of(u32::MAX as u64, "numbers of rows");
/// Objects of one change.
pub const BATCH: Limit = Limit::of(1_000_000, "objects of one insertion");
/// Rows of one change.
pub const BATCH_ROWS: Limit = Limit::of(4_000_000, "rows of one insertion");
/// Tags that one insertion makes in one folder.
pub(super) const NEW_TAGS: Limit = Limit::of(1, "new tags of one folder in an insertion");
/// Tags.
pub const TAGS: Limit = Limit::of(100_000, "tags");
/// Rows of one answer.
pub const ANSWER: Limit = Limit::of(2_000_000, "rows of an answer");
/// Bytes of one answer: of its payload, and of its JSON.
pub const ANSWER_BYTES: Limit = Limit::of(256 << 20, "bytes of an answer");
/// Bytes of a name.
pub const NAME_BYTES: usize = 255;
/// Bytes of a path or a description.
pub const TEXT_BYTES: usize = 4_096;
