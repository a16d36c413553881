//! Steps by which several clients take the whole tree at once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::bulk::hold_names;
use super::exchange::{exchange, text};
use super::known::State;
use super::names::Names;
use super::site::{Fault, Result};

/// How many clients there are.
const CLIENTS: usize = 8;

/// Sends the same request by each client, all at once. Returns how long it took until the last of
/// them had its answer; the answers go to `answers`.
pub(super) fn ask(request: &[u8], at: SocketAddr, answers: &mut Vec<Vec<u8>>) -> Result<Duration> {
    answers.resize_with(CLIENTS, Vec::new);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let asked: Vec<_> = answers
            .iter_mut()
            .map(|answer| {
                scope.spawn(move || {
                    give_way();
                    exchange(at, request, answer)
                })
            })
            .collect();
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

/// Whether each node is in each of the answers.
pub(super) fn check(
    answers: &[Vec<u8>],
    state: &State,
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<()> {
    let bytes: usize = answers.iter().map(Vec::len).sum();
    figures.push(("answer_bytes", bytes as f64));
    answers
        .iter()
        .try_for_each(|answer| hold_names(Names::of(&text(answer)?), state.names, "an answer"))
}
