//! How much work a question is. What is little is done by the thread of connections. Of large
//! questions one is answered at a time, so that of the two threads beside it one is left for the
//! others, and none is begun without room for its answer.

use super::asked::{compared, range, version};
use super::little::{
    self, ALL_CHANNELS, CELLS_PER_OBJECT, are_within, channels_asked, looked_up, selected,
};
use super::ready::SliceKey;
use crate::model::{ANSWER_BYTES, Folder, State, Version, View};
use crate::protocol::Params;

/// How much work a question is that is not little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Medium,
    /// With the most bytes that its answer has.
    Large(usize),
}

/// How it is found how much work a question is.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Whether it is little: found, as what is, by the thread of connections, in less than a
    /// millisecond.
    pub(super) is_little: fn(&State, &Params) -> bool,
    /// The size of what is not little: found beside it.
    pub(super) size: fn(&State, &Params) -> Size,
}

pub(super) const FOLDERS: Work = Work { is_little: little::folders, size: |_, _| Size::Medium };
pub(super) const TAGS: Work = Work { is_little: little::tags, size: |_, _| Size::Medium };
pub(super) const CHANNELS: Work = Work { is_little: little::channels, size: channels };
pub(super) const FIND: Work = Work { is_little: little::find, size: at_one_time };
pub(super) const EXPLAIN: Work = Work { is_little: little::explain, size: at_one_time };
pub(super) const BROWSE: Work = Work { is_little: |_, _| false, size: browse };
pub(super) const COUNT: Work = Work { is_little: |_, _| false, size: count };
pub(super) const DIFF: Work = Work { is_little: |_, _| false, size: diff };

/// The most cells that are read for a medium one, about: that takes a tenth of a second.
const MAX_CELLS: u64 = 1 << 20;

/// To read this many bytes of segments takes about as long as to copy a cell.
const BYTES_PER_CELL: u64 = 4;

const ANSWER: usize = ANSWER_BYTES.most as usize;

/// The size of what counts as these cells together, with at most this many bytes. What is refused
/// counts as none.
fn of(cells: impl IntoIterator<Item = u64>, bytes: usize) -> Size {
    if are_within(cells.into_iter(), MAX_CELLS) { Size::Medium } else { Size::Large(bytes) }
}

fn channels(state: &State, params: &Params) -> Size {
    let folder = params.folder.as_deref().and_then(|path| state.folder(path).ok());
    of(folder.map(|folder| CELLS_PER_OBJECT * folder.channels().len() as u64), ANSWER)
}

fn at_one_time(state: &State, params: &Params) -> Size {
    let cells = || {
        let (folder, version) = asked(state, params)?;
        Some(shown(folder, params.t?, version, channels_asked(&params.selection)))
    };
    of(cells(), ANSWER)
}

fn browse(state: &State, params: &Params) -> Size {
    of(over_a_range(state, params), ANSWER)
}

/// It is as much to read, but its answer is one number.
fn count(state: &State, params: &Params) -> Size {
    of(over_a_range(state, params), 0)
}

fn diff(state: &State, params: &Params) -> Size {
    let under = params.under.as_deref().unwrap_or("/");
    let (Ok(range), Ok((before, after))) = (range(params), compared(state, params, under)) else {
        return Size::Medium;
    };
    let asked = channels_asked(&params.selection);
    let cells = |folder, view| {
        let version = state.shown_version(view, folder);
        version.map_or(0, |version| ranged(folder, range, version, asked))
    };
    let both = |folder| cells(folder, before).saturating_add(cells(folder, after));
    of(state.under(under).map(both), ANSWER)
}

/// The size of what is at a place, where that is not little.
pub(super) fn slice(state: &State, SliceKey { under, view, since, .. }: &SliceKey) -> Size {
    let cells = |folder| {
        let version = state.shown_version(*view, folder);
        version.map_or(0, |version| shown(folder, *since, version, ALL_CHANNELS))
    };
    of(state.under(under).map(cells), ANSWER)
}

/// The size of what it takes to find where a time leads, where that is not little.
pub(super) fn look_up(state: &State, under: &str, view: View) -> Size {
    of(looked_up(state, under, view), 0)
}

fn over_a_range(state: &State, params: &Params) -> Option<u64> {
    let (folder, version) = asked(state, params)?;
    Some(ranged(folder, range(params).ok()?, version, channels_asked(&params.selection)))
}

fn asked<'a>(state: &'a State, params: &Params) -> Option<(&'a Folder, Version)> {
    let path = params.folder.as_deref()?;
    Some((state.folder(path).ok()?, version(state, params, path).ok()?))
}

/// How many cells are read of what is shown at a time.
fn shown(folder: &Folder, time: u64, version: Version, asked: u64) -> u64 {
    let cells = little::cells(folder, time, version, asked);
    cells.unwrap_or_else(|| ranged(folder, (time, time), version, asked))
}

/// As how many cells it counts to read what is shown over a range, if all channels have as much.
fn ranged(folder: &Folder, range: (u64, u64), version: Version, asked: u64) -> u64 {
    let (all, of) = (folder.channels().len().max(1) as u64, selected(folder, asked));
    let bytes = folder.bytes_over(range, version).div_ceil(all).saturating_mul(of);
    (CELLS_PER_OBJECT * of).saturating_add(bytes / BYTES_PER_CELL)
}

#[cfg(test)]
mod tests {
    use super::super::little::tests::{change, seal};
    use super::*;
    use crate::model::{Batch, Change, ColumnSpec, Kind, Object, Of, Table, Value, Versioning};
    use crate::protocol::Format;

    fn folder(state: &mut State, path: &str, kind: Kind) {
        let columns = vec![ColumnSpec { name: "c".to_owned(), kind }];
        let (path, versioning) = (path.to_owned(), Versioning::Multi);
        let description = String::new();
        change(state, Change::CreateFolder { path, description, versioning, columns });
    }

    /// Inserts an object of as many records of this value into the head, or else a tag.
    fn insert(state: &mut State, folder: &str, tag: Option<&str>, (value, records): (&Value, u32)) {
        let kind = state.folder(folder).expect("a folder").columns()[0].kind;
        let mut payload = Table::new([kind]);
        (0..records).for_each(|_| payload.columns[0].push(value).expect("of the kind"));
        payload.rows = records;
        let objects = vec![Object { channel: 0, since: 0, until: 10, records }];
        let (folder, tag, only_tag) = (folder.to_owned(), tag.map(str::to_owned), tag.is_some());
        change(state, Change::Insert(vec![Batch { folder, tag, only_tag, objects, payload }]));
    }

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::read(pairs, &["folder", "under", "t", "tag", "to_tag"]).expect("a question")
    }

    #[test]
    fn what_a_tag_shows_is_sized_by_its_own_objects_and_not_by_those_of_the_head() {
        let mut state = State::default();
        let (short, long) = (Value::Text("x".to_owned()), Value::Text("x".repeat(9 << 20)));
        for (set, head, tag) in [("a", &long, &short), ("b", &short, &long)] {
            let (path, name) = (format!("/{set}/folder"), format!("of-{set}"));
            folder(&mut state, &path, Kind::String);
            insert(&mut state, &path, None, (head, 1));
            insert(&mut state, &path, Some(&name), (tag, 1));
            let (tags, description, path) = (vec![name], String::new(), format!("/{set}"));
            let name = format!("global-{set}");
            change(&mut state, Change::GlobalTag { name, path, description, tags });
        }
        let large = Size::Large(ANSWER);
        for is_sealed in [false, true] {
            if is_sealed {
                seal(&mut state, 1 << 20);
            }
            for (set, of_head, of_tag) in [("a", large, Size::Medium), ("b", Size::Medium, large)] {
                let path = format!("/{set}/folder");
                let of_both = |tag: &str| {
                    let pairs = [("under", path.as_str()), ("tag", tag), ("to_tag", tag)];
                    diff(&state, &params(&pairs))
                };
                let sizes = [of_both("HEAD"), of_both(&format!("of-{set}"))];
                assert_eq!(sizes, [of_head, of_tag], "{is_sealed}");
                let global = state.tag(&format!("global-{set}")).expect("a tag").id;
                let slice = |of| {
                    let view = View { revision: state.revision(), of };
                    let (under, format) = (path.clone(), Format::Binary);
                    slice(&state, &SliceKey { under, view, since: 5, format })
                };
                let sizes = [slice(Of::Head), slice(Of::Global(global))];
                assert_eq!(sizes, [of_head, of_tag], "{is_sealed}");
            }
        }
    }

    #[test]
    fn what_is_little_of_a_tag_is_by_its_own_records_and_not_by_those_of_the_head() {
        let mut state = State::default();
        for (path, head, tag) in [("/few", 1, 20_000), ("/many", 20_000, 1)] {
            folder(&mut state, path, Kind::Float);
            (0..100).for_each(|_| insert(&mut state, path, None, (&Value::Float(1.0), head)));
            insert(&mut state, path, Some(&path[1..]), (&Value::Float(1.0), tag));
        }
        for is_sealed in [false, true] {
            if is_sealed {
                seal(&mut state, 1 << 20);
            }
            let is_little = |path, tag| {
                little::find(&state, &params(&[("folder", path), ("tag", tag), ("t", "5")]))
            };
            assert!(is_little("/few", "HEAD") && !is_little("/few", "few"), "{is_sealed}");
            assert!(!is_little("/many", "HEAD") && is_little("/many", "many"), "{is_sealed}");
        }
    }
}
