//! One client on the simulated network: when it reads and writes, and how much, is drawn; what, is
//! the client's.

use super::backend::SharedNetwork;
use super::client::{Client, End, Next};
use super::network::{Arrived, Breaker, LinkId};
use super::random::Random;
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::{Input, Ns};

/// While this many bytes wait for the network, the client sends no more.
const FULL_BYTES: usize = 64 << 10;

/// A server that sends nothing for this long, although it should, is stuck. More than all that a
/// client or the network may delay.
const PATIENCE_NS: Ns = 100 * SECOND_NS;

/// A client and its connection.
pub(super) struct Peer {
    network: SharedNetwork,
    id: LinkId,
    client: Box<dyn Client>,
    /// Bytes that the network hasn't taken.
    outbox: Vec<u8>,
    input: Input,
    next: Next,
    has_finished: bool,
    /// When it has its next turn.
    pub(super) turn_at_ns: Ns,
    /// It reads nothing until then.
    reads_from_ns: Ns,
    /// When bytes came last, or none were due.
    progress_ns: Ns,
}

impl Peer {
    /// A client that has just connected.
    pub(super) fn new(network: SharedNetwork, id: LinkId, client: Box<dyn Client>) -> Self {
        let now_ns = network.lock().now_ns;
        Self {
            network,
            id,
            client,
            outbox: Vec::new(),
            input: Input::new(),
            next: Next::Send,
            has_finished: false,
            turn_at_ns: now_ns,
            reads_from_ns: now_ns,
            progress_ns: now_ns,
        }
    }

    /// Gives the client its turn. Returns whether its connection is still open.
    pub(super) fn turn(&mut self, random: &mut Random, is_stopping: bool) -> Result<bool, String> {
        let now_ns = self.network.lock().now_ns;
        let mut has_moved = false;
        if now_ns >= self.reads_from_ns {
            match self.read(now_ns)? {
                Arrived::Bytes => has_moved = true,
                Arrived::Nothing => {}
                end => return self.end(now_ns, end, is_stopping),
            }
        }
        let may_send = !matches!(self.next, Next::Finish | Next::Reset);
        if may_send && self.outbox.len() < FULL_BYTES {
            self.next = self.client.send(now_ns, random, &mut self.outbox)?;
        }
        let faults = self.network.lock().faults.clone();
        if self.next == Next::Reset || random.chance(faults.resets) && random.chance(64) {
            self.network.lock().reset(self.id, Breaker::Client);
            return self.end(now_ns, Arrived::Broken(Breaker::Client), is_stopping);
        }
        has_moved |= self.write();
        if random.chance(faults.stalls) && random.chance(128) {
            self.reads_from_ns = now_ns + random.below(faults.stall_ns + 1);
        }
        self.turn_at_ns = self.next_turn_ns(now_ns, random, has_moved);
        self.check_progress(now_ns)?;
        Ok(true)
    }

    fn read(&mut self, now_ns: Ns) -> Result<Arrived, String> {
        let mut bytes = Vec::new();
        let arrived = self.network.lock().client_receive(self.id, &mut bytes);
        if arrived == Arrived::Bytes {
            self.progress_ns = now_ns;
            self.input.append(&bytes);
            self.client.receive(now_ns, &mut self.input)?;
        }
        Ok(arrived)
    }

    fn write(&mut self) -> bool {
        let mut network = self.network.lock();
        let sent = network.client_send(self.id, &self.outbox);
        self.outbox.drain(..sent);
        if self.next == Next::Finish && self.outbox.is_empty() && !self.has_finished {
            self.has_finished = true;
            network.client_end(self.id);
        }
        sent > 0
    }

    fn end(&mut self, now_ns: Ns, how: Arrived, is_stopping: bool) -> Result<bool, String> {
        let end = match how {
            Arrived::Broken(Breaker::Client) => End::Broken,
            Arrived::Broken(Breaker::Server) => End::Dropped,
            _ => End::Closed,
        };
        self.client.ended(now_ns, end, is_stopping)?;
        Ok(false)
    }

    /// Mostly soon after a turn in which bytes moved. A client that only waits for bytes has its
    /// next turn when some arrive.
    fn next_turn_ns(&self, now_ns: Ns, random: &mut Random, has_moved: bool) -> Ns {
        let scale_ns = match random.below(64) {
            0 => 100 * MILLISECOND_NS,
            1..8 => MILLISECOND_NS,
            8..40 => 20_000,
            _ => 0,
        };
        let soon_ns = now_ns + 1 + random.below(scale_ns + 1);
        if has_moved {
            return soon_ns;
        }
        let waits = matches!(self.next, Next::Await | Next::Finish) && self.outbox.is_empty();
        let arrival_ns = self.network.lock().client_arrival_ns(self.id);
        let latest_ns = now_ns + MILLISECOND_NS;
        if waits { soon_ns.max(arrival_ns.unwrap_or(latest_ns)) } else { soon_ns + 10_000 }
    }

    fn check_progress(&mut self, now_ns: Ns) -> Result<(), String> {
        let is_due = matches!(self.next, Next::Await | Next::Finish);
        if !is_due || self.reads_from_ns > now_ns || !self.network.lock().was_accepted(self.id) {
            self.progress_ns = now_ns;
        }
        if now_ns - self.progress_ns > PATIENCE_NS {
            return Err(format!(
                "the server is stuck: the client waits ({:?}), and no byte came for {} s",
                self.next,
                PATIENCE_NS / SECOND_NS
            ));
        }
        Ok(())
    }

    /// What it waits for, for a failure's message.
    pub(super) fn state(&self) -> String {
        let Self { id, next, outbox, input, .. } = self;
        let (unsent, unread) = (outbox.len(), input.len());
        let accepted = self.network.lock().was_accepted(*id);
        format!("connection {id}: {next:?}, {unsent} unsent, {unread} unread, accepted {accepted}")
    }

    /// The clock has jumped: nothing is late because of that.
    pub(super) fn jump(&mut self, by_ns: Ns) {
        self.progress_ns += by_ns;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.network.lock().client_close(self.id);
    }
}
