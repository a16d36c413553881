//! `loadline conditions check` and `backup`: of a data directory, without its server.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use service::out;

use super::context::{Context, many};
use super::parts::SAY_EVERY;
use crate::server;

/// Reads a directory's journal and segments; what is damaged makes the command fail.
pub(super) fn check(context: &Context, data: &Path) -> anyhow::Result<()> {
    let checked = server::check(data)?;
    let (report, damaged) = (&checked.journal, &checked.damaged);
    let dropped = report.dropped.as_ref().map(ToString::to_string);
    let json = json!({
        "schema": 1, "revision": report.last, "files": report.files, "bytes": report.bytes,
        "sealed": report.snapshot, "segments": checked.segments,
        "dropped": dropped, "damaged": damaged,
    });
    let lines: Vec<_> = std::iter::once(summary(&checked)).chain(dropped).collect();
    context.print(&json, &lines.join("\n"))?;
    match damaged.is_empty() {
        true => Ok(()),
        false => Err(Damaged(damaged.join("; ")).into()),
    }
}

/// What is damaged, which the report of a check names.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Damaged(String);

fn summary(checked: &server::Checked) -> String {
    let report = &checked.journal;
    let (files, bytes) = (report.files, report.bytes);
    let (last, sealed) = (report.last, report.snapshot.unwrap_or(0));
    let (segments, files) = (many(checked.segments as u64, "segment"), many(files, "file"));
    format!(
        "revision {last}, sealed through {sealed}, {segments}, a journal of {files} with {bytes} \
         bytes"
    )
}

/// Copies a directory to another, and checks the copy.
pub(super) fn backup(context: &Context, data: &Path, to: &Path) -> anyhow::Result<()> {
    let mut said = Instant::now();
    let mut progress = |copied: server::Copied| {
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            let (done, all) = (megabytes(copied.bytes), megabytes(copied.of_bytes));
            out::note(format!("{done:.0} of {all:.0} MB copied"));
        }
    };
    let made = server::backup(data, to, &mut progress)?;
    let (revision, segments) = (made.checked.journal.last, made.checked.segments);
    let (bytes, linked) = (made.bytes, made.linked_bytes);
    let json = json!({
        "schema": 1, "to": to, "revision": revision, "segments": segments,
        "bytes": bytes, "linked_bytes": linked,
    });
    let shown = to.display();
    let text =
        format!("{shown}: {}; {bytes} bytes, {linked} of them linked", summary(&made.checked));
    context.print(&json, &text)
}
