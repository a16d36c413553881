//! What is sealed of what the head, or a tag of users, of one folder shows: blocks that follow each
//! other in time, and segments of the past.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::past::Bounds;
use super::piece::Revision;
use super::segment::{Damage, Segment};

/// What is sealed: a folder's place, and the tag of users, or the head.
pub(super) type Unit = (usize, Option<Revision>);

/// A segment, whether it can be read or not.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) id: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
    pub(super) segment: Result<Arc<Segment>, Damage>,
}

impl Part {
    pub(super) fn segment(&self) -> Result<&Arc<Segment>, Damage> {
        let segment = self.segment.as_ref().map_err(Clone::clone)?;
        segment.check_file()?;
        Ok(segment)
    }
}

/// A block, which ends where the next one begins. Pieces in it that begin there or later don't
/// count: what came behind a block may begin a new one, and leave this as it was.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) since: u64,
    pub(super) part: Arc<Part>,
}

/// What is sealed.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    /// The revision through which it is sealed: what is past here was so at this revision.
    pub(super) through: Revision,
    /// Blocks by time, the first from time 0 on.
    pub(super) blocks: Vec<Block>,
    pub(super) past: Vec<Arc<Part>>,
}

impl Base {
    /// The place of the block that a time lies in.
    pub(super) fn place(&self, time: u64) -> Option<usize> {
        self.blocks.partition_point(|block| block.since <= time).checked_sub(1)
    }

    /// Where a block ends.
    pub(super) fn end(&self, place: usize) -> u64 {
        self.blocks.get(place + 1).map_or(u64::MAX, |next| next.since)
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &Arc<Part>> {
        self.blocks.iter().map(|block| &block.part).chain(&self.past)
    }

    /// What is damaged first.
    pub(super) fn damage(&self) -> Option<Damage> {
        self.parts().find_map(|part| part.segment().err())
    }

    /// Hands on a channel's pieces that meet `first..=last`, in order, until it is enough.
    pub(super) fn visit<'a>(
        &'a self,
        channel: u32,
        (first, last): (u64, u64),
        each: &mut dyn FnMut(&'a Arc<Segment>, usize) -> ControlFlow<()>,
    ) -> Result<(), Damage> {
        let Some(start) = self.place(first) else { return Ok(()) };
        let blocks = self.blocks[start..].iter().take_while(|block| block.since <= last);
        for (number, block) in blocks.enumerate() {
            let end = self.end(start + number);
            let segment = block.part.segment()?;
            let Some(place) = segment.place(channel, usize::MAX) else { continue };
            let pieces = segment.pieces_of(place);
            let begin = segment.before(pieces.clone(), first.max(block.since), 0);
            for piece in begin.unwrap_or(pieces.start)..pieces.end {
                let (since, until) = (segment.since(piece), segment.until(piece));
                // What begins where the next block does is there, as it is by now.
                if since > last || since >= end {
                    break;
                }
                // What began before was in the block before.
                let is_new = number == 0 || since >= block.since;
                if is_new && until > first && each(segment, piece).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hands on what is past of a channel, [`Segment::bounds`] of these pieces, whose bounds are
    /// wanted: pieces of the past, and objects of pieces that are left of them.
    pub(super) fn visit_past<'a>(
        &'a self,
        channel: u32,
        wants: &mut dyn FnMut(Bounds) -> bool,
        each: &mut dyn FnMut(&'a Arc<Segment>, usize),
    ) -> Result<(), Damage> {
        for part in &self.past {
            let segment = part.segment()?;
            segment.visit(channel, wants, &mut |piece| each(segment, piece));
        }
        // The latest are likely to leave nothing to be wanted of the ones before.
        for (place, block) in self.blocks.iter().enumerate().rev() {
            let (segment, end) = (block.part.segment()?, self.end(place));
            segment.visit(channel, wants, &mut |piece| {
                if segment.since(piece) < end {
                    each(segment, piece);
                }
            });
        }
        Ok(())
    }

    /// Hands on, as that, what was shown of a channel at some time of `first..=last`, at a
    /// revision, and is past.
    pub(super) fn shown_once<'a>(
        &'a self,
        channel: u32,
        (first, last): (u64, u64),
        revision: Revision,
        each: &mut dyn FnMut(&'a Arc<Segment>, usize),
    ) -> Result<(), Damage> {
        if revision >= self.through {
            return Ok(());
        }
        self.visit_past(channel, &mut |bounds| bounds.may_show(first, last, revision), each)
    }
}
