//! What seals write, and how much of it stays.

use std::collections::BTreeMap;

use bytes::Bytes;
use conditions::model::{
    Added, Batch, Change, ColumnSpec, Group, Kind, Leads, MAX_TIME, Object, Selection, State,
    Table, Value, Version, Versioning,
};

const SEALS: u64 = 64;
const OBJECTS: u64 = 50;
const CHANNELS: u32 = 3;
const BLOB_BYTES: usize = 100;

fn make(state: &mut State, change: Change) {
    let mut group = Group::default();
    assert!(matches!(group.add(state, change, 0).expect("taken"), Added::At(_)));
    state.apply_group(group);
}

/// The n-th object of each channel: [n, n + 1), or [n, open), which the next one cuts.
fn insert(state: &mut State, n: u64, is_open: bool) {
    let mut payload = Table::new([Kind::Blob]);
    for _ in 0..CHANNELS {
        payload.columns[0].push(&Value::Bytes(vec![n as u8; BLOB_BYTES])).expect("a blob");
        payload.rows += 1;
    }
    let until = if is_open { MAX_TIME } else { n + 1 };
    let object = |channel| Object { channel, since: n, until, records: 1 };
    let objects = (0..CHANNELS).map(object).collect();
    let folder = "/f".to_owned();
    make(
        state,
        Change::Insert(vec![Batch { folder, tag: None, only_tag: false, objects, payload }]),
    );
}

/// Seals, and returns how many bytes were written; those that stay are in `sizes`.
fn seal(state: &mut State, sizes: &mut BTreeMap<u64, usize>) -> usize {
    let (mut seal, mut written) = (state.seal(1 << 30).expect("whole"), 0);
    state.begin_seal(&seal);
    while let Some(made) = seal.next(state).expect("whole") {
        written += made.bytes.len();
        sizes.insert(made.id, made.bytes.len());
        seal.stored(made.id, Bytes::from(made.bytes)).expect("what was made");
    }
    let named = seal.segments();
    sizes.retain(|id, _| named.contains(id));
    let rebuilt = state.rebuild(&seal);
    drop(state.end_seal(&seal, Some(rebuilt)));
    written
}

#[test]
fn what_comes_in_order_is_kept_once_and_written_a_few_times_however_often_it_is_sealed() {
    for is_open in [false, true] {
        let mut state = State::default();
        let columns = vec![ColumnSpec { name: "v".to_owned(), kind: Kind::Blob }];
        let (path, description, versioning) = ("/f".to_owned(), String::new(), Versioning::Single);
        make(&mut state, Change::CreateFolder { path, description, versioning, columns });
        let (mut written, mut sizes) = (0, BTreeMap::new());
        for round in 0..SEALS {
            for n in round * OBJECTS..(round + 1) * OBJECTS {
                insert(&mut state, n, is_open);
            }
            written += seal(&mut state, &mut sizes);
            // Each is less than two thirds of the one before.
            assert!(sizes.len() <= 8, "{sizes:?}");
        }
        let rows = (SEALS * OBJECTS) as usize * CHANNELS as usize;
        let kept: usize = sizes.values().sum();
        // A blob has the place of its end beside it.
        let per_row = kept as f64 / rows as f64 - (BLOB_BYTES + 8) as f64;
        assert!(per_row < 20.0, "{per_row} bytes beside the payload, open: {is_open}");
        // A row is written again when as much has come since: half of log2(64) times, and once.
        let times = written as f64 / kept as f64;
        assert!(times < 4.5, "written {times} times, open: {is_open}");
        // What was open before it was cut is still answered.
        let folder = state.folder("/f").expect("it");
        for n in [0, 49, 50, 1_000, SEALS * OBJECTS - 1] {
            let version = Version { revision: n + 2, user_tag: None };
            let found = folder.find(SEALS * OBJECTS + 7, &Selection::default(), version);
            let objects = found.expect("an answer").objects;
            let since: Vec<_> = objects.iter().map(|object| (object.since, object.until)).collect();
            let count = if is_open { CHANNELS as usize } else { 0 };
            assert_eq!(since, vec![(n, MAX_TIME); count]);
        }
    }
}

#[test]
fn what_a_block_that_ends_earlier_by_now_holds_behind_its_end_does_not_count() {
    let mut state = State::default();
    let (path, description, versioning) = ("/f".to_owned(), String::new(), Versioning::Single);
    make(&mut state, Change::CreateFolder { path, description, versioning, columns: Vec::new() });
    let insert = |state: &mut State, objects: Vec<Object>| {
        let (folder, payload) = ("/f".to_owned(), Table::default());
        let batch = Batch { folder, tag: None, only_tag: false, objects, payload };
        make(state, Change::Insert(vec![batch]));
    };
    let object = |channel, since, until| Object { channel, since, until, records: 0 };
    let mut first: Vec<_> = (0..80).map(|n| object(1, n, n + 1)).collect();
    first.extend([object(1, 80, 95), object(2, 0, 1), object(2, 100, 101)]);
    insert(&mut state, first);
    let mut sizes = BTreeMap::new();
    seal(&mut state, &mut sizes);
    insert(&mut state, vec![object(2, 90, 91)]);
    seal(&mut state, &mut sizes);
    assert_eq!(sizes.len(), 2, "the first block stays");
    let view = state.view(None, None, "/").expect("the head");
    let mut leads = Leads::default();
    for (time, since) in [(85, 80), (89, 80), (90, 90), (91, 91), (100, 100)] {
        assert_eq!(leads.lead(&state, "/", time, view).expect("a place").since, since);
    }
    let version = Version { revision: state.revision(), user_tag: None };
    let folder = state.folder("/f").expect("it");
    let all = folder.count((0, MAX_TIME), &Selection::default(), version);
    assert_eq!(all.expect("a number"), 84);
}
