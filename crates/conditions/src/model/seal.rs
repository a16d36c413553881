//! Sealing: what came since the last time is put into segments, as it was at one revision, while
//! the state goes on.
//!
//! [`State::seal`] plans it, [`State::begin_seal`] begins it. [`Seal::next`] then returns one
//! segment after another, which the caller stores and hands back as [`Seal::stored`]; each is made
//! from the state as it is by then, which still has all that it had at that revision. When all are
//! durable and a snapshot that names them is, too ([`Seal::records`]), [`State::rebuild`] puts what
//! came meanwhile over them and [`State::end_seal`] goes on with that.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::base::{Base, Block, Part, Unit};
use super::contents::{Contents, ReadAhead, Runs};
use super::divide::{BLOCKS, Slot, plan, shown, small, split};
use super::error::Refusal;
use super::folder::Folder;
use super::past::Bounds;
use super::piece::{Piece, Revision};
use super::segment::{Chunks, Damage, Entry, Segment, SegmentKind, SegmentOf, Source, encode};
use super::snapshot;
use super::state::State;
use super::timeline::Recent;
use super::view::{Found, Place, View};

/// A block gets about this many bytes. A change of a block writes all of it anew, which speaks for
/// small ones, and each is a file and a mapping, of which a process may have 65,530: 250 GB.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// What a piece of the past counts beside its payload: more than it takes, because about 200 bytes
/// of each are in memory while a segment of them is made.
const PAST_PIECE_BYTES: u64 = 64;

/// A seal under way.
#[derive(Debug)]
pub struct Seal {
    revision: Revision,
    next_id: u64,
    block_bytes: u64,
    /// Whether what is sealed in small pieces is put together.
    joins: bool,
    /// The state without its data, as a snapshot has it.
    records: Vec<Vec<u8>>,
    /// The folders that are sealed, with how many columns they had.
    folders: BTreeMap<usize, usize>,
    /// What is sealed of every folder: by the last seals until this one has come to it.
    bases: BTreeMap<Unit, Base>,
    units: VecDeque<Unit>,
    current: Option<Progress>,
    ahead: ReadAhead,
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

/// The order of pieces of the past: channel, since, and the revision from which on it was shown.
type Key = (u32, u64, Revision);

/// Segments of the past that are to be made: how many of those before stay, and the first and last
/// piece of each of these.
#[derive(Debug)]
struct PlannedPast {
    kept: usize,
    parts: VecDeque<(Key, Key)>,
}

/// A segment that is to be made: the block of these times, or what is past from a first to a last
/// piece.
#[derive(Clone, Copy, Debug)]
enum Due {
    Block(u64, u64),
    Past(Key, Key),
}

impl Progress {
    /// What could not be made is due again.
    fn put_back(&mut self, due: Due) {
        match (due, &mut self.past) {
            (Due::Block(since, until), _) => self.blocks.push_front(Slot::Make(since, until)),
            (Due::Past(first, last), Some(past)) => past.parts.push_front((first, last)),
            (Due::Past(..), None) => {}
        }
    }
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
        self.sealing(block_bytes, false)
    }

    /// The same, which also puts together what earlier seals have left in pieces smaller than that.
    ///
    /// # Errors
    /// As [`State::seal`].
    pub fn compact(&self, block_bytes: u64) -> Result<Seal, Damage> {
        self.sealing(block_bytes, true)
    }

    fn sealing(&self, block_bytes: u64, joins: bool) -> Result<Seal, Damage> {
        let (mut folders, mut bases) = (BTreeMap::new(), BTreeMap::new());
        for (place, folder) in self.folders.iter().enumerate() {
            folder.contents.check_known()?;
            for (tag, view) in folder.contents.views() {
                bases.insert((place, tag), view.base.clone());
            }
            let mut views = folder.contents.views();
            let is_scattered = joins && views.any(|(_, view)| is_scattered(view, block_bytes));
            if is_scattered || folder.contents.unsealed_bytes() > 0 {
                folders.insert(place, folder.columns().len());
            }
        }
        let is_sealed = |unit: &&Unit| folders.contains_key(&unit.0);
        let units = bases.keys().filter(is_sealed).copied().collect();
        let records = snapshot::records(self);
        let (revision, next_id) = (self.revision(), self.next_segment);
        let (current, ahead): (_, ReadAhead) = (None, |_| ());
        Ok(Seal {
            revision,
            next_id,
            block_bytes,
            joins,
            records,
            folders,
            bases,
            units,
            current,
            ahead,
        })
    }

    /// How many segments there are, and how many bytes they have together.
    pub fn sealed_size(&self) -> (usize, u64) {
        let views = self.folders.iter().flat_map(|folder| folder.contents.views());
        size_of(views.flat_map(|(_, view)| view.base.parts()))
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

    /// Has what is read from segments asked for from the disk before, by this.
    #[must_use]
    pub fn reading_ahead(self, ahead: ReadAhead) -> Self {
        Self { ahead, ..self }
    }

    /// Makes the next segment; `None` when all are stored. The state has to be the one that was
    /// to be sealed, with any changes since.
    ///
    /// # Errors
    /// When a segment that has to be written anew is damaged, or the state is another one. Where
    /// its payload is elsewhere, the same one is next.
    pub fn next(&mut self, state: &State) -> Result<Option<Made>, Refusal> {
        let Some(due) = self.due(state)? else { return Ok(None) };
        let made = self.make(state, due);
        if made.is_err()
            && let Some(now) = &mut self.current
        {
            now.put_back(due);
        }
        made
    }

    /// What is to be made next.
    fn due(&mut self, state: &State) -> Result<Option<Due>, Refusal> {
        loop {
            let Some(now) = &mut self.current else {
                let Some(unit) = self.units.pop_front() else { return Ok(None) };
                let (folder, view) = state.unit(unit)?;
                let blocks = plan(folder, view, self.revision, (self.block_bytes, self.joins))?;
                let (through, past) = (self.revision, view.base.past.clone());
                let base = Base { through, blocks: Vec::new(), past };
                self.current = Some(Progress { unit, blocks, past: None, base, waits: None });
                continue;
            };
            let (folder, view) = state.unit(now.unit)?;
            match now.blocks.pop_front() {
                Some(Slot::Keep(block)) => now.base.blocks.push(block),
                Some(Slot::Split(since, until)) => {
                    let range = (since, until);
                    let slots = split(folder, view, range, self.revision, self.block_bytes)?;
                    slots.into_iter().rev().for_each(|slot| now.blocks.push_front(slot));
                }
                Some(Slot::Make(since, until)) => return Ok(Some(Due::Block(since, until))),
                None => {
                    let planned = match &mut now.past {
                        Some(planned) => planned,
                        None => {
                            let most = self.block_bytes.saturating_mul(BLOCKS);
                            let of = (most, self.joins);
                            let planned = plan_past(folder, view, self.revision, of)?;
                            now.base.past.truncate(planned.kept);
                            now.past.insert(planned)
                        }
                    };
                    match planned.parts.pop_front() {
                        Some((first, last)) => return Ok(Some(Due::Past(first, last))),
                        None => {
                            self.bases
                                .extend(self.current.take().map(|done| (done.unit, done.base)));
                        }
                    }
                }
            }
        }
    }

    fn make(&mut self, state: &State, due: Due) -> Result<Option<Made>, Refusal> {
        let Some(now) = &mut self.current else { return Ok(None) };
        let (folder, view) = state.unit(now.unit)?;
        let (id, made, tag) = (self.next_id, folder.made(), now.unit.1.unwrap_or(0));
        let of = |kind, since, until| SegmentOf { kind, id, folder: made, tag, since, until };
        let (of, pieces, parts): (_, _, Vec<_>) = match due {
            Due::Block(since, until) => {
                now.waits = Some(Waits::Block(since));
                let blocks = view.base.blocks.iter().skip(view.base.place(since).unwrap_or(0));
                let blocks = blocks.take_while(|block| block.since < until);
                let pieces = block(folder, view, (since, until - 1), self.revision)?;
                let parts = blocks.map(|block| &block.part).collect();
                (of(SegmentKind::Block, since, until), pieces, parts)
            }
            Due::Past(first, last) => {
                now.waits = Some(Waits::Past);
                let kept = now.past.as_ref().map_or(0, |planned| planned.kept);
                let merged = &view.base.past[kept..];
                let pieces = past(folder, view, merged, self.revision, (first, last))?;
                (of(SegmentKind::Past, 0, 0), pieces, merged.iter().collect())
            }
        };
        let read = Read { pieces: &pieces, parts: &parts, ahead: self.ahead };
        let bytes = write(folder, &of, &read, self.revision)?;
        self.next_id += 1;
        Ok(Some(Made { id, bytes }))
    }

    /// Takes in the segment that was made last, once its bytes are durable.
    ///
    /// # Errors
    /// When they aren't those that were made.
    pub fn stored(&mut self, id: u64, bytes: impl Into<Source>) -> Result<(), Damage> {
        let segment = Segment::open(id, bytes)?;
        let (bytes, checksum) = (segment.size(), segment.checksum());
        let part = Arc::new(Part { id, bytes, checksum, segment: Ok(Arc::new(segment)) });
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

/// How many parts there are, each of which may be in several places, and their bytes together.
fn size_of<'a>(parts: impl Iterator<Item = &'a Arc<Part>>) -> (usize, u64) {
    let parts: BTreeMap<_, _> = parts.map(|part| (part.id, part.bytes)).collect();
    (parts.len(), parts.values().sum())
}

/// Whether anything of a view is put together when it is compacted.
fn is_scattered(view: &View, block_bytes: u64) -> bool {
    !small(&view.base, block_bytes).is_empty() || small_past(view, block_bytes * BLOCKS)
}

/// Whether the last two segments of the past have room in one.
fn small_past(view: &View, most: u64) -> bool {
    let last = view.base.past.iter().rev().take(2);
    last.len() == 2 && last.map(|part| part.bytes).sum::<u64>() <= most / 2
}

/// A piece to be written.
struct ToWrite<'a> {
    channel: u32,
    bounds: Bounds,
    place: Place<'a>,
    /// Whether its object was shown whole until it was cut: that is past, and no piece of its own.
    is_ended: bool,
}

impl<'a> ToWrite<'a> {
    /// What is past of a sealed piece.
    fn past(channel: u32, segment: &'a Arc<Segment>, piece: usize) -> Self {
        let (bounds, place) = (segment.bounds(piece), Place::Sealed(segment, piece));
        Self { channel, bounds, place, is_ended: false }
    }

    fn key(&self) -> Key {
        (self.channel, self.bounds.since, self.bounds.from)
    }
}

/// Whether a piece is the beginning of what is left of another, which was its object as a whole.
fn leaves(folder: &Folder, before: Piece, left: Piece) -> bool {
    let Piece { since, until, object, from } = before;
    let whole = folder.contents.inserted(Place::Recent(object));
    (left.object, left.since) == (object, since)
        && (whole.since, whole.until, whole.revision) == (since, until, from)
}

/// Whether what is past of a shown piece's object is kept with it.
fn is_ended(folder: &Folder, view: &View, channel: u32, found: &Found<'_>) -> Result<bool, Damage> {
    let Found { since, until, from, place, .. } = *found;
    let object = match place {
        Place::Sealed(segment, piece) => return Ok(segment.is_ended(piece)),
        Place::Recent(object) => object,
    };
    if let Some((segment, piece)) = view.sealed(channel, found)? {
        return Ok(segment.is_ended(piece));
    }
    let recent = view.recent().get(&channel);
    let before = recent.map(|recent| recent.at(since, from.saturating_sub(1), &Cell::default()));
    let Some(Recent::Shown(Some(before))) = before else { return Ok(false) };
    Ok(leaves(folder, before, Piece { since, until, object, from }))
}

/// What a block holds.
fn block<'a>(
    folder: &Folder,
    view: &'a View,
    (first, last): (u64, u64),
    revision: Revision,
) -> Result<Vec<ToWrite<'a>>, Damage> {
    let mut pieces = Vec::new();
    for (channel, found) in shown(view, (first, last), revision)? {
        let Found { since, until, from, place, .. } = found;
        // What began before is past in the block before.
        let is_ended = since >= first && is_ended(folder, view, channel, &found)?;
        let bounds = Bounds { since, until, from, to: u64::MAX };
        pieces.push(ToWrite { channel, bounds, place, is_ended });
    }
    Ok(pieces)
}

/// The pieces from a first to a last one, in their order, of what is past since the last seal, but
/// for what the blocks say, and of what these segments hold.
fn past<'a>(
    folder: &Folder,
    view: &'a View,
    merged: &'a [Arc<Part>],
    revision: Revision,
    (first, last): (Key, Key),
) -> Result<Vec<ToWrite<'a>>, Damage> {
    let is_within = |piece: &ToWrite<'_>| (first..=last).contains(&piece.key());
    let mut pieces = Vec::new();
    for (&channel, recent) in view.recent().range(first.0..=last.0) {
        for ended in recent.ended(revision) {
            let piece = ended.piece;
            let left = recent.at(piece.since, revision, &Cell::default());
            let is_left = matches!(left, Recent::Shown(Some(left))
                if left.from == ended.to && leaves(folder, piece, left));
            if !is_left {
                let (bounds, place) = (Bounds::of(ended), Place::Recent(piece.object));
                pieces.push(ToWrite { channel, bounds, place, is_ended: false });
            }
            // What was past with a sealed piece, which has ended now.
            let sealed = match piece.from <= view.base.through {
                true => view.sealed(channel, &Found::from(piece))?,
                false => None,
            };
            let was_left = sealed.filter(|(segment, piece)| segment.is_ended(*piece));
            pieces.extend(was_left.map(|(segment, at)| ToWrite::past(channel, segment, at)));
        }
    }
    for part in merged {
        let segment = part.segment()?;
        for place in 0..segment.channels() {
            let channel = segment.number(place);
            if (first.0..=last.0).contains(&channel) {
                let of_channel = segment.pieces_of(place);
                pieces.extend(of_channel.map(|piece| ToWrite::past(channel, segment, piece)));
            }
        }
    }
    pieces.retain(is_within);
    pieces.sort_unstable_by_key(ToWrite::key);
    Ok(pieces)
}

/// What is past since the last seal is put together with the segments before that are less than
/// twice as large, or all where it `joins`, up to `most` bytes, and cut into segments of about that
/// size.
fn plan_past(
    folder: &Folder,
    view: &View,
    revision: Revision,
    (most, joins): (u64, bool),
) -> Result<PlannedPast, Damage> {
    let bytes = |piece: &ToWrite<'_>| {
        PAST_PIECE_BYTES.saturating_add(folder.contents.payload_bytes(piece.place))
    };
    let all = ((0, 0, 0), (u32::MAX, u64::MAX, Revision::MAX));
    let (before, mut parts) = (view.base.past.as_slice(), VecDeque::new());
    let mut kept = before.len();
    let new = past(folder, view, &[], revision, all)?;
    let joins = joins && small_past(view, most);
    if new.is_empty() && !joins {
        return Ok(PlannedPast { kept, parts });
    }
    let mut size = new.iter().map(bytes).fold(0, u64::saturating_add);
    while let Some(last) = kept.checked_sub(1).map(|last| &before[last]) {
        let segment = last.segment()?;
        let more = segment.pieces() as u64 * PAST_PIECE_BYTES + segment.payload_bytes();
        let is_large = !joins && more > size.saturating_mul(2);
        if is_large || size.saturating_add(more) > most {
            break;
        }
        size += more;
        kept -= 1;
    }
    let mut part_bytes = 0;
    for piece in past(folder, view, &before[kept..], revision, all)? {
        let key = piece.key();
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

/// What a segment is made of.
struct Read<'a> {
    pieces: &'a [ToWrite<'a>],
    /// The segments whose indexes say which pieces these are.
    parts: &'a [&'a Arc<Part>],
    ahead: ReadAhead,
}

/// The bytes of a segment. Its rows lie in the order of their times, so that what all channels show
/// at one time is one piece of each column where they begin together.
fn write(
    folder: &Folder,
    of: &SegmentOf,
    &Read { pieces, parts, ahead }: &Read<'_>,
    revision: Revision,
) -> Result<Vec<u8>, Refusal> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_unstable_by_key(|place| (pieces[*place].bounds.since, *place));
    let columns = folder.schema(revision).map_or(&[][..], |(_, columns)| columns);
    // However large: what is shown at one time is in one block.
    let mut runs = Runs::default();
    for place in &order {
        runs.add(folder.contents.rows_of(pieces[*place].place), u32::MAX);
    }
    let kinds = columns.iter().map(|column| column.kind);
    let sources = runs.ahead(ahead);
    let payload = folder.contents.gather(&runs, kinds, None)?;
    let entry = |piece: &ToWrite<'_>| {
        let ToWrite { channel, bounds, place, is_ended } = *piece;
        let (object, records) = (folder.contents.inserted(place), folder.contents.records(place));
        Entry { channel, bounds, object, is_ended, first_row: 0, records }
    };
    let mut entries: Vec<Entry> = pieces.iter().map(entry).collect();
    let mut row = 0;
    for place in order {
        entries[place].first_row = row;
        row += entries[place].records;
    }
    // What was copied gets new checksums: what is by now another segment than was opened must not.
    let check = |segment: &Segment, chunks: Option<&Chunks>| {
        let again = segment.check_again(chunks);
        again.inspect_err(|damage| folder.contents.note(segment, damage))
    };
    for part in parts {
        check(part.segment()?, None)?;
    }
    for (segment, chunks) in &sources {
        check(segment, Some(chunks))?;
    }
    Ok(encode(of, &entries, &payload))
}
