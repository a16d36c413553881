//! Pieces that are no longer shown, each a rectangle: an interval of times, and one of revisions.
//!
//! They are kept as runs whose sizes double, each sorted by time, with bounds of 16 pieces, of 16
//! such bounds, and so on: what doesn't meet a question's time and revision is passed by whole
//! blocks, so a long interval costs only where it is asked for.

use std::ops::Range;

use super::piece::{Inserted, Piece, Revision};

/// Pieces or bounds in a block.
pub(super) const BLOCK: usize = 16;

/// A piece and the revision from which on it is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) piece: Piece,
    pub(super) to: Revision,
}

/// Bounds of a block: every piece in it lies within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) from: Revision,
    pub(super) to: Revision,
}

impl Bounds {
    /// Those of nothing, which no question wants.
    pub(super) const NEVER: Self = Self { since: u64::MAX, until: 0, from: u64::MAX, to: 0 };

    /// Of an object that was shown whole from its revision until another one.
    pub(super) fn of_whole(object: Inserted, to: Revision) -> Self {
        let Inserted { since, until, revision: from } = object;
        Self { since, until, from, to }
    }

    pub(super) fn of(ended: &Ended) -> Self {
        let Piece { since, until, from, .. } = ended.piece;
        Self { since, until, from, to: ended.to }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            since: self.since.min(other.since),
            until: self.until.max(other.until),
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }

    /// Whether a piece within meets `first..=last`.
    pub(super) fn meets(self, first: u64, last: u64) -> bool {
        self.since <= last && self.until > first
    }

    /// Whether a piece within may be shown at a time of `first..=last`, at `revision`.
    pub(super) fn may_show(self, first: u64, last: u64, revision: Revision) -> bool {
        self.meets(first, last) && self.from <= revision && revision < self.to
    }
}

/// The bounds of blocks of these, then of blocks of those, and so on.
pub(super) fn levels(mut below: Vec<Bounds>) -> Vec<Vec<Bounds>> {
    let mut levels = Vec::new();
    while below.len() > BLOCK {
        let both = |block: &[Bounds]| block.iter().copied().reduce(Bounds::and);
        below = below.chunks(BLOCK).filter_map(both).collect();
        levels.push(below.clone());
    }
    levels
}

/// Hands on those of the pieces `within` that lie in blocks whose bounds are wanted, and are wanted
/// themselves. Level 0 of the bounds are the pieces'.
pub(super) fn descend(
    level: usize,
    within: Range<usize>,
    bounds: &dyn Fn(usize, usize) -> Bounds,
    wants: &mut dyn FnMut(Bounds) -> bool,
    each: &mut dyn FnMut(usize),
) {
    let size = BLOCK.pow(level as u32);
    for place in within.start / size..within.end.div_ceil(size) {
        if !wants(bounds(level, place)) {
            continue;
        }
        match level.checked_sub(1) {
            None => each(place),
            Some(below) => {
                let inside = within.start.max(place * size)..within.end.min((place + 1) * size);
                descend(below, inside, bounds, wants, each);
            }
        }
    }
}

#[derive(Debug)]
struct Run {
    pieces: Vec<Ended>,
    levels: Vec<Vec<Bounds>>,
}

impl Run {
    fn of(mut pieces: Vec<Ended>) -> Self {
        pieces.sort_unstable_by_key(|ended| (ended.piece.since, ended.piece.from));
        let levels = levels(pieces.iter().map(Bounds::of).collect());
        Self { pieces, levels }
    }

    /// Hands on every piece in blocks whose bounds are wanted.
    fn visit(&self, wants: &mut dyn FnMut(Bounds) -> bool, each: &mut dyn FnMut(&Ended)) {
        let bounds = |level: usize, place: usize| match level.checked_sub(1) {
            Some(below) => self.levels[below][place],
            None => Bounds::of(&self.pieces[place]),
        };
        let mut each = |place: usize| each(&self.pieces[place]);
        descend(self.levels.len(), 0..self.pieces.len(), &bounds, wants, &mut each);
    }
}

/// The pieces of one channel that are no longer shown.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Each more than twice as long as the next.
    runs: Vec<Run>,
}

impl Past {
    /// Keeps pieces that are no longer shown.
    pub(super) fn push(&mut self, mut pieces: Vec<Ended>) {
        if pieces.is_empty() {
            return;
        }
        while let Some(last) = self.runs.pop_if(|run| run.pieces.len() <= 2 * pieces.len()) {
            pieces.extend(last.pieces);
        }
        self.runs.push(Run::of(pieces));
    }

    /// All of them, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Ended> {
        self.runs.iter().flat_map(|run| &run.pieces)
    }

    /// The piece that is shown at a time, at a revision.
    pub(super) fn at(&self, time: u64, revision: Revision) -> Option<Piece> {
        let mut found = None;
        self.shown(time, time, revision, &mut |piece| found = Some(piece));
        found
    }

    /// The pieces that are shown at some time of `first..=last`, at a revision, in no order.
    pub(super) fn shown(
        &self,
        first: u64,
        last: u64,
        revision: Revision,
        each: &mut dyn FnMut(Piece),
    ) {
        for run in &self.runs {
            run.visit(&mut |bounds| bounds.may_show(first, last, revision), &mut |ended| {
                each(ended.piece);
            });
        }
    }

    /// The first time after `time`, `before` at most, from which on a piece is shown at a revision.
    pub(super) fn next(&self, time: u64, before: u64, revision: Revision) -> u64 {
        let next = std::cell::Cell::new(before);
        for run in &self.runs {
            let is_wanted = |bounds: Bounds| {
                bounds.since < next.get() && bounds.may_show(time, u64::MAX, revision)
            };
            run.visit(&mut |bounds| is_wanted(bounds), &mut |ended| {
                if ended.piece.since > time {
                    next.set(next.get().min(ended.piece.since));
                }
            });
        }
        next.get()
    }

    /// The last revision, `revision` at most, from which on something of `first..=last` was no
    /// longer shown.
    pub(super) fn ended(&self, first: u64, last: u64, revision: Revision) -> Revision {
        let best = std::cell::Cell::new(0);
        for run in &self.runs {
            let wants = |bounds: Bounds| bounds.meets(first, last) && bounds.to > best.get();
            run.visit(&mut { wants }, &mut |ended| {
                if ended.to <= revision {
                    best.set(ended.to);
                }
            });
        }
        best.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pieces_are_found_at_their_times_and_revisions_only() {
        // Open intervals, each of which the next has cut: long ones, of which every time has many.
        let mut past = Past::default();
        let last = 5_000;
        for n in 1..last {
            let piece = Piece { since: 10 * n, until: u64::MAX, object: n as u32, from: n };
            past.push(vec![Ended { piece, to: n + 1 }]);
        }
        for n in 1..last {
            let found = past.at(10 * last, n).expect("shown then");
            assert_eq!((found.since, found.object), (10 * n, n as u32));
            assert_eq!(past.at(10 * n - 1, n), None);
            assert_eq!(past.ended(10 * last, 10 * last, n), if n == 1 { 0 } else { n });
        }
        let mut blocks = 0;
        for run in &past.runs {
            let mut wants = |bounds: Bounds| {
                blocks += 1;
                bounds.may_show(10 * last, 10 * last, 2_500)
            };
            run.visit(&mut wants, &mut |_| {});
        }
        assert!(blocks < 300, "{blocks} blocks and pieces of {last} were looked at");
    }
}
