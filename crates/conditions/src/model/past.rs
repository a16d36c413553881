//! Pieces that are no longer shown, each a rectangle: an interval of times, and one of revisions.
//!
//! They are kept as runs whose sizes double, each sorted by time, with bounds of 16 pieces, of 16
//! such bounds, and so on: what doesn't meet a question's time and revision is passed by whole
//! blocks, so a long interval costs only where it is asked for.

use super::piece::{Piece, Revision};

/// Pieces or bounds in a block.
const BLOCK: usize = 16;

/// A piece and the revision from which on it is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) piece: Piece,
    pub(super) to: Revision,
}

/// Bounds of a block: every piece in it lies within.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) from: Revision,
    pub(super) to: Revision,
}

impl Bounds {
    fn of(ended: &Ended) -> Self {
        let Piece { since, until, from, .. } = ended.piece;
        Self { since, until, from, to: ended.to }
    }

    fn and(self, other: Self) -> Self {
        Self {
            since: self.since.min(other.since),
            until: self.until.max(other.until),
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }

    /// Whether a piece within may be shown at a time of `first..=last`, at `revision`.
    fn may_show(self, first: u64, last: u64, revision: Revision) -> bool {
        self.since <= last && self.until > first && self.from <= revision && revision < self.to
    }
}

#[derive(Debug)]
struct Run {
    pieces: Vec<Ended>,
    /// The bounds of blocks of pieces, then of blocks of those, and so on.
    levels: Vec<Vec<Bounds>>,
}

impl Run {
    fn of(mut pieces: Vec<Ended>) -> Self {
        pieces.sort_unstable_by_key(|ended| (ended.piece.since, ended.piece.from));
        let mut levels: Vec<Vec<Bounds>> = Vec::new();
        let mut below: Vec<Bounds> = pieces.iter().map(Bounds::of).collect();
        while below.len() > BLOCK {
            let both = |block: &[Bounds]| block.iter().copied().reduce(Bounds::and);
            below = below.chunks(BLOCK).filter_map(both).collect();
            levels.push(below.clone());
        }
        Self { pieces, levels }
    }

    /// Hands on every piece in blocks whose bounds are wanted.
    fn visit(&self, wants: &mut dyn FnMut(Bounds) -> bool, each: &mut dyn FnMut(&Ended)) {
        let top = self.levels.last().map_or(self.pieces.len(), Vec::len);
        self.descend(self.levels.len(), 0..top, wants, each);
    }

    fn descend(
        &self,
        level: usize,
        places: std::ops::Range<usize>,
        wants: &mut dyn FnMut(Bounds) -> bool,
        each: &mut dyn FnMut(&Ended),
    ) {
        let Some(bounds) = level.checked_sub(1).map(|below| &self.levels[below]) else {
            self.pieces[places].iter().filter(|ended| wants(Bounds::of(ended))).for_each(each);
            return;
        };
        let below = if level == 1 { self.pieces.len() } else { self.levels[level - 2].len() };
        for place in places {
            if wants(bounds[place]) {
                let inside = place * BLOCK..below.min((place + 1) * BLOCK);
                self.descend(level - 1, inside, wants, each);
            }
        }
    }
}

/// The pieces of one channel that are no longer shown.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Each more than twice as long as the next.
    runs: Vec<Run>,
}

impl Past {
    /// Keeps a piece that is shown at revisions before `to`.
    pub(super) fn push(&mut self, piece: Piece, to: Revision) {
        let mut pieces = vec![Ended { piece, to }];
        while let Some(last) = self.runs.pop_if(|run| run.pieces.len() <= 2 * pieces.len()) {
            pieces.extend(last.pieces);
        }
        self.runs.push(Run::of(pieces));
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

    /// The last revision, `revision` at most, from which on something of `first..=last` was no
    /// longer shown.
    pub(super) fn ended(&self, first: u64, last: u64, revision: Revision) -> Revision {
        let best = std::cell::Cell::new(0);
        for run in &self.runs {
            let covers = |bounds: Bounds| bounds.since <= last && bounds.until > first;
            run.visit(&mut |bounds| covers(bounds) && bounds.to > best.get(), &mut |ended| {
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
            past.push(piece, n + 1);
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
