//! How a seal divides time into blocks: which stay, and from where to where the others go.

use std::collections::{BTreeSet, VecDeque};

use super::base::{Base, Block};
use super::folder::Folder;
use super::piece::Revision;
use super::segment::Damage;
use super::timeline::Timeline;
use super::view::{Found, View};

/// About what a piece takes in a block beside its payload.
const PIECE_BYTES: u64 = 16;

/// A segment of the past gets about as many bytes as this many blocks, because it is made in
/// memory; and as many neighbouring blocks that changed are divided anew together, so that those
/// that have become small are joined.
pub(super) const BLOCKS: u64 = 16;

/// A block that stays, times that are to be divided into blocks, or those of one that is made.
#[derive(Debug)]
pub(super) enum Slot {
    Keep(Block),
    Split(u64, u64),
    Make(u64, u64),
}

/// The blocks of a view: those that nothing has changed since, and times to be divided anew: where
/// it `joins`, those of neighbours, too, that have room in one block together.
pub(super) fn plan(
    folder: &Folder,
    view: &View,
    revision: Revision,
    (block_bytes, joins): (u64, bool),
) -> Result<VecDeque<Slot>, Damage> {
    let mut extents: Vec<_> = view.recent().values().flat_map(Timeline::extents).collect();
    let blocks = &view.base.blocks;
    let Some(last) = blocks.last() else {
        let all = (!extents.is_empty()).then_some(Slot::Split(0, u64::MAX));
        return Ok(all.into_iter().collect());
    };
    extents.sort_unstable();
    let mut touched = touched(&view.base, &extents);
    let mut tail = Tail { place: blocks.len(), since: u64::MAX, bytes: 0 };
    if touched.remove(&(blocks.len() - 1)) {
        let in_last = extents.iter().find(|(_, until)| *until > last.since);
        let new = in_last.map_or(last.since, |(since, _)| last.since.max(*since));
        tail = self::tail(folder, view, (new, &touched), revision, block_bytes)?;
    }
    if joins {
        touched.extend(small(&view.base, block_bytes).into_iter().filter(|one| *one < tail.place));
    }
    let most = block_bytes.saturating_mul(BLOCKS);
    let (mut slots, mut together) = (VecDeque::new(), 0_u64);
    let mut divide = |slots: &mut VecDeque<Slot>, (since, until), bytes: u64| {
        together = together.saturating_add(bytes);
        match slots.back_mut() {
            Some(Slot::Split(_, end)) if together <= most => *end = until,
            _ => {
                slots.push_back(Slot::Split(since, until));
                together = bytes;
            }
        }
    };
    for (place, block) in blocks.iter().enumerate().take(tail.place) {
        match touched.contains(&place) {
            false => slots.push_back(Slot::Keep(block.clone())),
            true => divide(&mut slots, (block.since, view.base.end(place)), block.part.bytes),
        }
    }
    if tail.since < u64::MAX {
        divide(&mut slots, (tail.since, u64::MAX), tail.bytes);
    }
    Ok(slots)
}

/// The places of the blocks that these extents, which are sorted, meet.
fn touched(base: &Base, extents: &[(u64, u64)]) -> BTreeSet<usize> {
    let mut extents = extents.iter().peekable();
    // Up to where something has changed, of what begins before the end of the block.
    let mut changed_until = 0;
    let mut touched = BTreeSet::new();
    for (place, block) in base.blocks.iter().enumerate() {
        let end = base.end(place);
        while let Some((_, until)) = extents.next_if(|(since, _)| *since < end) {
            changed_until = changed_until.max(*until);
        }
        if changed_until > block.since {
            touched.insert(place);
        }
    }
    touched
}

/// The places of blocks that have room in one together with the one before or behind them.
pub(super) fn small(base: &Base, block_bytes: u64) -> BTreeSet<usize> {
    let pairs = base.blocks.windows(2).enumerate();
    let bytes = |pair: &[Block]| pair.iter().map(|block| block.part.bytes).sum::<u64>();
    let pairs = pairs.filter(|(_, pair)| bytes(pair) <= block_bytes);
    pairs.flat_map(|(place, _)| [place, place + 1]).collect()
}

/// How many blocks stay before what is new at the end, from where on all is written anew, and about
/// how many bytes begin there.
struct Tail {
    place: usize,
    since: u64,
    bytes: u64,
}

/// The end of a view where something is new from a time on, which lies in the last block.
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
) -> Result<Tail, Damage> {
    let bytes = |found: &Found<'_>| PIECE_BYTES + folder.contents.payload_bytes(found.place);
    let mut tail = Tail { place: view.base.blocks.len(), since: new, bytes: 0 };
    for (_, found) in shown(view, (new, u64::MAX - 1), revision)? {
        let own = if found.since >= new { bytes(&found) } else { 0 };
        tail.bytes = tail.bytes.saturating_add(own);
    }
    while let Some(place) = tail.place.checked_sub(1).filter(|place| !touched.contains(place)) {
        let since = view.base.blocks[place].since;
        if since < tail.since {
            let (mut own, mut carried) = (0_u64, 0_u64);
            for (_, found) in shown(view, (since, tail.since - 1), revision)? {
                let bytes = bytes(&found);
                own = own.saturating_add(if found.since >= since { bytes } else { 0 });
                carried = carried.saturating_add(if found.until > tail.since { bytes } else { 0 });
            }
            let is_large = own > tail.bytes.saturating_mul(3) / 2 || own >= block_bytes / 2;
            if is_large && own >= carried {
                break;
            }
            tail.bytes = tail.bytes.saturating_add(own);
        }
        (tail.place, tail.since) = (place, since);
    }
    Ok(tail)
}

/// Divides a range into blocks of about the same size.
///
/// What meets the beginning of a block is in it, too, so a block goes on until what begins in it is
/// as large: segments have at most about twice the bytes of the pieces.
pub(super) fn split(
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
pub(super) fn shown(
    view: &View,
    (first, last): (u64, u64),
    revision: Revision,
) -> Result<Vec<(u32, Found<'_>)>, Damage> {
    let mut channels: BTreeSet<u32> = view.recent().keys().copied().collect();
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
