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

/// Segments of the past are put together up to this size: one is made in memory.
const PAST_BYTES: u64 = 64 << 20;

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

    /// Numbers the segments that are made from here on from at least this one.
    pub fn number_from(&mut self, first: u64) {
        self.next_id = self.next_id.max(first);
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
                    let pieces = block(view, (since, until - 1), self.revision)?;
                    (of(SegmentKind::Block, since, until), pieces)
                }
                None if !now.is_past_made => {
                    now.is_past_made = true;
                    let Some((kept, pieces)) = past(view, self.revision)? else { continue };
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
    let mut touched = BTreeSet::new();
    for (since, until) in view.recent.values().flat_map(|recent| recent.extents()) {
        let (first, last) = (view.base.place(since), view.base.place(until.saturating_sub(1)));
        touched.extend(first.unwrap_or(0)..=last.unwrap_or(0));
    }
    let mut slots = VecDeque::new();
    if view.base.blocks.is_empty() && !touched.is_empty() {
        split(folder, view, (0, u64::MAX), revision, block_bytes, &mut slots)?;
    }
    for (place, block) in view.base.blocks.iter().enumerate() {
        match touched.contains(&place) {
            false => slots.push_back(Slot::Keep(block.clone())),
            true => {
                let range = (block.since, view.base.end(place));
                split(folder, view, range, revision, block_bytes, &mut slots)?;
            }
        }
    }
    Ok(slots)
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

/// A piece to be written, with its channel.
type Piece<'a> = (u32, Bounds, Place<'a>);
type Pieces<'a> = Vec<Piece<'a>>;

/// What a block holds.
fn block(view: &View, range: (u64, u64), revision: Revision) -> Result<Pieces<'_>, Damage> {
    let mut pieces = Vec::new();
    for (channel, Found { since, until, from, place }) in shown(view, range, revision)? {
        pieces.push((channel, Bounds { since, until, from, to: u64::MAX }, place));
    }
    Ok(pieces)
}

/// Segments that stay, and the pieces of one that comes after them.
type Past<'a> = (Vec<Arc<Part>>, Pieces<'a>);

/// What is past since the last seal, with the smaller segments of the past, and the larger ones,
/// which stay; `None` where nothing is new.
fn past(view: &View, revision: Revision) -> Result<Option<Past<'_>>, Damage> {
    let mut pieces: Pieces<'_> = Vec::new();
    for (channel, recent) in &view.recent {
        let ended = recent.ended(revision);
        pieces.extend(
            ended.map(|ended| (*channel, Bounds::of(ended), Place::Recent(ended.piece.object))),
        );
    }
    if pieces.is_empty() {
        return Ok(None);
    }
    let mut kept = view.base.past.as_slice();
    while let Some((last, rest)) = kept.split_last() {
        let segment = last.segment()?;
        if segment.pieces() > 2 * pieces.len() || last.bytes > PAST_BYTES {
            break;
        }
        for place in 0..segment.channels() {
            let number = segment.number(place);
            let of_channel = segment.pieces_of(place);
            pieces.extend(
                of_channel
                    .map(|piece| (number, segment.bounds(piece), Place::Sealed(segment, piece))),
            );
        }
        kept = rest;
    }
    pieces.sort_unstable_by_key(|(channel, bounds, _)| (*channel, bounds.since, bounds.from));
    Ok(Some((kept.to_vec(), pieces)))
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
    let payload = folder.contents.gather(places, columns.iter().map(|column| column.kind))?;
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
