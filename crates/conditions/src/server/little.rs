//! What is little work: the thread of connections, which all clients share, does it itself.

use crate::model::{Folder, NAME_BYTES, Numbers, Selection, Shows, State, Version, View};
use crate::protocol::{Format, Params};

/// The most cells that are read there, in the binary form and in JSON: either takes less than a
/// millisecond.
const MAX_CELLS: u64 = 16_384;
const MAX_JSON_CELLS: u64 = 2_048;

/// To find a channel's object takes about as long as to copy this many cells.
pub(super) const CELLS_PER_OBJECT: u64 = 8;

/// In a gap all segments of a folder are looked at; to pass about as many takes as long as to copy
/// a cell.
const SEGMENTS_PER_CELL: u64 = 4;

/// The most bytes of a list, about: it is made, and hashed, in less than a millisecond.
const MAX_LIST_BYTES: usize = 64 << 10;

/// What is shown now where no tag is named.
const NOW: Version = Version { revision: u64::MAX, user_tag: None };

/// What a folder, set or tag of a list, and a column, channel or name, has beside its texts, about.
const ROW_BYTES: usize = 160;
const ITEM_BYTES: usize = 32;

/// To explain what a channel shows is as much work as to copy this many cells in JSON.
const CELLS_PER_EXPLAINED: u64 = 2 * CELLS_PER_OBJECT;

/// Whether there are few folders and sets at and below a path.
pub(super) fn folders(state: &State, params: &Params) -> bool {
    let under = params.under.as_deref().unwrap_or("/");
    let row = |path: &str, description: &str| ROW_BYTES + path.len() + description.len();
    let sets = state.sets(under).map(|(path, description)| row(path, description));
    let folders = state.under(under).flat_map(|folder| {
        let columns = folder.columns().iter().map(|column| ITEM_BYTES + column.name.len());
        std::iter::once(row(folder.path(), folder.description())).chain(columns)
    });
    // Each of the two passes the other's.
    state.has_few(under, MAX_LIST_BYTES / ROW_BYTES) && is_short(sets.chain(folders))
}

/// Whether a folder has few channels.
pub(super) fn channels(state: &State, params: &Params) -> bool {
    let folder = params.folder.as_deref().and_then(|path| state.folder(path).ok());
    // What is refused is little.
    folder.is_none_or(|folder| {
        is_short(folder.channels().map(|(_, name)| ITEM_BYTES + name.map_or(0, str::len)))
    })
}

/// Whether there are few tags, with few that they pick.
pub(super) fn tags(state: &State, _: &Params) -> bool {
    is_short(state.tags().flat_map(|(name, tag)| {
        let own = ROW_BYTES + name.len() + tag.path.len() + tag.description.len();
        let by = tag.picked_by.iter().map(|name| ITEM_BYTES + name.len());
        let picks = match &tag.shows {
            Shows::Picks(picks) => Some(picks),
            Shows::Head(_) | Shows::User => None,
        };
        let picks = picks.into_iter().flat_map(|picks| {
            // Paths for which it picks none any more are passed, too.
            let passed = ITEM_BYTES * picks.paths();
            let named = picks.now().map(|(path, _)| path.len() + NAME_BYTES);
            std::iter::once(passed).chain(named)
        });
        std::iter::once(own).chain(by).chain(picks)
    }))
}

/// Whether these are few bytes together.
fn is_short(bytes: impl Iterator<Item = usize>) -> bool {
    are_within(bytes.map(|bytes| bytes as u64), MAX_LIST_BYTES as u64)
}

/// Whether the sum is within a limit; where it is not, no more is looked at than shows that.
pub(super) fn are_within(mut all: impl Iterator<Item = u64>, most: u64) -> bool {
    let sum = all.try_fold(0_u64, |sum, one| {
        let sum = sum.saturating_add(one);
        (sum <= most).then_some(sum)
    });
    sum.is_some()
}

/// Whether what is shown at one time, in one folder, is few cells.
pub(super) fn find(state: &State, params: &Params) -> bool {
    let cells = at_one_time(state, params).and_then(|(folder, time, version)| {
        cells(folder, time, version, channels_asked(&params.selection))
    });
    cells.is_some_and(|cells| cells <= MAX_JSON_CELLS)
}

/// Whether it is explained of few channels what they show at one time.
pub(super) fn explain(state: &State, params: &Params) -> bool {
    at_one_time(state, params).is_some_and(|(folder, _, version)| {
        let each = CELLS_PER_EXPLAINED + cells_of_past(folder, version);
        each.saturating_mul(selected(folder, channels_asked(&params.selection))) <= MAX_JSON_CELLS
    })
}

/// The folder that is asked for at a time, with what of it is.
fn at_one_time<'a>(state: &'a State, params: &Params) -> Option<(&'a Folder, u64, Version)> {
    let time = params.t?;
    let path = params.folder.as_deref()?;
    let folder = state.folder(path).ok()?;
    let as_of = || params.as_of_us.map(|time| state.revision_at(time));
    let (tag, revision) = (params.tag.as_deref(), params.revision.or_else(as_of));
    let is_of_now = tag.is_none() && revision.is_none();
    // What is refused is little.
    let version = (!is_of_now).then(|| state.version(tag, revision, path).ok()).flatten();
    Some((folder, time, version.unwrap_or(NOW)))
}

/// Whether all folders at and below a path together show few objects at a time.
pub(super) fn is_little_slice(
    state: &State,
    under: &str,
    (view, time): (View, u64),
    format: Format,
) -> bool {
    let most = if format == Format::Json { MAX_JSON_CELLS } else { MAX_CELLS };
    let each = state.under(under).map(|folder| {
        let version = state.shown_version(view, folder);
        let cells = version.map_or(Some(0), |version| cells(folder, time, version, ALL_CHANNELS));
        // What has no known bound is not little.
        cells.map_or(u64::MAX, |cells| cells.max(CELLS_PER_OBJECT))
    });
    are_within(each, most)
}

/// Whether it is little work to look up where the answer at a time begins to be as it is, which
/// copies no cell.
pub(super) fn is_little_look_up(state: &State, under: &str, view: View) -> bool {
    are_within(looked_up(state, under, view), MAX_CELLS)
}

/// As how many cells it counts to look that up in each folder.
pub(super) fn looked_up(state: &State, under: &str, view: View) -> impl Iterator<Item = u64> {
    state.under(under).map(move |folder| {
        let Some(Version { user_tag, .. }) = state.shown_version(view, folder) else {
            return CELLS_PER_OBJECT;
        };
        let each = CELLS_PER_OBJECT + folder.segments(user_tag) as u64 / SEGMENTS_PER_CELL;
        each.saturating_mul(folder.channels().len().max(1) as u64)
    })
}

/// How many cells a version of a folder shows at one time, if its objects have as many records as
/// those about it have in the mean, with what it takes to find them; `None` where that is unknown,
/// because cells may have any length. `asked` are [`channels_asked`].
pub(super) fn cells(folder: &Folder, time: u64, version: Version, asked: u64) -> Option<u64> {
    let columns = folder.columns();
    columns.iter().try_for_each(|column| column.kind.width_bytes().map(drop))?;
    let records = folder.mean_records(time, version.user_tag);
    let cells = records.saturating_mul(columns.len() as u64).max(CELLS_PER_OBJECT);
    let each = cells.saturating_add(cells_of_past(folder, version));
    Some(each.saturating_mul(selected(folder, asked)))
}

/// As how many cells it counts to look for a channel's object in the past.
fn cells_of_past(folder: &Folder, Version { user_tag, revision }: Version) -> u64 {
    folder.past_segments(user_tag, revision) as u64 / SEGMENTS_PER_CELL
}

/// What [`channels_asked`] are where none is named.
pub(super) const ALL_CHANNELS: u64 = u64::MAX;

/// The most channels that are asked for of any folder. They are counted once, and not for each:
/// a body may have half a million ranges.
pub(super) fn channels_asked(Selection { numbers, names, .. }: &Selection) -> u64 {
    if numbers.is_none() && names.is_empty() {
        return ALL_CHANNELS;
    }
    let width = |(first, last): &(u32, u32)| u64::from(last - first) + 1;
    let numbered: u64 = numbers.iter().flat_map(Numbers::ranges).map(width).sum();
    numbered + names.len() as u64
}

/// How many of them a folder has at most.
pub(super) fn selected(folder: &Folder, asked: u64) -> u64 {
    asked.min(folder.channels().len() as u64)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::{
        Batch, Change, ColumnSpec, Entry, Kind, Object, Of, Table, Value, Versioning,
    };

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
        for one in [made, Change::Insert(vec![batch])] {
            change(state, one);
        }
    }

    pub(in super::super) fn change(state: &mut State, change: Change) {
        let revision = state.revision() + 1;
        state.replay(Entry { revision, time_us: 0, change }).expect("a change");
    }

    /// Seals all, in blocks of about this many bytes.
    pub(in super::super) fn seal(state: &mut State, block_bytes: u64) {
        let mut seal = state.seal(block_bytes).expect("all is known");
        state.begin_seal(&seal);
        while let Some(made) = seal.next(state).expect("a segment") {
            seal.stored(made.id, bytes::Bytes::from(made.bytes)).expect("it is whole");
        }
        let rebuilt = state.rebuild(&seal);
        drop(state.end_seal(&seal, Some(rebuilt)));
    }

    #[test]
    fn a_sum_ends_where_it_is_over_its_limit() {
        assert!(are_within([2, 3].into_iter(), 5));
        assert!(!are_within(std::iter::repeat(1), 5), "nothing more is looked at");
        assert!(!are_within([u64::MAX; 2].into_iter(), 5));
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
            find(&state, &params.expect("a question"))
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
        let is_little = |under, format| is_little_slice(&state, under, (head, 0), format);
        assert!(is_little("/a/floats", Format::Binary) && !is_little("/a/floats", Format::Json));
        assert!(is_little("/b/none", Format::Json));
        assert!(!is_little("/a", Format::Binary), "together");
        assert!(!is_little("/b", Format::Binary), "of any length");
    }

    #[test]
    fn short_lists_and_explanations_of_few_channels_are_little() {
        let mut state = State::default();
        folder(&mut state, "/a", &[Kind::String], 1_000, 1);
        folder(&mut state, "/b/wide", &[Kind::Bool; 1_024], 1, 1);
        let params = |pairs: &[(&str, &str)]| {
            let params = Params::read(pairs, &["under", "folder", "t", "channels"]);
            params.expect("a question")
        };
        let of = |under| params(&[("under", under)]);
        assert!(folders(&state, &params(&[])) && tags(&state, &params(&[])));
        folder(&mut state, "/b/other", &[Kind::Bool; 1_024], 1, 1);
        assert!(!folders(&state, &of("/b")), "columns");
        assert!(folders(&state, &of("/a")) && folders(&state, &of("/none")));
        (0..500).for_each(|n| folder(&mut state, &format!("/c/{n}"), &[], 1, 1));
        assert!(!folders(&state, &of("/c")), "folders");
        for n in 0..500 {
            let (path, description) = (format!("/d/{n}"), String::new());
            change(&mut state, Change::CreateSet { path, description });
        }
        assert!(!folders(&state, &of("/d")), "sets");

        assert!(channels(&state, &params(&[("folder", "/a")])));
        assert!(
            channels(&state, &params(&[("folder", "/none")])) && channels(&state, &params(&[]))
        );
        folder(&mut state, "/many", &[], 10_000, 1);
        assert!(!channels(&state, &params(&[("folder", "/many")])));

        let explain = |channels| {
            let pairs = [("folder", "/a"), ("t", "0"), ("channels", channels)];
            explain(&state, &params(&pairs))
        };
        assert!(explain("7") && explain("0-99") && !explain("0-999"));
    }

    #[test]
    fn many_tags_or_long_descriptions_or_picks_are_not_little() {
        let tag = |state: &mut State, n: u32, bytes: usize| {
            let (name, path) = (format!("t{n}"), format!("/{n}"));
            folder(state, &path, &[], 1, 1);
            let (revision, description) = (None, "x".repeat(bytes));
            change(state, Change::Tag { name, path, description, revision });
        };
        let is_little = |state: &State| tags(state, &Params::default());
        let mut state = State::default();
        (0..100).for_each(|n| tag(&mut state, n, 200));
        assert!(is_little(&state));
        let (name, path, description) = ("g".to_owned(), "/".to_owned(), String::new());
        let tags = (0..100).map(|n| format!("t{n}")).collect();
        change(&mut state, Change::GlobalTag { name, path, description, tags });
        assert!(!is_little(&state), "picks");

        let mut state = State::default();
        (0..10).for_each(|n| tag(&mut state, n, 4_000));
        assert!(is_little(&state));
        (10..20).for_each(|n| tag(&mut state, n, 4_000));
        assert!(!is_little(&state), "descriptions");
    }

    #[test]
    fn to_look_a_place_up_is_the_more_work_the_more_segments_a_gap_may_lie_in() {
        let mut state = State::default();
        folder(&mut state, "/a", &[Kind::Float], 500, 1);
        let of = |of| View { revision: u64::MAX, of };
        assert!(is_little_look_up(&state, "/", of(Of::Head)));
        for since in 1..200 {
            let object = Object { channel: 0, since, until: since + 1, records: 0 };
            let (objects, payload) = (vec![object], Table::new([Kind::Float]));
            let (folder, tag) = ("/a".to_owned(), None);
            let batch = Batch { folder, tag, only_tag: false, objects, payload };
            change(&mut state, Change::Insert(vec![batch]));
        }
        // In blocks of an object each.
        seal(&mut state, 1);
        assert!(state.folder("/a").expect("a folder").segments(None) > 100);
        assert!(!is_little_look_up(&state, "/", of(Of::Head)));
        assert!(is_little_look_up(&state, "/", of(Of::User(7))), "it has none");
    }
}
