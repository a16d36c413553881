//! Sealing: what came since the last time is put into segments, as it was at one revision, while
//! the state goes on.
//!
//! [`State::seal`] plans it, [`State::begin_seal`] begins it. [`Seal::next`] then returns one
//! segment after another, which the caller stores and hands back as [`Seal::stored`]; each is made
//! from the state as it is by then, which still has all that it had at that revision. When all are
//! durable and a snapshot that names them is, too ([`Seal::records`]), [`State::rebuild`] puts what
//! came meanwhile over them and [`State::end_seal`] goes on with that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::base::{Base, Block, Part, Unit};
use super::contents::Contents;
use super::error::Refusal;
use super::folder::Folder;
use super::past::Bounds;
use super::piece::Revision;
use super::segment::{Damage, Entry, Segment, SegmentKind, SegmentOf, encode};
use super::snapshot;
use super::state::State;
use super::view::{Found, Place, View};

/// A block gets about this many bytes. A change of a block writes all of it anew, which speaks for
/// small ones, and each is a file and a mapping, of which a process may have 65,530: 250 GB.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// About what a piece takes in a block beside its payload.
const PIECE_BYTES: u64 = 36;

/// A segment of the past gets about as many bytes as this many blocks, because it is made in
/// memory; and as many neighbouring blocks that changed are divided anew together, so that those
/// that have become small are joined.
const BLOCKS: u64 = 16;

/// A seal under way.
#[derive(Debug)]
pub struct Seal {
    revision: Revision,
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
    /// What is to be made of the past, once that is known.
    past: Option<PlannedPast>,
    base: Base,
    waits: Option<Waits>,
}

/// A block that stays, times that are to be divided into blocks, or those of one that is made.
#[derive(Debug)]
enum Slot {
    Keep(Block),
    Split(u64, u64),
    Make(u64, u64),
}

/// The order of pieces of the past: channel, since, and the revision from which on it was shown.
type Key = (u32, u64, Revision);

/// Segments of the past that are to be made: how many of those before stay, and the first and last
/// piece of each of these.
#[derive(Debug)]
struct PlannedPast {
    kept: usize,
    parts: VecDeque<(Key, Key)>,
}

/// What is being stored: the block from a time on, or a segment of the past.
#[derive(Debug)]
enum Waits {
    Block(u64),
    Past,
}

/// The data of folders over what was sealed, by their places.
#[derive(Debug)]
pub struct Rebuilt(BTreeMap<usize, Contents>);

impl State {
    /// About how many bytes of data are in memory because of changes that aren't sealed: what came,
    /// and what of the sealed data they concern.
    pub fn unsealed_bytes(&self) -> u64 {
        self.unsealed_bytes
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
        let (revision, next_id) = (self.revision(), self.next_segment);
        let current = None;
        Ok(Seal { revision, next_id, block_bytes, records, folders, bases, units, current })
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
        if rebuilt.is_some() {
            self.segments = seal.segments();
        }
        let mut rebuilt = rebuilt.map(|rebuilt| rebuilt.0).unwrap_or_default();
        let end = |place: &usize| self.folders[*place].end_seal(rebuilt.remove(place));
        let old: Vec<_> = seal.folders.keys().map(end).collect();
        let unsealed = self.folders.iter().map(|folder| folder.contents.unsealed_bytes());
        self.unsealed_bytes = unsealed.sum();
        old
    }

    /// The numbers of all segments that the last snapshot names, those of tags that were deleted
    /// since, too: a start needs them until there is another snapshot.
    pub fn segments(&self) -> &BTreeSet<u64> {
        &self.segments
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

    fn unit(&self, (place, tag): Unit) -> Result<(&Folder, &View), Refusal> {
        let folder = self.folders.get(place);
        let folder = folder.ok_or_else(|| Refusal::NoFolder(format!("number {place}")))?;
        let no_tag = || Refusal::NoTag(format!("number {}", tag.unwrap_or_default()));
        Ok((folder, folder.contents.view(tag).ok_or_else(no_tag)?))
    }
}

impl Seal {
    /// The revision through which everything is sealed.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Numbers the segments that are made from here on from at least this one.
    pub fn number_from(&mut self, first: u64) {
        self.next_id = self.next_id.max(first);
    }

    /// Makes the next segment; `None` when all are stored. The state has to be the one that was
    /// to be sealed, with any changes since.
    ///
    /// # Errors
    /// When a segment that has to be written anew is damaged, or the state is another one.
    pub fn next(&mut self, state: &State) -> Result<Option<Made>, Refusal> {
        loop {
            let Some(now) = &mut self.current else {
                let Some(unit) = self.units.pop_front() else { return Ok(None) };
                let (_, view) = state.unit(unit)?;
                let blocks = plan(view, self.block_bytes);
                let (through, past) = (self.revision, view.base.past.clone());
                let base = Base { through, blocks: Vec::new(), past };
                self.current = Some(Progress { unit, blocks, past: None, base, waits: None });
                continue;
            };
            let (folder, view) = state.unit(now.unit)?;
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
                Some(Slot::Split(since, until)) => {
                    let range = (since, until);
                    let slots = split(folder, view, range, self.revision, self.block_bytes)?;
                    slots.into_iter().rev().for_each(|slot| now.blocks.push_front(slot));
                    continue;
                }
                Some(Slot::Make(since, until)) => {
                    now.waits = Some(Waits::Block(since));
                    let pieces = shown(view, (since, until - 1), self.revision)?;
                    let piece = |(channel, Found { since, until, from, place })| {
                        (channel, Bounds { since, until, from, to: u64::MAX }, place)
                    };
                    let pieces = pieces.into_iter().map(piece).collect();
                    (of(SegmentKind::Block, since, until), pieces)
                }
                None => {
                    let planned = match &mut now.past {
                        Some(planned) => planned,
                        None => {
                            let most = self.block_bytes.saturating_mul(BLOCKS);
                            let planned = plan_past(folder, view, self.revision, most)?;
                            now.base.past.truncate(planned.kept);
                            now.past.insert(planned)
                        }
                    };
                    let Some(range) = planned.parts.pop_front() else {
                        self.bases.extend(self.current.take().map(|done| (done.unit, done.base)));
                        continue;
                    };
                    now.waits = Some(Waits::Past);
                    let merged = &view.base.past[planned.kept..];
                    (of(SegmentKind::Past, 0, 0), past(view, merged, self.revision, range)?)
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
                Some(Waits::Past) => now.base.past.push(part),
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

/// The blocks of a view: those that nothing has changed since, and times to be divided anew.
fn plan(view: &View, block_bytes: u64) -> VecDeque<Slot> {
    let mut changed: Vec<_> = view.recent.values().flat_map(|recent| recent.extents()).collect();
    if view.base.blocks.is_empty() {
        let all = (!changed.is_empty()).then_some(Slot::Split(0, u64::MAX));
        return all.into_iter().collect();
    }
    changed.sort_unstable();
    let mut changed = changed.into_iter().peekable();
    // Up to where something has changed, of what begins before the end of the block.
    let mut changed_until = 0;
    let (mut slots, mut together) = (VecDeque::new(), 0_u64);
    for (place, block) in view.base.blocks.iter().enumerate() {
        let end = view.base.end(place);
        while let Some((_, until)) = changed.next_if(|(since, _)| *since < end) {
            changed_until = until.max(changed_until);
        }
        if changed_until <= block.since {
            slots.push_back(Slot::Keep(block.clone()));
            continue;
        }
        together = together.saturating_add(block.part.bytes);
        match slots.back_mut() {
            Some(Slot::Split(_, until)) if together <= block_bytes.saturating_mul(BLOCKS) => {
                *until = end;
            }
            _ => {
                slots.push_back(Slot::Split(block.since, end));
                together = block.part.bytes;
            }
        }
    }
    slots
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
) -> Result<Vec<Slot>, Damage> {
    let piece = |(_, found): &(u32, Found<'_>)| {
        let bytes: u64 = PIECE_BYTES + folder.contents.payload_bytes(found.place);
        (found.since, found.until, bytes)
    };
    let mut pieces: Vec<_> = shown(view, (since, until - 1), revision)?.iter().map(piece).collect();
    pieces.sort_unstable();
    let carried_to = |at: u64, before: &[(u64, u64, u64)]| {
        let goes_on = before.iter().filter(|(_, end, _)| *end > at);
        goes_on.fold(0, |sum: u64, (_, _, bytes)| sum.saturating_add(*bytes))
    };
    let first = pieces.partition_point(|(at, ..)| *at < since);
    let (mut begin, mut last, mut new) = (since, since, 0_u64);
    let mut carried = carried_to(since, &pieces[..first]);
    let mut slots = Vec::new();
    for (number, (at, _, bytes)) in pieces.iter().enumerate().skip(first) {
        if *at > last && new > 0 && new >= block_bytes.max(carried) {
            slots.push(Slot::Make(begin, *at));
            carried = carried_to(*at, &pieces[..number]);
            (begin, new) = (*at, 0);
        }
        new = new.saturating_add(*bytes);
        last = *at;
    }
    slots.push(Slot::Make(begin, until));
    Ok(slots)
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

/// A piece to be written, with its channel.
type Piece<'a> = (u32, Bounds, Place<'a>);
type Pieces<'a> = Vec<Piece<'a>>;

fn key((channel, bounds, _): &Piece<'_>) -> Key {
    (*channel, bounds.since, bounds.from)
}

/// The pieces from a first to a last one, in their order, of what is past since the last seal and
/// of what these segments hold.
fn past<'a>(
    view: &'a View,
    merged: &'a [Arc<Part>],
    revision: Revision,
    (first, last): (Key, Key),
) -> Result<Pieces<'a>, Damage> {
    let is_within = |piece: &Piece<'_>| (first..=last).contains(&key(piece));
    let mut pieces: Pieces<'_> = Vec::new();
    for (channel, recent) in view.recent.range(first.0..=last.0) {
        let piece = |ended| (*channel, Bounds::of(ended), Place::Recent(ended.piece.object));
        pieces.extend(recent.ended(revision).map(piece).filter(is_within));
    }
    for part in merged {
        let segment = part.segment()?;
        for place in 0..segment.channels() {
            let number = segment.number(place);
            let piece = |piece| (number, segment.bounds(piece), Place::Sealed(segment, piece));
            if (first.0..=last.0).contains(&number) {
                pieces.extend(segment.pieces_of(place).map(piece).filter(is_within));
            }
        }
    }
    pieces.sort_unstable_by_key(key);
    Ok(pieces)
}

/// What is past since the last seal is put together with the segments before that are less than
/// twice as large, up to `most` bytes, and cut into segments of about so many.
fn plan_past(
    folder: &Folder,
    view: &View,
    revision: Revision,
    most: u64,
) -> Result<PlannedPast, Damage> {
    let bytes = |piece: &Piece<'_>| PIECE_BYTES + folder.contents.payload_bytes(piece.2);
    let all = ((0, 0, 0), (u32::MAX, u64::MAX, Revision::MAX));
    let (before, mut parts) = (view.base.past.as_slice(), VecDeque::new());
    let mut kept = before.len();
    let new = past(view, &[], revision, all)?;
    if new.is_empty() {
        return Ok(PlannedPast { kept, parts });
    }
    let mut size = new.iter().map(bytes).fold(0, u64::saturating_add);
    while let Some(last) = kept.checked_sub(1).map(|last| &before[last]) {
        let segment = last.segment()?;
        let more = segment.pieces() as u64 * PIECE_BYTES + segment.payload_bytes();
        if more > size.saturating_mul(2) || size.saturating_add(more) > most {
            break;
        }
        size += more;
        kept -= 1;
    }
    let mut part_bytes = 0;
    for piece in past(view, &before[kept..], revision, all)? {
        let key = key(&piece);
        match parts.back_mut() {
            Some((_, last)) if part_bytes < most => *last = key,
            _ => {
                parts.push_back((key, key));
                part_bytes = 0;
            }
        }
        part_bytes += bytes(&piece);
    }
    Ok(PlannedPast { kept, parts })
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
    order.sort_unstable_by_key(|place| (pieces[*place].1.since, *place));
    let columns = folder.schema(revision).map_or(&[][..], |(_, columns)| columns);
    let places = order.iter().map(|place| pieces[*place].2);
    // However large: what is shown at one time is in one block.
    let kinds = columns.iter().map(|column| column.kind);
    let payload = folder.contents.gather(places, kinds, u32::MAX, None)?;
    let entry = |(channel, bounds, place): &(u32, Bounds, Place<'_>)| {
        let (object, records) = (folder.contents.inserted(*place), folder.contents.records(*place));
        Entry { channel: *channel, bounds: *bounds, object, first_row: 0, records }
    };
    let mut entries: Vec<Entry> = pieces.iter().map(entry).collect();
    let mut row = 0;
    for place in order {
        entries[place].first_row = row;
        row += entries[place].records;
    }
    Ok(encode(of, &entries, &payload))
}
