//! Reading a segment.

mod payload;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::super::past::{Bounds, descend};
use super::super::piece::Inserted;
use super::super::value::Kind;
use super::layout::{
    BadHead, COLUMN_BYTES, Groups, HEAD_BYTES, Head, Parts, SPARE_BYTES, SegmentKind, WHOLE,
    column, level_counts,
};
use super::packed::{u32_at, u64_at};
use super::{Damage, Lent, Source};

pub(in super::super) use payload::Chunks;

/// A segment that was opened: its index is undamaged, its payload is checked when it is read.
pub struct Segment {
    id: u64,
    /// All of it, or what is before its payload.
    bytes: Bytes,
    /// Its payload, where that comes and goes.
    lent: Option<Arc<Lent>>,
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
    pub fn open(id: u64, source: impl Into<Source>) -> Result<Self, Damage> {
        let (bytes, lent) = match source.into() {
            Source::Whole(bytes) => (bytes, None),
            Source::Index(bytes, lent) => (bytes, Some(lent)),
        };
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
        let is = bytes.len();
        let should = if lent.is_some() { head.index_end() } else { head.bytes() };
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
            lent,
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

    /// The same of a file that has its index alone.
    pub fn compare_index(&self, now: Bytes) -> Option<Damage> {
        let lent = Arc::new(Lent::new(Arc::default()));
        match Self::open(self.id, Source::Index(now, lent)) {
            Ok(now) if now.checksum == self.checksum => None,
            Ok(_) => Some(Damage::of(self.id, 0, "it is the index of another segment")),
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

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.head.bytes().unwrap_or(u64::MAX)
    }

    /// How many bytes it has, without its index.
    pub(in super::super) fn payload_bytes(&self) -> u64 {
        self.head.payload_bytes
    }

    pub(in super::super) fn rows(&self) -> u32 {
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
