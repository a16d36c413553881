//! Steps that start jobs: each job's command has to be carried out once.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::requests::{command, group, report};
use super::exchange::{exchange, text};
use super::known::{Sizes, State};
use super::made::{
    JOBS, PAIRS, RELEASED, RELEASES, first, job, jobs, loaded, pairs, released, second, started,
};
use super::names::Names;
use super::site::{Fault, Result, Site, wrong};
use crate::protocol::{Command, NodeCommand, Report, ServerCommand};

/// The script of all jobs.
const SCRIPT: &str = "\
%comment
no part of the job
%end
echo task %TASK% of %FAMILY% in %SUITE%, try %ECF_TRYNO%, parameter %PARAMETER:none%
%manual
What the task does.
%end
";

/// How long jobs may take to start, and a dependent task to be submitted.
const STARTED_WITHIN: Duration = Duration::from_secs(60);

/// The interval at which started jobs are counted.
const LOOK: Duration = Duration::from_millis(1);

/// Makes the folder of the jobs with their scripts, and loads their suite.
pub(super) fn load_jobs(sizes: &Sizes, site: &mut Site, state: &mut State) -> Result<Duration> {
    let folder = prepared(site, JOBS, (0..sizes.jobs).map(|number| format!("t{number}.ecf")))?;
    let text = jobs(&folder, sizes.jobs);
    state.names = state.names + Names::of(&text);
    state.has_changed = true;
    site.tell(&loaded(text))
}

/// The same for the pairs, which begin at once, for the server runs.
pub(super) fn load_pairs(sizes: &Sizes, site: &mut Site, state: &mut State) -> Result<Duration> {
    let folder = prepared(site, PAIRS, (0..sizes.pairs).map(|pair| format!("b{pair}.ecf")))?;
    let text = pairs(&folder, sizes.pairs);
    state.names = state.names + Names::of(&text);
    state.has_changed = true;
    let load = Command::Load { force: false, definition: text, file: "pairs.def".to_owned() };
    let begin = Command::Begin { suite: PAIRS.to_owned(), force: false };
    site.tell(&group(vec![load, begin, Command::Server(ServerCommand::Restart)]))
}

/// The same for tasks that one task releases.
pub(super) fn load_released(sizes: &Sizes, site: &mut Site, state: &mut State) -> Result<Duration> {
    let scripts = (0..sizes.released).map(|number| format!("r{number}.ecf"));
    let folder = prepared(site, RELEASED, scripts)?;
    let text = released(&folder, sizes.released);
    state.names = state.names + Names::of(&text);
    state.has_changed = true;
    let load = Command::Load { force: false, definition: text, file: "released.def".to_owned() };
    let begin = Command::Begin { suite: RELEASED.to_owned(), force: false };
    site.tell(&group(vec![load, begin, Command::Server(ServerCommand::Restart)]))
}

/// Ends the task that releases them. Returns how long it takes from the answer until each of the
/// others is submitted, or further, by looks at the last one, and then at all.
pub(super) fn release(sizes: &Sizes, site: &mut Site, state: &mut State) -> Result<Duration> {
    state.has_changed = true;
    site.tell(&report(RELEASES, Report::Complete(Vec::new())))?;
    let begun = Instant::now();
    let last = format!("/{RELEASED}/f/r{}", sizes.released.saturating_sub(1));
    let all = command(Command::Node(NodeCommand::GetState, format!("/{RELEASED}/f")));
    loop {
        let found = site.query("state", &last, "")?;
        if found != "queued" {
            site.ask(&all)?;
            let tree = text(&site.answer)?;
            let of_tasks = tree.lines().filter(|line| line.trim_start().starts_with("task r"));
            let states: Vec<&str> = of_tasks.map(state_of).collect();
            let count = states.len() as u64;
            if count != sizes.released {
                return wrong(format!("{count} of {} tasks are there", sizes.released));
            }
            if let Some(other) = states.iter().find(|one| !FREE.contains(one) && **one != "queued")
            {
                return wrong(format!("a task is {other} once it is released"));
            }
            if states.iter().all(|one| FREE.contains(one)) {
                return Ok(begun.elapsed());
            }
        }
        let took = begun.elapsed();
        if took > STARTED_WITHIN {
            return wrong(format!("{last} is {found} after {took:?}, or others are queued"));
        }
        std::thread::sleep(LOOK);
    }
}

/// The states of a task that was released.
const FREE: [&str; 3] = ["submitted", "active", "complete"];

/// The state of a task, by its line of a definition with states.
fn state_of(line: &str) -> &str {
    let state = line.split_once(" state:").map_or("unknown", |(_, rest)| rest);
    state.split(' ').next().unwrap_or_default()
}

/// A folder with one script under these names, and without what a suite of this name has started.
fn prepared(site: &Site, suite: &str, scripts: impl Iterator<Item = String>) -> Result<PathBuf> {
    let folder = site.folder();
    std::fs::create_dir_all(&folder).map_err(|why| of_file(&folder, &why))?;
    let script = folder.join("script");
    std::fs::write(&script, SCRIPT).map_err(|why| of_file(&script, &why))?;
    gone(&started(suite, &folder))?;
    for name in scripts {
        // Of a suite that was loaded before.
        let file = folder.join(name);
        gone(&file)?;
        std::fs::hard_link(&script, &file).map_err(|why| of_file(&file, &why))?;
    }
    Ok(folder)
}

/// Removes a file, where it is there.
fn gone(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(of_file(file, &why)),
        _ => Ok(()),
    }
}

/// A file that can't be read or written: not the server's fault, nor that of the way to it.
fn of_file(file: &Path, why: &std::io::Error) -> Fault {
    Fault::Wrong(format!("{}: {why}", file.display()))
}

/// Begins the suite of the jobs, and waits until the command of each was carried out. Returns how
/// long that took; how long the answer took goes to `figures`.
pub(super) fn start_jobs(
    sizes: &Sizes,
    site: &mut Site,
    state: &mut State,
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<Duration> {
    let begun = Instant::now();
    let answered = site.tell(&begin(JOBS))?;
    figures.push(("answer_ns", answered.as_nanos() as f64));
    state.has_changed = true;
    let file = started(JOBS, &site.folder());
    // A line a job, of which the first are the shortest.
    let shortest = sizes.jobs * (job(0).len() as u64 + 1);
    while lines(&file, shortest) < sizes.jobs {
        if begun.elapsed() > STARTED_WITHIN {
            let (found, expected) = (lines(&file, 0), sizes.jobs);
            return wrong(format!("{found} of {expected} jobs were started in {STARTED_WITHIN:?}"));
        }
        std::thread::sleep(LOOK);
    }
    let took = begun.elapsed();
    figures.push(("per_s", sizes.jobs as f64 / took.as_secs_f64()));
    Ok(took)
}

fn begin(suite: &str) -> Vec<u8> {
    command(Command::Begin { suite: suite.to_owned(), force: false })
}

/// How many lines a file has; it isn't read while it is shorter than `shortest`.
fn lines(file: &Path, shortest: u64) -> u64 {
    let length = std::fs::metadata(file).map_or(0, |file| file.len());
    if length < shortest {
        return 0;
    }
    let bytes = std::fs::read(file).unwrap_or_default();
    memchr::memchr_iter(b'\n', &bytes).count() as u64
}

/// Whether each job was started once, and none that was not asked for.
pub(super) fn hold_started(sizes: &Sizes, site: &Site) -> Result<()> {
    let file = started(JOBS, &site.folder());
    let file = std::fs::read_to_string(&file).map_err(|why| of_file(&file, &why))?;
    let mut times: HashMap<&str, u64> = HashMap::new();
    for line in file.lines() {
        *times.entry(line).or_default() += 1;
    }
    let right = (0..sizes.jobs).all(|number| times.get(job(number).as_str()) == Some(&1));
    if right && times.len() as u64 == sizes.jobs {
        return Ok(());
    }
    let twice = times.values().filter(|times| **times > 1).count();
    wrong(format!("{} paths of {} jobs were started, {twice} twice", times.len(), sizes.jobs))
}

/// How long it takes to end the first task of a pair.
pub(super) struct Ended {
    /// Until that is answered.
    complete: Duration,
    /// From then until the second one is submitted.
    pub(super) dependent: Duration,
}

/// Ends the first task of the next pair, and waits until the second one is submitted.
pub(super) fn dependent(sizes: &Sizes, site: &mut Site, state: &mut State) -> Result<Ended> {
    let pair = state.pairs;
    if pair == sizes.pairs {
        return wrong(format!("all {pair} pairs are used up: workload.pairs says how many"));
    }
    (state.pairs, state.has_changed) = (pair + 1, true);
    let complete = site.tell(&report(&first(pair), Report::Complete(Vec::new())))?;
    let begun = Instant::now();
    let path = second(pair);
    loop {
        let found = site.query("state", &path, "")?;
        let took = begun.elapsed();
        match found.as_str() {
            "submitted" => return Ok(Ended { complete, dependent: took }),
            "queued" if took < STARTED_WITHIN => {}
            _ => return wrong(format!("{path} is {found} after {took:?}, not submitted")),
        }
    }
}

/// Whether an answer is right; the error says why it is not.
type Right = fn(&[u8]) -> std::result::Result<(), String>;

/// Sends a request, and ends the first tasks of pairs one after another until it is answered, which
/// has to be as `right` says. Returns how long that took; how long the tasks took goes to
/// `figures`.
pub(super) fn meanwhile(
    (request, right): (&[u8], Right),
    sizes: &Sizes,
    (site, state): (&mut Site, &mut State),
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<Duration> {
    let at = site.at;
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let mut answer = Vec::new();
            let (took, _) = exchange(at, request, &mut answer)?;
            right(&answer)?;
            Ok(took)
        });
        let before = state.pairs;
        while !asked.is_finished() || state.pairs == before {
            let ended = dependent(sizes, site, state)?;
            figures.push(("complete_ns", ended.complete.as_nanos() as f64));
            figures.push(("dependent_ns", ended.dependent.as_nanos() as f64));
        }
        let ended = || Fault::Wrong("the thread that asks ended".to_owned());
        asked.join().unwrap_or_else(|_| Err(ended()))
    })
}
