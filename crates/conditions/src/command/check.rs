//! `loadline conditions check`.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::context::Context;
use super::input::BadInput;
use crate::server;

/// Reads a directory's journal and segments; what is damaged makes the command fail.
pub(super) fn check(context: &Context, data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    if !data.join("FORMAT").is_file() {
        let why = format!("{shown} holds no FORMAT, so it is no data directory");
        return Err(BadInput(why).into());
    }
    let checked = server::check(data).with_context(|| format!("{shown} can't be checked"))?;
    let (report, damaged) = (&checked.journal, &checked.damaged);
    let dropped = report.dropped.as_ref().map(ToString::to_string);
    let json = json!({
        "schema": 1, "revision": report.last, "files": report.files, "bytes": report.bytes,
        "sealed": report.snapshot, "segments": checked.segments,
        "dropped": dropped, "damaged": damaged,
    });
    let (files, bytes) = (report.files, report.bytes);
    let (last, sealed, segments) = (report.last, report.snapshot.unwrap_or(0), checked.segments);
    let summary = format!(
        "revision {last}, sealed through {sealed}, {segments} segments, a journal of {files} files \
         with {bytes} bytes"
    );
    let lines: Vec<_> = std::iter::once(summary).chain(dropped).collect();
    context.print(&json, &lines.join("\n"))?;
    if !damaged.is_empty() {
        bail!("{}", damaged.join("; "));
    }
    Ok(())
}
