//! How much work a question is. What is little is done by the thread of connections. Of large
//! questions one is answered at a time, so that of the two threads beside it one is left for the
//! others, and none is begun without room for its answer.

use super::asked::{range, version};
use super::little::{self, CELLS_PER_OBJECT, selected};
use super::ready::SliceKey;
use crate::model::{ANSWER_BYTES, Folder, Of, Selection, State, Version};
use crate::protocol::Params;

/// How much work a question is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Little,
    Medium,
    /// With the most bytes that its answer has.
    Large(usize),
}

/// The most cells that are read for a medium one, about: that takes a tenth of a second.
const MAX_CELLS: u64 = 1 << 20;

/// To read this many bytes of segments takes about as long as to copy a cell.
const BYTES_PER_CELL: u64 = 4;

const ANSWER: usize = ANSWER_BYTES.most as usize;

/// The size of what is not little: that of as many cells, with at most this many bytes.
fn of(cells: Option<u64>, bytes: usize) -> Size {
    // What is refused is not large.
    if cells.unwrap_or(0) <= MAX_CELLS { Size::Medium } else { Size::Large(bytes) }
}

/// What has a bound for being little, and none that is known beyond.
fn little_or_medium(is_little: bool) -> Size {
    if is_little { Size::Little } else { Size::Medium }
}

pub(super) fn folders(state: &State, params: &Params) -> Size {
    little_or_medium(little::folders(state, params))
}

pub(super) fn tags(state: &State, params: &Params) -> Size {
    little_or_medium(little::tags(state, params))
}

pub(super) fn channels(state: &State, params: &Params) -> Size {
    if little::channels(state, params) {
        return Size::Little;
    }
    let folder = params.folder.as_deref().and_then(|path| state.folder(path).ok());
    of(folder.map(|folder| CELLS_PER_OBJECT * folder.channels().len() as u64), ANSWER)
}

pub(super) fn find(state: &State, params: &Params) -> Size {
    if little::find(state, params) {
        return Size::Little;
    }
    of(at_one_time(state, params), ANSWER)
}

pub(super) fn explain(state: &State, params: &Params) -> Size {
    if little::explain(state, params) {
        return Size::Little;
    }
    of(at_one_time(state, params), ANSWER)
}

pub(super) fn browse(state: &State, params: &Params) -> Size {
    of(over_a_range(state, params), ANSWER)
}

/// It is as much to read, but its answer is one number.
pub(super) fn count(state: &State, params: &Params) -> Size {
    of(over_a_range(state, params), 0)
}

pub(super) fn diff(state: &State, params: &Params) -> Size {
    let Ok(range) = range(params) else { return Size::Medium };
    let under = params.under.as_deref().unwrap_or("/");
    // Of whatever was shown before.
    let before = Version { revision: 0, user_tag: None };
    let cells = state.under(under).map(|folder| ranged(folder, range, &params.selection, before));
    of(Some(2 * cells.sum::<u64>()), ANSWER)
}

/// The size of what is at a place, where that is not little.
pub(super) fn slice(state: &State, SliceKey { under, view, since, .. }: &SliceKey) -> Size {
    let user_tag = match view.of {
        Of::User(id) => Some(id),
        Of::Head | Of::Global(_) => None,
    };
    let (all, version) = (Selection::default(), Version { revision: view.revision, user_tag });
    let cells = state.under(under).map(|folder| shown(folder, *since, &all, version));
    of(Some(cells.sum()), ANSWER)
}

/// The size of what it takes to find where a time leads, where that is not little.
pub(super) fn look_up(state: &State, under: &str) -> Size {
    let channels = state.under(under).map(|folder| folder.channels().len() as u64);
    of(Some(CELLS_PER_OBJECT * channels.sum::<u64>()), 0)
}

fn at_one_time(state: &State, params: &Params) -> Option<u64> {
    let (folder, version) = asked(state, params)?;
    Some(shown(folder, params.t?, &params.selection, version))
}

fn over_a_range(state: &State, params: &Params) -> Option<u64> {
    let (folder, version) = asked(state, params)?;
    Some(ranged(folder, range(params).ok()?, &params.selection, version))
}

fn asked<'a>(state: &'a State, params: &Params) -> Option<(&'a Folder, Version)> {
    let path = params.folder.as_deref()?;
    Some((state.folder(path).ok()?, version(state, params, path).ok()?))
}

/// How many cells are read of what is shown at a time.
fn shown(folder: &Folder, time: u64, of: &Selection, version: Version) -> u64 {
    let past = folder.past_segments(version.user_tag, version.revision);
    little::cells(folder, of, past).unwrap_or_else(|| ranged(folder, (time, time), of, version))
}

/// As how many cells it counts to read what is shown over a range, if all channels have as much.
fn ranged(folder: &Folder, range: (u64, u64), of: &Selection, version: Version) -> u64 {
    let (all, of) = (folder.channels().len().max(1) as u64, selected(folder, of));
    let bytes = folder.bytes_over(range, version).div_ceil(all).saturating_mul(of);
    (CELLS_PER_OBJECT * of).saturating_add(bytes / BYTES_PER_CELL)
}
