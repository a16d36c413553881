//! The payload of a segment: how it is read, and checked when it is.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::super::super::table::Cells;
use super::super::Damage;
use super::super::layout::{CHUNK_BYTES, HEAD_BYTES, Head, SPARE_BYTES, SegmentKind};
use super::super::packed::{u32_at, u64_at};
use super::{Column, Segment, partition};

/// The payload, for as long as it is read.
enum Payload<'a> {
    Own(&'a [u8]),
    Lent(Arc<Bytes>),
}

/// The chunks that an extent lies in: their checksums are of all their bytes.
fn whole_chunks(payload: &[u8], extent: Range<usize>) -> &[u8] {
    let end = extent.end.next_multiple_of(CHUNK_BYTES).min(payload.len());
    payload.get(extent.start / CHUNK_BYTES * CHUNK_BYTES..end).unwrap_or_default()
}

impl Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Lent(bytes) => bytes,
        }
    }
}

/// The chunks of a segment's payload that are read.
#[derive(Debug)]
pub(in super::super::super) struct Chunks(Vec<bool>);

impl Chunks {
    fn add(&mut self, extent: Range<usize>) {
        let range = extent.start / CHUNK_BYTES..extent.end.div_ceil(CHUNK_BYTES);
        self.0.get_mut(range).into_iter().for_each(|chunks| chunks.fill(true));
    }

    /// Where they lie: those next to each other are one extent.
    fn extents(&self) -> impl Iterator<Item = Range<usize>> {
        let mut begin = 0;
        let alike = self.0.chunk_by(|one, next| one == next).map(move |chunks| {
            begin += chunks.len();
            (chunks[0], CHUNK_BYTES * (begin - chunks.len())..CHUNK_BYTES * begin)
        });
        alike.filter_map(|(is_read, extent)| is_read.then_some(extent))
    }
}

impl Segment {
    /// About how many bytes rows have in this segment. What is damaged is not noticed here.
    pub(in super::super::super) fn bytes_of(&self, first: u32, rows: u32) -> u64 {
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

    /// Where the bits are that mark cells without a value, of all rows.
    fn nulls(&self) -> impl Iterator<Item = Range<usize>> {
        let columns = self.columns.iter().filter(|column| column.null_count > 0);
        columns.map(|column| column.nulls..column.nulls + 4 * column.null_count)
    }

    /// Hands on where the cells of rows lie: the groups of those of fixed width, and those that
    /// differ in length, with their ends. What is damaged is not noticed here.
    fn extents(&self, rows: Range<usize>, each: &mut dyn FnMut(Range<usize>)) {
        let mut hand_on = |extent: Range<usize>| {
            if !extent.is_empty() {
                each(extent);
            }
        };
        hand_on(self.groups.around(rows.clone()));
        for column in self.columns.iter().filter(|column| column.kind.width_bytes().is_none()) {
            let ends = self.ends(column, rows.start as u64, rows.end as u64);
            hand_on(column.data + ends.start as usize..column.data + ends.end as usize);
            hand_on(column.ends + 8 * rows.start.saturating_sub(1)..column.ends + 8 * rows.end);
        }
    }

    /// The chunks of the payload that reading any row takes.
    pub(in super::super::super) fn chunks_of_any(&self) -> Chunks {
        let mut chunks = Chunks(vec![false; self.chunks().end]);
        self.nulls().for_each(|extent| chunks.add(extent));
        chunks
    }

    /// Adds those that reading these rows takes.
    pub(in super::super::super) fn add_chunks(&self, rows: Range<usize>, chunks: &mut Chunks) {
        self.extents(rows, &mut |extent| chunks.add(extent));
    }

    /// Notes that the payload is needed, where that is elsewhere.
    pub(in super::super::super) fn want(&self) {
        if let Some(lent) = &self.lent {
            // Whether it is here is seen when it is read.
            let _ = lent.get();
        }
    }

    /// Hands on the bytes of chunks of the payload, where that is here; else it is noted that they
    /// are needed.
    pub(in super::super::super) fn hand_on(&self, chunks: &Chunks, each: &mut dyn FnMut(&[u8])) {
        let Ok(payload) = self.held() else { return };
        chunks.extents().for_each(|extent| each(whole_chunks(&payload, extent)));
    }

    /// Hands on the bytes of the chunks that reading any row takes, as [`Segment::hand_on`] does.
    pub(in super::super::super) fn bytes_of_any(&self, each: &mut dyn FnMut(&[u8])) {
        let Ok(payload) = self.held() else { return };
        self.nulls().for_each(|extent| each(whole_chunks(&payload, extent)));
    }

    /// The same of those that reading these rows takes.
    pub(in super::super::super) fn bytes_around(
        &self,
        rows: Range<usize>,
        each: &mut dyn FnMut(&[u8]),
    ) {
        let Ok(payload) = self.held() else { return };
        self.extents(rows, &mut |extent| each(whole_chunks(&payload, extent)));
    }

    /// Where rows' cells that differ in length begin and end: about, where the payload is not here.
    /// What is damaged is not noticed here.
    fn ends(&self, column: &Column, begin: u64, end: u64) -> Range<u64> {
        let bytes = column.data_bytes as u64;
        let here = match &self.lent {
            None => Some(Payload::Own(&self.bytes[self.at.payload..])),
            Some(lent) => lent.here().map(Payload::Lent),
        };
        let end_of = |row: u64| match &here {
            Some(payload) => {
                let at = column.ends + 8 * row as usize;
                payload.get(at..at + 8).map_or(0, |end| u64_at(end, 0)).min(bytes)
            }
            None => bytes / u64::from(self.rows()).max(1) * (row + 1).min(self.rows().into()),
        };
        let before = begin.checked_sub(1).map_or(0, end_of);
        before..end.checked_sub(1).map_or(0, end_of).max(before)
    }

    /// Appends rows of a column, none of which has a value where the column came later.
    pub(in super::super::super) fn append(
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
        let payload = self.held()?;
        let cells = |extent: Range<usize>| self.verified(&payload, extent);
        let (first, start) = (into.rows(), rows.start);
        if let Some(width) = column.kind.width_bytes() {
            for extent in self.groups.extents(column.data, width, rows.clone()) {
                into.append_fixed(cells(extent)?);
            }
        } else {
            let ends = cells(column.ends + 8 * start..column.ends + 8 * rows.end)?;
            let before = match start.checked_sub(1) {
                Some(row) => u64_at(cells(column.ends + 8 * row..column.ends + 8 * start)?, 0),
                None => 0,
            };
            let last = ends.len().checked_sub(8).map_or(before, |at| u64_at(ends, at));
            let is_there = before <= last && last <= column.data_bytes as u64;
            let ends = ends.chunks_exact(8).map(|end| u64_at(end, 0));
            let has_them = is_there && {
                let extent = column.data + before as usize..column.data + last as usize;
                into.append_varying(cells(extent)?, before, ends)
            };
            if !has_them {
                let at = self.at.payload + column.ends;
                return Err(Damage::of(self.id, at, "cells end before they begin"));
            }
        }
        if column.null_count > 0 {
            let nulls = cells(column.nulls..column.nulls + 4 * column.null_count)?;
            let row = |place: usize| u32_at(nulls, 4 * place) as usize;
            let begin = partition(0..column.null_count, |place| row(place) < start);
            let inside = (begin..column.null_count).map(row).take_while(|row| *row < rows.end);
            let inside = inside.filter_map(|row| row.checked_sub(start));
            inside.for_each(|row| into.set_null((first + row) as u32));
        }
        Ok(())
    }

    /// The payload, which is not taken away as long as this is held.
    fn held(&self) -> Result<Payload<'_>, Damage> {
        match &self.lent {
            None => Ok(Payload::Own(&self.bytes[self.at.payload..])),
            Some(lent) => match lent.get() {
                Some(bytes) => Ok(Payload::Lent(bytes)),
                None => Err(Damage::elsewhere(self.id)),
            },
        }
    }

    /// Bytes of the payload, whose checksums are right.
    fn verified<'a>(&self, payload: &'a [u8], range: Range<usize>) -> Result<&'a [u8], Damage> {
        self.check_file()?;
        let found = payload.get(range.clone());
        let found = found.ok_or_else(|| {
            Damage::of(self.id, self.at.payload, "it has less payload than it should")
        })?;
        for chunk in range.start / CHUNK_BYTES..range.end.div_ceil(CHUNK_BYTES) {
            self.check_chunk(payload, chunk)?;
        }
        Ok(found)
    }

    fn check_chunk(&self, payload: &[u8], chunk: usize) -> Result<(), Damage> {
        let (word, bit) = (&self.checked[chunk / 64], 1 << (chunk % 64));
        if word.load(Relaxed) & bit != 0 {
            return Ok(());
        }
        let start = chunk * CHUNK_BYTES;
        let bytes = payload.get(start..payload.len().min(start + CHUNK_BYTES)).unwrap_or_default();
        if crc32fast::hash(bytes) != u32_at(&self.bytes, self.at.chunks + 4 * chunk) {
            let why = "the checksum of the payload is wrong";
            return Err(Damage::of(self.id, self.at.payload + start, why));
        }
        word.fetch_or(bit, Relaxed);
        Ok(())
    }

    fn chunks(&self) -> Range<usize> {
        0..(self.at.payload - SPARE_BYTES - self.at.chunks) / 4
    }

    /// Checks its index again, and these chunks of its payload: whoever copies what it holds into
    /// another segment gives it checksums under which it would be right for ever.
    pub(in super::super::super) fn check_again(
        &self,
        chunks: Option<&Chunks>,
    ) -> Result<(), Damage> {
        let is_same = Head::decode(&self.bytes).is_ok_and(|(head, _)| head == self.head)
            && crc32fast::hash(&self.bytes[HEAD_BYTES..self.at.payload]) == self.head.index_crc;
        if !is_same {
            let why = "it was written over since it was opened: the checksum of its index is wrong";
            self.spoil(Damage::of(self.id, HEAD_BYTES, why));
        }
        self.check_file()?;
        let read = chunks.filter(|chunks| chunks.0.contains(&true));
        let Some(chunks) = read else { return Ok(()) };
        let payload = self.held()?;
        let read = self.chunks().zip(&chunks.0).filter(|(_, is_read)| **is_read);
        read.map(|(chunk, _)| chunk).try_for_each(|chunk| {
            self.checked[chunk / 64].fetch_and(!(1 << (chunk % 64)), Relaxed);
            self.check_chunk(&payload, chunk)
        })
    }

    /// Checks all of it, and returns what is damaged: chunks of the payload, or else, what no
    /// checksum tells, the first thing that makes no sense.
    pub fn check(&self) -> Vec<Damage> {
        let payload = match self.held() {
            Ok(payload) => payload,
            Err(damage) => return vec![damage],
        };
        let damaged: Vec<_> =
            self.chunks().filter_map(|chunk| self.check_chunk(&payload, chunk).err()).collect();
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
