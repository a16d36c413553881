//! What is little work: the thread of connections, which all clients share, does it itself.

use crate::model::{Folder, Numbers, Selection, State};
use crate::protocol::{Format, Params};

/// The most cells that are read there, in the binary form and in JSON: either takes less than a
/// millisecond.
const MAX_CELLS: u64 = 16_384;
const MAX_JSON_CELLS: u64 = 2_048;

/// To find a channel's object takes about as long as to copy this many cells.
const CELLS_PER_OBJECT: u64 = 8;

/// Whether a question is of few objects: at one time, in one folder.
pub(super) fn is_little(state: &State, params: &Params) -> bool {
    let folder = params.folder.as_deref().and_then(|path| state.folder(path).ok());
    // Without a time it is of a range, or of a list.
    let cells = folder.zip(params.t).and_then(|(folder, _)| cells(folder, &params.selection));
    cells.is_some_and(|cells| cells <= MAX_JSON_CELLS)
}

/// Whether all folders at and below a path together show few objects at a time.
pub(super) fn is_little_slice(state: &State, under: &str, format: Format) -> bool {
    let all = Selection::default();
    let most = if format == Format::Binary { MAX_CELLS } else { MAX_JSON_CELLS };
    let sum = state.under(under).try_fold(0, |sum, folder| {
        let sum = sum + cells(folder, &all)?.max(CELLS_PER_OBJECT);
        (sum <= most).then_some(sum)
    });
    sum.is_some()
}

/// How many cells a folder shows at one time, if its objects have as many records as they have in
/// the mean; `None` where that is unknown, because cells may have any length.
fn cells(folder: &Folder, selection: &Selection) -> Option<u64> {
    let columns = folder.columns();
    columns.iter().try_for_each(|column| column.kind.width_bytes().map(drop))?;
    let (objects, rows) = folder.size();
    let records = rows.div_ceil(objects.max(1));
    let cells = records.saturating_mul(columns.len() as u64).max(CELLS_PER_OBJECT);
    Some(cells.saturating_mul(channels(folder, selection)))
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
        let is_little = |under, format| is_little_slice(&state, under, format);
        assert!(is_little("/a/floats", Format::Binary) && !is_little("/a/floats", Format::Json));
        assert!(is_little("/b/none", Format::Json));
        assert!(!is_little("/a", Format::Binary), "together");
        assert!(!is_little("/b", Format::Binary), "of any length");
    }
}
