//! Sealing: what came since the last time is put into segments, as it was at one revision, while
//! the state goes on.
//!
//! [`State::seal`] plans it, [`State::begin_seal`] begins it. [`Seal::next`] then returns one
//! segment after another, which the caller stores and hands back as [`Seal::stored`]; each is made
//! from the state as it is by then, which still has all that it had at that revision. When all are
//! durable and a snapshot that names them is, too ([`Seal::records`]), [`State::rebuild`] puts what
//! came meanwhile over them and [`State::end_seal`] goes on with that.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::base::{Base, Block, Part, Unit};
use super::contents::Contents;
use super::error::Refusal;
use super::folder::Folder;
use super::past::Bounds;
use super::piece::{MAX_TIME, Revision};
use super::segment::{Damage, Entry, Segment, SegmentKind, SegmentOf, encode};
use super::snapshot;
use super::state::State;
use super::view::{Found, Place, View};

/// A block gets about this many bytes. A change of a block writes all of it anew, which speaks for
/// small ones, and each is a file and a mapping, of which a process may have 65,530: 250 GB.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// About what a piece takes in a block beside its payload.
const PIECE_BYTES: u64 = 16;

/// Segments of the past are put together up to this size: one is made in memory, about 200 bytes a
/// piece.
const PAST_BYTES: u64 = 64 << 20;
const PAST_PIECES: usize = 1 << 20;

/// A seal under way.
#[derive(Debug)]
pub struct Seal {
    revision: Revision,
    first_id: u64,
    next_id: u64,
    block_bytes: u64,
    /// The state without its data, as a snapshot has it.
    records: Vec<Vec<u8>>,
    /// The folders that are sealed, with how many columns they had.
    folders: BTreeMap<usize, usize>,
    /// What is sealed of every folder: by the last seals until this one has come to it.
    bases: BTreeMap<Unit, Base>,
    units: VecDeque<Unit>,
    current: Option<Progress>,
}

/// A segment to be stored.
#[derive(Debug)]
pub struct Made {
    /// Its number, by which it is named.
    pub id: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
struct Progress {
    unit: Unit,
    blocks: VecDeque<Slot>,
    is_past_made: bool,
    base: Base,
    waits: Option<Waits>,
}

/// A block that stays, or that is made for these times.
#[derive(Debug)]
enum Slot {
    Keep(Block),
    Make(u64, u64),
}

/// What is being stored: the block from a time on, or what comes after these segments of the past.
#[derive(Debug)]
enum Waits {
    Block(u64),
    Past(Vec<Arc<Part>>),
}

/// The data of folders over what was sealed.
#[derive(Debug)]
pub struct Rebuilt(Vec<(usize, Contents)>);

impl State {
    /// About how many bytes of data are in memory only.
    pub fn unsealed_bytes(&self) -> u64 {
        self.folders.iter().map(|folder| folder.contents.unsealed_bytes()).sum()
    }

    /// What seals all that came so far, in blocks of about this size.
    ///
    /// # Errors
    /// When changes are unknown because a segment is damaged: what is not sealed is all there is
    /// of them.
    pub fn seal(&self, block_bytes: u64) -> Result<Seal, Damage> {
        let (mut folders, mut bases) = (BTreeMap::new(), BTreeMap::new());
        for (place, folder) in self.folders.iter().enumerate() {
            folder.contents.check_known()?;
            for (tag, view) in folder.contents.views() {
                bases.insert((place, tag), view.base.clone());
            }
            if folder.contents.unsealed_bytes() > 0 {
                folders.insert(place, folder.columns().len());
            }
        }
        let is_sealed = |unit: &&Unit| folders.contains_key(&unit.0);
        let units = bases.keys().filter(is_sealed).copied().collect();
        let records = snapshot::records(self);
        let (revision, first_id, current) = (self.revision(), self.next_segment, None);
        #[rustfmt::skip]
        let seal = Seal {
            revision, first_id, next_id: first_id, block_bytes, records, folders, bases, units,
            current,
        };
        Ok(seal)
    }

    /// Begins a seal, before any further change is made. One at a time is under way.
    pub fn begin_seal(&mut self, seal: &Seal) {
        seal.folders.keys().for_each(|place| self.folders[*place].begin_seal());
    }

    /// The data over what was sealed, with what changed it meanwhile. No change may be made between
    /// this and [`State::end_seal`].
    pub fn rebuild(&self, seal: &Seal) -> Rebuilt {
        let rebuilt = seal.folders.iter().map(|(place, columns)| {
            let bases = seal.bases.range((*place, None)..(*place + 1, None));
            let bases = bases.map(|((_, tag), base)| (*tag, base.clone()));
            (*place, self.folders[*place].rebuilt(*columns, bases))
        });
        Rebuilt(rebuilt.collect())
    }

    /// Ends a seal: goes on with what was rebuilt, or as if it had not begun. Returns what is no
    /// longer needed, to be dropped where that may take a while.
    pub fn end_seal(&mut self, seal: &Seal, rebuilt: Option<Rebuilt>) -> impl Sized + use<> {
        self.next_segment = seal.next_id;
        let rebuilt = rebuilt.map(|rebuilt| rebuilt.0).unwrap_or_default();
        let mut rebuilt: BTreeMap<usize, Contents> = rebuilt.into_iter().collect();
        let end = |place: &usize| self.folders[*place].end_seal(rebuilt.remove(place));
        seal.folders.keys().map(end).collect::<Vec<_>>()
    }

    /// The numbers of all segments.
    pub fn segments(&self) -> BTreeSet<u64> {
        let views = self.folders.iter().flat_map(|folder| folder.contents.views());
        views.flat_map(|(_, view)| view.base.parts()).map(|part| part.id).collect()
    }

    /// What is damaged: segments that could not be opened, or `all` of their bytes.
    pub fn damages(&self, all: bool) -> Vec<Damage> {
        let views = self.folders.iter().flat_map(|folder| folder.contents.views());
        let parts = views.flat_map(|(_, view)| view.base.parts());
        let damages = parts.flat_map(|part| match &part.segment {
            Ok(segment) if all => segment.check(),
            Ok(_) => Vec::new(),
            Err(damage) => vec![damage.clone()],
        });
        damages.collect()
    }

    fn unit(&self, (place, tag): Unit) -> Option<(&Folder, &View)> {
        let folder = self.folders.get(place)?;
        Some((folder, folder.contents.view(tag)?))
    }
}

impl Seal {
    /// The revision through which everything is sealed.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The number of the first segment that it makes: none before has it or a later one.
    pub fn first(&self) -> u64 {
        self.first_id
    }

    /// Makes the next segment; `None` when all are stored. The state has to be the one that was
    /// to be sealed, with any changes since.
    ///
    /// # Errors
    /// When a segment that has to be written anew is damaged.
    pub fn next(&mut self, state: &State) -> Result<Option<Made>, Refusal> {
        loop {
            let Some(now) = &mut self.current else {
                let Some(unit) = self.units.pop_front() else { return Ok(None) };
                let Some((folder, view)) = state.unit(unit) else { continue };
                let blocks = plan(folder, view, self.revision, self.block_bytes)?;
                let (through, past) = (self.revision, view.base.past.clone());
                let base = Base { through, blocks: Vec::new(), past };
                let (is_past_made, waits) = (false, None);
                self.current = Some(Progress { unit, blocks, is_past_made, base, waits });
                continue;
            };
            let Some((folder, view)) = state.unit(now.unit) else { return Ok(None) };
            let (id, tag) = (self.next_id, now.unit.1.unwrap_or(0));
            let of = |kind, since, until| SegmentOf {
                kind,
                id,
                folder: folder.made(),
                tag,
                since,
                until,
            };
            let (of, pieces) = match now.blocks.pop_front() {
                Some(Slot::Keep(block)) => {
                    now.base.blocks.push(block);
                    continue;
                }
                Some(Slot::Make(since, until)) => {
                    now.waits = Some(Waits::Block(since));
                    let pieces = block(folder, view, (since, until - 1), self.revision)?;
                    (of(SegmentKind::Block, since, until), pieces)
                }
                None if !now.is_past_made => {
                    now.is_past_made = true;
                    let found = past(folder, view, &now.base, self.revision)?;
                    let Some((kept, pieces)) = found else { continue };
                    now.waits = Some(Waits::Past(kept));
                    (of(SegmentKind::Past, 0, 0), pieces)
                }
                None => {
                    self.bases.extend(self.current.take().map(|done| (done.unit, done.base)));
                    continue;
                }
            };
            self.next_id += 1;
            return Ok(Some(Made { id, bytes: write(folder, &of, &pieces, self.revision)? }));
        }
    }

    /// Takes in the segment that was made last, once its bytes are durable.
    ///
    /// # Errors
    /// When they aren't those that were made.
    pub fn stored(&mut self, id: u64, bytes: Bytes) -> Result<(), Damage> {
        let size = bytes.len() as u64;
        let segment = Segment::open(id, bytes)?;
        let (checksum, segment) = (segment.checksum(), Ok(Arc::new(segment)));
        let part = Arc::new(Part { id, bytes: size, checksum, segment });
        if let Some(now) = &mut self.current {
            match now.waits.take() {
                Some(Waits::Block(since)) => now.base.blocks.push(Block { since, part }),
                Some(Waits::Past(kept)) => {
                    now.base.past = kept;
                    now.base.past.push(part);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The records of a snapshot that stands for all changes through [`Seal::revision`].
    pub fn records(&self) -> Vec<Vec<u8>> {
        let mut records = self.records.clone();
        records.extend(snapshot::base_records(&self.bases, self.next_id));
        records
    }

    /// The numbers of all segments that the snapshot names.
    pub fn segments(&self) -> BTreeSet<u64> {
        self.bases.values().flat_map(Base::parts).map(|part| part.id).collect()
    }
}

/// The blocks of a view: those that nothing has changed since, and new ones of about the same size.
fn plan(
    folder: &Folder,
    view: &View,
    revision: Revision,
    block_bytes: u64,
) -> Result<VecDeque<Slot>, Damage> {
    let (mut slots, blocks) = (VecDeque::new(), &view.base.blocks);
    let extents = || view.recent.values().flat_map(|recent| recent.extents());
    let Some(last) = blocks.last() else {
        if extents().next().is_some() {
            split(folder, view, (0, u64::MAX), revision, block_bytes, &mut slots)?;
        }
        return Ok(slots);
    };
    let mut touched = BTreeSet::new();
    for (since, until) in extents() {
        let (first, last) = (view.base.place(since), view.base.place(until.saturating_sub(1)));
        touched.extend(first.unwrap_or(0)..=last.unwrap_or(0));
    }
    let mut tail = (blocks.len(), None);
    if touched.remove(&(blocks.len() - 1)) {
        let in_last = extents().filter(|(_, until)| *until > last.since);
        let new = in_last.map(|(since, _)| since).min().unwrap_or(0).max(last.since);
        tail = self::tail(folder, view, (new, &touched), revision, block_bytes)?;
    }
    for (place, block) in blocks.iter().enumerate().take(tail.0) {
        match touched.contains(&place) {
            false => slots.push_back(Slot::Keep(block.clone())),
            true => {
                let range = (block.since, view.base.end(place));
                split(folder, view, range, revision, block_bytes, &mut slots)?;
            }
        }
    }
    if let Some(since) = tail.1 {
        split(folder, view, (since, u64::MAX), revision, block_bytes, &mut slots)?;
    }
    Ok(slots)
}

/// How many blocks stay before what is new from a time on, which lies in the last one, and from
/// where on all is written anew.
///
/// What is new begins a block of its own, with those before it that are at most half again as
/// large: so a row is written again only with two thirds as much that came since, which is about
/// half as often as what a seal brings has to be doubled to make half of a block. Larger ones stay
/// as they are, but for those of which more goes on than begins in them: that would be there once
/// more.
fn tail(
    folder: &Folder,
    view: &View,
    (new, touched): (u64, &BTreeSet<usize>),
    revision: Revision,
    block_bytes: u64,
) -> Result<(usize, Option<u64>), Damage> {
    let bytes = |found: &Found<'_>| PIECE_BYTES + folder.contents.payload_bytes(found.place);
    let (mut begin, mut count, mut behind) = (new, view.base.blocks.len(), 0_u64);
    for (_, found) in shown(view, (new, u64::MAX - 1), revision)? {
        behind += if found.since >= new { bytes(&found) } else { 0 };
    }
    while let Some(place) = count.checked_sub(1).filter(|place| !touched.contains(place)) {
        let since = view.base.blocks[place].since;
        if since < begin {
            let (mut own, mut carried) = (0_u64, 0_u64);
            for (_, found) in shown(view, (since, begin - 1), revision)? {
                own += if found.since >= since { bytes(&found) } else { 0 };
                carried += if found.until > begin { bytes(&found) } else { 0 };
            }
            if own >= carried && (own > behind.saturating_mul(3) / 2 || own >= block_bytes / 2) {
                break;
            }
            behind = behind.saturating_add(own);
        }
        (begin, count) = (since, place);
    }
    Ok((count, Some(begin)))
}

/// Divides a range into blocks of about the same size.
///
/// What meets the beginning of a block is in it, too, so a block goes on until what begins in it is
/// as large: segments have at most about twice the bytes of the pieces.
fn split(
    folder: &Folder,
    view: &View,
    (since, until): (u64, u64),
    revision: Revision,
    block_bytes: u64,
    slots: &mut VecDeque<Slot>,
) -> Result<(), Damage> {
    let piece = |(_, found): &(u32, Found<'_>)| {
        let bytes: u64 = PIECE_BYTES + folder.contents.payload_bytes(found.place);
        (found.since, found.until, bytes)
    };
    let mut pieces: Vec<_> = shown(view, (since, until - 1), revision)?.iter().map(piece).collect();
    pieces.sort_unstable();
    let (mut begin, mut new, mut carried) = (since, 0_u64, 0_u64);
    for (number, (at, _, bytes)) in pieces.iter().enumerate() {
        if *at > begin && new >= block_bytes.max(carried) && pieces[number - 1].0 < *at {
            slots.push_back(Slot::Make(begin, *at));
            let goes_on = |(_, end, _): &&(u64, u64, u64)| end > at;
            let carries = pieces[..number].iter().filter(goes_on);
            carried = carries.fold(0, |sum: u64, (_, _, bytes)| sum.saturating_add(*bytes));
            (begin, new) = (*at, 0);
        }
        new = new.saturating_add(*bytes);
    }
    slots.push_back(Slot::Make(begin, until));
    Ok(())
}

/// What is shown at some time of a range, by channel and time.
fn shown(
    view: &View,
    (first, last): (u64, u64),
    revision: Revision,
) -> Result<Vec<(u32, Found<'_>)>, Damage> {
    let mut channels: BTreeSet<u32> = view.recent.keys().copied().collect();
    let begin = view.base.place(first).unwrap_or(0);
    for block in view.base.blocks[begin..].iter().take_while(|block| block.since <= last) {
        let segment = block.part.segment()?;
        channels.extend((0..segment.channels()).map(|place| segment.number(place)));
    }
    let mut pieces = Vec::new();
    for channel in channels {
        let found = view.range(channel, (first, last), revision)?;
        pieces.extend(found.into_iter().map(|found| (channel, found)));
    }
    Ok(pieces)
}

/// A piece to be written.
struct Piece<'a> {
    channel: u32,
    bounds: Bounds,
    place: Place<'a>,
    /// Whether its object was shown whole until it was cut: that is past, and no piece of its own.
    is_ended: bool,
}

/// The objects in memory that were shown whole until a revision cut them, with that revision.
fn cuts(folder: &Folder, view: &View, revision: Revision) -> HashMap<u32, Revision> {
    let ended = view.recent.values().flat_map(|recent| recent.ended(revision));
    let whole = ended.filter(|ended| {
        let object = folder.contents.inserted(Place::Recent(ended.piece.object));
        Bounds::of(ended) == Bounds::of_whole(object, ended.to)
    });
    whole.map(|ended| (ended.piece.object, ended.to)).collect()
}

/// Whether a piece is the beginning of what is left of an object that was cut then.
fn is_left(folder: &Folder, cuts: &HashMap<u32, Revision>, found: &Found<'_>) -> bool {
    let Place::Recent(object) = found.place else { return false };
    cuts.get(&object) == Some(&found.from)
        && folder.contents.inserted(found.place).since == found.since
}

/// What a block holds.
fn block<'a>(
    folder: &Folder,
    view: &'a View,
    range: (u64, u64),
    revision: Revision,
) -> Result<Vec<Piece<'a>>, Damage> {
    let (cuts, mut pieces) = (cuts(folder, view, revision), Vec::new());
    for (channel, found) in shown(view, range, revision)? {
        let Found { since, until, from, place } = found;
        // What began before is past in the block before.
        let is_ended = since >= range.0
            && (is_left(folder, &cuts, &found)
                || view.sealed(channel, &found)?.is_some_and(|(block, at)| block.is_ended(at)));
        let bounds = Bounds { since, until, from, to: u64::MAX };
        pieces.push(Piece { channel, bounds, place, is_ended });
    }
    Ok(pieces)
}

/// Segments that stay, and the pieces of one that comes after them.
type Past<'a> = (Vec<Arc<Part>>, Vec<Piece<'a>>);

/// What is past since the last seal and in none of the new blocks, with the smaller segments of the
/// past, and the larger ones, which stay; `None` where nothing is new.
fn past<'a>(
    folder: &Folder,
    view: &'a View,
    blocks: &Base,
    revision: Revision,
) -> Result<Option<Past<'a>>, Damage> {
    let (cuts, mut pieces) = (cuts(folder, view, revision), replaced(view, blocks, revision)?);
    for (channel, recent) in &view.recent {
        let shown = recent.range(0, MAX_TIME, revision).into_iter();
        let left = shown.filter(|piece| is_left(folder, &cuts, &Found::from(*piece)));
        let left: HashSet<(u32, Revision)> = left.map(|piece| (piece.object, piece.from)).collect();
        for ended in recent.ended(revision) {
            let (object, bounds) = (ended.piece.object, Bounds::of(ended));
            if !left.contains(&(object, ended.to)) {
                let place = Place::Recent(object);
                pieces.push(Piece { channel: *channel, bounds, place, is_ended: false });
            }
        }
    }
    if pieces.is_empty() {
        return Ok(None);
    }
    let mut kept = view.base.past.as_slice();
    while let Some((last, rest)) = kept.split_last() {
        let segment = last.segment()?;
        let is_large = last.bytes > PAST_BYTES || segment.pieces() > PAST_PIECES;
        if segment.pieces() > 2 * pieces.len() || is_large {
            break;
        }
        pieces
            .extend(segment.all_pieces().map(|(channel, piece)| past_of(channel, segment, piece)));
        kept = rest;
    }
    pieces.sort_unstable_by_key(|piece| (piece.channel, piece.bounds.since, piece.bounds.from));
    Ok(Some((kept.to_vec(), pieces)))
}

fn past_of(channel: u32, segment: &Arc<Segment>, piece: usize) -> Piece<'_> {
    let (bounds, place) = (segment.bounds(piece), Place::Sealed(segment, piece));
    Piece { channel, bounds, place, is_ended: false }
}

/// What is past in blocks that are replaced, of pieces that have changed since.
fn replaced<'a>(view: &'a View, new: &Base, revision: Revision) -> Result<Vec<Piece<'a>>, Damage> {
    let mut pieces = Vec::new();
    for (place, Block { since, part }) in view.base.blocks.iter().enumerate() {
        let kept = new.blocks.iter().position(|block| Arc::ptr_eq(&block.part, part));
        let gone = kept.map_or(*since, |kept| new.end(kept))..view.base.end(place);
        if gone.is_empty() {
            continue;
        }
        let segment = part.segment()?;
        for (channel, piece) in segment.all_pieces().filter(|(_, piece)| segment.is_ended(*piece)) {
            let found = Found::sealed(segment, piece);
            if gone.contains(&found.since) && !view.shows(channel, &found, revision)? {
                pieces.push(past_of(channel, segment, piece));
            }
        }
    }
    Ok(pieces)
}

/// The bytes of a segment. Its rows lie in the order of their times, so that what all channels show
/// at one time is one piece of each column where they begin together.
fn write(
    folder: &Folder,
    of: &SegmentOf,
    pieces: &[Piece<'_>],
    revision: Revision,
) -> Result<Vec<u8>, Refusal> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_unstable_by_key(|place| (pieces[*place].bounds.since, *place));
    let columns = folder.schema(revision).map_or(&[][..], |(_, columns)| columns);
    let places = order.iter().map(|place| pieces[*place].place);
    let payload = folder.contents.gather(places, columns.iter().map(|column| column.kind))?;
    let entry = |piece: &Piece<'_>| {
        let Piece { channel, bounds, place, is_ended } = *piece;
        let (object, records) = (folder.contents.inserted(place), folder.contents.records(place));
        Entry { channel, bounds, object, is_ended, first_row: 0, records }
    };
    let mut entries: Vec<Entry> = pieces.iter().map(entry).collect();
    let mut row = 0;
    for place in order {
        entries[place].first_row = row;
        row += entries[place].records;
    }
    Ok(encode(of, &entries, &payload))
}
