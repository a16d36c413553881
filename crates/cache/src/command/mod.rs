//! `loadline cache`: a small client for people and scripts.

mod show;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;
use service::{Failure, MAX_SECRET_BYTES, Outcome, Run, TrustArgs, parse_address};
use wire::{Address, TlsTrust};

use crate::client::{Client, ClientError, Stored, When};
use crate::serve::DEFAULT_PORT;
use show::{Form, exit_code};

const EXAMPLES: &str = "\
Examples:
  loadline cache set greeting hello --expire 60
  loadline cache get greeting                       prints the value, or exits with 1
  echo hello | loadline cache set greeting -        the value from standard input
  loadline cache set greeting bye --if absent       also: present, behind, before
  loadline cache gets greeting                      with its unique number, then …
  loadline cache set greeting bye --cas 17          … only if unchanged since
  loadline cache incr visits 1
  loadline cache stats evictions                    why items went; also: cpu, hotkeys, items, …
  loadline cache dump --json                        all keys, one JSON object a line
  loadline cache watch mutations evictions          what happens, until Ctrl-C
  loadline cache stats --server 127.0.0.1:11212 --json
  loadline cache get greeting --tls-ca authority.pem     encrypted

Exit codes: 0 done, 1 not there, not stored or an error, 2 wrong arguments.";

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
        value_parser = server
    )]
    server: Address,

    /// Say who you are: a file whose first line is NAME:PASSWORD
    #[arg(long, global = true, value_name = "FILE")]
    auth_file: Option<PathBuf>,

    #[command(flatten)]
    encryption: TrustArgs,

    /// Print one JSON object; of a dump or a stream, one a line
    #[arg(long, global = true)]
    json: bool,

    /// What to ask
    #[command(subcommand)]
    command: CacheCommand,
}

/// What `loadline cache` can ask.
#[derive(Debug, clap::Subcommand)]
enum CacheCommand {
    /// Print the values of keys; exit code 1 when one isn't there
    Get {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        /// Print values as they are, byte for byte, with no line's end after them
        #[arg(long, conflicts_with = "json")]
        raw: bool,
    },
    /// Like get, with flags and the unique number of each store
    Gets {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Store a value; exit code 1 when it is not stored
    Set {
        /// The key
        key: String,
        /// The value, or - for standard input
        value: String,
        /// 32 bits of your own, kept with the value
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        flags: u32,
        /// Seconds until it is gone, or a Unix time; 0 is never
        #[arg(long, value_name = "SECONDS", default_value_t = 0, allow_negative_numbers = true)]
        expire: i64,
        /// Store it only if the key is absent or present, or behind or before what is there
        #[arg(long = "if", value_enum, value_name = "CONDITION", conflicts_with = "cas")]
        condition: Option<Condition>,
        /// Store it only if this is still the unique number, which gets prints
        #[arg(long, value_name = "NUMBER")]
        cas: Option<u64>,
    },
    /// Remove a key; exit code 1 when it wasn't there
    Delete {
        /// The key
        key: String,
    },
    /// Give a key another expiry; exit code 1 when it wasn't there
    Touch {
        /// The key
        key: String,
        /// Seconds until it is gone, or a Unix time; 0 is never
        #[arg(allow_negative_numbers = true)]
        expire: i64,
    },
    /// Count a number up, and print it; exit code 1 when it wasn't there
    Incr {
        /// The key
        key: String,
        /// By how much
        #[arg(default_value_t = 1)]
        by: u64,
    },
    /// Count a number down to no less than 0, and print it; exit code 1 when it wasn't there
    Decr {
        /// The key
        key: String,
        /// By how much
        #[arg(default_value_t = 1)]
        by: u64,
    },
    /// Forget everything
    Flush {
        /// Seconds until then
        #[arg(long, default_value_t = 0, value_name = "SECONDS")]
        delay: u32,
    },
    /// Print the server's statistics
    Stats {
        /// A group, such as settings, items, evictions, cpu or hotkeys; reset starts counts again
        group: Option<String>,
    },
    /// Print all keys with their expiry (a Unix time, -1 is never) and size
    Dump,
    /// Print what happens, line by line, until Ctrl-C
    Watch {
        /// Streams: fetchers (the default), mutations, evictions, connevents
        streams: Vec<String>,
    },
    /// Print the server's version
    Version,
}

/// When a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Condition {
    /// Where the key has none
    Absent,
    /// Where the key has one
    Present,
    /// Behind the one that is there
    Behind,
    /// Before the one that is there
    Before,
}

fn connect(server: &Address, encryption: &TrustArgs) -> Result<Client, Failure> {
    let Some(trusted) = encryption.read().map_err(Failure::usage)? else {
        return Ok(Client::connect(server).with_context(|| {
            format!("cannot reach a cache at {server}; start one with `loadline serve cache`")
        })?);
    };
    let trust = TlsTrust { authorities: &trusted.authorities, identity: trusted.identity() };
    let client = Client::connect_encrypted(server, encryption.tls_name.as_deref(), &trust);
    Ok(client.with_context(|| {
        format!("no encrypted connection to {server}; --tls-ca names who vouches for it")
    })?)
}

impl Run for CacheArgs {
    fn run(self) -> Outcome {
        let account = self.auth_file.as_deref().map(account).transpose();
        let account = account.map_err(Failure::usage)?;
        let mut client = connect(&self.server, &self.encryption)?;
        if let Some((name, password)) = &account {
            client.sign_in(name, password).with_context(|| format!("signing in as {name}"))?;
        }
        ask(self.command, &mut client, self.json).map_err(|error| match error.downcast_ref() {
            // A key that was typed, which only the client refuses.
            Some(ClientError::BadKey) => Failure::usage(error),
            _ => Failure::Other(error),
        })
    }
}

/// A server's address, at the usual port where it names none.
fn server(written: &str) -> Result<Address, String> {
    parse_address(written, DEFAULT_PORT)
}

/// Asks one thing.
fn ask(command: CacheCommand, client: &mut Client, json: bool) -> anyhow::Result<ExitCode> {
    match command {
        CacheCommand::Get { keys, raw } => {
            let form = if raw { Form::Raw } else { Form::lines_or(json) };
            show::get(client, &keys, false, form)
        }
        CacheCommand::Gets { keys } => show::get(client, &keys, true, Form::lines_or(json)),
        CacheCommand::Set { key, value, flags, expire, condition, cas } => {
            let when = when(condition, cas);
            let value = read_value(value)?;
            let stored = client.store(when, key.as_bytes(), &value, flags, expire)?;
            show::stored(&key, stored, json)?;
            Ok(exit_code(stored == Stored::Stored))
        }
        CacheCommand::Delete { key } => {
            show::found(client.delete(key.as_bytes())?, "deleted", json)
        }
        CacheCommand::Touch { key, expire } => {
            show::found(client.touch(key.as_bytes(), expire)?, "touched", json)
        }
        CacheCommand::Incr { key, by } => {
            show::number(client.count(key.as_bytes(), by, true)?, json)
        }
        CacheCommand::Decr { key, by } => {
            show::number(client.count(key.as_bytes(), by, false)?, json)
        }
        CacheCommand::Flush { delay } => {
            client.flush(delay)?;
            show::line(json, &json!({ "schema": 1, "flushed_in_s": delay }), "flushed")?;
            Ok(ExitCode::SUCCESS)
        }
        CacheCommand::Stats { group } => {
            let group = group.unwrap_or_default();
            let nothing = match group == "reset" {
                true => "counts start again",
                false => "there are no such statistics",
            };
            show::stats(client.stats(&group)?, json, nothing)
        }
        CacheCommand::Dump => show::dump(client, json),
        CacheCommand::Watch { streams } => show::watch(client, &streams, json),
        CacheCommand::Version => {
            let version = client.version()?;
            show::line(json, &json!({ "schema": 1, "version": version }), &version)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn when(condition: Option<Condition>, cas: Option<u64>) -> When {
    match (condition, cas) {
        (_, Some(cas)) => When::Unchanged(cas),
        (None, None) => When::Always,
        (Some(Condition::Absent), _) => When::Absent,
        (Some(Condition::Present), _) => When::Present,
        (Some(Condition::Behind), _) => When::Behind,
        (Some(Condition::Before), _) => When::Before,
    }
}

/// The name and the password in a file.
fn account(path: &Path) -> anyhow::Result<(String, String)> {
    let text = base::read_text(path, MAX_SECRET_BYTES).context("cannot read who you are")?;
    let first = text.lines().next().unwrap_or_default();
    let Some((name, password)) = first.split_once(':') else {
        bail!("{}:1: write NAME:PASSWORD", path.display());
    };
    Ok((name.to_owned(), password.to_owned()))
}

/// What memcached takes at most as the size of an item.
const MAX_VALUE_BYTES: u64 = 1 << 30;

fn read_value(written: String) -> anyhow::Result<Vec<u8>> {
    if written != "-" {
        return Ok(written.into_bytes());
    }
    let mut value = Vec::new();
    let mut input = std::io::stdin().lock().take(MAX_VALUE_BYTES + 1);
    input.read_to_end(&mut value).context("cannot read standard input")?;
    if value.len() as u64 > MAX_VALUE_BYTES {
        bail!("standard input is longer than 1 GiB, the most that any cache takes");
    }
    Ok(value)
}
