//! The log of puts: a JSON object a line.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ::records::server::{PutEntry, PutLog};
use anyhow::Context as _;
use serde_json::json;

/// Appends to a file.
pub(crate) fn open(path: &Path) -> anyhow::Result<PutLog> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.with_context(|| format!("cannot write the log {}", path.display()))?;
    let file = Mutex::new(file);
    Ok(PutLog::new(move |entry| {
        let line = format!("{}\n", line(entry));
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::warn!("a put was not logged: {error}");
        }
    }))
}

fn line(entry: &PutEntry<'_>) -> serde_json::Value {
    let kind = entry.record.kind();
    let value = |bit: usize| entry.record.read(|nodes| nodes[bit].to_string());
    let fields: serde_json::Map<_, _> = entry
        .fields
        .iter()
        .filter_map(|bit| Some((kind.path(bit)?.0, json!(value(bit)))))
        .collect();
    json!({
        "seconds": entry.time.seconds,
        "nanoseconds": entry.time.nanoseconds,
        "record": &**entry.record.name(),
        "user": &*entry.identity.user,
        "host": &*entry.identity.host,
        "address": &*entry.identity.address,
        // What the record holds after it: a put that was refused has changed nothing.
        "now": fields,
        "refused": entry.refused,
    })
}
