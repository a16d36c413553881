//! Steps by which several clients take the whole tree at once.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::bulk::hold_names;
use super::exchange::{exchange, text};
use super::known::State;
use super::names::Names;
use super::site::{Fault, Result, Site};

/// How many clients there are.
const CLIENTS: usize = 8;

/// Sends the same request by each client, all at once. Returns how long it took until the last of
/// them had its answer; the answers go to `answers`.
pub(super) fn ask(request: &[u8], at: SocketAddr, answers: &mut Vec<Vec<u8>>) -> Result<Duration> {
    answers.resize_with(CLIENTS, Vec::new);
    let begin = Barrier::new(CLIENTS + 1);
    std::thread::scope(|scope| {
        let asked: Vec<_> = answers
            .iter_mut()
            .map(|answer| {
                let begin = &begin;
                scope.spawn(move || {
                    give_way();
                    begin.wait();
                    exchange(at, request, answer)
                })
            })
            .collect();
        begin.wait();
        let begun = Instant::now();
        for one in asked {
            one.join().map_err(|_| Fault::Wrong("a thread that asks ended".to_owned()))??;
        }
        Ok(begun.elapsed())
    })
}

/// Lets the pings of [`super::others`] go first, where they share a core with this thread: what
/// they wait for is to be the server.
fn give_way() {
    let _ = rustix::process::setpriority_process(None, 19);
}

/// Whether each node is in each of the answers; the one that is looked at is the site's last.
pub(super) fn check(
    answers: Vec<Vec<u8>>,
    (site, state): (&mut Site, &State),
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<()> {
    let bytes: usize = answers.iter().map(Vec::len).sum();
    figures.push(("answer_bytes", bytes as f64));
    for answer in answers {
        site.answer = answer;
        hold_names(Names::of(&text(&site.answer)?), state.names, "an answer")?;
    }
    Ok(())
}
