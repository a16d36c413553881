//! Values in JSON, up to the largest answer.

use std::io::{self, Write};

use axum::http::StatusCode;
use serde::Serialize;

use super::fault::Fault;

/// The largest answer.
const MOST_ANSWER: usize = 512 << 20;

/// A value in JSON.
///
/// # Errors
/// When it is larger than an answer may be.
pub(super) fn rendered(value: &impl Serialize) -> Result<Vec<u8>, Fault> {
    let mut out = Limited(Vec::new());
    serde_json::to_writer(&mut out, value).map_err(|_| {
        let message = format!("the answer has more than {} MiB", MOST_ANSWER >> 20);
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message, "ask for a smaller part of the tree")
    })?;
    Ok(out.0)
}

/// Takes as many bytes as an answer may have.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_ANSWER {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
