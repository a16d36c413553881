//! `loadline conditions check`.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::context::Context;
use super::input::BadInput;
use crate::server;

/// Reads a directory's journal; what is damaged makes the command fail.
pub(super) fn check(context: &Context, data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    if !data.join("FORMAT").is_file() {
        let why = format!("{shown} holds no FORMAT, so it is no data directory");
        return Err(BadInput(why).into());
    }
    let report = server::check(data).with_context(|| format!("{shown} can't be checked"))?;
    let dropped = report.dropped.as_ref().map(ToString::to_string);
    let damaged: Vec<_> = report.damaged.iter().map(ToString::to_string).collect();
    let json = json!({
        "schema": 1, "revision": report.last, "files": report.files, "bytes": report.bytes,
        "dropped": dropped, "damaged": damaged,
    });
    let (files, bytes) = (report.files, report.bytes);
    let summary = format!("revision {}, {files} files, {bytes} bytes", report.last);
    let lines: Vec<_> = std::iter::once(summary).chain(dropped).collect();
    context.print(&json, &lines.join("\n"))?;
    if !damaged.is_empty() {
        bail!("{}", damaged.join("; "));
    }
    Ok(())
}
