//! The state: global tags, their payload lists, and the intervals of those.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::moment::{Interval, Moment};
use super::starts::Starts;
use super::table::{HasName, Named, Table};

/// A change's number, the same as that of the whole service's.
pub type Revision = u64;

/// A status that global tags may have. Two have a meaning: [`LOCKED`] and [`FROZEN`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// When it was made, in microseconds since 1970, here and below.
    pub made_us: i64,
}

/// The status of a new copy.
pub const UNLOCKED: &str = "unlocked";
/// The status of a tag whose lists are only added to.
pub const LOCKED: &str = "locked";
/// The status of a tag whose lists don't change.
pub const FROZEN: &str = "frozen";

/// A global tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// Who made it.
    pub author: Option<String>,
    /// The number of its status.
    pub status: u32,
    /// When it was made.
    pub made_us: i64,
    /// When it, or which lists it has, was changed last.
    pub updated_us: i64,
    /// The last change of what it shows.
    pub changed: Revision,
    /// Its payload lists by payload type.
    pub lists: BTreeMap<u32, u32>,
}

/// A payload type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PayloadType {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub made_us: i64,
}

/// A payload list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct List {
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub payload_type: u32,
    /// The number of the tag that it is attached to.
    pub tag: Option<u32>,
    /// The change that made it.
    pub made: Revision,
    /// When that was.
    pub made_us: i64,
    pub(super) starts: Starts,
}

impl List {
    /// The numbers of its intervals, by their starts.
    pub fn iovs(&self) -> impl ExactSizeIterator<Item = u32> + Clone {
        self.starts.ids()
    }
}

/// An interval of validity with its payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iov {
    /// Where its payload is.
    pub url: Arc<str>,
    /// What its payload's bytes sum up to.
    pub checksum: Arc<str>,
    /// Where it is valid.
    pub interval: Interval,
    /// The list that it belongs to.
    pub list: Option<u32>,
    /// The change that made it.
    pub made: Revision,
    /// When that was.
    pub made_us: i64,
}

/// A file that was uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// How many bytes it has.
    pub size: u64,
}

impl HasName for Status {
    fn name(&self) -> &str {
        &self.name
    }
}

impl HasName for Tag {
    fn name(&self) -> &str {
        &self.name
    }
}

impl HasName for PayloadType {
    fn name(&self) -> &str {
        &self.name
    }
}

impl HasName for List {
    fn name(&self) -> &str {
        &self.name
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Nopayload {
    pub(super) statuses: Named<Status>,
    pub(super) tags: Named<Tag>,
    pub(super) types: Named<PayloadType>,
    pub(super) lists: Named<List>,
    pub(super) iovs: Table<Box<Iov>>,
    pub(super) files: BTreeMap<String, StoredFile>,
}

/// A row with its number.
pub type Row<'a, T> = (u32, &'a T);

impl Nopayload {
    /// For each list of a global tag, in order of their types, the type's name and the interval
    /// that starts last of those that start by a moment. Whether it has ended by then is of no
    /// account.
    pub fn latest(&self, tag: &Tag, at: Moment) -> impl Iterator<Item = (&str, &Iov)> {
        tag.lists.iter().filter_map(move |(payload_type, list)| {
            let found = self.lists.get(*list)?.starts.latest(at)?;
            Some((self.types.get(*payload_type)?.name.as_str(), self.iovs.get(found)?.as_ref()))
        })
    }

    /// The statuses.
    pub fn statuses(&self) -> impl Iterator<Item = Row<'_, Status>> + Clone {
        self.statuses.iter()
    }

    /// A status by its number.
    pub fn status(&self, id: u32) -> Option<&Status> {
        self.statuses.get(id)
    }

    /// The status of this name.
    pub fn status_named(&self, name: &str) -> Option<Row<'_, Status>> {
        self.statuses.named(name)
    }

    /// The name of a tag's status.
    pub fn status_of(&self, tag: &Tag) -> &str {
        self.status(tag.status).map_or("", |status| &status.name)
    }

    /// The global tags.
    pub fn tags(&self) -> impl Iterator<Item = Row<'_, Tag>> + Clone {
        self.tags.iter()
    }

    /// A global tag by its number.
    pub fn tag(&self, id: u32) -> Option<&Tag> {
        self.tags.get(id)
    }

    /// The global tag of this name.
    pub fn tag_named(&self, name: &str) -> Option<Row<'_, Tag>> {
        self.tags.named(name)
    }

    /// How many intervals a tag's lists have together.
    pub fn iovs_of_tag(&self, tag: &Tag) -> usize {
        tag.lists
            .values()
            .filter_map(|list| self.lists.get(*list))
            .map(|list| list.starts.len())
            .sum()
    }

    /// The payload types.
    pub fn types(&self) -> impl Iterator<Item = Row<'_, PayloadType>> + Clone {
        self.types.iter()
    }

    /// A payload type by its number.
    pub fn payload_type(&self, id: u32) -> Option<&PayloadType> {
        self.types.get(id)
    }

    /// The payload type of this name.
    pub fn type_named(&self, name: &str) -> Option<Row<'_, PayloadType>> {
        self.types.named(name)
    }

    /// The payload lists.
    pub fn lists(&self) -> impl Iterator<Item = Row<'_, List>> + Clone {
        self.lists.iter()
    }

    /// A payload list by its number.
    pub fn list(&self, id: u32) -> Option<&List> {
        self.lists.get(id)
    }

    /// The payload list of this name.
    pub fn list_named(&self, name: &str) -> Option<Row<'_, List>> {
        self.lists.named(name)
    }

    /// The payload list that a change made.
    pub fn list_made(&self, revision: Revision) -> Option<Row<'_, List>> {
        let since = self.lists.iter().rev().take_while(|(_, list)| list.made >= revision);
        since.last().filter(|(_, list)| list.made == revision)
    }

    /// The intervals.
    pub fn iovs(&self) -> impl Iterator<Item = Row<'_, Iov>> + Clone {
        self.iovs.iter().map(|(id, iov)| (id, iov.as_ref()))
    }

    /// How many there are.
    pub fn iov_count(&self) -> usize {
        self.iovs.len()
    }

    /// An interval by its number.
    pub fn iov(&self, id: u32) -> Option<&Iov> {
        self.iovs.get(id).map(Box::as_ref)
    }

    /// The first interval that a change made.
    pub fn iov_made(&self, revision: Revision) -> Option<Row<'_, Iov>> {
        let since = self.iovs.iter().rev().take_while(|(_, iov)| iov.made >= revision);
        since.last().filter(|(_, iov)| iov.made == revision).map(|(id, iov)| (id, iov.as_ref()))
    }

    /// All files by their keys.
    pub fn files(&self) -> impl Iterator<Item = (&str, StoredFile)> {
        self.files.iter().map(|(key, file)| (key.as_str(), *file))
    }

    /// The file of a key.
    pub fn file(&self, key: &str) -> Option<StoredFile> {
        self.files.get(key).copied()
    }
}
