//! What the head, or a tag of users, of one folder shows: what is sealed, and what came since.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::base::Base;
use super::past::Bounds;
use super::piece::{Around, Piece, Revision};
use super::segment::{Damage, Segment};
use super::timeline::{self, Recent, Timeline};

/// What is sealed, and what came since, by channel.
#[derive(Debug)]
pub(super) struct View {
    pub(super) base: Base,
    recent: BTreeMap<u32, Timeline>,
    /// The first time of which `recent` has anything: before it, what is sealed is all there is.
    recent_since: u64,
    /// How many objects it has, of how many rows, without regard to what has replaced them.
    recent_size: (u64, u64),
    /// About how many bytes are read where all of it is.
    recent_bytes: u64,
}

impl Default for View {
    fn default() -> Self {
        Self::over(Base::default())
    }
}

/// Where a piece's object is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// In memory, by its number.
    Recent(u32),
    /// In a segment, by the number of the piece.
    Sealed(&'a Arc<Segment>, usize),
}

/// A piece that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) from: Revision,
    pub(super) place: Place<'a>,
    /// The first of its rows and their number, where that is known without a look.
    pub(super) rows: Option<(u32, u32)>,
}

impl From<Piece> for Found<'_> {
    fn from(Piece { since, until, object, from }: Piece) -> Self {
        Self { since, until, from, place: Place::Recent(object), rows: None }
    }
}

impl<'a> Found<'a> {
    pub(super) fn sealed(segment: &'a Arc<Segment>, piece: usize) -> Self {
        let (since, until) = (segment.since(piece), segment.until(piece));
        let (place, rows) = (Place::Sealed(segment, piece), Some(segment.rows_of(piece)));
        Self { since, until, from: segment.from(piece), place, rows }
    }

    /// That of a channel some places after this one's, each of which has as many pieces and is like
    /// the one before.
    fn alike(self, places: usize, pieces: usize) -> Self {
        let place = match self.place {
            Place::Sealed(segment, piece) => Place::Sealed(segment, piece + places * pieces),
            place => place,
        };
        let rows = self.rows.map(|(first, records)| (first + records * places as u32, records));
        Self { place, rows, ..self }
    }

    fn is_of(&self, segment: &Arc<Segment>, piece: usize) -> bool {
        let Place::Sealed(own, place) = self.place else { return false };
        Arc::ptr_eq(own, segment) && place == piece
    }

    fn is_same(&self, other: &Found<'_>) -> bool {
        let bounds = |found: &Found<'_>| (found.since, found.until, found.from);
        bounds(self) == bounds(other)
    }

    /// What is past of a piece, or of the object that it is left of.
    pub(super) fn past(segment: &'a Arc<Segment>, piece: usize) -> Self {
        let Bounds { since, until, from, .. } = segment.bounds(piece);
        let (place, rows) = (Place::Sealed(segment, piece), Some(segment.rows_of(piece)));
        Self { since, until, from, place, rows }
    }
}

impl View {
    /// What is sealed, without anything since.
    pub(super) fn over(base: Base) -> Self {
        Self {
            base,
            recent: BTreeMap::new(),
            recent_since: u64::MAX,
            recent_size: (0, 0),
            recent_bytes: 0,
        }
    }

    /// What came since, by channel.
    pub(super) fn recent(&self) -> &BTreeMap<u32, Timeline> {
        &self.recent
    }

    /// About how many bytes are read where all that came since is.
    pub(super) fn recent_bytes(&self) -> u64 {
        self.recent_bytes
    }

    /// Counts an object that comes to what came since.
    pub(super) fn count(&mut self, records: u32) {
        self.recent_size.0 += 1;
        self.recent_size.1 += u64::from(records);
    }

    /// Counts as many bytes of what came since.
    pub(super) fn count_bytes(&mut self, bytes: u64) {
        self.recent_bytes = self.recent_bytes.saturating_add(bytes);
    }

    /// How many objects there are about a time, of how many rows: those of the block that it lies
    /// in, and all that came since.
    pub(super) fn about(&self, time: u64) -> (u64, u64) {
        let (objects, rows) = self.recent_size;
        let block = self.base.place(time).map(|place| &self.base.blocks[place]);
        // What is damaged is refused.
        let segment = block.and_then(|block| block.part.segment.as_ref().ok());
        segment.map_or((objects, rows), |segment| {
            (objects + segment.pieces() as u64, rows + u64::from(segment.rows()))
        })
    }

    /// Takes in a piece of a channel, where nothing came since.
    pub(super) fn take_in(&mut self, channel: u32, piece: Piece) {
        self.recent_since = self.recent_since.min(piece.since);
        self.recent.entry(channel).or_default().take_in(piece);
    }

    /// Shows a piece of a channel, after the sealed ones that it meets have been taken in. Returns
    /// the times whose answers are others from then on.
    pub(super) fn cover(&mut self, channel: u32, piece: Piece) -> Range<u64> {
        self.recent_since = self.recent_since.min(piece.since);
        self.recent.entry(channel).or_default().cover(piece)
    }

    /// All channels that may show something.
    pub(super) fn channels(&self) -> Result<BTreeSet<u32>, Damage> {
        let mut channels: BTreeSet<u32> = self.recent.keys().copied().collect();
        for part in self.base.parts() {
            let segment = part.segment()?;
            channels.extend((0..segment.channels()).map(|place| segment.number(place)));
        }
        Ok(channels)
    }

    /// What all channels show at one time.
    pub(super) fn moment(&self, time: u64, revision: Revision) -> Moment<'_> {
        let block = self.base.place(time);
        // Where nothing came since that concerns the time, no channel is looked up there.
        let ahead = if time < self.recent_since { None } else { Some(Ahead::of(&self.recent)) };
        Moment {
            view: self,
            block,
            time,
            revision,
            last: Cell::default(),
            near: Cell::default(),
            ahead: ahead.map(RefCell::new),
        }
    }

    /// The pieces of a channel that are shown at some time of `first..=last`, in their order.
    pub(super) fn range(
        &self,
        channel: u32,
        range: (u64, u64),
        revision: Revision,
    ) -> Result<Vec<Found<'_>>, Damage> {
        self.range_begin(channel, range, revision, usize::MAX)
    }

    /// The first `most` of them at least: of what comes then, some may be missing.
    pub(super) fn range_begin(
        &self,
        channel: u32,
        (first, mut last): (u64, u64),
        revision: Revision,
        most: usize,
    ) -> Result<Vec<Found<'_>>, Damage> {
        let (recent, mut found) = (self.recent.get(&channel), Vec::new());
        let mut cut = None;
        self.base.visit(channel, (first, last), &mut |segment, piece| {
            let one = Found::sealed(segment, piece);
            if one.from <= revision && !recent.is_some_and(|recent| recent.covers(one.since)) {
                cut = (found.len() + 1 == most).then_some(one.since);
                found.push(one);
            }
            if cut.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        last = cut.map_or(last, |cut| cut.max(first));
        let pieces = recent.map(|recent| recent.range(first, last, revision, most));
        found.extend(pieces.unwrap_or_default().into_iter().map(Found::from));
        let mut once = |segment, piece| found.push(Found::past(segment, piece));
        self.base.shown_once(channel, (first, last), revision, &mut once)?;
        found.sort_unstable_by_key(|found| found.since);
        Ok(found)
    }

    /// The sealed pieces of a channel that meet `since..until` and that nothing that came since
    /// has replaced.
    pub(super) fn untouched(
        &self,
        channel: u32,
        (since, until): (u64, u64),
        most: usize,
    ) -> Result<Vec<Found<'_>>, Damage> {
        let (recent, mut found) = (self.recent.get(&channel), Vec::new());
        let Some(last) = until.checked_sub(1) else { return Ok(found) };
        self.base.visit(channel, (since, last), &mut |segment, piece| {
            if !recent.is_some_and(|recent| recent.covers(segment.since(piece))) {
                found.push(Found::sealed(segment, piece));
            }
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    /// The sealed piece of a channel that a piece is, unchanged.
    pub(super) fn sealed(
        &self,
        channel: u32,
        found: &Found<'_>,
    ) -> Result<Option<(&Arc<Segment>, usize)>, Damage> {
        let mut same = None;
        self.base.visit(channel, (found.since, found.since), &mut |segment, piece| {
            let sealed = Found::sealed(segment, piece);
            same = sealed.is_same(found).then_some((segment, piece));
            ControlFlow::Break(())
        })?;
        Ok(same)
    }

    /// The first two pieces of a channel, as shown now, that meet `since..until`.
    pub(super) fn first_two(
        &self,
        channel: u32,
        (since, until): (u64, u64),
    ) -> Result<Vec<(u64, u64)>, Damage> {
        let sealed = self.untouched(channel, (since, until), 2)?;
        let mut found: Vec<_> = sealed.iter().map(|found| (found.since, found.until)).collect();
        if let Some(recent) = self.recent.get(&channel) {
            found.extend(recent.first_two(since, until).map(|piece| (piece.since, piece.until)));
        }
        found.sort_unstable();
        found.truncate(2);
        Ok(found)
    }
}

/// The last channel that was found in a block.
#[derive(Clone, Copy, Debug, Default)]
struct Last<'a> {
    /// The place of the channel after it.
    next: usize,
    /// How many pieces it has, and the one that was found of them.
    pieces: usize,
    offset: usize,
    found: Option<Found<'a>>,
}

/// What came since the last seal, by channel: asked for in their order, it is passed once.
#[derive(Debug)]
struct Ahead<'a> {
    all: &'a BTreeMap<u32, Timeline>,
    /// From the channel `from` on, `next` is the first that has anything.
    from: u32,
    next: Option<(u32, &'a Timeline)>,
    rest: btree_map::Range<'a, u32, Timeline>,
}

impl<'a> Ahead<'a> {
    fn of(all: &'a BTreeMap<u32, Timeline>) -> Self {
        let mut rest = all.range(..);
        let next = rest.next().map(|(channel, timeline)| (*channel, timeline));
        Self { all, from: 0, next, rest }
    }

    /// The first channel from this one on that has anything.
    fn first(&mut self, channel: u32) -> Option<(u32, &'a Timeline)> {
        let is_here = |next: Option<(u32, _)>| next.is_none_or(|(next, _)| next >= channel);
        if channel >= self.from && !is_here(self.next) {
            // It is the next one where they are asked for in order.
            self.next = self.rest.next().map(|(channel, timeline)| (*channel, timeline));
        }
        if channel < self.from || !is_here(self.next) {
            self.rest = self.all.range(channel..);
            self.next = self.rest.next().map(|(channel, timeline)| (*channel, timeline));
        }
        self.from = channel;
        self.next
    }
}

/// What all channels show at one time and revision.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    view: &'a View,
    /// The block that the time lies in.
    block: Option<usize>,
    time: u64,
    revision: Revision,
    /// What is sealed of the last channel: channels are asked for in order, and often begin
    /// together.
    last: Cell<Last<'a>>,
    /// Where the last channel's piece was of what isn't sealed.
    near: Cell<timeline::Place>,
    /// What isn't sealed, where any of it concerns the time.
    ahead: Option<RefCell<Ahead<'a>>>,
}

impl<'a> Moment<'a> {
    /// What a channel shows.
    pub(super) fn at(&self, channel: u32) -> Result<Option<Found<'a>>, Damage> {
        match self.recent(channel) {
            Recent::Shown(piece) => return Ok(piece.map(Found::from)),
            Recent::Later => {}
            Recent::Unknown => {
                let is_shown = |found: &Found<'_>| found.until > self.time;
                match self.before(channel)?.filter(is_shown) {
                    Some(found) if found.from <= self.revision => return Ok(Some(found)),
                    _ => {}
                }
            }
        }
        let mut found = None;
        let mut once = |segment, piece| found = Some(Found::past(segment, piece));
        let at = (self.time, self.time);
        self.view.base.shown_once(channel, at, self.revision, &mut once)?;
        Ok(found)
    }

    /// Passes the channels after the one that was asked for last that are like it, and show what
    /// was `found` of it, up to the first that is not `taken`.
    pub(super) fn pass_alike(&self, found: &Found<'_>, mut taken: impl FnMut(u32) -> bool) {
        let Last { next, pieces, offset, found: last } = self.last.get();
        let Some(last_found) = last else { return };
        let Place::Sealed(segment, piece) = last_found.place else { return };
        // What is past of a piece may be another for each: its object is not compared.
        if next == 0 || !found.is_of(segment, piece) || !found.is_same(&last_found) {
            return;
        }
        // The next one that something came of may show something else.
        let other = self.first_recent(segment.number(next - 1).saturating_add(1));
        let other = other.map_or(u32::MAX, |(channel, _)| channel);
        let mut passed = next;
        while segment.is_alike(passed) {
            let channel = segment.number(passed);
            if channel >= other || !taken(channel) {
                break;
            }
            passed += 1;
        }
        let found = last.map(|found| found.alike(passed - next, pieces));
        self.last.set(Last { next: passed, pieces, offset, found });
    }

    /// From where on a channel shows nothing else, and up to where. `since` is a function of the
    /// pieces at the revision where one is found. In a gap it may be later than it could be: where
    /// later revisions have pieces before it, or a block begins.
    pub(super) fn around(&self, channel: u32) -> Result<Around, Damage> {
        if let Some(Found { since, until, from, .. }) = self.at(channel)? {
            return Ok(Around { since, until, from });
        }
        let (time, revision) = (self.time, self.revision);
        let (since, from) = self.gap(channel)?;
        let best = Cell::new(from);
        self.view.base.visit_past(
            channel,
            &mut |bounds| bounds.meets(since, time) && bounds.to > best.get(),
            &mut |segment, piece| {
                let to = segment.bounds(piece).to;
                if to <= revision {
                    best.set(to);
                }
            },
        )?;
        Ok(Around { since, until: self.gap_end(channel)?, from: best.get() })
    }

    /// From where on a channel shows nothing else, and up to where, as [`Moment::around`] has it,
    /// but not since which revision. Unlike that, it looks at one block, unless an earlier revision
    /// than the last seal's is asked.
    pub(super) fn times(&self, channel: u32) -> Result<(u64, u64), Damage> {
        match self.at(channel)? {
            Some(Found { since, until, .. }) => Ok((since, until)),
            None => Ok((self.gap(channel)?.0, self.gap_end(channel)?)),
        }
    }

    /// From where on a channel shows nothing, in a gap, as [`Moment::around`] has it. Unlike that,
    /// it looks at one block, unless an earlier revision than the last seal's is asked.
    pub(super) fn gap_begin(&self, channel: u32) -> Result<u64, Damage> {
        Ok(self.gap(channel)?.0)
    }

    /// That, and from which revision on what isn't sealed shows nothing there.
    fn gap(&self, channel: u32) -> Result<(u64, Revision), Damage> {
        let (view, time, revision) = (self.view, self.time, self.revision);
        let recent = self.timeline(channel);
        let (mut since, from) = recent.map_or((0, 0), |recent| recent.gap(time, revision));
        if let Some(block) = self.block {
            let near = self.before(channel)?.map(
                |Found { since, until, .. }| {
                    if until <= time { until } else { since }
                },
            );
            since = since.max(near.unwrap_or(view.base.blocks[block].since));
        }
        let mut once = Vec::new();
        view.base.shown_once(channel, (since, time), revision, &mut |segment, piece| {
            once.push(segment.bounds(piece).until);
        })?;
        Ok((once.into_iter().fold(since, u64::max), from))
    }

    /// Of a gap: a time up to which nothing is shown.
    fn gap_end(&self, channel: u32) -> Result<u64, Damage> {
        let (base, time, revision) = (&self.view.base, self.time, self.revision);
        if revision < base.through {
            // What is past of what is sealed is in order of its beginning only in parts.
            return Ok(time.saturating_add(1));
        }
        let recent = self.view.recent.get(&channel);
        let end = recent.map_or(u64::MAX, |recent| recent.gap_end(time, revision));
        let Some(block) = self.block else { return Ok(end) };
        let segment = base.blocks[block].part.segment()?;
        let Some(place) = segment.place(channel, usize::MAX) else {
            return Ok(end.min(base.end(block)));
        };
        let pieces = segment.pieces_of(place);
        let before = segment.before(pieces.clone(), time, 0);
        let next = before.map_or(pieces.start, |before| before + 1);
        let next = pieces.contains(&next).then(|| segment.since(next));
        // What begins where the block ends lies in the next one, as it is by now.
        Ok(end.min(next.unwrap_or(u64::MAX)).min(base.end(block)))
    }

    /// The first channel from this one on of which something came since that may concern the time.
    fn first_recent(&self, channel: u32) -> Option<(u32, &'a Timeline)> {
        self.ahead.as_ref()?.borrow_mut().first(channel)
    }

    fn timeline(&self, channel: u32) -> Option<&'a Timeline> {
        let (first, timeline) = self.first_recent(channel)?;
        (first == channel).then_some(timeline)
    }

    fn recent(&self, channel: u32) -> Recent {
        match self.timeline(channel) {
            Some(recent) => recent.at(self.time, self.revision, &self.near),
            None => Recent::Unknown,
        }
    }

    /// The last sealed piece of a channel that starts at the time or before, of those in the block.
    fn before(&self, channel: u32) -> Result<Option<Found<'a>>, Damage> {
        let Some(block) = self.block else { return Ok(None) };
        let segment = self.view.base.blocks[block].part.segment()?;
        let Last { next, pieces, offset, found } = self.last.get();
        let Some(place) = segment.place(channel, next) else { return Ok(None) };
        let last = if place == next && segment.is_alike(place) {
            let found = found.map(|found| found.alike(1, pieces));
            Last { next: place + 1, pieces, offset, found }
        } else {
            let within = segment.pieces_of(place);
            let piece = segment.before(within.clone(), self.time, offset);
            let offset = piece.map_or(0, |piece| piece - within.start);
            let found = piece.map(|piece| Found::sealed(segment, piece));
            Last { next: place + 1, pieces: within.len(), offset, found }
        };
        self.last.set(last);
        Ok(last.found)
    }
}
