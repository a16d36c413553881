//! What servers answer to our clients: whatever comes is an answer or an error, and of a sync each
//! change has its numbers, texts and label.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::protocol::{SyncAnswer, read_answer, read_sync_answer};

fuzz_target!(|bytes: &[u8]| {
    let _ = read_answer(bytes);
    if let Ok(SyncAnswer::Since { nodes, .. }) = read_sync_answer(bytes) {
        for change in nodes.iter().flat_map(|node| &node.changes) {
            let name = change.label().map_or("v_", |(name, _)| name);
            let _ = (change.number(name), change.text(name));
        }
    }
});
