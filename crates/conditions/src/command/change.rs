//! Commands that change something.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::json;
use service::out;

use super::context::Context;
use crate::model::{ColumnSpec, KINDS, Kind, Versioning};
use crate::protocol::{
    ChannelBody, CloneBody, ColumnBody, CompactedBody, DeleteBody, FolderBody, LockBody, PickBody,
    RenameBody, SetBody, TagBody, TruncateBody, time,
};
use base::many;

/// `NAME=KIND`.
fn column(written: &str) -> Result<ColumnSpec, String> {
    let pair = written.split_once('=').and_then(|(name, kind)| Some((name, Kind::named(kind)?)));
    pair.map(|(name, kind)| ColumnSpec { name: name.to_owned(), kind }).ok_or_else(|| {
        let kinds: Vec<_> = KINDS.iter().map(|(_, name)| *name).collect();
        format!("write NAME=KIND, where KIND is one of {}", kinds.join(", "))
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// Its path, such as /detector/temperature
    path: String,
    /// A column of the payload, such as value=double; may be given several times. A float has 32
    /// bits, a double 64. Without one, objects are intervals without values
    #[arg(long, value_name = "NAME=KIND", value_parser = column)]
    column: Vec<ColumnSpec>,
    /// Let objects of a channel overlap: the head shows the newest, and tags keep what it showed
    #[arg(long)]
    multi: bool,
    /// Make a folder set, for its description
    #[arg(long, conflicts_with_all = ["column", "multi"])]
    set: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
}

pub(super) fn create(context: &Context, args: CreateArgs) -> anyhow::Result<()> {
    let CreateArgs { path, column: columns, multi, set, description } = args;
    if set {
        return context.made(context.client.post("/sets", &SetBody { path, description })?);
    }
    let without_columns = columns.is_empty().then(|| {
        format!(
            "{path} has no columns, so its objects are intervals without values: `loadline \
             conditions add-column {path} NAME=KIND` adds one"
        )
    });
    let versioning = if multi { Versioning::Multi } else { Versioning::Single };
    let body = FolderBody { path, description, versioning, columns };
    context.made(context.client.post("/folders", &body)?)?;
    without_columns.into_iter().for_each(out::note);
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(super) struct TruncateArgs {
    /// The folder
    folder: String,
    /// The first time at which nothing is shown any more
    #[arg(value_parser = time, allow_negative_numbers = true)]
    until: u64,
    /// The channels, such as 1-5,7; all of them without it
    #[arg(long, value_name = "RANGES")]
    channels: Option<String>,
}

pub(super) fn truncate(context: &Context, args: TruncateArgs) -> anyhow::Result<()> {
    let TruncateArgs { folder, until, channels } = args;
    context.made(context.client.post("/truncate", &TruncateBody { folder, until, channels })?)
}

/// Compacts, however long that takes.
pub(super) fn compact(context: &Context) -> anyhow::Result<()> {
    let (is_done, waits) = std::sync::mpsc::channel::<()>();
    let done = std::thread::scope(|scope| {
        // What isn't there, or refuses, says so at once.
        scope.spawn(move || {
            if waits.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                out::note("the server compacts: readers and writers go on meanwhile");
            }
        });
        let done = context.client.compact();
        drop(is_done);
        done
    })?;
    let CompactedBody { segments_before, bytes_before, segments, bytes } = done;
    let json = json!({
        "schema": 1, "segments_before": segments_before, "bytes_before": bytes_before,
        "segments": segments, "bytes": bytes,
    });
    let (before, after) =
        (many(segments_before as u64, "segment"), many(segments as u64, "segment"));
    context.print(&json, &format!("{before} of {bytes_before} bytes, now {after} of {bytes} bytes"))
}

#[derive(Debug, clap::Args)]
pub(super) struct ColumnArgs {
    /// The folder
    folder: String,
    /// The column
    #[arg(value_name = "NAME=KIND", value_parser = column)]
    column: ColumnSpec,
}

pub(super) fn add_column(context: &Context, args: ColumnArgs) -> anyhow::Result<()> {
    let ColumnArgs { folder, column } = args;
    context.made(context.client.post("/columns", &ColumnBody { folder, column })?)
}

#[derive(Debug, clap::Args)]
pub(super) struct RenameArgs {
    /// The folder
    folder: String,
    /// The column
    from: String,
    /// Its new name
    to: String,
}

pub(super) fn rename_column(context: &Context, args: RenameArgs) -> anyhow::Result<()> {
    let RenameArgs { folder, from, to } = args;
    context.made(context.client.post("/columns/rename", &RenameBody { folder, from, to })?)
}

#[derive(Debug, clap::Args)]
pub(super) struct NameArgs {
    /// The folder
    folder: String,
    /// The channel
    channel: u32,
    /// Its name
    name: String,
}

pub(super) fn name_channel(context: &Context, args: NameArgs) -> anyhow::Result<()> {
    let NameArgs { folder, channel, name } = args;
    context.made(context.client.post("/channels", &ChannelBody { folder, channel, name })?)
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum TagCommand {
    /// Tag what the head shows, or showed at a revision or date
    Create {
        /// The tag's name
        name: String,
        /// The folder, or the set with all folders below it
        #[arg(default_value = "/")]
        path: String,
        /// The revision
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u64>,
        /// The date, such as 2026-11-23T07:00:00Z
        #[arg(long, value_name = "DATE", conflicts_with = "revision")]
        as_of: Option<String>,
        /// A tag of a folder or set below PATH: the new one is a global tag, which shows what this
        /// one shows there; may be given several times
        #[arg(long, value_name = "TAG", conflicts_with_all = ["revision", "as_of"])]
        pick: Vec<String>,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// Change what a global tag picks
    Pick {
        /// The global tag
        name: String,
        /// Tags that it picks from now on, in place of those of their folders and sets
        tags: Vec<String>,
        /// A folder or set for which it picks none any more; may be given several times
        #[arg(long, value_name = "PATH")]
        unpick: Vec<String>,
    },
    /// Copy what a tag shows in a folder into a new tag that objects can be inserted with
    Clone {
        /// The tag
        from: String,
        /// The new one
        to: String,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// Keep a tag from being deleted and inserted into
    Lock {
        /// The tag
        name: String,
    },
    /// Let a tag be deleted and inserted into again
    Unlock {
        /// The tag
        name: String,
    },
    /// Delete a tag
    Delete {
        /// The tag
        name: String,
    },
    /// Print all tags
    List,
}

pub(super) fn tag(context: &Context, command: TagCommand) -> anyhow::Result<()> {
    let client = &context.client;
    let made = match command {
        TagCommand::Create { name, path, revision, as_of, pick, description } => {
            let picks = (!pick.is_empty()).then_some(pick);
            client.post("/tags", &TagBody { name, path, description, revision, as_of, picks })?
        }
        TagCommand::Pick { name, tags: picks, unpick } => {
            client.post("/tags/pick", &PickBody { name, picks, unpick })?
        }
        TagCommand::Clone { from, to, description } => {
            client.post("/tags/clone", &CloneBody { from, to, description })?
        }
        TagCommand::Lock { name } => client.post("/tags/lock", &LockBody { name, locked: true })?,
        TagCommand::Unlock { name } => {
            client.post("/tags/lock", &LockBody { name, locked: false })?
        }
        TagCommand::Delete { name } => client.post("/tags/delete", &DeleteBody { name })?,
        TagCommand::List => return super::show::tags(context),
    };
    context.made(made)
}
