//! Any bytes as a message of any codec: they are none, or a message that comes back from its own
//! bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::codecs::ROWS;

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first() else { return };
    let row = &ROWS[usize::from(*which) % ROWS.len()];
    let Ok(sample) = (row.decode)(bytes) else { return };
    let again = (row.encode)(&sample).expect("what is decoded can be encoded");
    (row.decode)(&again).expect("what is encoded can be decoded");
});
