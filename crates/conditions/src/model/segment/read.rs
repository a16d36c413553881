//! Reading a segment.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use super::super::past::{Bounds, descend};
use super::super::piece::Inserted;
use super::super::table::Cells;
use super::super::value::Kind;
use super::Damage;
use super::layout::{
    BadHead, CHUNK_BYTES, COLUMN_BYTES, Groups, HEAD_BYTES, Head, Parts, SPARE_BYTES, SegmentKind,
    WHOLE, column, level_counts,
};
use super::packed::{u32_at, u64_at};

/// A segment that was opened: its index is undamaged, its payload is checked when it is read.
pub struct Segment {
    id: u64,
    bytes: Bytes,
    checksum: u32,
    head: Head,
    at: Parts,
    /// What all that is past lies within: in a block, of objects of which it has the pieces.
    past: Bounds,
    columns: Box<[Column]>,
    groups: Groups,
    /// Where each level of bounds begins.
    levels: Box<[usize]>,
    /// A bit for each chunk of the payload whose checksum was found right.
    checked: Box<[AtomicU64]>,
    /// A bit for each channel, by its place, that is like the one before.
    alike: Box<[u64]>,
    /// What has become of its file since it was opened, where that is another one by now.
    spoilt: OnceLock<Damage>,
}

/// Where a column lies in the payload.
#[derive(Clone, Copy, Debug)]
struct Column {
    kind: Kind,
    /// Of fixed width: how many bytes a row has in the columns before; else where its cells lie.
    data: usize,
    data_bytes: usize,
    ends: usize,
    nulls: usize,
    null_count: usize,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("id", &self.id).field("head", &self.head).finish()
    }
}

impl Segment {
    /// Opens the segment of this number, and checks its index.
    ///
    /// # Errors
    /// When something is wrong with it.
    pub fn open(id: u64, bytes: Bytes) -> Result<Self, Damage> {
        let wrong = |at: usize, why: &str| Damage::of(id, at, why);
        let decoded = Head::decode(&bytes).map_err(|why| match why {
            BadHead::Cut => wrong(bytes.len(), "the file ends within the head"),
            BadHead::Checksum => wrong(0, "the checksum of the head is wrong"),
            BadHead::Version(found) => {
                wrong(8, &format!("it has version {found}, which this program doesn't know"))
            }
            BadHead::Kind => wrong(10, "it is of no known kind"),
        });
        let (head, checksum) = decoded?;
        if head.id != id {
            return Err(wrong(16, &format!("this is segment {}", head.id)));
        }
        let (is, should) = (bytes.len(), head.bytes());
        let should = should.ok_or_else(|| wrong(88, "its sizes are too large"))?;
        if should != is as u64 {
            let at = usize::try_from(should).unwrap_or(is).min(is);
            return Err(wrong(at, &format!("it has {is} bytes instead of {should}")));
        }
        let index = HEAD_BYTES..HEAD_BYTES + head.index_bytes as usize;
        if bytes.get(index).map(crc32fast::hash) != Some(head.index_crc) {
            return Err(wrong(HEAD_BYTES, "the checksum of the index is wrong"));
        }
        let at = head.parts(&bytes).ok_or_else(|| wrong(HEAD_BYTES, "its index makes no sense"))?;
        let columns = columns(&bytes, &head, &at);
        let (columns, groups) = columns.ok_or_else(|| wrong(at.columns, "its columns are none"))?;
        let number = |channel: usize| u32_at(&bytes, at.numbers + 4 * channel);
        let end = |channel: usize| u32_at(&bytes, at.ends + 4 * channel);
        let count = head.channels as usize;
        let is_sorted = (0..count).is_sorted_by_key(end)
            && (0..count).is_sorted_by(|one, other| number(*one) < number(*other))
            && count.checked_sub(1).map_or(0, end) == head.pieces;
        if !is_sorted {
            return Err(wrong(at.numbers, "its channels are out of order"));
        }
        let mut begin = 0;
        let begins = level_counts(head.pieces as usize).map(|count| {
            begin += count;
            begin - count
        });
        let levels = begins.collect();
        let chunks = (at.payload - SPARE_BYTES - at.chunks) / 4;
        let checked = (0..chunks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (past, alike, spoilt) = (Bounds::NEVER, Box::default(), OnceLock::new());
        let mut segment = Self {
            id,
            bytes,
            checksum,
            head,
            at,
            past,
            columns,
            groups,
            levels,
            checked,
            alike,
            spoilt,
        };
        segment.past = segment.all_past();
        segment.alike = segment.find_alike();
        Ok(segment)
    }

    /// Refuses to be read where its file was written over or cut.
    pub(in super::super) fn check_file(&self) -> Result<(), Damage> {
        self.spoilt.get().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// Is refused from now on.
    pub(in super::super) fn spoil(&self, damage: Damage) {
        // The first reason stays.
        let _ = self.spoilt.set(damage);
    }

    /// What is wrong where its file has these bytes by now.
    pub fn compare(&self, now: Bytes) -> Option<Damage> {
        match Self::open(self.id, now) {
            Ok(now) if now.checksum != self.checksum => {
                Some(Damage::of(self.id, 0, "it is another segment than was opened"))
            }
            Ok(now) => now.check().into_iter().next(),
            Err(damage) => Some(damage),
        }
    }

    /// Which channels of a block are like the one before: what is found of that one is found of
    /// these without a look.
    fn find_alike(&self) -> Box<[u64]> {
        let count = if self.head.kind == SegmentKind::Block { self.channels() } else { 0 };
        let mut alike = vec![0; count.div_ceil(64)];
        for place in (1..count).filter(|place| self.is_like_before(*place)) {
            alike[place / 64] |= 1 << (place % 64);
        }
        alike.into()
    }

    fn is_like_before(&self, place: usize) -> bool {
        let (before, own) = (self.pieces_of(place - 1), self.pieces_of(place));
        let is_same = |column: usize| {
            let kept =
                |pieces: &Range<usize>| self.at.packed[column].kept(&self.bytes, pieces.clone());
            kept(&before) == kept(&own)
        };
        before.len() == own.len()
            && [column::SINCE, column::UNTIL, column::FROM, column::RECORDS]
                .into_iter()
                .all(is_same)
            && before.zip(own).all(|(before, own)| {
                let (first, records) = self.rows_of(before);
                first.checked_add(records) == Some(self.rows_of(own).0)
            })
    }

    /// Whether a channel has pieces as the one before has them, at the same times and from the same
    /// revisions on, each with as many rows, and behind the rows of that one's.
    pub(in super::super) fn is_alike(&self, place: usize) -> bool {
        self.alike.get(place / 64).is_some_and(|word| word & 1 << (place % 64) != 0)
    }

    fn all_past(&self) -> Bounds {
        let Head { since, until, from, to, ended, pieces, .. } = self.head;
        match (self.head.kind, self.levels.len()) {
            (SegmentKind::Past, _) => Bounds { since, until, from, to },
            (SegmentKind::Block, _) if ended == 0 => Bounds::NEVER,
            (SegmentKind::Block, levels) => {
                let counts = std::iter::once(pieces as usize).chain(level_counts(pieces as usize));
                let bounds = (0..counts.last().unwrap_or(0)).map(|at| self.bounds_at(levels, at));
                bounds.reduce(Bounds::and).unwrap_or(Bounds::NEVER)
            }
        }
    }

    /// The checksum that stands for all of its index, and so for all of it.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// How many bytes it has, without its index.
    pub(in super::super) fn payload_bytes(&self) -> u64 {
        self.head.payload_bytes
    }

    fn rows(&self) -> u32 {
        self.head.rows
    }

    pub(in super::super) fn pieces(&self) -> usize {
        self.head.pieces as usize
    }

    /// Whether it is a segment of this folder and tag, by the revisions that made them.
    pub(in super::super) fn is_of(&self, kind: SegmentKind, folder: u64, tag: u64) -> bool {
        (self.head.kind, self.head.folder, self.head.tag) == (kind, folder, tag)
    }

    pub(in super::super) fn channels(&self) -> usize {
        self.head.channels as usize
    }

    /// A channel's number, by its place.
    pub(in super::super) fn number(&self, place: usize) -> u32 {
        u32_at(&self.bytes, self.at.numbers + 4 * place)
    }

    /// The pieces of a channel, by its place.
    pub(in super::super) fn pieces_of(&self, place: usize) -> Range<usize> {
        let end = |place: usize| u32_at(&self.bytes, self.at.ends + 4 * place) as usize;
        place.checked_sub(1).map_or(0, end)..end(place)
    }

    /// The place of a channel, which is likely to be `guess`.
    pub(in super::super) fn place(&self, channel: u32, guess: usize) -> Option<usize> {
        let count = self.channels();
        if guess < count && self.number(guess) == channel {
            return Some(guess);
        }
        let place = partition(0..count, |place| self.number(place) < channel);
        (place < count && self.number(place) == channel).then_some(place)
    }

    /// The last of a channel's pieces that starts at `time` or before; it is likely to be the
    /// one of number `guess`.
    pub(in super::super) fn before(
        &self,
        within: Range<usize>,
        time: u64,
        guess: usize,
    ) -> Option<usize> {
        let near = within.start + guess;
        let is_it = near < within.end
            && self.since(near) <= time
            && (near + 1 == within.end || self.since(near + 1) > time);
        if is_it {
            return Some(near);
        }
        let start = within.start;
        let place = partition(within, |piece| self.since(piece) <= time);
        (place > start).then(|| place - 1)
    }

    /// A number of a packed column.
    fn number_at(&self, column: usize, place: usize) -> u64 {
        self.at.packed[column].get(&self.bytes, place)
    }

    pub(in super::super) fn since(&self, piece: usize) -> u64 {
        self.number_at(column::SINCE, piece)
    }

    pub(in super::super) fn until(&self, piece: usize) -> u64 {
        self.number_at(column::UNTIL, piece)
    }

    pub(in super::super) fn from(&self, piece: usize) -> u64 {
        self.number_at(column::FROM, piece)
    }

    /// The rows of a piece.
    pub(in super::super) fn rows_of(&self, piece: usize) -> (u32, u32) {
        let number = |column| u32::try_from(self.number_at(column, piece)).unwrap_or(u32::MAX);
        (number(column::ROW), number(column::RECORDS))
    }

    /// The object of a piece, as it was inserted.
    pub(in super::super) fn object(&self, piece: usize) -> Inserted {
        let number = self.number_at(column::CUT, piece);
        if number == WHOLE {
            let (since, until) = (self.since(piece), self.until(piece));
            return Inserted { since, until, revision: self.from(piece) };
        }
        let [since, until, revision] =
            column::OBJECT.map(|column| self.number_at(column, number as usize));
        Inserted { since, until, revision }
    }

    /// Whether what is past of a piece's object lies in this block: it was shown whole until the
    /// piece was.
    pub(in super::super) fn is_ended(&self, piece: usize) -> bool {
        let number = self.number_at(column::CUT, piece);
        self.head.ended > 0
            && number != WHOLE
            && self.number_at(column::ENDED, number as usize) == 1
    }

    /// What is past: of the past, a piece's times and revisions; of a block, those of the piece's
    /// object, if it has that.
    pub(in super::super) fn bounds(&self, piece: usize) -> Bounds {
        match self.head.kind {
            SegmentKind::Past => Bounds {
                since: self.since(piece),
                until: self.until(piece),
                from: self.from(piece),
                to: self.number_at(column::TO, piece),
            },
            SegmentKind::Block if self.is_ended(piece) => {
                Bounds::of_whole(self.object(piece), self.from(piece))
            }
            SegmentKind::Block => Bounds::NEVER,
        }
    }

    /// The bounds of a level, of which 0 is that of the pieces.
    fn bounds_at(&self, level: usize, place: usize) -> Bounds {
        let Some(begin) = level.checked_sub(1).and_then(|level| self.levels.get(level)) else {
            return self.bounds(place);
        };
        let [since, until, from, to] =
            column::BOUNDS.map(|column| self.number_at(column, begin + place));
        Bounds { since, until, from, to }
    }

    /// Hands on those of a channel's pieces of which the bounds of what is past are wanted.
    pub(in super::super) fn visit(
        &self,
        channel: u32,
        wants: &mut dyn FnMut(Bounds) -> bool,
        each: &mut dyn FnMut(usize),
    ) {
        let all = if wants(self.past) { self.place(channel, usize::MAX) } else { None };
        let Some(place) = all else { return };
        let bounds = |level: usize, place: usize| self.bounds_at(level, place);
        descend(self.levels.len(), self.pieces_of(place), &bounds, wants, each);
    }

    /// About how many bytes rows have in this segment. What is damaged is not noticed here.
    pub(in super::super) fn bytes_of(&self, first: u32, rows: u32) -> u64 {
        let (first, rows) = (u64::from(first), u64::from(rows));
        let bytes = |column: &Column| match column.kind.width_bytes() {
            Some(width) => width as u64 * rows,
            None => {
                let ends = self.ends(column, first, first + rows);
                ends.end - ends.start + 8 * rows
            }
        };
        self.columns.iter().map(bytes).sum()
    }

    /// Hands on the bytes that rows lie in: the groups of their cells of fixed width, and their
    /// cells that differ in length. What is damaged is not noticed here.
    pub(in super::super) fn bytes_around(&self, rows: Range<usize>, each: &mut dyn FnMut(&[u8])) {
        let payload = &self.bytes[self.at.payload..];
        // Their checksums are those of whole chunks.
        let mut hand_on = |range: Range<usize>| {
            let end = range.end.next_multiple_of(CHUNK_BYTES).min(payload.len());
            let begin = range.start / CHUNK_BYTES * CHUNK_BYTES;
            if !range.is_empty() {
                each(payload.get(begin..end).unwrap_or_default());
            }
        };
        hand_on(self.groups.around(rows.clone()));
        for column in self.columns.iter().filter(|column| column.kind.width_bytes().is_none()) {
            let ends = self.ends(column, rows.start as u64, rows.end as u64);
            hand_on(column.data + ends.start as usize..column.data + ends.end as usize);
        }
    }

    /// Where rows' cells that differ in length begin and end. What is damaged is not noticed here.
    fn ends(&self, column: &Column, begin: u64, end: u64) -> Range<u64> {
        let payload = &self.bytes[self.at.payload..];
        let end_of = |row: u64| {
            let at = column.ends + 8 * row as usize;
            payload.get(at..at + 8).map_or(0, |end| u64_at(end, 0)).min(column.data_bytes as u64)
        };
        let before = begin.checked_sub(1).map_or(0, end_of);
        before..end.checked_sub(1).map_or(0, end_of).max(before)
    }

    /// Appends rows of a column, none of which has a value where the column came later.
    pub(in super::super) fn append(
        &self,
        column: usize,
        rows: Range<usize>,
        into: &mut Cells,
    ) -> Result<(), Damage> {
        let Some(column) = self.columns.get(column) else {
            rows.for_each(|_| into.push_null());
            return Ok(());
        };
        if rows.end > self.rows() as usize || column.kind != into.kind() {
            return Err(Damage::of(self.id, HEAD_BYTES, "a piece has rows that aren't there"));
        }
        let (first, start) = (into.rows(), rows.start);
        if let Some(width) = column.kind.width_bytes() {
            for extent in self.groups.extents(column.data, width, rows.clone()) {
                into.append_fixed(self.payload(extent)?);
            }
        } else {
            let ends = self.payload(column.ends + 8 * start..column.ends + 8 * rows.end)?;
            let before = match start.checked_sub(1) {
                Some(row) => {
                    u64_at(self.payload(column.ends + 8 * row..column.ends + 8 * start)?, 0)
                }
                None => 0,
            };
            let last = ends.len().checked_sub(8).map_or(before, |at| u64_at(ends, at));
            let is_there = before <= last && last <= column.data_bytes as u64;
            let ends = ends.chunks_exact(8).map(|end| u64_at(end, 0));
            let has_them = is_there && {
                let extent = column.data + before as usize..column.data + last as usize;
                into.append_varying(self.payload(extent)?, before, ends)
            };
            if !has_them {
                let at = self.at.payload + column.ends;
                return Err(Damage::of(self.id, at, "cells end before they begin"));
            }
        }
        if column.null_count > 0 {
            let nulls = self.payload(column.nulls..column.nulls + 4 * column.null_count)?;
            let row = |place: usize| u32_at(nulls, 4 * place) as usize;
            let begin = partition(0..column.null_count, |place| row(place) < start);
            let inside = (begin..column.null_count).map(row).take_while(|row| *row < rows.end);
            let inside = inside.filter_map(|row| row.checked_sub(start));
            inside.for_each(|row| into.set_null((first + row) as u32));
        }
        Ok(())
    }

    /// Bytes of the payload, whose checksums are right.
    fn payload(&self, range: Range<usize>) -> Result<&[u8], Damage> {
        self.check_file()?;
        let all = &self.bytes[self.at.payload..];
        let found = all.get(range.clone());
        let found = found.ok_or_else(|| {
            Damage::of(self.id, self.at.payload, "it has less payload than it should")
        })?;
        for chunk in range.start / CHUNK_BYTES..range.end.div_ceil(CHUNK_BYTES) {
            self.check_chunk(chunk)?;
        }
        Ok(found)
    }

    fn check_chunk(&self, chunk: usize) -> Result<(), Damage> {
        let (word, bit) = (&self.checked[chunk / 64], 1 << (chunk % 64));
        if word.load(Relaxed) & bit != 0 {
            return Ok(());
        }
        let start = self.at.payload + chunk * CHUNK_BYTES;
        let bytes = &self.bytes[start..self.bytes.len().min(start + CHUNK_BYTES)];
        if crc32fast::hash(bytes) != u32_at(&self.bytes, self.at.chunks + 4 * chunk) {
            return Err(Damage::of(self.id, start, "the checksum of the payload is wrong"));
        }
        word.fetch_or(bit, Relaxed);
        Ok(())
    }

    /// Checks all of it, and returns what is damaged: chunks of the payload, or else, what no
    /// checksum tells, the first thing that makes no sense.
    pub fn check(&self) -> Vec<Damage> {
        let chunks = (self.at.payload - SPARE_BYTES - self.at.chunks) / 4;
        let damaged: Vec<_> =
            (0..chunks).filter_map(|chunk| self.check_chunk(chunk).err()).collect();
        match damaged.is_empty() {
            true => {
                self.check_pieces().and_then(|()| self.check_cells()).err().into_iter().collect()
            }
            false => damaged,
        }
    }

    fn check_pieces(&self) -> Result<(), Damage> {
        let is_past = self.head.kind == SegmentKind::Past;
        for place in 0..self.channels() {
            let mut end = 0;
            for piece in self.pieces_of(place) {
                let (since, until) = (self.since(piece), self.until(piece));
                let (first, records) = self.rows_of(piece);
                let is_there = u64::from(first) + u64::from(records) <= u64::from(self.rows());
                if since >= until || since < end || !is_there {
                    let why = "a piece is out of order, or has rows that aren't there";
                    return Err(Damage::of(self.id, HEAD_BYTES, format!("{why}: {piece}")));
                }
                end = if is_past { since } else { until };
            }
        }
        Ok(())
    }

    fn check_cells(&self) -> Result<(), Damage> {
        for (number, column) in self.columns.iter().enumerate() {
            let mut cells = Cells::new(column.kind);
            self.append(number, 0..self.rows() as usize, &mut cells)?;
            if !cells.is_sound(self.rows()) {
                let why = format!("the cells of column {number} make no sense");
                return Err(Damage::of(self.id, self.at.payload, why));
            }
        }
        Ok(())
    }
}

/// Where the columns lie; `None` where they don't fill the payload.
fn columns(bytes: &[u8], head: &Head, at: &Parts) -> Option<(Box<[Column]>, Groups)> {
    let (mut row_bytes, rows) = (0_usize, head.rows as usize);
    let mut columns = Vec::new();
    for entry in bytes[at.columns..at.numbers].chunks_exact(COLUMN_BYTES) {
        let kind = Kind::numbered(u8::try_from(u32_at(entry, 0)).ok()?)?;
        let null_count = u32_at(entry, 4) as usize;
        let data_bytes = usize::try_from(u64_at(entry, 8)).ok()?;
        if let Some(width) = kind.width_bytes()
            && rows.checked_mul(width)? != data_bytes
        {
            return None;
        }
        columns.push(Column { kind, data: row_bytes, data_bytes, ends: 0, nulls: 0, null_count });
        row_bytes = row_bytes.checked_add(kind.width_bytes().unwrap_or(0))?;
    }
    let mut begin = rows.checked_mul(row_bytes)?;
    for column in &mut columns {
        if column.kind.width_bytes().is_none() {
            column.data = begin;
            column.ends = begin.checked_add(column.data_bytes)?;
            begin = column.ends.checked_add(rows.checked_mul(8)?)?;
        }
        column.nulls = begin;
        begin = begin.checked_add(column.null_count.checked_mul(4)?)?;
    }
    let groups = head.groups(row_bytes)?;
    (begin as u64 == head.payload_bytes).then(|| (columns.into(), groups))
}

/// The first place of the range for which the condition, which holds for those before, does not.
fn partition(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
