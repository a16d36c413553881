//! What `loadline cache` prints: a line for people, or a JSON object.

use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use service::out::{note, stream};

use crate::client::{Client, Dumped, Found, Stored};

/// 0 where it was there, else 1.
pub(super) fn exit_code(done: bool) -> ExitCode {
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints one or the other.
pub(super) fn line(json: bool, object: &Value, text: &str) -> anyhow::Result<()> {
    let mut out = stream();
    match json {
        true => writeln!(out, "{object}")?,
        false => writeln!(out, "{text}")?,
    }
    Ok(())
}

/// What has become of a store.
pub(super) fn stored(key: &str, stored: Stored, json: bool) -> anyhow::Result<()> {
    let text = match stored {
        Stored::Stored => "stored",
        Stored::NotStored => "not stored",
        Stored::Changed => "changed meanwhile",
        Stored::NotFound => "not there",
    };
    let object = match stored {
        Stored::Stored => json!({ "schema": 1, "stored": key }),
        _ => json!({ "schema": 1, "stored": null, "why": text }),
    };
    line(json, &object, text)
}

/// Whether a key was there, to be `done` something with.
pub(super) fn found(found: bool, done: &str, json: bool) -> anyhow::Result<ExitCode> {
    let object = json!({ "schema": 1, done: found });
    line(json, &object, if found { done } else { "not there" })?;
    Ok(exit_code(found))
}

/// A number that was counted.
pub(super) fn number(number: Option<u64>, json: bool) -> anyhow::Result<ExitCode> {
    let text = number.map_or("not there".to_owned(), |number| number.to_string());
    line(json, &json!({ "schema": 1, "number": number }), &text)?;
    Ok(exit_code(number.is_some()))
}

/// Statistics, in the server's order; where there are none, for people, what that means.
pub(super) fn stats(
    stats: Vec<(String, String)>,
    json: bool,
    nothing: &str,
) -> anyhow::Result<ExitCode> {
    if stats.is_empty() && !json {
        note(nothing);
        return Ok(ExitCode::SUCCESS);
    }
    let width = stats.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines = stats.iter().map(|(name, value)| format!("{name:<width$}  {value}"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let stats: Map<_, _> =
        stats.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    line(json, &json!({ "schema": 1, "stats": stats }), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// How values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Each with a line's end after it.
    Lines,
    /// As they are, byte for byte.
    Raw,
    /// As JSON.
    Json,
}

impl Form {
    /// What people read, or what programs do.
    pub(super) fn lines_or(json: bool) -> Self {
        if json { Self::Json } else { Self::Lines }
    }
}

/// The values of keys.
pub(super) fn get(
    client: &mut Client,
    keys: &[String],
    all: bool,
    form: Form,
) -> anyhow::Result<ExitCode> {
    let wanted: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let found = client.get(&wanted, all)?;
    let is_complete = found.len() == keys.len();
    let mut out = stream();
    if form == Form::Json {
        let items: Vec<_> = found.iter().map(described).collect();
        writeln!(out, "{}", json!({ "schema": 1, "items": items }))?;
        return Ok(exit_code(is_complete));
    }
    for item in &found {
        if all {
            let cas = item.cas.unwrap_or_default();
            let key = String::from_utf8_lossy(&item.key);
            writeln!(out, "{key}  flags {}  cas {cas}", item.flags)?;
        }
        // The value as it is, whatever bytes it has.
        out.write_all(&item.value)?;
        if form == Form::Lines {
            out.write_all(b"\n")?;
        }
    }
    for key in keys {
        if !found.iter().any(|item| item.key == key.as_bytes()) {
            note(format!("{key} is not there"));
        }
    }
    Ok(exit_code(is_complete))
}

/// An item as JSON.
fn described(item: &Found) -> Value {
    let mut object = json!({
        "key": String::from_utf8_lossy(&item.key),
        "flags": item.flags,
        "bytes": item.value.len(),
    });
    let (name, value) = text_or_hex("value", &item.value);
    object[name] = value;
    if let Some(cas) = item.cas {
        object["cas"] = json!(cas);
    }
    object
}

/// Bytes as text; those that are none in hexadecimal, under another name.
fn text_or_hex(name: &str, bytes: &[u8]) -> (String, Value) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (name.to_owned(), json!(text)),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            (format!("{name}_hex"), json!(hex))
        }
    }
}

/// All keys.
pub(super) fn dump(client: &mut Client, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(stream());
    let (mut written, mut is_empty) = (Ok(()), true);
    client.dump(|item| {
        is_empty = false;
        let text = if json { dumped_object(&item).to_string() } else { dumped_line(&item) };
        written = writeln!(out, "{text}");
        written.is_ok()
    })?;
    written.and_then(|()| out.flush())?;
    if is_empty && !json {
        note("the cache has no keys");
    }
    Ok(ExitCode::SUCCESS)
}

fn dumped_object(item: &Dumped) -> Value {
    let number = |fact: &String| fact.parse::<i64>().map_or(json!(fact), |number| json!(number));
    let mut object = json!({ "schema": 1 });
    let (name, key) = text_or_hex("key", &item.key);
    object[name] = key;
    for (name, fact) in &item.facts {
        object[name] = number(fact);
    }
    object
}

fn dumped_line(item: &Dumped) -> String {
    let fact = |wanted: &str| {
        let found = item.facts.iter().find(|(name, _)| name == wanted);
        found.map_or("?", |(_, fact)| fact.as_str())
    };
    let key = String::from_utf8_lossy(&item.key);
    format!("{key}\t{}\t{}", fact("exp"), fact("size"))
}

/// What happens.
pub(super) fn watch(
    client: &mut Client,
    streams: &[String],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut written = Ok(());
    client.watch(streams, |text| {
        let facts = text.split(' ').filter_map(|word| word.split_once('='));
        let mut object: Map<_, _> =
            facts.map(|(name, fact)| (name.to_owned(), Value::from(fact))).collect();
        object.insert("schema".to_owned(), json!(1));
        written = line(json, &Value::Object(object), text);
        written.is_ok()
    })?;
    written.map(|()| ExitCode::SUCCESS)
}
