//! Whose figures are the server's: which process it is, and whether it had calls of this one alone.

use super::super::ping::caller::Caller;
use super::super::ping::seen::who;
use super::host::Used;
use super::peer;
use crate::carriers::Peer;
use crate::protocol::table::Place;

/// The server, where it is another process of this host; else why its figures are left out.
pub(super) struct Server {
    pub(super) pid: Option<u32>,
    pub(super) note: Option<String>,
}

impl Server {
    pub(super) fn find(caller: &mut Caller) -> anyhow::Result<Self> {
        Ok(Self::of(who(caller)?.pid, caller.peer()))
    }

    /// The one that says that it has this number, at the other end of such a connection.
    fn of(pid: u32, peer: Peer) -> Self {
        if peer == Peer::Here {
            return Self { pid: None, note: None };
        }
        // One with this process's own number has it in another namespace, as in two containers.
        if pid != std::process::id() && peer::is_peer(pid, peer) {
            return Self { pid: Some(pid), note: None };
        }
        let note = format!(
            "The server says that it is process {pid}. This system doesn't show that one as the \
             other end (another host, user or container?), so its figures are left out."
        );
        Self { pid: None, note: Some(note) }
    }

    /// One whose figures are not those of this process's calls.
    pub(super) fn of_others() -> Self {
        let note = "The server has had calls of others meanwhile, so its figures are left out.";
        Self { pid: None, note: Some(note.to_owned()) }
    }

    pub(super) fn used(&self) -> Option<Used> {
        self.pid.and_then(Used::of)
    }
}

/// Whether a server with these counts of calls, before `own` of this side and behind them, has had
/// hardly any others: a few are no matter.
/// Both numbers are what it sends: one behind a balancer, or started anew, may send fewer.
pub(super) fn is_alone(before: u64, after: u64, own: u64) -> bool {
    after.checked_sub(before).is_some_and(|calls| calls <= own + own / 10 + 2)
}

/// What the server has counted between two of its answers: nothing where it counts nothing, as one
/// that has no more than the method does.
pub(super) fn served(before: &Place, after: Place) -> Option<Place> {
    let is_counted = [after.reads, after.writes, after.system_calls] != [0; 3];
    is_counted.then(|| Place {
        reads: after.reads.saturating_sub(before.reads),
        writes: after.writes.saturating_sub(before.writes),
        system_calls: after.system_calls.saturating_sub(before.system_calls),
        ..after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_the_number_of_this_process_is_in_it_only_where_its_carrier_is() {
        let own = std::process::id();
        let known = |pid, peer| {
            let server = Server::of(pid, peer);
            (server.pid, server.note.is_none())
        };
        assert_eq!(known(own, Peer::Here), (None, true));
        for peer in [Peer::Tcp, Peer::Process(own), Peer::Within(own), Peer::Unknown] {
            assert_eq!(known(own, peer), (None, false), "{peer:?}: in another namespace");
        }
        assert_eq!(known(own + 1, Peer::Process(own + 1)), (Some(own + 1), true));
    }

    #[test]
    fn a_server_that_counts_nothing_has_no_figures() {
        let counts = |reads, writes| Place { reads, writes, ..Place::default() };
        assert_eq!(served(&counts(0, 0), counts(0, 0)).map(|did| did.reads), None);
        let did = served(&counts(7, 9), counts(9, 9)).expect("counted");
        assert_eq!((did.reads, did.writes), (2, 0));
    }

    #[test]
    fn a_server_that_has_as_many_calls_of_others_or_whose_count_falls_is_not_alone() {
        assert!(is_alone(7, 7, 4) && is_alone(7, 11, 4) && is_alone(7, 13, 4));
        assert!(!is_alone(7, 15, 4) && !is_alone(7, 6, 4) && !is_alone(u64::MAX, 0, 4));
        assert!(is_alone(0, 1_099, 1_000) && !is_alone(0, 2_000, 1_000));
    }
}
