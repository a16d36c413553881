//! What the owner does by the clock: the calendars' minutes, checkpoints, and what is tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log::{Category, unix_us};
use super::owner::Owner;
use super::pending::Change;
use super::record::{Record, What, random};
use crate::model::ServerState;
use crate::protocol::{Body, Command, Request, ServerCommand};

/// The ends of commands that a full disk refused are tried again after this time.
const RETRY: Duration = Duration::from_secs(1);

/// Whether a request starts a server that is halted.
fn starts(request: &Request) -> bool {
    match &request.body {
        Body::User(_, Command::Server(ServerCommand::Restart)) => true,
        Body::User(_, Command::Group(all)) => all.iter().any(starts),
        _ => false,
    }
}

impl Owner {
    /// When something is to be done by the clock.
    pub(super) fn due(&self) -> Instant {
        let due = self.clock.tick.min(self.clock.check);
        let others = [self.snapshot_at(), self.clock.forget];
        let due = others.into_iter().flatten().fold(due, Ord::min);
        if self.pending.refused.is_empty() { due } else { due.min(self.clock.retry) }
    }

    /// Notes whether the server runs. As with ecFlow, the calendars stand still until it has run
    /// once since this process began, and go on from then, also while it is halted or shut down.
    pub(super) fn note_running(&mut self) {
        self.clock.has_run |= self.core.tree().server().state == ServerState::Running;
    }

    /// Has the calendars catch up before a request that starts the server for the first time, so
    /// that what it submits has the time of day. Where minutes pass by the second, for tests, they
    /// don't: they are counted, not read.
    pub(super) fn tick_before(&mut self, request: &Request) {
        if !self.clock.has_run && self.environment.interval_s >= 60 && starts(request) {
            self.tick();
        }
    }

    /// Has the calendars go on.
    fn tick(&mut self) {
        let (at_us, random) = (unix_us(), random());
        let is_minute = self.environment.interval_s < 60;
        match self.append(&Record { at_us, random, what: What::Tick { is_minute } }) {
            Ok(()) => self.wait_for(at_us, random, Change::Tick(is_minute)),
            Err(why) => self.own_refused(&why),
        }
    }

    /// Does what is due.
    pub(super) fn time(&mut self) {
        let now = Instant::now();
        if !self.pending.refused.is_empty() && now >= self.clock.retry {
            self.clock.retry = now + RETRY;
            self.record_refused();
        }
        if now >= self.clock.tick {
            self.count_pings();
            self.core.statistics.look();
            for text in self.shared.spawner.newly_taken_up() {
                self.say(unix_us(), Category::Warning, &text);
            }
            self.clock.ticked(unix_us(), Instant::now());
            if self.clock.has_run {
                self.tick();
            }
        }
        if self.clock.forget.is_some_and(|at| now >= at) {
            self.clock.forget = None;
            let answers = Arc::clone(&self.shared.answers);
            // Where there is no room it is kept until others need it.
            let _ = self.shared.in_background(move || answers.forget());
        }
        if now >= self.clock.check {
            self.clock.check = now + self.core.checks.interval();
            self.due_checkpoint();
        }
    }
}
