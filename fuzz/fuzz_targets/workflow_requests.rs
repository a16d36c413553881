//! The frames and documents of ecFlow's clients: whatever comes is a request or an error, and what
//! is a request has a line in the log.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::protocol::frame::{HEAD_BYTES, length};
use workflow::protocol::read;

fuzz_target!(|bytes: &[u8]| {
    if let Some((head, document)) = bytes.split_first_chunk::<HEAD_BYTES>()
        && let Ok(size) = length(*head, 1 << 20)
    {
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(document.len());
        if let Ok(request) = read(&document[..size]) {
            request.line();
        }
    }
    if let Ok(request) = read(bytes) {
        request.line();
    }
});
