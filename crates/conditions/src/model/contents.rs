//! The data of one folder: what is sealed, and the objects with their payload that came since.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::base::Base;
use super::change::{Batch, Numbers, Object, Versioning};
use super::error::{ANSWER, Limit, Refusal};
use super::piece::{Inserted, MAX_TIME, NOTHING, Piece, Revision, Version};
use super::recent::Changed;
use super::segment::{Chunks, Damage, Segment};
use super::table::{Cells, Table};
use super::value::Kind;
use super::view::{Found, Place, View};

/// About what an object takes in memory with a piece of it, or what a piece of nothing does: what
/// `unsealed_bytes` counts beside payload.
const PIECE_BYTES: u64 = 80;

/// A change of a folder's data that was checked.
#[derive(Clone, Debug)]
pub(super) enum Touch {
    /// Inserts objects, with the tag of users that the revision made.
    Insert(Batch, Option<Revision>),
    /// Ends what the head shows.
    Truncate(u64, Numbers),
    /// Copies what a version shows into a tag of users.
    Copy(Version, Revision),
    /// Drops a tag of users.
    Forget(Revision),
    /// Adds a column.
    Column(Kind),
}

/// An object with its payload's place.
#[derive(Debug)]
struct Stored {
    inserted: Inserted,
    /// The segment that its rows lie in, where they are not in memory.
    segment: Option<Arc<Segment>>,
    first_row: u32,
    records: u32,
}

/// A column whose first rows, which were there before it, have no value.
#[derive(Debug)]
struct Column {
    first_row: usize,
    cells: Cells,
}

/// The data of a folder.
#[derive(Debug, Default)]
pub(super) struct Contents {
    columns: Vec<Column>,
    rows: u32,
    objects: Vec<Stored>,
    head: View,
    /// What tags of users show, by the revisions that made them.
    tagged: BTreeMap<Revision, View>,
    /// About how much is in memory because of what isn't sealed.
    unsealed_bytes: u64,
    /// What is damaged of what is sealed. Each change asks, so it is not looked up each time.
    damaged: OnceLock<Damage>,
    /// Why some of it is unknown: a change concerned what is damaged.
    lost: Option<Damage>,
}

/// A folder's channels, with their names.
type Channels = BTreeMap<u32, Option<String>>;

/// Has the system read from the disk what it doesn't have of these bytes, and waits for none of it.
pub type ReadAhead = fn(&[u8]);

/// Where rows come from: a segment, or memory.
type Source<'a> = Option<&'a Arc<Segment>>;

/// The rows of one object: where they come from, the first of them, and how many there are.
type Rows<'a> = (Source<'a>, u32, u32);

/// A segment, and which of its payload is read.
type Part<'a> = (&'a Arc<Segment>, Chunks);

/// The rows of objects, one after another; those that lie next to each other are one range.
#[derive(Debug, Default)]
pub(super) struct Runs<'a> {
    runs: Vec<(Source<'a>, Range<usize>)>,
    rows: usize,
}

impl Contents {
    /// A folder of these columns, with what is sealed of the head and of tags of users.
    pub(super) fn new(
        kinds: impl IntoIterator<Item = Kind>,
        bases: impl IntoIterator<Item = (Option<Revision>, Base)>,
    ) -> Self {
        let column = |kind| Column { first_row: 0, cells: Cells::new(kind) };
        let mut contents =
            Self { columns: kinds.into_iter().map(column).collect(), ..Self::default() };
        for (tag, base) in bases {
            let view = View::over(base);
            match tag {
                None => contents.head = view,
                Some(tag) => _ = contents.tagged.insert(tag, view),
            }
        }
        contents.damaged = contents.damage();
        contents
    }

    fn damage(&self) -> OnceLock<Damage> {
        let damage = self.views().find_map(|(_, view)| view.base.damage());
        damage.map(OnceLock::from).unwrap_or_default()
    }

    /// The opened segments of this number.
    pub(super) fn segments(&self, id: u64) -> impl Iterator<Item = &Arc<Segment>> {
        let parts = self.views().flat_map(|(_, view)| view.base.parts());
        parts.filter(move |part| part.id == id).filter_map(|part| part.segment.as_ref().ok())
    }

    /// Refuses the segment of this number from now on.
    pub(super) fn spoil(&self, id: u64, damage: &Damage) {
        for segment in self.segments(id) {
            segment.spoil(damage.clone());
            let _ = self.damaged.set(damage.clone());
        }
    }

    /// Refuses changes where a segment, of which this is damaged, isn't read any more.
    pub(super) fn note(&self, segment: &Segment, damage: &Damage) {
        if segment.check_file().is_err() {
            let _ = self.damaged.set(damage.clone());
        }
    }

    /// What the head, or a tag of users, shows.
    pub(super) fn view(&self, tag: Option<Revision>) -> Option<&View> {
        match tag {
            None => Some(&self.head),
            Some(tag) => self.tagged.get(&tag),
        }
    }

    pub(super) fn views(&self) -> impl Iterator<Item = (Option<Revision>, &View)> {
        let tagged = self.tagged.iter().map(|(tag, view)| (Some(*tag), view));
        std::iter::once((None, &self.head)).chain(tagged)
    }

    pub(super) fn unsealed_bytes(&self) -> u64 {
        self.unsealed_bytes
    }

    /// Refuses to read where a change concerned what is damaged.
    pub(super) fn check_known(&self) -> Result<(), Damage> {
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// Refuses to change a folder that has a damaged segment: which pieces it holds is unknown.
    pub(super) fn check_whole(&self) -> Result<(), Damage> {
        self.check_known()?;
        self.damaged.get().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// Changes the data, and returns at which times something else is shown. Where some of it is
    /// damaged, it is all refused from then on. `keeps_tags` leaves what is to be dropped until it
    /// is sealed. `channels` are the folder's.
    pub(super) fn touch(
        &mut self,
        touch: &Touch,
        versioning: Versioning,
        channels: &Channels,
        revision: Revision,
        keeps_tags: bool,
    ) -> Changed {
        let objects = self.objects.len();
        let touched = match touch {
            Touch::Column(kind) => {
                let first_row = self.rows as usize;
                self.columns.push(Column { first_row, cells: Cells::new(*kind) });
                return Changed::ALL;
            }
            Touch::Forget(_) if keeps_tags => return Changed::TAGGED,
            Touch::Forget(tag) => {
                self.tagged.remove(tag);
                if self.damaged.get().is_some() {
                    self.damaged = self.damage();
                }
                return Changed::TAGGED;
            }
            Touch::Insert(batch, tag) => self.insert(batch, *tag, versioning, revision),
            Touch::Truncate(until, numbers) => {
                self.truncate(*until, numbers, channels, revision).map(|()| Changed::ALL)
            }
            Touch::Copy(from, to) => self.copy_tag(*from, *to).map(|()| Changed::TAGGED),
        };
        // With those of sealed pieces, which a change takes in.
        self.unsealed_bytes += PIECE_BYTES * (self.objects.len() - objects) as u64;
        touched.unwrap_or_else(|damage| {
            self.lost.get_or_insert(damage);
            Changed::ALL
        })
    }

    fn insert(
        &mut self,
        batch: &Batch,
        tag: Option<Revision>,
        versioning: Versioning,
        revision: Revision,
    ) -> Result<Changed, Damage> {
        self.check_whole()?;
        let mut changed = Changed::default();
        let mut first_row = self.rows;
        let added = 0..batch.payload.rows as usize;
        let mut bytes = 0;
        for (column, cells) in self.columns.iter_mut().zip(&batch.payload.columns) {
            bytes += cells.size_bytes(added.clone()) as u64;
            column.cells.append(cells, added.clone());
        }
        self.rows += batch.payload.rows;
        self.unsealed_bytes += bytes;
        if !batch.only_tag {
            self.head.count_bytes(bytes);
        }
        if let Some(tag) = tag {
            self.tagged.entry(tag).or_default().count_bytes(bytes);
        }
        for new in &batch.objects {
            let Object { channel, since, until, records } = *new;
            let object = self.objects.len() as u32;
            let inserted = Inserted { since, until, revision };
            self.objects.push(Stored { inserted, segment: None, first_row, records });
            first_row += records;
            let piece = Piece { since, until, object, from: revision };
            if !batch.only_tag {
                // In a folder of one version all that can be there is an open end, which this
                // object cuts.
                let cuts = versioning == Versioning::Single
                    && self.head.moment(since, revision).at(channel)?.is_some();
                if cuts {
                    changed.head.add(self.clear(channel, since, revision)?);
                }
                changed.head.add(cover(&mut self.head, &mut self.objects, channel, piece)?);
            }
            if let Some(tag) = tag {
                let view = self.tagged.entry(tag).or_default();
                changed.tagged.add(cover(view, &mut self.objects, channel, piece)?);
            }
        }
        Ok(changed)
    }

    /// Lets the head show nothing of a channel from a time on. Returns the times whose answers are
    /// others from then on.
    fn clear(
        &mut self,
        channel: u32,
        since: u64,
        revision: Revision,
    ) -> Result<Range<u64>, Damage> {
        let piece = Piece { since, until: MAX_TIME, object: NOTHING, from: revision };
        if since >= MAX_TIME {
            return Ok(since..since);
        }
        self.unsealed_bytes += PIECE_BYTES;
        cover(&mut self.head, &mut self.objects, channel, piece)
    }

    fn truncate(
        &mut self,
        until: u64,
        numbers: &Numbers,
        channels: &Channels,
        revision: Revision,
    ) -> Result<(), Damage> {
        self.check_whole()?;
        for range in numbers.ranges() {
            for (channel, _) in channels.range(range.0..=range.1) {
                if !self.head.first_two(*channel, (until, MAX_TIME))?.is_empty() {
                    self.clear(*channel, until, revision)?;
                }
            }
        }
        Ok(())
    }

    fn copy_tag(&mut self, from: Version, to: Revision) -> Result<(), Damage> {
        self.check_whole()?;
        let Some(view) = self.view(from.user_tag) else { return Ok(()) };
        // What they show lies in the same segments, and in the same memory.
        let shared = view.base.parts().map(|part| part.bytes).sum::<u64>() + view.recent_bytes();
        let mut copies = Vec::new();
        let mut added = Vec::new();
        for channel in view.channels()? {
            for found in view.range(channel, (0, MAX_TIME), from.revision)? {
                let Found { since, until, place, .. } = found;
                let object = match place {
                    Place::Recent(object) => object,
                    Place::Sealed(segment, piece) => {
                        added.push(Stored::sealed(segment, piece));
                        (self.objects.len() + added.len() - 1) as u32
                    }
                };
                copies.push((channel, Piece { since, until, object, from: to }));
            }
        }
        // The others have an object already, and a piece more of it.
        self.unsealed_bytes += PIECE_BYTES * (copies.len() - added.len()) as u64;
        self.objects.extend(added);
        let mut copy = View::default();
        copy.count_bytes(shared + PIECE_BYTES * copies.len() as u64);
        for (channel, piece) in copies {
            copy.count(self.objects[piece.object as usize].records);
            copy.take_in(channel, piece);
        }
        self.tagged.insert(to, copy);
        Ok(())
    }

    /// An object as it was inserted.
    pub(super) fn inserted(&self, place: Place<'_>) -> Inserted {
        match place {
            Place::Recent(object) => self.objects[object as usize].inserted,
            Place::Sealed(segment, piece) => segment.object(piece),
        }
    }

    /// Where an object's rows lie.
    pub(super) fn rows_of<'a>(&'a self, place: Place<'a>) -> Rows<'a> {
        match place {
            Place::Recent(object) => {
                let Stored { segment, first_row, records, .. } = &self.objects[object as usize];
                (segment.as_ref(), *first_row, *records)
            }
            Place::Sealed(segment, piece) => {
                let (first_row, records) = segment.rows_of(piece);
                (Some(segment), first_row, records)
            }
        }
    }

    /// How many rows an object has.
    pub(super) fn records(&self, place: Place<'_>) -> u32 {
        self.rows_of(place).2
    }

    /// About how many bytes an object's rows have.
    pub(super) fn payload_bytes(&self, place: Place<'_>) -> u64 {
        let (source, first_row, records) = self.rows_of(place);
        match source {
            Some(segment) => segment.bytes_of(first_row, records),
            None => {
                let rows = first_row as usize..(first_row + records) as usize;
                let bytes = |column: &Column| {
                    let first = column.first_row;
                    let rows = rows.start.max(first) - first..rows.end.max(first) - first;
                    column.cells.size_bytes(rows)
                };
                self.columns.iter().map(bytes).sum::<usize>() as u64
            }
        }
    }

    /// The rows of what was found.
    pub(super) fn rows<'a>(&'a self, found: &Found<'a>) -> Rows<'a> {
        match (found.place, found.rows) {
            (Place::Sealed(segment, _), Some((first, records))) => (Some(segment), first, records),
            (place, _) => self.rows_of(place),
        }
    }

    /// Appends all rows of a column of the folder to cells of its kind. `limit` is one of their
    /// bytes, with those that were read before.
    pub(super) fn read(
        &self,
        runs: &Runs<'_>,
        column: usize,
        into: &mut Cells,
        limit: Option<(Limit, usize)>,
    ) -> Result<(), Refusal> {
        for (source, rows) in &runs.runs {
            match source {
                Some(segment) => segment.append(column, rows.clone(), into)?,
                None => self.columns[column].append(rows, into),
            }
            if let Some((limit, before)) = limit {
                limit.check(before + into.all_bytes())?;
            }
        }
        Ok(())
    }

    /// All rows, in columns of these kinds, with a limit of their bytes.
    pub(super) fn gather(
        &self,
        runs: &Runs<'_>,
        kinds: impl IntoIterator<Item = Kind>,
        limit: Option<Limit>,
    ) -> Result<Table, Refusal> {
        let (mut payload, mut bytes) = (Table::new(kinds), 0);
        runs.want();
        payload.rows = u32::try_from(runs.rows).map_err(|_| too_many(runs.rows))?;
        for (number, into) in payload.columns.iter_mut().enumerate() {
            self.read(runs, number, into, limit.map(|limit| (limit, bytes)))?;
            bytes += into.all_bytes();
        }
        Ok(payload)
    }
}

impl<'a> Runs<'a> {
    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Hands on the bytes of segments that the rows lie in.
    pub(super) fn sealed_bytes(&self, each: &mut dyn FnMut(&[u8])) {
        let mut last = None;
        for (source, rows) in &self.runs {
            let Some(segment) = source else { continue };
            if last.replace(Arc::as_ptr(segment)) != Some(Arc::as_ptr(segment)) {
                segment.bytes_of_any(each);
            }
            segment.bytes_around(rows.clone(), each);
        }
    }

    /// Hands on the bytes that all of the rows lie in, in few large pieces where they lie close to
    /// each other, and returns where that is.
    pub(super) fn ahead(&self, each: ReadAhead) -> Vec<Part<'a>> {
        let mut all: BTreeMap<*const Segment, Part<'a>> = BTreeMap::new();
        for (source, rows) in &self.runs {
            let Some(segment) = *source else { continue };
            let begin = || (segment, segment.chunks_of_any());
            let (_, chunks) = all.entry(Arc::as_ptr(segment)).or_insert_with(begin);
            segment.add_chunks(rows.clone(), chunks);
        }
        for (segment, chunks) in all.values() {
            segment.hand_on(chunks, &mut |bytes| each(bytes));
        }
        all.into_values().collect()
    }

    /// Has all segments whose payload is elsewhere noted, before the first of them is missed.
    fn want(&self) {
        self.runs.iter().filter_map(|(source, _)| *source).for_each(|segment| segment.want());
    }

    /// Adds this many rows that follow the last ones.
    pub(super) fn extend(&mut self, rows: usize) {
        if let Some((_, last)) = self.runs.last_mut() {
            last.end += rows;
            self.rows += rows;
        }
    }

    /// Adds these behind the others, `most` of them.
    pub(super) fn add(&mut self, (source, first, records): Rows<'a>, most: u32) {
        let range = first as usize..first as usize + records.min(most) as usize;
        let id = |source: Source<'_>| source.map(Arc::as_ptr);
        self.rows += range.len();
        match self.runs.last_mut() {
            Some((last, rows)) if rows.end == range.start && id(*last) == id(source) => {
                rows.end = range.end;
            }
            _ => self.runs.push((source, range)),
        }
    }
}

fn too_many(count: usize) -> Refusal {
    Refusal::TooMany(count as u64, ANSWER.most, ANSWER.what)
}

impl Stored {
    fn sealed(segment: &Arc<Segment>, piece: usize) -> Self {
        let (first_row, records) = segment.rows_of(piece);
        let inserted = segment.object(piece);
        Self { inserted, segment: Some(segment.clone()), first_row, records }
    }
}

impl Column {
    fn append(&self, rows: &Range<usize>, into: &mut Cells) {
        let first = self.first_row;
        let absent = rows.len().min(first.saturating_sub(rows.start));
        (0..absent).for_each(|_| into.push_null());
        let there = rows.start + absent..rows.end;
        if !there.is_empty() {
            into.append(&self.cells, there.start - first..there.end - first);
        }
    }
}

/// Shows a piece, after the sealed pieces that it meets have been taken in, whole. Returns the
/// times whose answers are others from then on.
fn cover(
    view: &mut View,
    objects: &mut Vec<Stored>,
    channel: u32,
    piece: Piece,
) -> Result<Range<u64>, Damage> {
    let mut sealed = Vec::new();
    // Where nothing is shown from then on, there is no object.
    if let Some(object) = objects.get(piece.object as usize) {
        view.count(object.records);
    }
    view.count_bytes(PIECE_BYTES);
    for found in view.untouched(channel, (piece.since, piece.until), usize::MAX)? {
        if let Place::Sealed(segment, number) = found.place {
            let object = objects.len() as u32;
            objects.push(Stored::sealed(segment, number));
            let Found { since, until, from, .. } = found;
            sealed.push(Piece { since, until, object, from });
        }
    }
    for piece in sealed {
        view.count(objects[piece.object as usize].records);
        view.count_bytes(PIECE_BYTES);
        view.take_in(channel, piece);
    }
    Ok(view.cover(channel, piece))
}
