//! How much of what is sealed a read at a time needs: one block, however long intervals are.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use conditions::model::{
    Batch, Change, ColumnSpec, Entry, Export, Kind, Loader, MAX_TIME, Numbers, Object, Of,
    Selection, State, Table, Value, Version, Versioning, View,
};

const INTERVALS: u64 = 100;
const LENGTH: u64 = 10;

fn change(state: &mut State, change: Change) {
    let revision = state.revision() + 1;
    state.replay(Entry { revision, time_us: 0, change }).expect("a change");
}

/// Short intervals, endless ones, and long ones with boundaries anywhere; some channels have gaps.
fn objects() -> Vec<Object> {
    let end = INTERVALS * LENGTH;
    let mut objects = Vec::new();
    let mut add = |channel, since, until| {
        objects.push(Object { channel, since, until, records: 1 });
    };
    for channel in 0..20 {
        let boundary = 37 + 43 * u64::from(channel);
        match channel % 10 {
            0 => add(channel, 0, MAX_TIME),
            1 => {
                add(channel, 0, boundary);
                add(channel, boundary, MAX_TIME);
            }
            2 => add(channel, boundary, end - 100),
            3 => {
                (0..INTERVALS / 2).for_each(|n| add(channel, 2 * n * LENGTH, (2 * n + 1) * LENGTH))
            }
            _ => (0..INTERVALS).for_each(|n| add(channel, n * LENGTH, (n + 1) * LENGTH)),
        }
    }
    objects
}

thread_local! {
    /// The bytes of the pieces that were asked for before they are read.
    static AHEAD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn asked_for() -> Vec<usize> {
    AHEAD.with_borrow_mut(std::mem::take)
}

#[test]
fn an_export_and_a_seal_ask_for_what_they_read_in_few_large_pieces() {
    const CHANNELS: u32 = 50;
    let ahead = |bytes: &[u8]| AHEAD.with_borrow_mut(|all| all.push(bytes.len()));
    let mut state = State::default();
    let columns = vec![ColumnSpec { name: "value".to_owned(), kind: Kind::Uint64 }];
    let (path, description) = ("/a".to_owned(), String::new());
    let versioning = Versioning::Single;
    change(&mut state, Change::CreateFolder { path, description, versioning, columns });
    let add = |state: &mut State, since: u64, times: u64| {
        let mut payload = Table::new([Kind::Uint64]);
        let mut objects = Vec::new();
        for since in since..since + times {
            for channel in 0..CHANNELS {
                objects.push(Object { channel, since, until: since + 1, records: 1 });
                payload.columns[0].push(&Value::Integer(since.into())).expect("a number");
                payload.rows += 1;
            }
        }
        let (folder, tag) = ("/a".to_owned(), None);
        change(
            state,
            Change::Insert(vec![Batch { folder, tag, only_tag: false, objects, payload }]),
        );
    };
    let seal = |state: &mut State| {
        let mut seal = state.seal(8 << 20).expect("all is known").reading_ahead(ahead);
        state.begin_seal(&seal);
        while let Some(made) = seal.next(state).expect("a segment") {
            seal.stored(made.id, Bytes::from(made.bytes)).expect("what was made");
        }
        let rebuilt = state.rebuild(&seal);
        drop(state.end_seal(&seal, Some(rebuilt)));
    };
    add(&mut state, 0, 1_000);
    seal(&mut state);
    assert_eq!(asked_for(), [0; 0], "all of it was in memory");

    // Rows lie by time, and are exported by channel.
    let payload = 8 * 1_000 * CHANNELS as usize;
    let view = View { revision: state.revision(), of: Of::Head };
    let export = Export::new("/a", (0, MAX_TIME), Numbers::All, view, 1 << 20);
    let mut export = export.reading_ahead(ahead);
    assert!(export.next(&state).expect("a part").is_some());
    assert_eq!(asked_for(), [payload]);
    let few = Export::new("/a", (500, 509), Numbers::of_ranges(vec![(3, 3)]), view, 1 << 20);
    assert!(few.reading_ahead(ahead).next(&state).expect("a part").is_some());
    let asked = asked_for();
    assert!(asked.len() == 1 && asked[0] < payload / 8, "{asked:?}");

    // What is written anew with what came.
    add(&mut state, 1_000, 900);
    seal(&mut state);
    assert_eq!(asked_for(), [payload]);
}

#[test]
fn a_read_at_a_time_needs_one_block_however_long_intervals_are() {
    let mut state = State::default();
    let columns = vec![ColumnSpec { name: "value".to_owned(), kind: Kind::Uint64 }];
    let (path, description) = ("/a".to_owned(), String::new());
    change(
        &mut state,
        Change::CreateFolder { path, description, versioning: Versioning::Single, columns },
    );
    let objects = objects();
    let mut payload = Table::new([Kind::Uint64]);
    for number in 0..objects.len() {
        payload.columns[0].push(&Value::Integer(number as i128)).expect("a number");
        payload.rows += 1;
    }
    let (folder, tag) = ("/a".to_owned(), None);
    change(
        &mut state,
        Change::Insert(vec![Batch { folder, tag, only_tag: false, objects, payload }]),
    );
    let mut seal = state.seal(2_000).expect("all is known");
    state.begin_seal(&seal);
    let mut segments = BTreeMap::new();
    while let Some(made) = seal.next(&state).expect("a segment") {
        let bytes = Bytes::from(made.bytes);
        segments.insert(made.id, bytes.clone());
        seal.stored(made.id, bytes).expect("what was made");
    }
    assert!(segments.len() > 10, "{} blocks", segments.len());
    // What a start has where only one of them is there.
    let with_one = |only: &u64| {
        let mut loader = Loader::default();
        seal.records().iter().for_each(|record| loader.apply(record).expect("a record"));
        let mut open = |id, _| match id == *only {
            true => Ok(segments[&id].clone()),
            false => Err("it is left out".to_owned()),
        };
        loader.finish(&mut open).expect("a snapshot")
    };
    let alone: Vec<State> = segments.keys().map(with_one).collect();
    let revision = state.revision();
    let version = Version { revision, user_tag: None };
    let find = |state: &State, time| {
        let folder = state.folder("/a").expect("a folder");
        folder.find(time, &Selection::default(), version)
    };
    let slice = |state: &State, time| state.slice("/a", time, View { revision, of: Of::Head });
    for time in (0..INTERVALS * LENGTH + 50).step_by(7) {
        let found = alone.iter().filter_map(|one| find(one, time).ok()).collect::<Vec<_>>();
        assert_eq!(found, [find(&state, time).expect("an answer")], "at {time}");
        let shown = alone.iter().filter_map(|one| slice(one, time).ok()).collect::<Vec<_>>();
        assert_eq!(shown, [slice(&state, time).expect("an answer")], "at {time}");
    }
}
