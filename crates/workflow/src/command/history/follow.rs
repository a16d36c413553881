//! A server followed by its log, which it sends lines of: no change between two looks is missed.
//! Control plane.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Clock};

use base::units::Span;
use service::{Failure, Outcome, out};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::store::Store;
use crate::client::{Client, ClientError, Follower};
use crate::command::server::{UserArgs, failure};
use crate::history::Change;
use crate::protocol::{Command, LogCommand};

/// How many last lines are kept, behind which new ones are found.
const KEPT: usize = 64;

/// How many lines are asked for at first, and where what was read before isn't among these, again
/// and again as many times more, up to the most.
const LINES: i64 = 1_000;
const MORE: i64 = 10;
const MOST: i64 = 100_000_000;

/// How many lines are taken of a log of which none was read before.
const BEGINNING: i64 = 10_000;

/// How often it is looked whether this ends.
const LOOK: Duration = Duration::from_millis(100);

/// The shortest time between two requests.
const SHORTEST: Duration = Duration::from_millis(10);

/// A server that is followed.
#[derive(Debug, clap::Args)]
pub(super) struct FollowArgs {
    /// Follow the server at HOST or HOST:PORT, ours or ecFlow's own, by its log
    #[arg(long, value_name = "ADDRESS", requires = "to", conflicts_with_all = ["defs", "json"])]
    follow: Option<String>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", requires = "follow")]
    within: Option<Span>,
    /// How often the server is asked
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "follow")]
    interval: Span,
    #[command(flatten)]
    user: UserArgs,
}

impl FollowArgs {
    /// Follows the server, if one is named.
    pub(super) fn run(&self, store: &mut Store) -> Option<Outcome> {
        let address = self.follow.as_deref()?;
        let client = self.user.client(address);
        Some(client.and_then(|client| follow(self, &client, store)))
    }
}

/// Follows until the time is over.
fn follow(args: &FollowArgs, client: &Client, store: &mut Store) -> Outcome {
    if let Some(other) = store.followed()?.filter(|other| other != client.address()) {
        let why = format!("--to: it follows {other}: name another file for {}", client.address());
        return Err(Failure::Usage(why));
    }
    let mut follower = Follower::new(client.clone()).map_err(failure)?;
    store.change(|store| {
        store.note_server(client.address())?;
        store.define(follower.tree())
    })?;
    take(client, store)?.map_err(failure)?;
    let end = args.within.map(|span| Clock::now() + span.duration());
    let interval = args.interval.duration().max(SHORTEST);
    // Whether the log has what is not taken yet, and why the last look failed, if it did.
    let (mut is_behind, mut away) = (false, None);
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    loop {
        let left = end.map(|end| end.saturating_duration_since(Clock::now()));
        let is_asked = is_over.load(Ordering::Relaxed);
        if is_asked || left.is_some_and(|left| left.is_zero()) {
            // The file is closed: all of it is in it, not beside it in its `-wal`.
            return away.map_or(Ok(ExitCode::SUCCESS), |why| Err(failure(why)));
        }
        let next = Clock::now() + left.map_or(interval, |left| left.min(interval));
        while Clock::now() < next && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK.min(next.saturating_duration_since(Clock::now())));
        }
        let before = numbers(&follower);
        // The log is asked for where something has changed: it notes each time that it is.
        let taken = match follower.changes() {
            Ok(_) => {
                let now = numbers(&follower);
                if now.1 != before.1 {
                    store.change(|store| store.define(follower.tree()))?;
                }
                is_behind |= now != before;
                if is_behind { take(client, store)? } else { Ok(()) }
            }
            Err(why) => Err(why),
        };
        match taken {
            Ok(()) => (is_behind, away) = (false, None),
            Err(why @ ClientError::Connection { .. }) => {
                if away.is_none() {
                    out::note(format!("{why}: asked again every {interval:?}"));
                }
                away = Some(why);
            }
            Err(why) => return Err(failure(why)),
        }
    }
}

/// The numbers of the last change of state and of structure.
fn numbers(follower: &Follower) -> (u32, u32) {
    (follower.tree().state_change_no(), follower.tree().modify_change_no())
}

/// Takes what the server's log has behind what was read before. The inner error is the server's.
fn take(client: &Client, store: &mut Store) -> Result<Result<(), ClientError>, Failure> {
    let known = store.last_lines()?;
    let mut most = if known.is_empty() { BEGINNING } else { LINES };
    let mut fewer = None;
    loop {
        let text = match (client.text(Command::Log(LogCommand::Get(most))), fewer.take()) {
            (Ok(text), _) => text,
            // More lines than one answer may have: what is had are those before.
            (Err(why), Some(text)) if why.is_too_long() => text,
            (Err(why), _) => return Ok(Err(why)),
        };
        let lines: Vec<&str> = text.lines().collect();
        let is_whole = (lines.len() as i64) < most || most >= MOST;
        let begin = match behind(&known, &lines) {
            Some(begin) => Some(begin),
            None if known.is_empty() => Some(0),
            None if is_whole => None,
            None => {
                most *= MORE;
                fewer = Some(text);
                continue;
            }
        };
        return store.change(|store| {
            if begin.is_none() {
                store.note_gap("the log begins anew, or is longer than the server sends")?;
            }
            let new = &lines[begin.unwrap_or(0)..];
            for change in new.iter().filter_map(|line| Change::read(line)) {
                store.take(&change)?;
            }
            let mut last = known.clone();
            for line in &new[new.len().saturating_sub(KEPT)..] {
                last.push_str(line);
                last.push('\n');
            }
            if begin.is_none() {
                last = new.iter().map(|line| format!("{line}\n")).collect();
            }
            shorten(&mut last);
            store.note_lines(&last)?;
            Ok(Ok(()))
        });
    }
}

/// Where new lines begin: behind the last ones that are known. Fewer than are kept are the log's
/// first.
fn behind(known: &str, lines: &[&str]) -> Option<usize> {
    let known: Vec<&str> = known.lines().collect();
    if known.is_empty() {
        return None;
    }
    if known.len() < KEPT {
        return lines.starts_with(&known).then_some(known.len());
    }
    let at = lines.windows(known.len()).rposition(|some| some == known)?;
    Some(at + known.len())
}

/// Leaves the last lines that are kept.
pub(super) fn shorten(lines: &mut String) {
    let count = memchr::memchr_iter(b'\n', lines.as_bytes()).count();
    if count > KEPT {
        let mut ends = memchr::memchr_iter(b'\n', lines.as_bytes());
        let end = ends.nth(count - KEPT - 1).unwrap_or(0);
        lines.drain(..=end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_lines_begin_behind_those_that_are_known() {
        let all: Vec<String> = (0..200).map(|number| format!("line {number}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let known = |lines: &[&str]| {
            let mut known: String = lines.iter().map(|line| format!("{line}\n")).collect();
            shorten(&mut known);
            known
        };
        assert_eq!(behind(&known(&all[..10]), &all), Some(10));
        assert_eq!(behind(&known(&all[..150]), &all[60..]), Some(90));
        assert_eq!(behind(&known(&all[..150]), &all[100..]), None);
        assert_eq!(behind(&known(&all), &all), Some(200));
        assert_eq!(behind("", &all), None);
        // A log of few lines that are all alike.
        assert_eq!(behind("a\na\n", &["a", "a", "a"]), Some(2));
        assert_eq!(known(&all).lines().count(), KEPT);
    }
}
