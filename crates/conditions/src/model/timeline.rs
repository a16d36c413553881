//! What one channel has shown since its folder was sealed: pieces that don't overlap, sorted, and
//! those of earlier revisions.
//!
//! Every read says its revision, so what is tagged, or was true at a date, costs nothing to keep
//! and is found as fast. A sealed piece is taken in whole before any of it changes, and what is
//! cleared is kept as a piece of [`NOTHING`]: wherever there is a piece here, now or at any
//! revision, what is sealed as shown does not count.

use std::cell::Cell;
use std::ops::Range;

use super::past::{Ended, Past};
use super::piece::{NOTHING, Piece, Revision};

/// The most pieces of a chunk. An insertion moves those of one chunk, and the list of chunks.
const CHUNK: usize = 512;

/// What a channel shows at every time and revision, as far as it is not sealed.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    shown: Pieces,
    past: Past,
}

/// What is known of a time at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recent {
    /// What is shown.
    Shown(Option<Piece>),
    /// Something came later: of what is sealed, only the past counts.
    Later,
    /// Nothing: what is sealed counts.
    Unknown,
}

impl Timeline {
    /// Takes in a sealed piece, where there is nothing here.
    pub(super) fn take_in(&mut self, piece: Piece) {
        self.shown.insert(piece);
    }

    /// Shows the piece from its revision on, or [`NOTHING`], whatever was shown there before.
    /// Returns the times whose answers are others from then on: those of what is cut, too, all of
    /// whose interval is part of an answer.
    pub(super) fn cover(&mut self, piece: Piece) -> Range<u64> {
        let Piece { since, until, from: revision, .. } = piece;
        let mut changed = since..until;
        if self.shown.last().is_none_or(|last| last.until <= since) {
            self.shown.push(piece);
            return changed;
        }
        let mut ended = Vec::new();
        for piece in self.shown.take(since, until) {
            let is_shown = piece.object != NOTHING;
            if is_shown {
                changed = changed.start.min(piece.since)..changed.end.max(piece.until);
            }
            if is_shown && piece.from < revision {
                ended.push(Ended { piece, to: revision });
            }
            let from = if is_shown { revision } else { piece.from };
            if piece.since < since {
                self.shown.insert(Piece { until: since, from, ..piece });
            }
            if piece.until > until {
                self.shown.insert(Piece { since: until, from, ..piece });
            }
        }
        self.past.push(ended);
        self.shown.insert(piece);
        changed
    }

    /// Whether there is a piece at a time.
    pub(super) fn covers(&self, time: u64) -> bool {
        self.shown.at(time).is_some()
    }

    /// What is known of a time. `near` is where the piece of another channel was that is shown
    /// then, which is looked at first.
    pub(super) fn at(&self, time: u64, revision: Revision, near: &Cell<Place>) -> Recent {
        match self.shown.at_near(time, near) {
            Some(piece) if piece.from <= revision => {
                Recent::Shown(Some(piece).filter(|piece| piece.object != NOTHING))
            }
            Some(_) => match self.past.at(time, revision) {
                None => Recent::Later,
                found => Recent::Shown(found),
            },
            None => Recent::Unknown,
        }
    }

    /// Of a gap at a time: from where, and from which revision on, there is nothing here. The time
    /// may be later than it could be, where later revisions have pieces before it.
    pub(super) fn gap(&self, time: u64, revision: Revision) -> (u64, Revision) {
        let mut since = self.shown.boundary(time);
        self.past.shown(since, time, revision, &mut |piece| since = since.max(piece.until));
        (since, self.past.ended(since, time, revision))
    }

    /// Of a gap at a time: a time up to which nothing here begins to be shown at a revision.
    pub(super) fn gap_end(&self, time: u64, revision: Revision) -> u64 {
        let mut after = self.shown.from(time).filter(|piece| piece.since > time);
        self.past.next(time, after.next().map_or(u64::MAX, |piece| piece.since), revision)
    }

    /// The pieces of a revision that are shown at some time of `first..=last`, in their order; the
    /// first `most` of them at least.
    pub(super) fn range(
        &self,
        first: u64,
        mut last: u64,
        revision: Revision,
        most: usize,
    ) -> Vec<Piece> {
        let found = self.shown.meeting(first, last);
        let found = found.filter(|piece| piece.from <= revision && piece.object != NOTHING);
        let mut pieces: Vec<Piece> = found.take(most).collect();
        if let Some(piece) = pieces.last().filter(|_| pieces.len() == most) {
            last = last.min(piece.since.max(first));
        }
        let before = pieces.len();
        self.past.shown(first, last, revision, &mut |piece| pieces.push(piece));
        if pieces.len() > before {
            pieces.sort_unstable_by_key(|piece| piece.since);
        }
        pieces
    }

    /// The first pieces shown now that meet `since..until`: two at most.
    pub(super) fn first_two(&self, since: u64, until: u64) -> impl Iterator<Item = Piece> {
        let found = self.shown.from(since).take_while(move |piece| piece.since < until);
        found.filter(move |piece| piece.until > since && piece.object != NOTHING).take(2)
    }

    /// Every time from which on, and up to which, there are pieces here.
    pub(super) fn extents(&self) -> impl Iterator<Item = (u64, u64)> {
        self.shown.from(0).map(|piece| (piece.since, piece.until))
    }

    /// The pieces that were no longer shown at a revision.
    pub(super) fn ended(&self, revision: Revision) -> impl Iterator<Item = &Ended> {
        self.past.all().filter(move |ended| ended.to <= revision)
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
pub(super) type Place = (usize, usize);

impl Pieces {
    fn at(&self, time: u64) -> Option<Piece> {
        let (chunk, place) = self.before(time)?;
        Some(self.chunks[chunk].pieces[place]).filter(|piece| piece.until > time)
    }

    /// The same, which is likely to be `near`: where it is, once it is found.
    fn at_near(&self, time: u64, near: &Cell<Place>) -> Option<Piece> {
        if !self.is_before(time, near.get()) {
            near.set(self.before(time)?);
        }
        let (chunk, place) = near.get();
        Some(self.chunks[chunk].pieces[place]).filter(|piece| piece.until > time)
    }

    /// Whether the last piece that starts at `time` or before is in this place.
    fn is_before(&self, time: u64, (chunk, place): Place) -> bool {
        let Some(found) = self.chunks.get(chunk) else { return false };
        let starts = found.starts.get(place..).unwrap_or_default();
        let next = starts.get(1).or_else(|| self.firsts.get(chunk + 1));
        starts.first().is_some_and(|start| *start <= time) && next.is_none_or(|next| time < *next)
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
    fn meeting(&self, first: u64, last: u64) -> impl Iterator<Item = Piece> {
        let found = self.from(first).take_while(move |piece| piece.since <= last);
        found.filter(move |piece| piece.until > first)
    }

    /// The pieces from the last one on that starts at `time` or before, or else from the first.
    fn from(&self, time: u64) -> impl Iterator<Item = Piece> {
        let (first, place) = self.before(time).unwrap_or_default();
        let chunks = self.chunks.iter().skip(first).enumerate();
        chunks.flat_map(move |(number, chunk)| {
            chunk.pieces.iter().skip(if number == 0 { place } else { 0 }).copied()
        })
    }

    /// Removes the pieces that overlap `since..until`.
    fn take(&mut self, since: u64, until: u64) -> Vec<Piece> {
        let (first, place) = self.before(since).unwrap_or_default();
        let (mut taken, mut end) = (Vec::new(), first);
        for (number, chunk) in self.chunks.iter_mut().enumerate().skip(first) {
            if chunk.starts.first().is_none_or(|start| *start >= until) {
                break;
            }
            // What begins before may end before, too.
            let has_ended = |piece: &Piece| piece.until <= since;
            let begin = if number == first { place } else { 0 };
            let begin = begin + usize::from(chunk.pieces.get(begin).is_some_and(has_ended));
            let past_end = chunk.starts.partition_point(|start| *start < until).max(begin);
            chunk.starts.drain(begin..past_end);
            taken.extend(chunk.pieces.drain(begin..past_end));
            end = number + 1;
        }
        // All but the first and the last of these chunks are empty now.
        let mut kept: Vec<Chunk> = self.chunks.drain(first..end).collect();
        kept.retain(|chunk| !chunk.starts.is_empty());
        let firsts = kept.iter().filter_map(|chunk| chunk.starts.first().copied());
        drop(self.firsts.splice(first..end, firsts));
        drop(self.chunks.splice(first..first, kept));
        taken
    }

    fn last(&self) -> Option<&Piece> {
        self.chunks.last()?.pieces.last()
    }

    /// Adds a piece after all others.
    fn push(&mut self, piece: Piece) {
        let has_room = |chunk: &&mut Chunk| chunk.starts.len() < CHUNK;
        match self.chunks.last_mut().filter(has_room) {
            Some(chunk) => {
                chunk.starts.push(piece.since);
                chunk.pieces.push(piece);
            }
            None => {
                self.firsts.push(piece.since);
                self.chunks.push(Chunk { starts: vec![piece.since], pieces: vec![piece] });
            }
        }
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
