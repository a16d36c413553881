//! How much of what is sealed a read at a time needs: one block, however long intervals are.

use std::collections::BTreeMap;

use bytes::Bytes;
use conditions::model::{
    Batch, Change, ColumnSpec, Entry, Kind, Loader, MAX_TIME, Object, Of, Selection, State, Table,
    Value, Version, Versioning, View,
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
