//! `loadline workflow replay`: recorded requests asked again, at any server, and what is different
//! of the answers. Control plane.
//!
//! A request is sent when it is due, and once all are answered that had been answered before it was
//! asked: what a client knew then, the server has done again.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Clock};

use serde_json::json;
use service::{Failure, Outcome, out};

use super::server::{Passwords, ServerArgs, failure};
use crate::client::Client;
use crate::protocol::{Body, Command, Request, ServerCommand, read, write};
use crate::traffic::{
    Answered, Exchange, Header, Same, VERSION, with_passwords, within_the_tree, word,
};
use base::many;

const EXAMPLES: &str = "\
Examples:
  loadline workflow replay day.jsonl localhost:4141              as fast as it goes
  loadline workflow replay day.jsonl localhost:4141 --speed 1    as it was
  loadline workflow replay day.jsonl localhost --speed 10 --json | jq '.requests'

The server is one without the suites that are loaded in the recording, started so that it runs no
jobs itself (loadline serve workflow --dis_job_gen): what jobs reported is in the recording. Answers
are compared by their bytes and by their kind; texts with times, paths or numbers of the server
differ in bytes. What acts beyond the tree is left out, in groups, too: --terminate, --kill,
--status, --zombie_kill, --plug, --log=new and --checkJobGenOnly.

Exit codes: 0 each answer is of the recorded kind; 3 one isn't, or is missing; 1 the server can't be
reached; 2 the file is no recording.";

/// The exit code where an answer is of another kind.
const DIFFERENT: u8 = 3;

/// The longest line.
const LINE_BYTES: u64 = 4 << 30;

/// A recording, and a server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    /// What `loadline workflow record` has kept
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
    /// How many times as fast as it was; without this as fast as answers come
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    speed: Option<f64>,
    /// Requests that are under way at once
    #[arg(long, value_name = "NUMBER", default_value_t = 64,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// How many answers of another kind are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    show: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let times: f64 = text.trim_start_matches('x').parse().map_err(|_| "write a number")?;
    let is_right = (0.001..=1_000_000.0).contains(&times);
    is_right.then_some(times).ok_or_else(|| "write a number from 0.001 to 1000000".to_owned())
}

/// Where a request lies in the file, when it was asked and when it was answered.
#[derive(Clone, Copy, Debug)]
struct Place {
    at_us: u64,
    end_us: u64,
    offset: u64,
    line: usize,
}

/// What came of the requests of one word.
#[derive(Default)]
struct Word {
    count: u64,
    same: u64,
    same_kind: u64,
    other: u64,
    missing: u64,
    recorded_us: Vec<u64>,
    took_us: Vec<u64>,
}

/// What is known so far.
#[derive(Default)]
struct State {
    words: BTreeMap<String, Word>,
    /// When those under way had been answered, by their places.
    open: BTreeMap<usize, u64>,
    /// The change numbers that stand for those of the recording.
    numbers: HashMap<(i64, i64), (i64, i64)>,
    /// Lines about answers of another kind.
    different: Vec<String>,
    /// Commands that are not asked again.
    left_out: u64,
    /// Requests without an answer in the recording.
    unanswered: u64,
    /// How late the latest request was sent.
    late: Duration,
    broken: Option<String>,
}

struct Replay<'a> {
    client: Client,
    file: &'a Path,
    speed: Option<f64>,
    show: usize,
    password: Passwords,
    state: Mutex<State>,
    answered: Condvar,
}

pub(super) fn run(args: &ReplayArgs) -> Outcome {
    let places = places(&args.file)?;
    let client = args.server.client()?;
    client.command(Command::Server(ServerCommand::Ping)).map_err(failure)?;
    let replay = Replay {
        client,
        file: &args.file,
        speed: args.speed,
        show: args.show,
        password: args.server.passwords()?,
        state: Mutex::default(),
        answered: Condvar::new(),
    };
    let begun = Clock::now();
    let (give, take) = sync_channel::<(usize, Place)>(0);
    let take = Mutex::new(take);
    std::thread::scope(|scope| {
        for _ in 0..args.clients {
            scope.spawn(|| replay.work(&take));
        }
        for (number, place) in places.iter().enumerate() {
            if !replay.wait_for(number, place, begun) || give.send((number, *place)).is_err() {
                break;
            }
        }
        // Threads end once it is gone and empty.
        drop(give);
    });
    let took = begun.elapsed();
    let state = replay.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = &state.broken {
        return Err(Failure::Usage(why.clone()));
    }
    summary(args, &state, took, &places)
}

/// The places of all requests, in the order in which they were asked.
fn places(file: &Path) -> Result<Vec<Place>, Failure> {
    let shown = file.display();
    let wrong = |line: usize, why: String| Failure::Usage(format!("{shown}:{line}: {why}"));
    let opened = File::open(file).map_err(|why| Failure::Usage(format!("{shown}: {why}")))?;
    let mut reader = BufReader::with_capacity(1 << 16, opened);
    let (mut places, mut offset, mut text) = (Vec::new(), 0, Vec::new());
    for line in 1.. {
        text.clear();
        let bytes = (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut text);
        let bytes = bytes.map_err(|why| wrong(line, why.to_string()))? as u64;
        if bytes == 0 {
            break;
        }
        if !text.ends_with(b"\n") {
            out::note(format!("{shown}:{line}: the last line has no end, and is left out"));
            break;
        }
        if line == 1 {
            let header: Header = serde_json::from_slice(&text)
                .map_err(|why| wrong(1, format!("this is no recording: {why}")))?;
            let version = header.loadline_traffic;
            if version != VERSION {
                return Err(wrong(1, format!("it has version {version}, {VERSION} is read")));
            }
        } else {
            let one: Exchange =
                serde_json::from_slice(&text).map_err(|why| wrong(line, why.to_string()))?;
            let end_us = one.at_us.saturating_add(one.took_us);
            places.push(Place { at_us: one.at_us, end_us, offset, line });
        }
        offset += bytes;
    }
    if offset == 0 {
        return Err(wrong(1, "this is no recording: it is empty".to_owned()));
    }
    places.sort_by_key(|place| (place.at_us, place.end_us));
    Ok(places)
}

impl Replay<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request is due, and all is answered that had been when it was asked; false
    /// where the replay is broken off.
    fn wait_for(&self, number: usize, place: &Place, begun: Clock) -> bool {
        let due = self.speed.map(|speed| begun + Duration::from_micros(place.at_us).div_f64(speed));
        if let Some(due) = due {
            std::thread::sleep(due.saturating_duration_since(Clock::now()));
        }
        let mut state = self.lock();
        while state.broken.is_none() && state.open.values().any(|end| *end <= place.at_us) {
            state = self.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(due) = due {
            state.late = state.late.max(due.elapsed());
        }
        state.open.insert(number, place.end_us);
        state.broken.is_none()
    }

    /// Asks what is due until nothing more comes.
    fn work(&self, take: &Mutex<Receiver<(usize, Place)>>) {
        loop {
            let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((number, place)) = next else { return };
            let asked = self.one(place);
            let mut state = self.lock();
            if let Err(why) = asked {
                let (file, line) = (self.file.display(), place.line);
                state.broken.get_or_insert(format!("{file}:{line}: {why}"));
            }
            state.open.remove(&number);
            self.answered.notify_all();
        }
    }

    /// Asks one request again.
    fn one(&self, place: Place) -> Result<(), String> {
        let recorded = self.read(place)?;
        let request = read(recorded.request.as_bytes()).map_err(|why| why.to_string())?;
        let (left_out, request) = within_the_tree(request);
        self.lock().left_out += left_out;
        let Some(mut request) = request else { return Ok(()) };
        with_passwords(&mut request, &self.password, &recorded.answer);
        self.renumber(&mut request);
        let begun = Clock::now();
        let answer = self.client.send(&write(&request));
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let word = word(&request);
        let answer = answer.map(|document| Answered::of(&document, &request));
        let mut state = self.lock();
        let counts = state.words.entry(word).or_default();
        counts.count += 1;
        counts.recorded_us.push(recorded.took_us);
        counts.took_us.push(took);
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                counts.missing += 1;
                self.note(&mut state, place, &request, &why.to_string());
                return Ok(());
            }
        };
        match recorded.answer.against(&answer) {
            _ if recorded.answer.is_none() => state.unanswered += 1,
            Same::Bytes => counts.same += 1,
            Same::Kind => counts.same_kind += 1,
            Same::No => {
                counts.other += 1;
                let why = format!("{} was {}", shown(&answer), shown(&recorded.answer));
                self.note(&mut state, place, &request, &why);
            }
        }
        if let (Some(before), Some(now)) = (recorded.answer.numbers, answer.numbers) {
            state.numbers.insert(before, now);
        }
        Ok(())
    }

    fn read(&self, place: Place) -> Result<Exchange, String> {
        let text = |why: std::io::Error| why.to_string();
        let mut file = File::open(self.file).map_err(text)?;
        file.seek(SeekFrom::Start(place.offset)).map_err(text)?;
        let mut line = Vec::new();
        BufReader::new(file).take(LINE_BYTES).read_until(b'\n', &mut line).map_err(text)?;
        serde_json::from_slice(&line).map_err(|why| why.to_string())
    }

    /// A client that follows has the numbers of this server's answers.
    fn renumber(&self, request: &mut Request) {
        if let Body::User(_, Command::Sync { state_change_no, modify_change_no, .. }) =
            &mut request.body
            && let Some(now) = self.lock().numbers.get(&(*state_change_no, *modify_change_no))
        {
            (*state_change_no, *modify_change_no) = *now;
        }
    }

    fn note(&self, state: &mut State, place: Place, request: &Request, why: &str) {
        if state.different.len() < self.show {
            let asked: String = request.line().chars().take(200).collect();
            state.different.push(format!("line {}: {asked}: {why}", place.line));
        }
    }
}

/// An answer, for a message.
fn shown(answer: &Answered) -> String {
    let whole = answer.answer.as_deref().unwrap_or_default();
    let at = ["error_msg_", "str_"].iter().find_map(|name| whole.find(name));
    let text: String = at.map_or("", |at| &whole[at..]).chars().take(160).collect();
    let text = text.lines().next().unwrap_or_default().to_owned();
    if text.is_empty() { answer.kind.clone() } else { format!("{} ({text})", answer.kind) }
}

/// The time below which `part` of them lie, in microseconds.
fn percentile(times: &[u64], part: f64) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

fn summary(args: &ReplayArgs, state: &State, took: Duration, places: &[Place]) -> Outcome {
    let recorded = places.iter().map(|place| place.end_us).max().unwrap_or_default();
    let recorded = Duration::from_micros(recorded);
    let different: u64 = state.words.values().map(|word| word.other + word.missing).sum();
    let rows: Vec<_> = state
        .words
        .iter()
        .map(|(name, word)| {
            let [p50, p99] = [0.5, 0.99].map(|part| {
                [&word.recorded_us, &word.took_us].map(|times| percentile(times, part))
            });
            (name, word, p50, p99)
        })
        .collect();
    if args.json {
        let requests = rows.iter().map(|(name, word, p50, p99)| {
            json!({
                "request": name, "count": word.count, "same_bytes": word.same,
                "same_kind": word.same_kind, "other_kind": word.other, "missing": word.missing,
                "recorded_p50_us": p50[0], "p50_us": p50[1],
                "recorded_p99_us": p99[0], "p99_us": p99[1],
            })
        });
        let all = json!({
            "schema": 1, "requests": requests.collect::<Vec<_>>(), "left_out": state.left_out,
            "unanswered": state.unanswered,
            "different": state.different, "seconds": took.as_secs_f64(),
            "recorded_seconds": recorded.as_secs_f64(), "late_seconds": state.late.as_secs_f64(),
        });
        out::print(format_args!("{all}\n"))?;
    } else {
        out::print(text(state, &rows, took, recorded, args.speed.is_some()))?;
    }
    Ok(if different == 0 { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

type Row<'a> = (&'a String, &'a Word, [u64; 2], [u64; 2]);

fn text(
    state: &State,
    rows: &[Row<'_>],
    took: Duration,
    recorded: Duration,
    is_timed: bool,
) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{:>8}{:>12}{:>11}{:>7}{:>9}{:>12}{:>10}  request (µs)\n",
        "count", "same bytes", "same kind", "other", "missing", "p50: then", "now"
    );
    for (name, word, p50, _) in rows {
        let Word { count, same, same_kind, other, missing, .. } = word;
        let [then, now] = p50;
        // Writing to memory doesn't fail.
        let _ = writeln!(
            text,
            "{count:>8}{same:>12}{same_kind:>11}{other:>7}{missing:>9}{then:>12}{now:>10}  {name}"
        );
    }
    for line in &state.different {
        let _ = writeln!(text, "{line}");
    }
    let (took, recorded) = (took.as_secs_f64(), recorded.as_secs_f64());
    let _ = writeln!(text, "{took:.3} s, recorded in {recorded:.3} s");
    if is_timed {
        let _ = writeln!(text, "the latest request was {:.3} s late", state.late.as_secs_f64());
    }
    if state.unanswered > 0 {
        let requests = many(state.unanswered, "request");
        let _ = writeln!(text, "{requests} without an answer in the recording to compare with");
    }
    if state.left_out > 0 {
        let commands = many(state.left_out, "command");
        let _ = writeln!(text, "{commands} left out, to act on nothing but the tree (--help)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_of_times() {
        assert_eq!((speed("10"), speed("x0.5")), (Ok(10.0), Ok(0.5)));
        assert!(speed("0").is_err() && speed("fast").is_err() && speed("NaN").is_err());
        assert_eq!((percentile(&[3, 1, 2], 0.5), percentile(&[], 0.5)), (2, 0));
    }
}
