//! Commands that print what is there.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::beside::write_beside;
use super::context::{BadInput, Context, has, printable};
use crate::model::{Answer, ColumnSpec, MAX_TIME};
use crate::protocol::{Format, cell_text, decode_slice, time};
use base::many;

/// What a question is asked of.
#[derive(Debug, clap::Args)]
pub(super) struct VersionArgs {
    /// What a tag shows, not the head
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// What was shown at this revision
    #[arg(long, value_name = "NUMBER")]
    revision: Option<u64>,
    /// What was shown at this date, such as 2026-11-23T07:00:00Z
    #[arg(long, value_name = "DATE", conflicts_with = "revision")]
    as_of: Option<String>,
}

/// Which channels.
#[derive(Debug, clap::Args)]
struct ChannelArgs {
    /// Channels by number, such as 1-5,7
    #[arg(long, value_name = "RANGES")]
    channels: Option<String>,
    /// Channels by name, with commas between
    #[arg(long, value_name = "NAMES")]
    names: Option<String>,
}

/// Which records.
#[derive(Debug, clap::Args)]
struct WhereArgs {
    /// Only records that meet this, such as 'value>=20.5' or 'note is null'; may be given several
    /// times
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,
}

/// What channels show at a time.
#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// The folder
    folder: String,
    /// The time
    #[arg(value_parser = time, allow_negative_numbers = true)]
    time: u64,
    #[command(flatten)]
    channels: ChannelArgs,
    #[command(flatten)]
    version: VersionArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    shown: ExplainArgs,
    #[command(flatten)]
    records: WhereArgs,
    /// Print which object is shown, and since which change
    #[arg(long, conflicts_with = "conditions")]
    why: bool,
}

/// A range of times, all of them without it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct TimesArgs {
    /// The first time
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub(super) since: u64,
    /// The last time, which belongs to the range
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        default_value = "max",
        allow_negative_numbers = true
    )]
    pub(super) until: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct BrowseArgs {
    /// The folder
    folder: String,
    #[command(flatten)]
    times: TimesArgs,
    /// By channel or by time
    #[arg(
        long,
        value_name = "ORDER",
        value_parser = ["channel", "time"],
        default_value = "channel"
    )]
    order: String,
    #[command(flatten)]
    channels: ChannelArgs,
    #[command(flatten)]
    records: WhereArgs,
    #[command(flatten)]
    version: VersionArgs,
    /// Print only how many objects there are
    #[arg(long)]
    count: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct SliceArgs {
    /// The time
    #[arg(value_parser = time, allow_negative_numbers = true)]
    time: u64,
    /// The folders at and below this path
    #[arg(long, value_name = "PATH", default_value = "/")]
    under: String,
    #[command(flatten)]
    version: VersionArgs,
    /// Write the slice in its binary form to this file, which isn't there yet
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The folders at and below this path
    #[arg(default_value = "/")]
    under: String,
    #[command(flatten)]
    times: TimesArgs,
    /// Channels by number, such as 1-5,7
    #[arg(long, value_name = "RANGES")]
    channels: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
    /// Compare it with what this tag shows; with the head, without --to-tag
    #[arg(long, value_name = "TAG")]
    to_tag: Option<String>,
    /// Compare it with what was shown at this revision
    #[arg(long, value_name = "NUMBER")]
    to_revision: Option<u64>,
    /// Compare it with what was shown at this date
    #[arg(long, value_name = "DATE", conflicts_with = "to_revision")]
    to_as_of: Option<String>,
}

pub(super) type Parameters<'a> = Vec<(&'a str, String)>;

impl VersionArgs {
    pub(super) fn add_to(&self, parameters: &mut Parameters<'_>) {
        parameters.extend(self.tag.clone().map(|tag| ("tag", tag)));
        parameters.extend(self.revision.map(|revision| ("revision", revision.to_string())));
        parameters.extend(self.as_of.clone().map(|date| ("as_of", date)));
    }
}

impl WhereArgs {
    fn add_to(&self, parameters: &mut Parameters<'_>) {
        parameters.extend(self.conditions.iter().map(|written| ("where", written.clone())));
    }
}

impl ChannelArgs {
    fn add_to(&self, parameters: &mut Parameters<'_>) {
        parameters.extend(self.channels.clone().map(|ranges| ("channels", ranges)));
        parameters.extend(self.names.clone().map(|names| ("names", names)));
    }
}

impl ExplainArgs {
    fn parameters(&self) -> Parameters<'_> {
        let mut parameters = vec![("folder", self.folder.clone()), ("t", self.time.to_string())];
        self.channels.add_to(&mut parameters);
        self.version.add_to(&mut parameters);
        parameters
    }
}

/// The length from which on a value that was asked for is cut where it is repeated.
const LONG_VALUE: usize = 40;

fn nothing_of(parameters: &Parameters<'_>) -> String {
    format!("nothing is shown: {}", asked(parameters))
}

/// What was asked for.
fn asked(parameters: &Parameters<'_>) -> String {
    let one = |(name, value): &(&str, String)| match value.char_indices().nth(LONG_VALUE) {
        _ if *value == MAX_TIME.to_string() => format!("{name}=max"),
        Some((end, _)) => format!("{name}={}…", &value[..end]),
        None => format!("{name}={value}"),
    };
    printable(&parameters.iter().map(one).collect::<Vec<_>>().join(" "))
}

pub(super) fn get(context: &Context, args: &GetArgs) -> anyhow::Result<()> {
    if args.why {
        return explain(context, &args.shown);
    }
    let mut parameters = args.shown.parameters();
    args.records.add_to(&mut parameters);
    let found = context.client.get_json("/find", &parameters)?;
    context.print_lists(&found, &["objects"], &table(&found), || nothing_of(&parameters))
}

pub(super) fn explain(context: &Context, args: &ExplainArgs) -> anyhow::Result<()> {
    let parameters = args.parameters();
    let told = context.client.get_json("/explain", &parameters)?;
    context.print_lists(&told, &["channels"], &why_text(&told), || nothing_of(&parameters))
}

pub(super) fn browse(context: &Context, args: &BrowseArgs) -> anyhow::Result<()> {
    let mut parameters = vec![
        ("folder", args.folder.clone()),
        ("since", args.times.since.to_string()),
        ("until", args.times.until.to_string()),
    ];
    args.channels.add_to(&mut parameters);
    args.records.add_to(&mut parameters);
    args.version.add_to(&mut parameters);
    if args.count {
        let counted = context.client.get_json("/count", &parameters)?;
        return context.print(&counted, &counted["objects"].to_string());
    }
    parameters.push(("order", args.order.clone()));
    let found = context.client.get_json("/browse", &parameters)?;
    context.print_lists(&found, &["objects"], &table(&found), || nothing_of(&parameters))
}

pub(super) fn diff(context: &Context, args: &DiffArgs) -> anyhow::Result<()> {
    let VersionArgs { tag, revision, as_of } = &args.version;
    let (from, to) = ((tag, revision, as_of), (&args.to_tag, &args.to_revision, &args.to_as_of));
    if [from, to].iter().all(|one| matches!(one, (None, None, None))) {
        let example = format!("loadline conditions diff {} --tag TAG", args.under);
        let why = "this compares the head with itself: name a tag, revision or date, as in";
        return Err(BadInput(format!("{why} `{example}`")).into());
    }
    let mut parameters = vec![
        ("under", args.under.clone()),
        ("since", args.times.since.to_string()),
        ("until", args.times.until.to_string()),
    ];
    args.version.add_to(&mut parameters);
    parameters.extend(args.channels.clone().map(|ranges| ("channels", ranges)));
    parameters.extend(args.to_tag.clone().map(|tag| ("to_tag", tag)));
    parameters.extend(args.to_revision.map(|number| ("to_revision", number.to_string())));
    parameters.extend(args.to_as_of.clone().map(|date| ("to_as_of", date)));
    let diff = context.client.get_json("/diff", &parameters)?;
    let none = || format!("no difference: {}", asked(&parameters));
    context.print_lists(&diff, &["folders"], &diff_text(&diff), none)
}

pub(super) fn slice(context: &Context, args: &SliceArgs) -> anyhow::Result<()> {
    let form = if context.json { Format::Json } else { Format::Binary };
    let mut parameters = vec![
        ("t", args.time.to_string()),
        ("under", args.under.clone()),
        ("format", form.name().to_owned()),
    ];
    args.version.add_to(&mut parameters);
    let response = context.client.slice(&parameters)?;
    if context.json {
        let json: Json = serde_json::from_slice(&response.body)?;
        return context.print(&json, "");
    }
    if let Some(path) = &args.out {
        write_beside(path, |file| Ok(file.write_all(&response.body)?))?;
    }
    let (head, folders) = decode_slice(&response.body)?;
    let objects: usize = folders.iter().map(|folder| folder.objects.len()).sum();
    let summary = format!(
        "revision {}, time {}: {}, {}, {} bytes",
        head.revision,
        head.since,
        many(folders.len() as u64, "folder"),
        many(objects as u64, "object"),
        response.body.len()
    );
    let rest = if args.out.is_some() { String::new() } else { slice_text(&folders) };
    context.print(&Json::Null, &format!("{summary}\n{rest}"))
}

pub(super) fn list(context: &Context, under: String) -> anyhow::Result<()> {
    let listed = context.client.get_json("/folders", &[("under", under.clone())])?;
    let mut lines = Vec::new();
    for set in list_of(&listed, "sets") {
        lines.push(vec![text_of(&set["path"]), "set".to_owned(), text_of(&set["description"])]);
    }
    for folder in list_of(&listed, "folders") {
        let columns = list_of(folder, "columns");
        let columns =
            columns.map(|one| format!("{}={}", text_of(&one["name"]), text_of(&one["kind"])));
        let [objects, channels] =
            ["objects", "channels"].map(|key| folder[key].as_u64().unwrap_or(0));
        let counts = format!("{}, {}", many(objects, "object"), many(channels, "channel"));
        let columns = columns.collect::<Vec<_>>().join(" ");
        lines.push(vec![text_of(&folder["path"]), text_of(&folder["versioning"]), counts, columns]);
    }
    let none =
        || format!("there is no folder below {under}: `loadline conditions create` makes one");
    context.print_lists(&listed, &["folders", "sets"], &aligned(&lines), none)
}

/// The folders at and below a path, with the columns that they have now.
pub(super) fn folders(
    context: &Context,
    under: &str,
) -> anyhow::Result<Vec<(String, Vec<ColumnSpec>)>> {
    let listed = context.client.get_json("/folders", &[("under", under.to_owned())])?;
    has(&listed, "folders")?;
    let folder = |one: &Json| -> anyhow::Result<_> {
        Ok((text_of(&one["path"]), serde_json::from_value(one["columns"].clone())?))
    };
    list_of(&listed, "folders").map(folder).collect()
}

pub(super) fn tags(context: &Context) -> anyhow::Result<()> {
    let listed = context.client.get_json("/tags", &[])?;
    let line = |tag: &Json| {
        let locked = if tag["is_locked"] == true { "locked" } else { "" };
        let kind = text_of(&tag["kind"]);
        let shows = match (&tag["revision"], tag["picks"].as_object()) {
            (_, Some(picks)) => {
                let tags = picks.values().map(text_of).collect::<Vec<_>>();
                format!("{kind}: {}", tags.join(" "))
            }
            (Json::Null, None) => kind,
            (revision, None) => format!("{kind} at {revision}"),
        };
        let words = [&tag["name"], &tag["path"]].map(text_of);
        [&words[..], &[shows, locked.to_owned(), text_of(&tag["description"])]].concat()
    };
    let lines: Vec<_> = list_of(&listed, "tags").map(line).collect();
    let none = || "there is no tag: `loadline conditions tag create` makes one".to_owned();
    context.print_lists(&listed, &["tags"], &aligned(&lines), none)
}

fn list_of<'a>(json: &'a Json, name: &str) -> impl Iterator<Item = &'a Json> {
    json[name].as_array().into_iter().flatten()
}

fn text_of(json: &Json) -> String {
    json.as_str().map_or_else(
        || if json.is_null() { String::new() } else { json.to_string() },
        str::to_owned,
    )
}

/// A time, or `open`.
fn end_text(until: u64) -> String {
    if until == MAX_TIME { "open".to_owned() } else { until.to_string() }
}

/// An answer as lines, a record each.
fn table(answer: &Json) -> String {
    let head = ["channel", "since", "until"].map(str::to_owned).into_iter();
    let names = list_of(answer, "columns").map(|column| text_of(&column["name"]));
    let mut lines = vec![head.chain(names).collect::<Vec<_>>()];
    for object in list_of(answer, "objects") {
        let until = end_text(object["until"].as_u64().unwrap_or(MAX_TIME));
        let begin = [object["channel"].to_string(), object["since"].to_string(), until];
        let mut records = list_of(object, "records").peekable();
        if records.peek().is_none() {
            lines.push(begin.to_vec());
        }
        for record in records {
            let cells = record.as_array().into_iter().flatten().map(text_of);
            lines.push(begin.iter().cloned().chain(cells).collect());
        }
    }
    aligned(&lines)
}

fn slice_text(folders: &[Answer]) -> String {
    let mut text = String::new();
    for folder in folders {
        let names = folder.columns.iter().map(|column| column.name.clone());
        let head = ["channel", "since", "until"].map(str::to_owned).into_iter();
        let mut lines = vec![head.chain(names).collect::<Vec<_>>()];
        let mut row = 0;
        for object in &folder.objects {
            let begin =
                [object.channel.to_string(), object.since.to_string(), end_text(object.until)];
            if object.records == 0 {
                lines.push(begin.to_vec());
            }
            for _ in 0..object.records {
                let cells = folder.payload.row(row).map(|value| cell_text(&value));
                lines.push(begin.iter().cloned().chain(cells).collect());
                row += 1;
            }
        }
        text.push_str(&format!("\n{}\n{}", printable(&folder.folder), aligned(&lines)));
    }
    text
}

fn why_text(told: &Json) -> String {
    let mut lines = Vec::new();
    let picked: Vec<_> = list_of(told, "picked").map(text_of).collect();
    if !picked.is_empty() {
        lines.push(vec!["picked".to_owned(), picked.join(", which picks ")]);
    }
    for channel in list_of(told, "channels") {
        let shown = &channel["shown"];
        let date = shown["time_us"].as_i64().map(jiff::Timestamp::from_microsecond);
        let date = date.and_then(Result::ok).map_or(String::new(), |date| format!(" ({date})"));
        let words = match shown.is_null() {
            true => "nothing is shown".to_owned(),
            false => format!(
                "[{}, {}) of revision {}{date}, shown over [{}, {}) since revision {}",
                shown["since"],
                end_text(shown["until"].as_u64().unwrap_or(MAX_TIME)),
                shown["revision"],
                shown["shown_since"],
                end_text(shown["shown_until"].as_u64().unwrap_or(MAX_TIME)),
                shown["shown_from_revision"],
            ),
        };
        lines.push(vec![format!("channel {}", channel["channel"]), words]);
    }
    aligned(&lines)
}

/// Each difference as a line that is gone, `-`, and one that is new, `+`, for every record.
fn diff_text(diff: &Json) -> String {
    let mut text = String::new();
    for folder in list_of(diff, "folders") {
        let columns = |list: &str| {
            let names = list_of(folder, list).map(|column| text_of(&column["name"]));
            names.collect::<Vec<_>>()
        };
        let begin = ["", "channel", "since", "until"].map(str::to_owned).to_vec();
        let mut lines = vec![[begin, columns("columns")].concat()];
        if folder["columns_after"].is_array() {
            let begin = ["+", "", "", ""].map(str::to_owned).to_vec();
            lines.push([begin, columns("columns_after")].concat());
        }
        for one in list_of(folder, "differences") {
            let until = end_text(one["until"].as_u64().unwrap_or(MAX_TIME));
            for (sign, side) in [("-", "before"), ("+", "after")] {
                let begin = [
                    sign.to_owned(),
                    one["channel"].to_string(),
                    one["since"].to_string(),
                    until.clone(),
                ];
                if one[side].as_array().is_some_and(Vec::is_empty) {
                    lines.push(begin.to_vec());
                }
                for record in list_of(one, side) {
                    let cells = record.as_array().into_iter().flatten().map(text_of);
                    lines.push(begin.iter().cloned().chain(cells).collect());
                }
            }
        }
        text.push_str(&format!("{}\n{}", printable(&text_of(&folder["folder"])), aligned(&lines)));
    }
    text
}

/// The length in characters from which on a column is not aligned to this word.
const LONG: usize = 80;

/// Lines with their words below each other. A terminal obeys none of them.
fn aligned(lines: &[Vec<String>]) -> String {
    let shown =
        |line: &Vec<String>| -> Vec<String> { line.iter().map(|word| printable(word)).collect() };
    let lines: Vec<Vec<String>> = lines.iter().map(shown).collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let words = lines.iter().filter_map(|line| line.get(column));
        words.map(|word| word.chars().count()).filter(|count| *count < LONG).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |words: &Vec<String>| {
        let padded = words.iter().zip(&widths).map(|(word, width)| {
            format!("{word}{}", " ".repeat(width.saturating_sub(word.chars().count())))
        });
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_any_length_are_put_below_each_other() {
        let long = "x".repeat(1 << 17);
        let lines = [["a".to_owned(), "b".to_owned()].to_vec(), vec![long.clone()]];
        let expected = format!("a  b\n{long}\n");
        assert_eq!(aligned(&lines), expected);
    }

    #[test]
    fn what_was_asked_for_is_repeated_in_short() {
        let parameters = vec![
            ("folder", "/a".to_owned()),
            ("until", MAX_TIME.to_string()),
            ("channels", "1-5,".repeat(20)),
        ];
        let expected = format!("folder=/a until=max channels={}…", "1-5,".repeat(10));
        assert_eq!(asked(&parameters), expected);
    }

    #[test]
    fn an_explanation_names_the_change_with_its_date_and_what_global_tags_pick() {
        let shown = json!({
            "since": 0, "until": MAX_TIME, "revision": 9, "time_us": 1_795_891_696_962_258_u64,
            "shown_since": 5, "shown_until": 7, "shown_from_revision": 23,
        });
        let told = json!({
            "picked": ["a", "b"],
            "channels": [{ "channel": 1, "shown": shown }, { "channel": 2, "shown": null }],
        });
        let expected = "picked     a, which picks b\n\
                        channel 1  [0, open) of revision 9 (2026-11-28T18:48:16.962258Z), \
                        shown over [5, 7) since revision 23\n\
                        channel 2  nothing is shown\n";
        assert_eq!(why_text(&told), expected);
    }

    #[test]
    fn an_answer_is_a_table_with_a_line_for_each_record() {
        let answer = json!({
            "columns": [{ "name": "value", "kind": "float" }],
            "objects": [
                { "channel": 3, "since": 10, "until": MAX_TIME, "records": [[1.5], [null]] },
                { "channel": 12, "since": 7, "until": 8, "records": [] },
            ],
        });
        let expected = "channel  since  until  value\n3        10     open   1.5\n\
                        3        10     open\n12       7      8\n";
        assert_eq!(table(&answer), expected);
        let answer = json!({
            "columns": [{ "name": "a\n", "kind": "string" }],
            "objects": [
                { "channel": 3, "since": 1, "until": 2, "records": [["\u{1b}[2J\u{202e}é"]] },
            ],
        });
        let expected = "channel  since  until  a\\n\n3        1      2      \\u{1b}[2J\\u{202e}é\n";
        assert_eq!(table(&answer), expected);
    }
}
