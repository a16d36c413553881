//! `loadline conditions insert`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::context::{BadInput, Context};
use super::csv;
#[cfg(not(feature = "parquet"))]
use super::export::NO_PARQUET;
use super::input::{self, Named};
use super::parts::{self, Parts, Sending};
use crate::client::ClientError;
use crate::model::ColumnSpec;
use crate::protocol::{BatchBody, InsertBody, ObjectBody, path as without_slash, time};
use base::many;

/// How the objects of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FileFormat {
    /// A header, then a line for each object
    Csv,
    /// A JSON object a line
    Jsonl,
    /// The binary form of an insertion, as `export` writes it
    #[value(alias = "binary")]
    Bin,
    /// A Parquet file with a row for each record; takes the feature `parquet`
    Parquet,
}

#[derive(Debug, clap::Args)]
pub(super) struct InsertArgs {
    /// The folder; a line of JSON may name it, too, and no other; without it each line does, as
    /// binary files always do
    #[arg(required_unless_present = "file")]
    folder: Option<String>,
    /// The object's values
    #[arg(value_name = "COLUMN=VALUE")]
    values: Vec<String>,
    /// The object's channel
    #[arg(long, value_name = "NUMBER", default_value_t = 0, conflicts_with = "file")]
    channel: u32,
    /// The object's first time
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        allow_negative_numbers = true,
        conflicts_with = "file"
    )]
    since: Option<u64>,
    /// The first time after it; it stays open without one
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        allow_negative_numbers = true,
        conflicts_with = "file"
    )]
    until: Option<u64>,
    /// Insert the objects of a file, .csv, .jsonl, .bin or .parquet, or of standard input: -
    #[arg(long, value_name = "FILE", conflicts_with = "values")]
    file: Option<PathBuf>,
    /// How the file is written, whatever its name
    #[arg(long, value_name = "FORMAT", requires = "file")]
    format: Option<FileFormat>,
    /// Insert with this tag of users, which is made if it isn't there
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Show it by the tag only, not by the head
    #[arg(long, requires = "tag")]
    only_tag: bool,
    /// Send this many objects at a time at most, each part all or nothing
    #[arg(long, value_name = "OBJECTS", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Leave out the first objects of the file: those that an insertion which broke off has named
    #[arg(long, value_name = "OBJECTS", requires = "file", default_value_t = 0)]
    skip: u64,
    /// Read and check all of the file, name the tags that would be made, and insert nothing. Only
    /// an insertion finds what the server refuses, such as objects that overlap what is there
    #[arg(long, requires = "file")]
    dry_run: bool,
    /// Take columns that a CSV lacks, or that are not typed, as without a value
    #[arg(long)]
    allow_missing: bool,
}

pub(super) fn insert(context: &Context, args: InsertArgs) -> anyhow::Result<()> {
    let Some(path) = args.file.clone() else { return insert_one(context, args) };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let format = match (args.format, extension) {
        (Some(format), _) => format,
        (None, Some("csv")) => FileFormat::Csv,
        (None, Some("jsonl")) => FileFormat::Jsonl,
        (None, Some("bin")) => FileFormat::Bin,
        (None, Some("parquet")) => FileFormat::Parquet,
        _ => {
            let why = "how is it written? Add --format csv, jsonl, bin or parquet";
            return Err(BadInput(format!("{}: {why}", path.display())).into());
        }
    };
    if format == FileFormat::Bin && (args.folder.is_some() || args.tag.is_some()) {
        let why = "a binary file names its folders and tags itself: leave them out";
        return Err(BadInput(format!("{}: {why}", path.display())).into());
    }
    let InsertArgs { folder, tag, only_tag, allow_missing, batch, skip, dry_run, .. } = args;
    let named = Named { folder, tag, only_tag };
    let fill = |parts: &mut Parts| match (format, &named.folder) {
        (FileFormat::Bin, _) => {
            input::binary(&path, parts, |folder| columns(context, folder), dry_run)
        }
        (FileFormat::Jsonl, _) => {
            input::json_lines(&path, &named, parts, |folder| columns(context, folder))
        }
        (FileFormat::Csv, Some(folder)) => {
            let place = (folder.clone(), named.tag.clone(), only_tag);
            csv::csv(&path, &place, parts, columns(context, folder)?, allow_missing)
        }
        #[cfg(feature = "parquet")]
        (FileFormat::Parquet, Some(folder)) => {
            let place = (folder.clone(), named.tag.clone(), only_tag);
            super::parquet::read(&path, &place, parts, &columns(context, folder)?, allow_missing)
        }
        #[cfg(not(feature = "parquet"))]
        (FileFormat::Parquet, _) => Err(BadInput(NO_PARQUET.to_owned()).into()),
        (_, None) => Err(BadInput("name the folder of the file".to_owned()).into()),
    };
    let is_binary = format == FileFormat::Bin;
    let sending = Sending { most_objects: batch, skip, is_binary, is_dry: dry_run };
    let before = match (&named.folder, &named.tag) {
        (Some(folder), Some(tag)) if !dry_run => new_tags(context, [(folder, tag)])?,
        _ => BTreeSet::new(),
    };
    let sent = parts::send(&context.client, &path, sending, fill)?;
    let new_tags = match (dry_run, sent.revision) {
        // Of what is inserted the tags are there by now.
        (true, _) => new_tags(context, sent.tags.iter().map(|(folder, tag)| (folder, tag)))?,
        (false, Some(_)) => before,
        (false, None) => BTreeSet::new(),
    };
    let json = serde_json::json!({
        "schema": 1, "objects": sent.objects, "parts": sent.parts, "revision": sent.revision,
        "dry_run": dry_run, "new_tags": new_tags,
    });
    let parts = if sent.parts > 1 { format!(" in {} parts", sent.parts) } else { String::new() };
    let at = sent.revision.map_or(String::new(), |revision| format!(", revision {revision}"));
    let (can, end) = if dry_run { (" can be sent", "; nothing is inserted") } else { ("", "") };
    let made = made(&new_tags);
    context.print(&json, &format!("{}{parts}{at}{can}{made}{end}", many(sent.objects, "object")))
}

/// The tags that an insertion into folders makes because they aren't there, such as one that is
/// misspelt.
fn new_tags<'a>(
    context: &Context,
    tags: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<BTreeSet<&'a str>, ClientError> {
    let mut new = BTreeSet::new();
    for (folder, tag) in tags {
        let asked = [("folder", folder.clone()), ("tag", tag.clone()), ("since", "max".into())];
        match context.client.get_json("/count", &asked) {
            Err(ClientError::Refused { status: 404, .. }) => _ = new.insert(tag.as_str()),
            // What else is wrong with it the insertion finds.
            Err(ClientError::Refused { .. }) | Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(new)
}

fn made(new_tags: &BTreeSet<&str>) -> String {
    new_tags.iter().map(|tag| format!(", with the new tag {tag:?}")).collect()
}

fn insert_one(context: &Context, args: InsertArgs) -> anyhow::Result<()> {
    let missing = |what: &str| BadInput(format!("{what} is missing; or use --file"));
    let folder = args.folder.ok_or_else(|| missing("the folder"))?;
    let since = args.since.ok_or_else(|| missing("--since"))?;
    let values =
        Some(input::values(&columns(context, &folder)?, &args.values, args.allow_missing)?);
    let (channel, until) = (args.channel, args.until);
    let object = ObjectBody { channel, since, until, values, records: None };
    let (tag, only_tag) = (args.tag, args.only_tag);
    let new_tags = new_tags(context, tag.as_ref().map(|tag| (&folder, tag)))?;
    let batch =
        BatchBody { folder: folder.clone(), tag: tag.clone(), only_tag, objects: vec![object] };
    let revision = context.client.post("/objects", &InsertBody { batches: vec![batch] })?;
    let json = serde_json::json!({
        "schema": 1, "objects": 1, "revision": revision, "new_tags": new_tags,
    });
    context.print(&json, &format!("1 object, revision {revision}{}", made(&new_tags)))
}

/// The columns that a folder has now.
fn columns(context: &Context, folder: &str) -> anyhow::Result<Vec<ColumnSpec>> {
    let all = super::show::folders(context, folder)?;
    let own = all.into_iter().find(|(path, _)| path == without_slash(folder));
    let why = || BadInput(format!("{folder} is a folder set: name a folder"));
    Ok(own.ok_or_else(why)?.1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::Client;
    use crate::command::tests::Place;

    #[test]
    fn a_tag_that_an_insertion_makes_is_named() {
        let place = Place::with("/f", &["--multi", "--column", "v=int32"]);
        let client = Client::new(&place.at(), None, Duration::from_secs(60));
        let context = Context { client, json: false };
        let insert = ["insert", "/f", "--since", "1", "v=7", "--tag", "t"];
        let new = |tag: &str| {
            let (folder, tag) = ("/f".to_owned(), tag.to_owned());
            made(&new_tags(&context, [(&folder, &tag)]).expect("known"))
        };
        assert_eq!(new("t"), ", with the new tag \"t\"");
        place.does(&insert);
        assert_eq!([new("t"), new("HEAD")], ["", ""]);
    }
}
