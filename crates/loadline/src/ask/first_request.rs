//! The first request of a service, or the first run of a command, before it is measured: a target
//! that never answers is an error at once, and not after all rounds.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use base::units::Span;
use lab::drive::batch::{Batch, SingleRun};
use lab::drive::{DriveError, Session, SessionConfig};
use lab::plan::{Arrivals, Clients, Plan, TargetKind};
use load::{DialectRow, Reach};

use super::greeting::{PATIENCE, spoken_at};
use super::side::Side;
use crate::exit::Failure;
use crate::out::note;

/// A command that takes longer is announced: nothing else is shown while it runs.
const ANNOUNCED: Duration = Duration::from_secs(2);

/// Sends one request to the target of this number in the plan, as its clients will.
///
/// # Errors
/// When it is not answered, or not in the protocol.
pub(super) fn check(plan: &Plan, target: usize) -> Result<(), Failure> {
    let point = &plan.points[0];
    let (target, clients) = (&point.targets[target], &point.clients[0]);
    let TargetKind::Address(address) = &target.kind else { return Ok(()) };
    let name = target.speaks.dialect.name;
    let timeout = Span { ns: PATIENCE.as_nanos() as u64 };
    let (connections, threads, pipeline) = (1, 1, 1);
    let clients = Clients {
        connections,
        threads,
        pipeline,
        timeout,
        arrivals: Arrivals::Closed,
        ..clients.clone()
    };
    let load = SessionConfig {
        address,
        speaks: &target.speaks,
        batch: None,
        program: None,
        workload: &point.workload,
        clients: &[clients],
        round: 0,
        clock_zero: wire::clock::now(),
        stop: Arc::default(),
        live: None,
    };
    // A loop that ends at once still waits for the answer to its first request.
    let result = match Session::open(&load).and_then(|mut session| session.run(1)) {
        Ok(result) => result,
        Err(DriveError::Connect { source, .. }) => {
            let said = format!("{address} can't be spoken to in {name}: {source}");
            return Err(unanswered(&said, target.speaks.dialect, &address.to_string()));
        }
        Err(error) => return Err(Failure::Other(error.into())),
    };
    let why = match (result.trouble, result.counts.missing, result.wrong_answers.first()) {
        (Some(trouble), ..) => trouble.trim_start_matches("connection 0: ").to_owned(),
        (None, 1.., _) => match result.fault {
            // It may be closed each time that it is made again, and the time isn't over.
            Some(fault) => fault,
            None => format!("no answer came within {timeout}"),
        },
        (None, 0, Some(refusal)) if result.counts.refused > 0 => {
            format!("the first request is refused: {}", refusal.finding.note)
        }
        (None, 0, _) => return Ok(()),
    };
    let said = format!("{address} doesn't answer as {name} does: {why}");
    Err(unanswered(&said, target.speaks.dialect, &address.to_string()))
}

/// The failure of a first request, with what may be spoken there instead.
fn unanswered(said: &str, dialect: &DialectRow, address: &str) -> Failure {
    let said = report::one_line(said);
    let spoken = (dialect.reach == Reach::Stream).then(|| spoken_at(address, dialect.name));
    match spoken.flatten() {
        Some(spoken) => Failure::Usage(format!("{said}\n  {spoken}")),
        None => Failure::Other(anyhow!(said)),
    }
}

/// Runs a command once, and again where it fails. Returns how long it took.
///
/// # Errors
/// When it fails twice in the same way.
pub(super) fn rehearse(side: &Side, words: &[String]) -> Result<Duration, Failure> {
    let first = run_once(side, words)?;
    let Some(failure) = first.failure else { return Ok(first.took) };
    let second = run_once(side, words)?;
    if second.failure.as_ref() != Some(&failure) {
        return Ok(second.took);
    }
    let said = format!("{} fails, twice in the same way: {failure}", side.name());
    Err(Failure::Other(anyhow!(report::one_line(&said))))
}

fn run_once(side: &Side, words: &[String]) -> Result<SingleRun, Failure> {
    let name = format!("loadline-try-{}-{}", std::process::id(), wire::clock::unix_now());
    let folder = std::env::temp_dir().join(name);
    let made = std::fs::create_dir(&folder);
    made.with_context(|| format!("{} can't be made", folder.display()))?;
    let batch = Batch {
        exe: std::env::current_exe().context("this program can't find itself")?,
        command: words.to_vec(),
        env: Default::default(),
        cpus: Vec::new(),
        folder: folder.clone(),
        figures: Vec::new(),
    };
    let (ended, has_ended) = channel();
    let run = std::thread::spawn(move || {
        let ran = SingleRun::of(batch);
        let _ = ended.send(());
        ran
    });
    if has_ended.recv_timeout(ANNOUNCED) == Err(RecvTimeoutError::Timeout) {
        note(format!("{} is run once before it is measured …", side.name()));
    }
    let ran = run.join().map_err(|_| anyhow!("the thread that ran it ended"))?;
    let _ = std::fs::remove_dir_all(&folder);
    Ok(ran.map_err(|error| anyhow!(error.to_string()))?)
}
