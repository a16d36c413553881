//! `loadline workflow history`: what a server's log says of states and runs. Control plane.

mod follow;
mod store;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use service::{Failure, Outcome, out};

use self::follow::FollowArgs;
use self::store::{Read, Store};
use super::input;
use crate::history::Change;
use crate::model::Instant;
use base::many;

const EXAMPLES: &str = "\
Examples:
  loadline workflow history home/HOST.3141.ecf.log             the slowest tasks
  loadline workflow history *.ecf.log --under /x/f --defs x.def
  loadline workflow history HOST.3141.ecf.log --json | jq '.tasks[] | select(.aborted > 0)'
  loadline workflow history *.ecf.log --defs x.def --to runs.sqlite
  loadline workflow history --follow localhost:3141 --to runs.sqlite
  sqlite3 runs.sqlite 'SELECT * FROM slowest LIMIT 10'

The log is this server's, or ecFlow's own. With a definition (loadline workflow get) also the chain
of triggers that ended last, and how full limits were. Times are whole seconds, as the log's.
--to keeps every change of a state in tables (docs/workflow-history.md); a log that is read again is
read from where it ended. --follow asks a server of either kind for what its log has, as it comes.";

/// The runs that haven't ended.
const OPEN: &str = "run WHERE state IN ('submitted', 'active')";

/// The most bytes of a line.
const LINE: u64 = 1 << 20;

/// Logs, or a server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HistoryArgs {
    /// Logs of one server, the oldest first
    #[arg(value_name = "LOG", required_unless_present = "follow", conflicts_with = "follow")]
    logs: Vec<PathBuf>,
    /// Show only runs at and below this node; --to keeps all
    #[arg(long, value_name = "NODE", default_value = "/", conflicts_with = "follow")]
    under: String,
    /// The definition: for the chain of triggers, and limits
    #[arg(long, value_name = "FILE")]
    defs: Option<PathBuf>,
    /// Keep every change of a state in this SQLite file, which is made where it isn't there
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    #[command(flatten)]
    following: FollowArgs,
    /// How many tasks, runs that haven't ended, and limits are listed
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    slowest: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &HistoryArgs) -> Outcome {
    history(args).map_err(|why| match (why, &args.to) {
        (Failure::Other(why), Some(file)) if why.is::<rusqlite::Error>() => {
            Failure::Other(why.context(format!("--to {}", file.display())))
        }
        (why, _) => why,
    })
}

fn history(args: &HistoryArgs) -> Outcome {
    let definition = args.defs.as_deref().map(input::definition).transpose()?;
    if !args.under.starts_with('/') {
        let under = &args.under;
        return Err(Failure::Usage(format!("--under {under}: write a path: /suite/family")));
    }
    // Before a file is made.
    for log in &args.logs {
        open(log)?;
    }
    let mut store = match &args.to {
        Some(file) => Store::open(file)?,
        None => Store::in_memory()?,
    };
    if let Some(done) = args.following.run(&mut store) {
        return done;
    }
    if let Some(server) = store.followed()? {
        let why = format!("it follows {server}, whose log it has: name another file for logs");
        return Err(Failure::Usage(format!("--to: {why}")));
    }
    store.seek(args.under.trim_end_matches('/'));
    for log in &args.logs {
        store.change(|store| read(log, store))?;
    }
    let mut is_known = store.has_found()?;
    if let Some(definition) = &definition {
        store.change(|store| store.define(&definition.tree))?;
        is_known |= definition.tree.find(&args.under).is_some();
    }
    if !is_known && args.under != "/" {
        let under = &args.under;
        return Err(Failure::Usage(format!("--under {under}: what was read has no such node")));
    }
    store.only_under(&args.under)?;
    show(args, &store)
}

/// Opens a log, and reads its first line.
fn open(log: &Path) -> Result<(BufReader<File>, String), Failure> {
    let wrong = |why: std::io::Error| Failure::Usage(format!("{}: {why}", log.display()));
    let file = File::open(log).map_err(wrong)?;
    if !file.metadata().map_err(wrong)?.is_file() {
        let why = "a server's log is a regular file";
        return Err(Failure::Usage(format!("{}: {why}", log.display())));
    }
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    (&mut reader).take(LINE).read_until(b'\n', &mut line).map_err(wrong)?;
    let first_line = String::from_utf8_lossy(&line).into_owned();
    if !first_line.is_empty() && first_line.get(3..5) != Some(":[") {
        let why = "this is no server's log: its lines begin with their kind and time, as MSG:[…]";
        return Err(Failure::Usage(format!("{}:1: {why}", log.display())));
    }
    Ok((reader, first_line))
}

/// Takes what a log has behind what was read of it before.
fn read(log: &Path, store: &mut Store) -> Result<(), Failure> {
    let wrong = |why: std::io::Error| Failure::Usage(format!("{}: {why}", log.display()));
    let (mut reader, first_line) = open(log)?;
    let name = log.canonicalize().map_err(wrong)?.display().to_string();
    let length = reader.get_ref().metadata().map_err(wrong)?.len();
    // It may have been renamed. One that begins otherwise, or is shorter, is another one.
    let known = store.read(&first_line, length)?;
    let mut bytes = known.as_ref().map_or(0, |known| known.bytes);
    reader.seek(SeekFrom::Start(bytes)).map_err(wrong)?;
    let mut last = if known.is_some() { store.last_lines()? } else { String::new() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = (&mut reader).take(LINE).read_until(b'\n', &mut line).map_err(wrong)?;
        // The server is still writing a line without an end: it is whole the next time.
        let is_part = !line.ends_with(b"\n") && count < LINE as usize;
        if count == 0 || (is_part && store.is_file) {
            break;
        }
        bytes += count as u64;
        let text = String::from_utf8_lossy(&line);
        if let Some(change) = Change::read(text.trim_end()) {
            store.take(&change)?;
        }
        last.push_str(text.trim_end_matches('\n'));
        last.push('\n');
        follow::shorten(&mut last);
    }
    store.note_lines(&last)?;
    store.note_log(known.as_ref(), &Read { name, bytes }, &first_line)
}

fn show(args: &HistoryArgs, store: &Store) -> Outcome {
    let most = args.slowest;
    let tasks = store.rows("SELECT * FROM slowest", most)?;
    let count = store.number("SELECT count(*) FROM slowest")?;
    let ended = store.number("SELECT count(*) FROM run WHERE ended IS NOT NULL")?;
    let chain = "SELECT path, submitted, active, ended AS end, state FROM critical_path";
    let is_defined = store.number("SELECT count(*) FROM awaits")? > 0 || args.defs.is_some();
    let chain = if is_defined { store.rows(chain, usize::MAX)? } else { Vec::new() };
    let limits = "SELECT limit_name AS \"limit\", tokens AS max, most, full_for AS full, \
                  used_for AS used FROM limit_use";
    let limits = store.rows(limits, most)?;
    let open = store.number(&format!("SELECT count(*) FROM {OPEN}"))?;
    if args.json {
        let all = json!({
            "schema": 1, "tasks_run": count, "runs": ended, "not_ended": open, "tasks": tasks,
            "critical": chain, "limits": limits,
        });
        out::print(format_args!("{all}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if count + open == 0 {
        let under = &args.under;
        let whose = if under == "/" { String::new() } else { format!(" at or below {under}") };
        out::note(format!("no task{whose} has run"));
    }
    let mut text = format!("{} of {} ended", many(ended, "run"), many(count, "task"));
    if open > 0 {
        let _ = write!(text, ", {open} not");
    }
    text.push('\n');
    if !tasks.is_empty() {
        let [a, b, c, d, e] = ["longest", "total", "waited", "runs", "aborted"];
        let _ = writeln!(text, "\n{a:>10}{b:>12}{c:>10}{d:>7}{e:>9}  task");
    }
    for task in &tasks {
        let [longest, total, wait] =
            ["longest", "total", "longest_wait"].map(|name| span(&task[name]));
        // Text, as a value of JSON takes no width.
        let [runs, aborted] = ["runs", "aborted"].map(|name| task[name].to_string());
        let path = word(&task["path"]);
        let _ = writeln!(text, "{longest:>10}{total:>12}{wait:>10}{runs:>7}{aborted:>9}  {path}");
    }
    let since = "path, state, coalesce(active, submitted) AS since";
    show_open(&mut text, &store.rows(&format!("SELECT {since} FROM {OPEN} ORDER BY id"), most)?);
    show_causes(&mut text, &chain, &limits);
    out::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn show_open(text: &mut String, open: &[Json]) {
    if !open.is_empty() {
        text.push_str("\nNot ended:\n");
    }
    for run in open {
        let since = Instant::seconds(run["since"].as_i64().unwrap_or_default());
        let _ = writeln!(text, "  {}  {} since {since}", word(&run["path"]), word(&run["state"]));
    }
}

fn show_causes(text: &mut String, chain: &[Json], limits: &[Json]) {
    if !chain.is_empty() {
        text.push_str("\nThe chain that ended last:\n");
    }
    for run in chain {
        let submitted = run["submitted"].as_i64().or(run["active"].as_i64());
        let submitted = submitted.unwrap_or_default();
        let end = run["end"].as_i64().unwrap_or(submitted);
        let (at, took) = (Instant::seconds(submitted), span(&json!((end - submitted).max(0))));
        let _ =
            writeln!(text, "  {at}  {took:>10}  {}  {}", word(&run["state"]), word(&run["path"]));
    }
    if !limits.is_empty() {
        text.push_str("\nLimits:\n");
    }
    for one in limits {
        let (full, used) = (span(&one["full"]), span(&one["used"]));
        let (limit, most, max) = (word(&one["limit"]), &one["most"], &one["max"]);
        let _ = writeln!(text, "  {limit}  at most {most} of {max}, full {full} of {used} in use");
    }
}

fn word(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// `1:02:03`.
fn span(seconds: &Json) -> String {
    let seconds = seconds.as_i64().unwrap_or_default();
    let (hours, rest) = (seconds / 3600, seconds % 3600);
    match hours {
        0 => format!("{}:{:02}", rest / 60, rest % 60),
        hours => format!("{hours}:{:02}:{:02}", rest / 60, rest % 60),
    }
}
