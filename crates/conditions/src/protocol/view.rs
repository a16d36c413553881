//! Answers in JSON.

use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Serialize, Serializer};

use super::cell::cell_json;
use crate::model::{Answer, ColumnSpec, Folder, Shows, Tag, Versioning};

/// Every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: String,
    /// What can be done.
    pub fix: String,
}

/// The answer to every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBody {
    /// Its revision, from which on answers show it. It is on disk.
    pub revision: u64,
}

/// A folder, as lists have it.
#[derive(Debug, Serialize)]
pub struct FolderView<'a> {
    path: &'a str,
    description: &'a str,
    versioning: Versioning,
    columns: &'a [ColumnSpec],
    channels: usize,
    objects: usize,
    rows: u32,
}

impl<'a> FolderView<'a> {
    /// That of a folder.
    pub fn of(folder: &'a Folder) -> Self {
        let (objects, rows) = folder.size();
        Self {
            path: folder.path(),
            description: folder.description(),
            versioning: folder.versioning(),
            columns: folder.columns(),
            channels: folder.channels().len(),
            objects,
            rows,
        }
    }
}

/// A tag, as lists have it.
#[derive(Debug, Serialize)]
pub struct TagView<'a> {
    name: &'a str,
    path: &'a str,
    description: &'a str,
    kind: &'static str,
    made_at_revision: u64,
    /// The revision of the head that it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    is_locked: bool,
}

impl<'a> TagView<'a> {
    /// That of a tag.
    pub fn of(name: &'a str, tag: &'a Tag) -> Self {
        let (kind, revision) = match tag.shows {
            Shows::Head(revision) => ("head", Some(revision)),
            Shows::User => ("user", None),
        };
        Self {
            name,
            path: &tag.path,
            description: &tag.description,
            kind,
            made_at_revision: tag.id,
            revision,
            is_locked: tag.is_locked,
        }
    }
}

/// Objects of one folder.
#[derive(Clone, Copy, Debug)]
pub struct AnswerView<'a>(pub &'a Answer);

impl Serialize for AnswerView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("folder", &self.0.folder)?;
        map.serialize_entry("columns", &self.0.columns)?;
        map.serialize_entry("objects", &ObjectsView(self.0))?;
        map.end()
    }
}

/// A slice.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SliceView<'a> {
    /// The revision.
    pub revision: u64,
    /// The time.
    pub since: u64,
    /// What each folder shows.
    #[serde(serialize_with = "answers")]
    pub folders: &'a [Answer],
}

fn answers<S: Serializer>(folders: &[Answer], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(folders.iter().map(AnswerView))
}

struct ObjectsView<'a>(&'a Answer);

#[derive(Serialize)]
struct ObjectView<'a> {
    channel: u32,
    since: u64,
    until: u64,
    records: RecordsView<'a>,
}

/// Records of an answer: the first one's row, and how many there are.
struct RecordsView<'a>(&'a Answer, usize, u32);

/// The values of one row, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct ValuesView<'a>(pub &'a Answer, pub usize);

impl Serialize for ObjectsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.objects.len()))?;
        let mut row = 0;
        for object in &self.0.objects {
            let records = RecordsView(self.0, row, object.records);
            let (channel, since, until) = (object.channel, object.since, object.until);
            list.serialize_element(&ObjectView { channel, since, until, records })?;
            row += object.records as usize;
        }
        list.end()
    }
}

impl Serialize for RecordsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(answer, first, count) = *self;
        serializer.collect_seq((0..count as usize).map(|row| ValuesView(answer, first + row)))
    }
}

impl Serialize for ValuesView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.payload.row(self.1).map(|value| cell_json(&value)))
    }
}
