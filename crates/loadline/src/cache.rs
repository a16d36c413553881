//! `loadline cache`: a small client for people and scripts.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use ::cache::client::{Client, Found};
use anyhow::Context as _;
use serde_json::{Value, json};
use wire::Address;

const EXAMPLES: &str = "\
Examples:
  loadline cache set greeting hello --expire 60
  loadline cache get greeting                       prints the value, or exits with 1
  echo hello | loadline cache set greeting -        the value from standard input
  loadline cache stats --server 127.0.0.1:11212 --json";

/// Arguments of `loadline cache`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CacheArgs {
    /// The server: ADDRESS, ADDRESS:PORT or unix:PATH
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:11211",
        value_parser = crate::serve::cache::address
    )]
    pub(crate) server: Address,

    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// What to ask
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

/// What `loadline cache` can ask.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CacheCommand {
    /// Print the values of keys; exit code 1 when one isn't there
    Get {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Like get, with flags and the unique number of each store
    Gets {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Store a value
    Set {
        /// The key
        key: String,
        /// The value, or - for standard input
        value: String,
        /// 32 bits of your own, kept with the value
        #[arg(long, default_value_t = 0)]
        flags: u32,
        /// Seconds until it is gone, or a Unix time; 0 is never
        #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
        expire: i64,
    },
    /// Remove a key; exit code 1 when it wasn't there
    Delete {
        /// The key
        key: String,
    },
    /// Print the server's statistics
    Stats {
        /// A group, such as settings; reset starts the counts again
        group: Option<String>,
    },
    /// Print the server's version
    Version,
}

/// Asks, prints, and says with the exit code whether it was there.
pub(crate) fn run(args: CacheArgs) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect(&args.server).with_context(|| {
        format!("cannot reach a cache at {}; start one with `loadline serve cache`", args.server)
    })?;
    match args.command {
        CacheCommand::Get { keys } => get(&mut client, &keys, false, args.json),
        CacheCommand::Gets { keys } => get(&mut client, &keys, true, args.json),
        CacheCommand::Set { key, value, flags, expire } => {
            client.set(key.as_bytes(), &read_value(value)?, flags, expire)?;
            answer(args.json, &json!({ "schema": 1, "stored": key }), "stored")
        }
        CacheCommand::Delete { key } => {
            let found = client.delete(key.as_bytes())?;
            let text = if found { "deleted" } else { "not there" };
            answer(args.json, &json!({ "schema": 1, "deleted": found }), text)?;
            Ok(exit_code(found))
        }
        CacheCommand::Stats { group } => {
            let stats = client.stats(group.as_deref().unwrap_or_default())?;
            let width = stats.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
            let lines = stats.iter().map(|(name, value)| format!("{name:<width$}  {value}"));
            let text = lines.collect::<Vec<_>>().join("\n");
            let stats: serde_json::Map<_, _> =
                stats.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
            answer(args.json, &json!({ "schema": 1, "stats": stats }), &text)
        }
        CacheCommand::Version => {
            let version = client.version()?;
            answer(args.json, &json!({ "schema": 1, "version": version }), &version)
        }
    }
}

fn get(client: &mut Client, keys: &[String], all: bool, json: bool) -> anyhow::Result<ExitCode> {
    let wanted: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let found = client.get(&wanted, all)?;
    let is_complete = found.len() == keys.len();
    let mut out = std::io::stdout().lock();
    if json {
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
        out.write_all(b"\n")?;
    }
    drop(out);
    for key in keys {
        if !found.iter().any(|item| item.key == key.as_bytes()) {
            eprintln!("{key} is not there");
        }
    }
    Ok(exit_code(is_complete))
}

/// An item as JSON; a value that is no text is given in hexadecimal.
fn described(item: &Found) -> Value {
    let mut object = json!({
        "key": String::from_utf8_lossy(&item.key),
        "flags": item.flags,
        "bytes": item.value.len(),
    });
    match std::str::from_utf8(&item.value) {
        Ok(text) => object["value"] = json!(text),
        Err(_) => {
            let hex: String = item.value.iter().map(|byte| format!("{byte:02x}")).collect();
            object["value_hex"] = json!(hex);
        }
    }
    if let Some(cas) = item.cas {
        object["cas"] = json!(cas);
    }
    object
}

fn read_value(written: String) -> anyhow::Result<Vec<u8>> {
    if written != "-" {
        return Ok(written.into_bytes());
    }
    let mut value = Vec::new();
    std::io::stdin().lock().read_to_end(&mut value).context("cannot read standard input")?;
    Ok(value)
}

fn answer(json: bool, object: &Value, text: &str) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{object}")?
    } else {
        writeln!(out, "{text}")?
    }
    Ok(ExitCode::SUCCESS)
}

fn exit_code(found: bool) -> ExitCode {
    if found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
