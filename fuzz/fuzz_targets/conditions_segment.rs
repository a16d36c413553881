//! Any bytes as a segment, and good segments with any changes under right checksums: whatever is
//! asked of them, and made of them when they are sealed anew, does no harm.
#![no_main]

use bytes::Bytes;
use conditions::model::{
    Added, Batch, Change, ColumnSpec, Export, Group, Kind, MAX_TIME, Numbers, Object, Of, Order,
    Segment, Selection, State, Table, Value, Version, Versioning, View,
};
use libfuzzer_sys::fuzz_target;

const FOLDER: &str = "/f";
const HEAD_BYTES: usize = 128;

fn change(state: &mut State, change: Change) {
    let mut group = Group::default();
    if let Ok(Added::At(_)) = group.add(state, change, 0) {
        state.apply_group(group);
    }
}

fn insert(state: &mut State, channel: u32, since: u64, until: u64) {
    let mut payload = Table::new([Kind::Int16, Kind::String]);
    payload.columns[0].push(&Value::Integer(i128::from(since))).expect("a number");
    payload.columns[1].push(&Value::Text("é".to_owned())).expect("text");
    payload.rows = 1;
    let objects = vec![Object { channel, since, until, records: 1 }];
    let batch = Batch { folder: FOLDER.to_owned(), tag: None, only_tag: false, objects, payload };
    change(state, Change::Insert(vec![batch]));
}

/// Puts the right checksums to a head and an index.
fn seal(bytes: &mut [u8]) {
    let Some(payload) = bytes.get(88..).and_then(<[u8]>::first_chunk) else { return };
    let end = (bytes.len() as u64).saturating_sub(u64::from_le_bytes(*payload)) as usize;
    if end < HEAD_BYTES {
        return;
    }
    let index = crc32fast::hash(&bytes[HEAD_BYTES..end]);
    bytes[96..100].copy_from_slice(&index.to_le_bytes());
    let head = crc32fast::hash(&bytes[..HEAD_BYTES - 4]);
    bytes[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
}

fn ask(state: &State) {
    let all = Selection::default();
    let folder = state.folder(FOLDER).expect("a folder");
    let now = View { revision: state.revision(), of: Of::Head };
    for revision in [2, 5, state.revision()] {
        let version = Version { revision, user_tag: None };
        let view = View { revision, of: Of::Head };
        for time in [0, 7, 25, MAX_TIME - 1] {
            let _ = folder.find(time, &all, version);
            let _ = folder.browse((time, time + 9), &all, Order::Time, version);
            let _ = state.explain(FOLDER, 1, time, version);
            let _ = state.canonical("/", time, view);
        }
        let _ = state.diff("/", (0, 99), &all, (view, now));
        let mut export = Export::new("/", (0, MAX_TIME), Numbers::All, view, 2);
        while let Ok(Some(_)) = export.next(state) {}
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(segment) = Segment::open(0, Bytes::copy_from_slice(data)) {
        let _ = segment.check();
    }
    let mut state = State::default();
    let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
    let columns = [("a", Kind::Int16), ("b", Kind::String)].map(column).to_vec();
    let (path, description, versioning) = (FOLDER.to_owned(), String::new(), Versioning::Multi);
    change(&mut state, Change::CreateFolder { path, description, versioning, columns });
    for (channel, since, until) in [(1, 0, 30), (2, 5, 15), (1, 10, 20), (1, 12, MAX_TIME)] {
        insert(&mut state, channel, since, until);
    }
    for _ in 0..2 {
        let Ok(mut sealing) = state.seal(150) else { return };
        state.begin_seal(&sealing);
        while let Ok(Some(made)) = sealing.next(&state) {
            let mut bytes = made.bytes;
            let is_here = |change: &&[u8]| u64::from(change[3] % 8) == made.id;
            for change in data.chunks_exact(4).filter(is_here) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
                bytes[at] = change[2];
            }
            seal(&mut bytes);
            if sealing.stored(made.id, Bytes::from(bytes)).is_err() {
                return;
            }
        }
        let rebuilt = state.rebuild(&sealing);
        drop(state.end_seal(&sealing, Some(rebuilt)));
        ask(&state);
        insert(&mut state, 1, 3, 26);
        insert(&mut state, 2, 8, 9);
        ask(&state);
    }
});
