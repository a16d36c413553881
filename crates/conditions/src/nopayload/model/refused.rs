//! Why a change is refused, and the limits.

use super::moment::Interval;

/// Why a change is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is none of this kind and name.
    #[error("{0} {1} doesn't exist")]
    Missing(&'static str, String),
    /// No interval of that tag and type is valid exactly there.
    #[error("PayloadIOV with given parameters doesn't exist")]
    NoIov,
    /// A field's text or number can't be had.
    #[error("{0}: {1}")]
    Field(&'static str, String),
    /// The status of a global tag forbids it.
    #[error("Global Tag is {0}.")]
    Closed(String),
    /// A locked tag has a list of the type already.
    #[error("Payload List of type {0} already attached and Global Tag is locked.")]
    HasType(String),
    /// An interval meets another in a list that is only added to.
    #[error(
        "GT is LOCKED. You are attempting to insert IOV (major_iov,minor_iov,major_iov_end, \
         minor_iov_end) {}. Conflicts with existing IOV {url} {}",
        numbers(new),
        numbers(met)
    )]
    Met {
        /// Where the new one is valid.
        new: Interval,
        /// The payload of the one that it meets.
        url: String,
        /// Where that one is valid.
        met: Interval,
    },
    /// An interval that ends before it has begun, or whose numbers are too large.
    #[error(
        "{url} PayloadIOV ending IOVs should be greater or equal than starting. Provided end IOVs: \
         major_iov: {} major_iov_end: {} minor_iov: {} minor_iov_end: {}",
        new.start.major, new.end.major, new.start.minor, new.end.minor
    )]
    BadInterval {
        /// Its payload.
        url: String,
        /// Where it would be valid.
        new: Interval,
    },
    /// A payload type that lists have.
    #[error("PayloadType is used by {0} PayloadLists")]
    TypeIsUsed(usize),
    /// A payload list that is not empty.
    #[error("PayloadList contains {0} PayloadIOVs")]
    ListIsUsed(usize),
    /// A key that leads to other bytes already.
    #[error("{0} is stored already with other content; a payload's bytes never change")]
    OtherFile(String),
    /// More than a limit allows.
    #[error("{0} are more than {1}, the limit of {2}")]
    TooMany(u64, u64, &'static str),
}

fn numbers(Interval { start, end }: &Interval) -> String {
    format!("({},{},{},{})", start.major, start.minor, end.major, end.minor)
}

/// What there may be at most, and of what.
type Limit = (u64, &'static str);

pub(super) const STATUSES: Limit = (1_000, "statuses");
pub(super) const TAGS: Limit = (100_000, "global tags");
pub(super) const TYPES: Limit = (100_000, "payload types");
pub(super) const LISTS: Limit = (1_000_000, "payload lists");
/// Half of what their numbers have room for: changes that are prepared side by side are counted one
/// by one.
pub(super) const IOVS: Limit = (1 << 31, "payload IOVs");
pub(super) const FILES: Limit = (10_000_000, "files");

/// Refuses a number past a limit.
pub(super) fn check_limit(count: usize, (most, what): Limit) -> Result<(), Refused> {
    match count as u64 <= most {
        true => Ok(()),
        false => Err(Refused::TooMany(count as u64, most, what)),
    }
}

/// The most characters of the names of tags, types and statuses, and of an author.
pub(super) const NAME_CHARACTERS: usize = 80;

/// The most characters of a payload's place and checksum.
pub(super) const TEXT_CHARACTERS: usize = 255;

/// Refuses a text that is empty or too long.
pub(super) fn check_text(field: &'static str, text: &str, most: usize) -> Result<(), Refused> {
    let refused = |why: String| Err(Refused::Field(field, why));
    if text.is_empty() {
        return refused("This field may not be blank.".to_owned());
    }
    check_length(field, text, most)?;
    match text.contains('\0') {
        true => refused("Null characters are not allowed.".to_owned()),
        false => Ok(()),
    }
}

/// Refuses a text that is too long.
pub(super) fn check_length(field: &'static str, text: &str, most: usize) -> Result<(), Refused> {
    match text.chars().count() <= most {
        true => Ok(()),
        false => {
            let why = format!("Ensure this field has no more than {most} characters.");
            Err(Refused::Field(field, why))
        }
    }
}
