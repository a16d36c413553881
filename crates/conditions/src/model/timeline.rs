//! What one channel shows: pieces that don't overlap, sorted, and those of earlier revisions.
//!
//! Every read says its revision, so what is tagged, or was true at a date, costs nothing to keep
//! and is found as fast.

use super::past::Past;
use super::piece::{Around, Piece, Revision};

/// The most pieces of a chunk. An insertion moves those of one chunk, and the list of chunks.
const CHUNK: usize = 512;

/// What a channel shows at every time and revision.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    shown: Pieces,
    past: Past,
}

impl Timeline {
    /// Shows the piece from its revision on, whatever was shown there before.
    pub(super) fn cover(&mut self, piece: Piece) {
        self.clear(piece.since, piece.until, piece.from);
        self.shown.insert(piece);
    }

    /// Shows nothing in `since..until` from `revision` on.
    pub(super) fn clear(&mut self, since: u64, until: u64, revision: Revision) {
        for piece in self.shown.take(since, until) {
            if piece.from < revision {
                self.past.push(piece, revision);
            }
            if piece.since < since {
                self.shown.insert(Piece { until: since, from: revision, ..piece });
            }
            if piece.until > until {
                self.shown.insert(Piece { since: until, from: revision, ..piece });
            }
        }
    }

    /// The piece at a time.
    pub(super) fn at(&self, time: u64, revision: Revision) -> Option<Piece> {
        match self.shown.at(time) {
            Some(piece) if piece.from <= revision => Some(piece),
            _ => self.past.at(time, revision),
        }
    }

    /// The piece at a time, and from where on nothing else is shown. `since` is a function of the
    /// pieces at `revision` where one is found. In a gap it may be later than it could be, where
    /// later revisions have pieces before it.
    pub(super) fn around(&self, time: u64, revision: Revision) -> Around {
        if let Some(piece) = self.at(time, revision) {
            return Around { piece: Some(piece), since: piece.since, from: piece.from };
        }
        let mut since = self.shown.boundary(time);
        self.past.shown(since, time, revision, &mut |piece| since = since.max(piece.until));
        Around { piece: None, since, from: self.past.ended(since, time, revision) }
    }

    /// The pieces of a revision that are shown at some time of `first..=last`, in their order.
    pub(super) fn range(&self, first: u64, last: u64, revision: Revision) -> Vec<Piece> {
        let mut pieces = self.shown.range(first, last);
        pieces.retain(|piece| piece.from <= revision);
        let before = pieces.len();
        self.past.shown(first, last, revision, &mut |piece| pieces.push(piece));
        if pieces.len() > before {
            pieces.sort_unstable_by_key(|piece| piece.since);
        }
        pieces
    }

    /// The pieces shown now that start at `time` or before, and after it: the nearest ones.
    pub(super) fn nearest(&self, time: u64) -> (Option<Piece>, Option<Piece>) {
        let before = self.shown.before(time);
        let piece = |(chunk, place): Place| self.shown.chunks[chunk].pieces[place];
        (before.map(piece), self.shown.after(before).map(piece))
    }
}

/// Pieces that don't overlap, in chunks: their starts apart, because only those are searched.
#[derive(Debug, Default)]
struct Pieces {
    /// The first start of each chunk.
    firsts: Vec<u64>,
    chunks: Vec<Chunk>,
}

#[derive(Debug, Default)]
struct Chunk {
    starts: Vec<u64>,
    pieces: Vec<Piece>,
}

/// A piece by its chunk, and its place there.
type Place = (usize, usize);

impl Pieces {
    fn at(&self, time: u64) -> Option<Piece> {
        let (chunk, place) = self.before(time)?;
        Some(self.chunks[chunk].pieces[place]).filter(|piece| piece.until > time)
    }

    /// The last piece that starts at `time` or before.
    fn before(&self, time: u64) -> Option<Place> {
        let chunk = self.firsts.partition_point(|first| *first <= time).checked_sub(1)?;
        let place = self.chunks[chunk].starts.partition_point(|start| *start <= time);
        Some((chunk, place.checked_sub(1)?))
    }

    /// The last time, `time` at most, at which a piece starts or ends, or the first of all.
    fn boundary(&self, time: u64) -> u64 {
        let Some((chunk, place)) = self.before(time) else { return 0 };
        let piece = self.chunks[chunk].pieces[place];
        if piece.until <= time { piece.until } else { piece.since }
    }

    /// The pieces that overlap `first..=last`.
    fn range(&self, first: u64, last: u64) -> Vec<Piece> {
        let mut found = Vec::new();
        let (start, mut place) = self.before(first).unwrap_or_default();
        for chunk in &self.chunks[start..] {
            for piece in &chunk.pieces[place..] {
                if piece.since > last {
                    return found;
                }
                if piece.until > first {
                    found.push(*piece);
                }
            }
            place = 0;
        }
        found
    }

    /// The place after this one; the first where there is none before.
    fn after(&self, place: Option<Place>) -> Option<Place> {
        let (chunk, place) = place.map_or((0, 0), |(chunk, place)| (chunk, place + 1));
        match self.chunks.get(chunk)?.pieces.get(place) {
            Some(_) => Some((chunk, place)),
            None => (chunk + 1 < self.chunks.len()).then_some((chunk + 1, 0)),
        }
    }

    /// Removes the pieces that overlap `since..until`.
    fn take(&mut self, since: u64, until: u64) -> Vec<Piece> {
        let taken = self.range(since, until - 1);
        for piece in &taken {
            let Some((chunk, place)) = self.before(piece.since) else { continue };
            let inside = &mut self.chunks[chunk];
            inside.starts.remove(place);
            inside.pieces.remove(place);
            match inside.starts.first() {
                Some(first) => self.firsts[chunk] = *first,
                None => {
                    self.firsts.remove(chunk);
                    self.chunks.remove(chunk);
                }
            }
        }
        taken
    }

    /// Adds a piece that overlaps none.
    fn insert(&mut self, piece: Piece) {
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::default());
            self.firsts.push(piece.since);
        }
        let chunk = self.before(piece.since).map_or(0, |(chunk, _)| chunk);
        let inside = &mut self.chunks[chunk];
        let place = inside.starts.partition_point(|start| *start < piece.since);
        inside.starts.insert(place, piece.since);
        inside.pieces.insert(place, piece);
        self.firsts[chunk] = inside.starts[0];
        if inside.starts.len() > CHUNK {
            // What is only appended to leaves full chunks behind.
            let at = if place == CHUNK { CHUNK } else { CHUNK / 2 };
            let (starts, pieces) = (inside.starts.split_off(at), inside.pieces.split_off(at));
            self.firsts.insert(chunk + 1, starts[0]);
            self.chunks.insert(chunk + 1, Chunk { starts, pieces });
        }
    }
}
