//! Commands that change something.

use std::path::PathBuf;

use anyhow::Context as _;

use super::context::{Context, many};
use super::input::{self, BadInput};
use crate::model::{ColumnSpec, KINDS, Kind, Versioning};
use crate::protocol::{
    ChannelBody, CloneBody, ColumnBody, DeleteBody, FolderBody, InsertBody, LockBody, ObjectBody,
    RenameBody, SetBody, TagBody, TruncateBody, time,
};

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
    /// A column of the payload; may be given several times
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
    let made = if set {
        context.client.post("/sets", &SetBody { path, description })?
    } else {
        let versioning = if multi { Versioning::Multi } else { Versioning::Single };
        context.client.post("/folders", &FolderBody { path, description, versioning, columns })?
    };
    context.made(made)
}

#[derive(Debug, clap::Args)]
pub(super) struct InsertArgs {
    /// The folder
    #[arg(required_unless_present = "jsonl")]
    folder: Option<String>,
    /// The object's values
    #[arg(value_name = "COLUMN=VALUE")]
    values: Vec<String>,
    /// The object's channel
    #[arg(long, value_name = "NUMBER", default_value_t = 0, conflicts_with_all = ["csv", "jsonl"])]
    channel: u32,
    /// The object's first time
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["csv", "jsonl"])]
    since: Option<u64>,
    /// The first time after it; it stays open without one
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["csv", "jsonl"])]
    until: Option<u64>,
    /// Insert the objects of a CSV with a header
    #[arg(long, value_name = "FILE", conflicts_with = "values")]
    csv: Option<PathBuf>,
    /// Insert the objects of a file with a JSON object a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "values"])]
    jsonl: Option<PathBuf>,
    /// Insert with this tag of users, which is made if it isn't there
    #[arg(long, value_name = "TAG", conflicts_with = "jsonl")]
    tag: Option<String>,
    /// Show it by the tag only, not by the head
    #[arg(long, requires = "tag")]
    only_tag: bool,
    /// Send this many objects at a time, each part all or nothing; without it all are one
    #[arg(long, value_name = "OBJECTS", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
}

pub(super) fn insert(context: &Context, args: InsertArgs) -> anyhow::Result<()> {
    let objects = match (&args.folder, &args.csv, &args.jsonl) {
        (folder, _, Some(path)) => input::json_lines(path, folder.as_deref())?,
        (Some(folder), csv, None) => {
            let columns = columns(context, folder)?;
            let objects = match csv {
                Some(path) => input::csv(path, &columns)?,
                None => vec![typed(&args, &columns)?],
            };
            let place = (folder.clone(), args.tag.clone(), args.only_tag);
            objects.into_iter().map(|object| (place.clone(), object)).collect()
        }
        (None, _, None) => return Err(BadInput("name a folder".to_owned()).into()),
    };
    let (count, mut revision) = (objects.len(), None);
    let at_once = args.batch.map_or(count, |batch| batch as usize);
    let mut rest = objects;
    let mut done = 0;
    while !rest.is_empty() {
        let after = rest.split_off(at_once.min(rest.len()));
        let sent = rest.len();
        let body = InsertBody { batches: input::batches(rest) };
        let made = context.client.post("/objects", &body);
        revision = Some(made.with_context(|| format!("{done} of {count} objects are inserted"))?);
        done += sent;
        rest = after;
    }
    let json = serde_json::json!({ "schema": 1, "objects": count, "revision": revision });
    let at = revision.map_or(String::new(), |revision| format!(", revision {revision}"));
    context.print(&json, &format!("{}{at}", many(count as u64, "object")))
}

fn typed(args: &InsertArgs, columns: &[ColumnSpec]) -> anyhow::Result<ObjectBody> {
    let missing = || BadInput("--since is missing; or use --csv or --jsonl".to_owned());
    let (channel, until) = (args.channel, args.until);
    let since = args.since.ok_or_else(missing)?;
    let values = Some(input::values(columns, &args.values)?);
    Ok(ObjectBody { channel, since, until, values, records: None })
}

/// The columns that a folder has now.
fn columns(context: &Context, folder: &str) -> anyhow::Result<Vec<ColumnSpec>> {
    let listed = context.client.get_json("/folders", &[("under", folder.to_owned())])?;
    let folders = listed["folders"].as_array();
    let own = folders.into_iter().flatten().find(|one| one["path"] == folder);
    let own = own.with_context(|| format!("{folder} is a folder set: name a folder"))?;
    Ok(serde_json::from_value(own["columns"].clone())?)
}

#[derive(Debug, clap::Args)]
pub(super) struct TruncateArgs {
    /// The folder
    folder: String,
    /// The first time at which nothing is shown any more
    #[arg(value_parser = time)]
    until: u64,
    /// The channels, such as 1-5,7; all of them without it
    #[arg(long, value_name = "RANGES")]
    channels: Option<String>,
}

pub(super) fn truncate(context: &Context, args: TruncateArgs) -> anyhow::Result<()> {
    let TruncateArgs { folder, until, channels } = args;
    context.made(context.client.post("/truncate", &TruncateBody { folder, until, channels })?)
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
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
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
        TagCommand::Create { name, path, revision, as_of, description } => {
            client.post("/tags", &TagBody { name, path, description, revision, as_of })?
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
