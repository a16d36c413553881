//! The simulated network as the loop's backend: one for each worker.

use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::network::{LinkId, Network};
use crate::poll::{Event, Interest};
use crate::stream::Socket;
use crate::system::{Outcome, Ring, System};
use crate::transport::Transport;
use crate::{Address, Ns};

/// The network, as sockets, workers and clients share it. All of them run on one thread: a lock,
/// because sockets move between workers by way of their mailboxes, whose content has to be `Send`.
#[derive(Clone, Debug)]
pub(super) struct SharedNetwork(Arc<Mutex<Network>>);

impl SharedNetwork {
    pub(super) fn new(network: Network) -> Self {
        Self(Arc::new(Mutex::new(network)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Network> {
        // A panic ends the simulation; what follows is only unwinding.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server's end of a connection.
#[derive(Debug)]
pub(super) struct SimulatedSocket {
    network: SharedNetwork,
    id: LinkId,
}

impl Socket for SimulatedSocket {
    fn receive(&self, space: &mut [u8]) -> Result<usize, Errno> {
        self.network.lock().server_receive(self.id, space)
    }

    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        self.network.lock().server_send(self.id, bytes)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut network = self.network.lock();
        let mut sent = 0;
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            match network.server_send(self.id, piece) {
                Ok(count) if count < piece.len() => return Ok(sent + count),
                Ok(count) => sent += count,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => return Ok(sent),
            }
        }
        Ok(sent)
    }

    fn end_sending(&self) -> Result<(), Errno> {
        self.network.lock().server_end(self.id)
    }

    fn connected(&self) -> Result<(), Errno> {
        Ok(())
    }
}

impl Drop for SimulatedSocket {
    fn drop(&mut self) {
        self.network.lock().server_close(self.id);
    }
}

/// A listener of the simulated network.
#[derive(Debug)]
pub(super) struct SimulatedListener {
    network: SharedNetwork,
}

impl SimulatedListener {
    pub(super) fn new(network: SharedNetwork) -> Self {
        Self { network }
    }
}

impl Drop for SimulatedListener {
    fn drop(&mut self) {
        self.network.lock().close_listener();
    }
}

/// One worker's backend.
#[derive(Debug)]
pub(super) struct Simulated {
    network: SharedNetwork,
    worker: usize,
    events: Vec<Event>,
}

impl Simulated {
    pub(super) fn new(network: SharedNetwork, worker: usize) -> Self {
        Self { network, worker, events: Vec::new() }
    }

    /// Whether a wait would return an event.
    pub(super) fn is_ready(&self) -> bool {
        self.network.lock().events(self.worker).next().is_some()
    }
}

impl System for Simulated {
    type Socket = SimulatedSocket;
    type Listener = SimulatedListener;
    type Ring = SimulatedRing;

    fn now(&self) -> Ns {
        self.network.lock().now_ns
    }

    /// Returns at once: time is the simulation's. The events come in any order, and some of them
    /// only the next time, as where there are more than one wait returns.
    fn wait(&mut self, _: Option<Ns>) -> io::Result<usize> {
        let mut network = self.network.lock();
        self.events.clear();
        self.events.extend(network.events(self.worker));
        network.random.shuffle(&mut self.events);
        if self.events.len() > 1 && network.random.chance(256) {
            let most = self.events.len();
            self.events.truncate(network.random.up_to(most));
        }
        for event in &self.events {
            network.digest.add(event.token);
        }
        Ok(self.events.len())
    }

    fn event(&self, index: usize) -> Event {
        self.events[index]
    }

    fn add(&self, socket: &SimulatedSocket, token: u64, interest: Interest) -> io::Result<()> {
        self.modify(socket, token, interest)
    }

    fn modify(&self, socket: &SimulatedSocket, token: u64, interest: Interest) -> io::Result<()> {
        self.network.lock().register(socket.id, self.worker, token, interest);
        Ok(())
    }

    fn add_listener(&self, listener: &SimulatedListener, token: u64) -> io::Result<()> {
        self.modify_listener(listener, token, Interest::Read)
    }

    fn modify_listener(
        &self,
        _: &SimulatedListener,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.network.lock().register_listener(token, interest);
        Ok(())
    }

    fn accept(&self, _: &SimulatedListener) -> Result<(SimulatedSocket, Address), Errno> {
        let id = self.network.lock().accept()?;
        // A port for each connection, so that a failure names the right one.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, (id % 60_000) as u16 + 1));
        let socket = SimulatedSocket { network: self.network.clone(), id };
        Ok((socket, Address::Internet(address)))
    }

    fn transport(_: &SimulatedListener) -> io::Result<Transport> {
        Ok(Transport::Plain)
    }

    fn connect(&self, _: &Address) -> io::Result<SimulatedSocket> {
        Err(ErrorKind::ConnectionRefused.into())
    }

    fn watch(&self, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn unwatch(&self, _: BorrowedFd<'_>) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Batches of calls that are made in any order, and some of them not at all. The ring may be lost
/// at any time, as when the kernel refuses its submissions.
#[derive(Debug)]
pub(super) struct SimulatedRing {
    network: SharedNetwork,
    outcomes: Vec<Outcome>,
    is_lost: bool,
}

impl SimulatedRing {
    pub(super) fn new(network: SharedNetwork) -> Self {
        Self { network, outcomes: Vec::new(), is_lost: false }
    }

    fn run<J>(&mut self, jobs: Vec<J>, call: impl Fn(&mut J) -> Outcome) -> &[Outcome] {
        let mut jobs: Vec<_> = jobs.into_iter().enumerate().collect();
        self.outcomes.clear();
        self.outcomes.resize(jobs.len(), Err(Errno::CANCELED));
        let cancelled = {
            let mut network = self.network.lock();
            network.random.shuffle(&mut jobs);
            let per_1024 = network.faults.cancelled;
            self.is_lost |= network.random.chance(per_1024 / 64);
            per_1024
        };
        for (index, mut job) in jobs {
            let is_made = !self.is_lost && !self.network.lock().random.chance(cancelled);
            if is_made {
                self.outcomes[index] = call(&mut job);
            }
        }
        &self.outcomes
    }
}

impl Ring<SimulatedSocket> for SimulatedRing {
    fn receive<'a>(
        &mut self,
        jobs: impl Iterator<Item = (&'a SimulatedSocket, &'a mut [u8])>,
    ) -> &[Outcome] {
        let jobs: Vec<_> = jobs.collect();
        self.run(jobs, |(socket, space)| socket.receive(mem::take(space)))
    }

    fn send<'a>(
        &mut self,
        jobs: impl Iterator<Item = (&'a SimulatedSocket, &'a [u8])>,
    ) -> &[Outcome] {
        let jobs: Vec<_> = jobs.collect();
        self.run(jobs, |(socket, bytes)| socket.send(bytes))
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }
}
