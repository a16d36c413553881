//! One folder: its columns, its channels, and the payload of all its objects.

use std::collections::BTreeMap;
use std::ops::Range;

use super::change::{Batch, ColumnSpec, Numbers, Object, Versioning};
use super::error::{ANSWER, Refusal};
use super::piece::{MAX_TIME, Piece, Revision};
use super::table::{Cells, Table};
use super::timeline::Timeline;

/// What is asked: a revision, of the head or of a tag of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The revision.
    pub revision: Revision,
    /// The tag, by the revision that made it.
    pub user_tag: Option<Revision>,
}

/// Which channels are asked for: all of them where nothing is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// By number.
    pub numbers: Option<Numbers>,
    /// By name.
    pub names: Vec<String>,
}

/// Objects of one folder as they are shown, with their payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The folder.
    pub folder: String,
    /// Its columns at the revision that was asked.
    pub columns: Vec<ColumnSpec>,
    /// The objects.
    pub objects: Vec<Object>,
    /// Their records.
    pub payload: Table,
}

/// An object as it was inserted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) revision: Revision,
    first_row: u32,
    records: u32,
}

#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) name: Option<String>,
    head: Timeline,
    /// What tags of users show, by the revisions that made them.
    tagged: BTreeMap<Revision, Timeline>,
}

impl Channel {
    /// What a version shows of this channel.
    pub(super) fn shown(&self, version: Version) -> Option<&Timeline> {
        match version.user_tag {
            None => Some(&self.head),
            Some(tag) => self.tagged.get(&tag),
        }
    }
}

/// A column whose first rows, which were there before it, have no value.
#[derive(Debug)]
struct Column {
    first_row: usize,
    cells: Cells,
}

/// A folder.
#[derive(Debug)]
pub struct Folder {
    path: String,
    description: String,
    versioning: Versioning,
    /// The columns from a revision on, the first of which made the folder.
    schemas: Vec<(Revision, Vec<ColumnSpec>)>,
    columns: Vec<Column>,
    rows: u32,
    pub(super) objects: Vec<Stored>,
    pub(super) channels: BTreeMap<u32, Channel>,
    pub(super) names: BTreeMap<String, u32>,
}

impl Folder {
    pub(super) fn new(
        path: &str,
        description: &str,
        versioning: Versioning,
        columns: &[ColumnSpec],
        revision: Revision,
    ) -> Self {
        let column = |spec: &ColumnSpec| Column { first_row: 0, cells: Cells::new(spec.kind) };
        Self {
            path: path.to_owned(),
            description: description.to_owned(),
            versioning,
            schemas: vec![(revision, columns.to_vec())],
            columns: columns.iter().map(column).collect(),
            rows: 0,
            objects: Vec::new(),
            channels: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether a time may have several objects.
    pub fn versioning(&self) -> Versioning {
        self.versioning
    }

    /// The columns that it has now.
    pub fn columns(&self) -> &[ColumnSpec] {
        self.schemas.last().map_or(&[], |(_, columns)| columns)
    }

    /// How many objects were inserted, of how many rows.
    pub fn size(&self) -> (usize, u32) {
        (self.objects.len(), self.rows)
    }

    /// The channels with their names.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = (u32, Option<&str>)> {
        self.channels.iter().map(|(number, channel)| (*number, channel.name.as_deref()))
    }

    /// The numbers of the selected channels, in order.
    ///
    /// # Errors
    /// When a name isn't there.
    pub fn channels_of(&self, selection: &Selection) -> Result<Vec<u32>, Refusal> {
        Ok(self.selected(selection)?.into_iter().map(|(number, _)| number).collect())
    }

    /// The columns at a revision, and the revision that they are from; `None` before the folder.
    pub(super) fn schema(&self, revision: Revision) -> Option<&(Revision, Vec<ColumnSpec>)> {
        self.schemas.iter().rfind(|(from, _)| *from <= revision)
    }

    pub(super) fn set_columns(&mut self, columns: Vec<ColumnSpec>, revision: Revision) {
        for spec in columns.iter().skip(self.columns.len()) {
            let first_row = self.rows as usize;
            self.columns.push(Column { first_row, cells: Cells::new(spec.kind) });
        }
        self.schemas.push((revision, columns));
    }

    /// Inserts objects that were checked.
    pub(super) fn insert(&mut self, batch: &Batch, tag: Option<Revision>, revision: Revision) {
        let mut first_row = self.rows;
        let added = 0..batch.payload.rows as usize;
        for (column, cells) in self.columns.iter_mut().zip(&batch.payload.columns) {
            column.cells.append(cells, added.clone());
        }
        self.rows += batch.payload.rows;
        for new in &batch.objects {
            let Object { channel, since, until, records } = *new;
            let object = self.objects.len() as u32;
            self.objects.push(Stored { since, until, revision, first_row, records });
            first_row += records;
            let piece = Piece { since, until, object, from: revision };
            let channel = self.channels.entry(channel).or_default();
            if !batch.only_tag {
                if self.versioning == Versioning::Single
                    && channel.head.at(since, revision).is_some()
                {
                    // An open end, which this object cuts.
                    channel.head.clear(since, MAX_TIME, revision);
                }
                channel.head.cover(piece);
            }
            if let Some(tag) = tag {
                channel.tagged.entry(tag).or_default().cover(piece);
            }
        }
    }

    /// Ends what the head shows.
    pub(super) fn truncate(&mut self, until: u64, channels: &Numbers, revision: Revision) {
        for range in channels.ranges() {
            for channel in self.channels.range_mut(range.0..=range.1) {
                channel.1.head.clear(until, MAX_TIME, revision);
            }
        }
    }

    /// Copies what a version shows into a new tag.
    pub(super) fn copy_tag(&mut self, from: Version, to: Revision) {
        for channel in self.channels.values_mut() {
            let Some(timeline) = channel.shown(from) else { continue };
            let mut copy = Timeline::default();
            for piece in timeline.range(0, MAX_TIME, from.revision) {
                copy.cover(Piece { from: to, ..piece });
            }
            channel.tagged.insert(to, copy);
        }
    }

    pub(super) fn delete_tag(&mut self, tag: Revision) {
        for channel in self.channels.values_mut() {
            channel.tagged.remove(&tag);
        }
    }

    /// The selected channels, in order.
    pub(super) fn selected(&self, selection: &Selection) -> Result<Vec<(u32, &Channel)>, Refusal> {
        let Selection { numbers, names } = selection;
        let mut ranges = match (numbers, names.is_empty()) {
            (None, false) => Vec::new(),
            (None, true) => Numbers::All.ranges().to_vec(),
            (Some(numbers), _) => numbers.ranges().to_vec(),
        };
        for name in names {
            let known = self.names.get(name).copied();
            let missing = || Refusal::NoChannel(self.path.clone(), name.clone());
            let number = known.ok_or_else(missing)?;
            ranges.push((number, number));
        }
        let numbers = Numbers::of_ranges(ranges);
        let of_range = |range: &(u32, u32)| self.channels.range(range.0..=range.1);
        let found = numbers.ranges().iter().flat_map(of_range);
        Ok(found.map(|(number, channel)| (*number, channel)).collect())
    }

    /// The pieces with their payload, in the columns of a revision.
    pub(super) fn gather(
        &self,
        pieces: &[(u32, Piece)],
        revision: Revision,
    ) -> Result<Answer, Refusal> {
        let schema = self.schema(revision).map_or(&[][..], |(_, columns)| columns);
        let mut objects = Vec::with_capacity(pieces.len());
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut count = 0_usize;
        for (channel, piece) in pieces {
            let stored = &self.objects[piece.object as usize];
            let Piece { since, until, .. } = *piece;
            objects.push(Object { channel: *channel, since, until, records: stored.records });
            let first = stored.first_row as usize;
            let range = first..first + stored.records as usize;
            count += range.len();
            match rows.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => rows.push(range),
            }
        }
        ANSWER.check(count.max(objects.len()))?;
        let mut payload = Table::new(schema.iter().map(|spec| spec.kind));
        for (into, column) in payload.columns.iter_mut().zip(&self.columns) {
            for range in &rows {
                let absent = range.len().min(column.first_row.saturating_sub(range.start));
                (0..absent).for_each(|_| into.push_null());
                let there = range.start + absent..range.end;
                if !there.is_empty() {
                    let first = column.first_row;
                    into.append(&column.cells, there.start - first..there.end - first);
                }
            }
        }
        payload.rows = count as u32;
        Ok(Answer { folder: self.path.clone(), columns: schema.to_vec(), objects, payload })
    }
}
