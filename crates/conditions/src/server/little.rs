//! What is little work: the thread of connections, which all clients share, does it itself.

use crate::model::{Folder, Numbers, Of, Selection, State, View};
use crate::protocol::{Format, Params};

/// The most cells that are read there, in the binary form and in JSON: either takes less than a
/// millisecond.
const MAX_CELLS: u64 = 16_384;
const MAX_JSON_CELLS: u64 = 2_048;

/// To find a channel's object takes about as long as to copy this many cells.
const CELLS_PER_OBJECT: u64 = 8;

/// In a gap all segments of a folder are looked at; to pass about as many takes as long as to copy
/// a cell.
const SEGMENTS_PER_CELL: u64 = 4;

/// Whether a question is of few objects: at one time, in one folder.
pub(super) fn is_little(state: &State, params: &Params) -> bool {
    let folder = params.folder.as_deref().and_then(|path| state.folder(path).ok());
    // Without a time it is of a range, or of a list.
    let cells = folder.zip(params.t).and_then(|(folder, _)| {
        let (tag, path) = (params.tag.as_deref(), params.folder.as_deref().unwrap_or_default());
        let as_of = || params.as_of_us.map(|time| state.revision_at(time));
        let revision = params.revision.or_else(as_of);
        let is_of_now = tag.is_none() && revision.is_none();
        let view = state.view(tag, revision, path).ok().filter(|_| !is_of_now);
        let past = view.map_or(0, |view| state.past_segments(view, folder));
        cells(folder, &params.selection, past)
    });
    cells.is_some_and(|cells| cells <= MAX_JSON_CELLS)
}

/// Whether all folders at and below a path together show few objects at a time.
pub(super) fn is_little_slice(state: &State, under: &str, view: View, format: Format) -> bool {
    let all = Selection::default();
    let most = if format == Format::Json { MAX_JSON_CELLS } else { MAX_CELLS };
    let sum = state.under(under).try_fold(0, |sum, folder| {
        let sum =
            sum + cells(folder, &all, state.past_segments(view, folder))?.max(CELLS_PER_OBJECT);
        (sum <= most).then_some(sum)
    });
    sum.is_some()
}

/// Whether it is little work to look up where the answer at a time begins to be as it is, which
/// copies no cell.
pub(super) fn is_little_look_up(state: &State, under: &str, of: Of) -> bool {
    let user_tag = match of {
        Of::User(id) => Some(id),
        Of::Head | Of::Global(_) => None,
    };
    let sum = state.under(under).try_fold(0, |sum: u64, folder| {
        let each = CELLS_PER_OBJECT + folder.segments(user_tag) as u64 / SEGMENTS_PER_CELL;
        let sum = sum.saturating_add(each * folder.channels().len().max(1) as u64);
        (sum <= MAX_CELLS).then_some(sum)
    });
    sum.is_some()
}

/// How many cells a folder shows at one time, if its objects have as many records as they have in
/// the mean, with what it takes to find them in `past` segments of the past; `None` where that is
/// unknown, because cells may have any length.
fn cells(folder: &Folder, selection: &Selection, past: usize) -> Option<u64> {
    let columns = folder.columns();
    columns.iter().try_for_each(|column| column.kind.width_bytes().map(drop))?;
    let (objects, rows) = folder.size();
    let records = rows.div_ceil(objects.max(1));
    let cells = records.saturating_mul(columns.len() as u64).max(CELLS_PER_OBJECT);
    let each = cells.saturating_add(past as u64 / SEGMENTS_PER_CELL);
    Some(each.saturating_mul(channels(folder, selection)))
}

/// The most channels that are selected.
fn channels(folder: &Folder, Selection { numbers, names, .. }: &Selection) -> u64 {
    let all = folder.channels().len() as u64;
    if numbers.is_none() && names.is_empty() {
        return all;
    }
    let width = |(first, last): &(u32, u32)| u64::from(last - first) + 1;
    let numbered: u64 = numbers.iter().flat_map(Numbers::ranges).map(width).sum();
    all.min(numbered + names.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Batch, Change, ColumnSpec, Entry, Kind, Object, Table, Value, Versioning};

    /// A folder of these columns, in which each channel has an object of as many records.
    fn folder(state: &mut State, path: &str, kinds: &[Kind], channels: u32, records: u32) {
        let column =
            |(number, kind): (usize, &Kind)| ColumnSpec { name: format!("c{number}"), kind: *kind };
        let columns: Vec<_> = kinds.iter().enumerate().map(column).collect();
        let (description, versioning) = (String::new(), Versioning::Single);
        let made = Change::CreateFolder { path: path.to_owned(), description, versioning, columns };
        let mut payload = Table::new(kinds.iter().copied());
        payload.rows = channels * records;
        for cells in &mut payload.columns {
            (0..payload.rows).for_each(|_| cells.push(&Value::Null).expect("of any kind"));
        }
        let object = |channel| Object { channel, since: 0, until: 1, records };
        let objects = (0..channels).map(object).collect();
        let folder = path.to_owned();
        let batch = Batch { folder, tag: None, only_tag: false, objects, payload };
        for change in [made, Change::Insert(vec![batch])] {
            let revision = state.revision() + 1;
            state.replay(Entry { revision, time_us: 0, change }).expect("a change");
        }
    }

    #[test]
    fn few_cells_at_one_time_are_little_and_what_has_no_known_bound_is_not() {
        let mut state = State::default();
        folder(&mut state, "/a/floats", &[Kind::Float; 16], 1_000, 1);
        folder(&mut state, "/a/wide", &[Kind::Float; 16], 100, 20);
        folder(&mut state, "/b/text", &[Kind::String], 1, 1);
        folder(&mut state, "/b/none", &[], 1, 1);
        let is_little = |pairs: &[(&str, &str)]| {
            let params = Params::read(pairs, &["folder", "t", "since", "channels"]);
            is_little(&state, &params.expect("a question"))
        };
        assert!(!is_little(&[("folder", "/a/floats"), ("t", "0")]), "channels");
        assert!(is_little(&[("folder", "/a/floats"), ("t", "0"), ("channels", "0-99")]));
        assert!(
            !is_little(&[("folder", "/a/floats"), ("since", "0"), ("channels", "0")]),
            "a range"
        );
        assert!(!is_little(&[("folder", "/a/wide"), ("t", "0")]), "records");
        assert!(is_little(&[("folder", "/a/wide"), ("t", "0"), ("channels", "7,9-12")]));
        assert!(!is_little(&[("folder", "/b/text"), ("t", "0")]), "of any length");
        assert!(!is_little(&[("folder", "/none"), ("t", "0")]));
        let head = View { revision: u64::MAX, of: Of::Head };
        let is_little = |under, format| is_little_slice(&state, under, head, format);
        assert!(is_little("/a/floats", Format::Binary) && !is_little("/a/floats", Format::Json));
        assert!(is_little("/b/none", Format::Json));
        assert!(!is_little("/a", Format::Binary), "together");
        assert!(!is_little("/b", Format::Binary), "of any length");
    }

    #[test]
    fn to_look_a_place_up_is_the_more_work_the_more_segments_a_gap_may_lie_in() {
        let mut state = State::default();
        folder(&mut state, "/a", &[Kind::Float], 500, 1);
        assert!(is_little_look_up(&state, "/", Of::Head));
        for since in 1..200 {
            let object = Object { channel: 0, since, until: since + 1, records: 0 };
            let (objects, payload) = (vec![object], Table::new([Kind::Float]));
            let (folder, tag) = ("/a".to_owned(), None);
            let change =
                Change::Insert(vec![Batch { folder, tag, only_tag: false, objects, payload }]);
            state.replay(Entry { revision: 2 + since, time_us: 0, change }).expect("a change");
        }
        // In blocks of an object each.
        let mut seal = state.seal(1).expect("all is known");
        state.begin_seal(&seal);
        while let Some(made) = seal.next(&state).expect("a segment") {
            seal.stored(made.id, bytes::Bytes::from(made.bytes)).expect("it is whole");
        }
        let rebuilt = state.rebuild(&seal);
        drop(state.end_seal(&seal, Some(rebuilt)));
        assert!(state.folder("/a").expect("a folder").segments(None) > 100);
        assert!(!is_little_look_up(&state, "/", Of::Head));
        assert!(is_little_look_up(&state, "/", Of::User(7)), "it has none");
    }
}
