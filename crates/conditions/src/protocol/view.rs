//! Answers in JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use super::cell::cell_json;
use crate::model::{
    Answer, ColumnSpec, Diff, Difference, Explained, Folder, Shows, State, Table, Tag, Versioning,
};

/// Every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: String,
    /// What can be done.
    pub fix: String,
    /// The object of an insertion that is refused, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ErrorObject>,
}

/// An object that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// Its folder.
    pub folder: String,
    /// Its place in the list of the batch that it came with, from 0.
    pub place: usize,
    /// Its channel.
    pub channel: u32,
    /// Its first time.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
}

/// The answer to every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBody {
    /// Its revision, from which on answers show it. It is on disk.
    pub revision: u64,
}

/// What a compaction is asked for with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactBody {}

/// The answer to a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedBody {
    /// Segments before it.
    pub segments_before: usize,
    /// Their bytes together.
    pub bytes_before: u64,
    /// Segments after it.
    pub segments: usize,
    /// Their bytes together.
    pub bytes: u64,
}

/// A folder, as lists have it.
#[derive(Debug, Serialize)]
pub struct FolderView<'a> {
    path: &'a str,
    description: &'a str,
    versioning: Versioning,
    columns: &'a [ColumnSpec],
    channels: usize,
    objects: u64,
    rows: u64,
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

/// The channels of a folder.
#[derive(Debug, Serialize)]
pub struct ChannelsView<'a> {
    /// Each of them.
    pub channels: Vec<ChannelView<'a>>,
}

/// A channel, as lists have it.
#[derive(Debug, Serialize)]
pub struct ChannelView<'a> {
    /// Its number.
    pub channel: u32,
    /// Its name.
    pub name: Option<&'a str>,
}

/// Which object each channel shows, and why.
#[derive(Debug, Serialize)]
pub struct ExplainView<'a> {
    /// The folder.
    pub folder: &'a str,
    /// The tags through which a global tag shows it, each picked by the one before.
    pub picked: Vec<&'a str>,
    /// What each of its channels shows.
    pub channels: Vec<ShownView>,
}

/// What a channel shows.
#[derive(Debug, Serialize)]
pub struct ShownView {
    /// The channel.
    pub channel: u32,
    /// The object.
    pub shown: Option<Explained>,
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
    /// The tags that it picks, by path.
    #[serde(skip_serializing_if = "Option::is_none")]
    picks: Option<BTreeMap<String, String>>,
    is_locked: bool,
    /// The global tags that pick it.
    picked_by: &'a BTreeSet<String>,
}

impl<'a> TagView<'a> {
    /// That of a tag.
    pub fn of(state: &State, name: &'a str, tag: &'a Tag) -> Self {
        let (kind, revision, picks) = match tag.shows {
            Shows::Head(revision) => ("head", Some(revision), None),
            Shows::User => ("user", None, None),
            Shows::Picks(_) => ("global", None, Some(state.picks(tag).into_iter().collect())),
        };
        Self {
            name,
            path: &tag.path,
            description: &tag.description,
            kind,
            made_at_revision: tag.id,
            revision,
            picks,
            is_locked: tag.is_locked,
            picked_by: &tag.picked_by,
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

/// One object of an answer, as a line of an export: `loadline conditions insert` reads it again.
#[derive(Debug, Serialize)]
pub struct LineView<'a> {
    folder: &'a str,
    #[serde(flatten)]
    object: ObjectView<'a>,
}

impl<'a> LineView<'a> {
    /// Those of an answer.
    pub fn of(answer: &'a Answer) -> impl Iterator<Item = Self> {
        objects(answer).map(|object| Self { folder: &answer.folder, object })
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

/// What two versions of a folder show differently.
#[derive(Debug, Serialize)]
pub struct DiffView<'a> {
    folder: &'a str,
    columns: &'a [ColumnSpec],
    /// Where they are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns_after: Option<&'a [ColumnSpec]>,
    differences: Vec<DifferenceView<'a>>,
}

#[derive(Debug, Serialize)]
struct DifferenceView<'a> {
    channel: u32,
    since: u64,
    until: u64,
    before: Option<RecordsView<'a>>,
    after: Option<RecordsView<'a>>,
}

impl<'a> DiffView<'a> {
    /// That of a folder.
    pub fn of(diff: &'a Diff) -> Self {
        let Diff { folder, columns, differences, payload } = diff;
        let view = |one: &Difference| {
            let rows = |table, rows: Option<(u32, u32)>| {
                rows.map(|(first, count)| RecordsView(table, first as usize, count))
            };
            let Difference { channel, since, until, before, after } = *one;
            let (before, after) = (rows(&payload.0, before), rows(&payload.1, after));
            DifferenceView { channel, since, until, before, after }
        };
        let differences = differences.iter().map(view).collect();
        let columns_after = (columns.0 != columns.1).then_some(&columns.1[..]);
        Self { folder, columns: &columns.0, columns_after, differences }
    }
}

struct ObjectsView<'a>(&'a Answer);

#[derive(Debug, Serialize)]
struct ObjectView<'a> {
    channel: u32,
    since: u64,
    until: u64,
    records: RecordsView<'a>,
}

/// Records of a payload: the first one's row, and how many there are.
#[derive(Debug)]
struct RecordsView<'a>(&'a Table, usize, u32);

/// The values of one row, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct ValuesView<'a>(pub &'a Table, pub usize);

impl Serialize for ObjectsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(objects(self.0))
    }
}

fn objects(answer: &Answer) -> impl Iterator<Item = ObjectView<'_>> {
    let mut row = 0;
    answer.objects.iter().map(move |object| {
        let records = RecordsView(&answer.payload, row, object.records);
        let (channel, since, until) = (object.channel, object.since, object.until);
        row += object.records as usize;
        ObjectView { channel, since, until, records }
    })
}

impl Serialize for RecordsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(payload, first, count) = *self;
        serializer.collect_seq((0..count as usize).map(|row| ValuesView(payload, first + row)))
    }
}

impl Serialize for ValuesView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.row(self.1).map(|value| cell_json(&value)))
    }
}
