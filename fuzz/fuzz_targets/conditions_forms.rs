//! Any bytes as a slice, an insertion, or an entry of the journal: what is read is written again as
//! the same bytes, and a state that applies what it doesn't refuse stays whole.
#![no_main]

use conditions::model::{Added, Change, Entry, Group, Of, State, Versioning, View};
use conditions::protocol::{Bulk, decode_insert, decode_slice, encode_insert, encode_slice};
use libfuzzer_sys::fuzz_target;

fn make(state: &mut State, change: Change) {
    let mut group = Group::default();
    if let Ok(Added::At(_)) = group.add(state, change, 0) {
        state.apply_group(group);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok((head, folders)) = decode_slice(bytes) {
        assert_eq!(encode_slice(head, &folders), bytes);
    }
    if let Ok(entry) = Entry::decode(bytes) {
        let _ = State::default().replay(entry);
    }
    let Ok(bulks) = decode_insert(bytes) else { return };
    assert_eq!(encode_insert(bulks.iter()), bytes);
    let mut state = State::default();
    for Bulk { columns, batch } in bulks {
        let versioning = match batch.objects.len() % 2 {
            0 => Versioning::Single,
            _ => Versioning::Multi,
        };
        let (path, description) = (batch.folder.clone(), String::new());
        make(&mut state, Change::CreateFolder { path, description, versioning, columns });
        let times: Vec<u64> = batch.objects.iter().map(|object| object.since).collect();
        make(&mut state, Change::Insert(vec![batch]));
        for time in times.into_iter().take(8) {
            let view = View { revision: state.revision(), of: Of::Head };
            let place = state.canonical("/", time, view).expect("the head");
            let there = View { revision: place.revision, ..view };
            assert_eq!(state.slice("/", time, view), state.slice("/", place.since, there));
        }
    }
});
