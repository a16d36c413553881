//! Pings beside a step: how long others wait meanwhile.
//!
//! A ping is due every two milliseconds, and its time counts from then: one that waits for the
//! server holds up the later ones, which count with the time that they were held up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::requests::command;
use super::exchange::{agreed, exchange};
use crate::protocol::{Command, ServerCommand};
use crate::slices;

/// The interval between pings.
const EVERY: Duration = Duration::from_millis(2);

/// A thread that pings.
pub(super) struct Others {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Duration>, String>>,
}

impl Others {
    /// Begins.
    pub(super) fn begin(at: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        Self { is_over, thread: std::thread::spawn(move || ping(at, &stop)) }
    }

    /// Ends, and returns the waits, the shortest first.
    ///
    /// # Errors
    /// When a ping was not answered as it should be.
    pub(super) fn end(self) -> Result<Vec<Duration>, String> {
        self.is_over.store(true, Ordering::Relaxed);
        let waits = self.thread.join().map_err(|_| "the thread that pings ended".to_owned())?;
        let mut waits = waits.map_err(|why| format!("a ping meanwhile: {why}"))?;
        waits.sort_unstable();
        Ok(waits)
    }
}

/// Pings until it is over; those that were due by then are sent.
fn ping(at: SocketAddr, is_over: &AtomicBool) -> Result<Vec<Duration>, String> {
    // Clients of a step compete for its core: their turns are no time of the server's.
    slices::shorten();
    let request = command(Command::Server(ServerCommand::Ping));
    let (mut waits, mut answer) = (Vec::new(), Vec::new());
    let mut due = Instant::now();
    let mut ends: Option<Instant> = None;
    loop {
        if ends.is_none() && is_over.load(Ordering::Relaxed) {
            ends = Some(Instant::now());
        }
        if ends.is_some_and(|ends| due >= ends) {
            return Ok(waits);
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        exchange(at, &request, &mut answer).map_err(|why| why.to_string())?;
        agreed(&answer)?;
        waits.push(due.elapsed());
        due += EVERY;
    }
}

/// The wait below which `part` of them lie.
pub(in crate::load) fn percentile(waits: &[Duration], part: f64) -> Duration {
    let place = (waits.len() as f64 * part).ceil() as usize;
    waits.get(place.saturating_sub(1)).or(waits.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_wait_that_was_seen() {
        let waits: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&waits, 0.99), Duration::from_millis(198));
        assert_eq!(percentile(&waits[..3], 0.99), Duration::from_millis(3));
        assert_eq!(percentile(&[], 0.99), Duration::ZERO);
    }
}
