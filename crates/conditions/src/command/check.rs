//! `loadline conditions check` and `backup`: of a data directory, without its server.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use service::out;

use super::context::Context;
use super::parts::SAY_EVERY;
use crate::serve::{ONE_SERVER, SharedArgs};
use crate::server;
use base::many;

/// What is checked.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The directory, which a server may have open
    #[arg(required_unless_present = "metadata", conflicts_with = "metadata")]
    data: Option<PathBuf>,

    #[command(flatten)]
    shared: SharedArgs,
}

/// What servers share that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadShared(String);

/// Reads a directory, or what servers share; what is damaged makes the command fail.
pub(super) fn check(context: &Context, args: CheckArgs) -> anyhow::Result<()> {
    let CheckArgs { data, shared } = args;
    match (data, shared.settings(u64::MAX)?) {
        (Some(data), _) => check_directory(context, &data),
        #[cfg(feature = "tier")]
        (None, Some(settings)) => check_shared(context, &settings),
        _ => Err(BadShared(ONE_SERVER.to_owned()).into()),
    }
}

/// Reads all that servers share.
#[cfg(feature = "tier")]
fn check_shared(context: &Context, settings: &server::TierSettings) -> anyhow::Result<()> {
    let mut said = Instant::now();
    let mut progress = |read: u64, all: u64| {
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            let (read, all) = (read as f64 / 1e6, all as f64 / 1e6);
            out::note(format!("{read:.0} of {all:.0} MB read"));
        }
    };
    let checked = server::check_shared(settings, &mut progress);
    let checked = checked.map_err(|why| BadShared(format!("{why:#}")))?;
    let server::CheckedShared { revision, sealed, groups, segments, bytes, .. } = checked;
    let (files, unnamed, damaged) = (checked.files, checked.unnamed, checked.damaged);
    let json = json!({
        "schema": 1, "revision": revision, "sealed": sealed, "groups": groups,
        "segments": segments, "bytes": bytes, "files": files, "unnamed": unnamed,
        "damaged": damaged,
    });
    let [groups, segments] =
        [(groups, "group"), (segments, "segment")].map(|(count, noun)| many(count as u64, noun));
    let files = many(files as u64, "file");
    let mut text = format!(
        "revision {revision}, sealed through {sealed}, {groups} of changes, {segments} of {bytes} \
         bytes, {files}"
    );
    if unnamed > 0 {
        text += &format!("; {unnamed} more segments that nothing names, which a seal removes");
    }
    context.print(&json, &text)?;
    match damaged.is_empty() {
        true => Ok(()),
        false => Err(Damaged(damaged.join("; ")).into()),
    }
}

/// Reads a directory's journal, segments and stored files.
fn check_directory(context: &Context, data: &Path) -> anyhow::Result<()> {
    let checked = server::check(data)?;
    let (report, damaged) = (&checked.journal, &checked.damaged);
    let dropped = report.dropped.as_ref().map(ToString::to_string);
    let json = json!({
        "schema": 1, "revision": report.last, "files": report.files, "bytes": report.bytes,
        "sealed": report.snapshot, "segments": checked.segments,
        "stored_files": checked.stored_files, "dropped": dropped, "damaged": damaged,
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
    let stored = many(checked.stored_files as u64, "stored file");
    format!(
        "revision {last}, sealed through {sealed}, {segments}, {stored}, a journal of {files} with \
         {bytes} bytes"
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
