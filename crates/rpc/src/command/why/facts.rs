//! The figures of a call, and the time that neither side spends on a CPU.

use super::super::ping::trial::quantile;
use crate::parts::LookUp;

/// More than one write, or read, where counts are means.
pub(super) const SEVERAL: f64 = 1.5;

/// What one side uses for a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Side {
    pub(super) cpu_ns: f64,
    pub(super) ready_ns: f64,
    pub(super) switches: f64,
}

/// What the server has done for a call, by its own count.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerCounts {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) system_calls: f64,
}

/// Where both sides ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cores {
    /// Both on this one.
    One(usize),
    Two,
    /// Now so, now so.
    Changing,
}

/// Samples that take ten times the median or more, and the tail of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowCalls {
    /// Their share of all.
    pub(super) share: f64,
    /// Their share of the time.
    pub(super) of_time: f64,
    /// Of all samples.
    pub(super) p99_ns: f64,
    /// Of all samples.
    pub(super) max_ns: f64,
}

impl SlowCalls {
    /// Of sorted samples.
    pub(super) fn of(sorted: &[f64]) -> Self {
        let median = quantile(sorted, 0.5);
        let slow = &sorted[sorted.partition_point(|one| *one < 10.0 * median)..];
        let sum = |samples: &[f64]| samples.iter().sum::<f64>();
        Self {
            share: slow.len() as f64 / sorted.len().max(1) as f64,
            of_time: sum(slow) / sum(sorted).max(1e-9),
            p99_ns: quantile(sorted, 0.99),
            max_ns: quantile(sorted, 1.0),
        }
    }
}

/// Which share of a core a side wanted while a call waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    pub(super) here: Option<f64>,
    pub(super) server: Option<f64>,
}

/// What becomes of the time that this side is not on its CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Off {
    /// The server works.
    pub(super) server_ns: f64,
    /// A side could run, and its core has something else to do.
    pub(super) core_ns: f64,
    /// Neither can: one of them is being woken, or bytes are on their way.
    pub(super) wake_up_ns: f64,
}

/// A call, in the mean but where it is a median; what isn't known is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Nagle's algorithm is on at this side.
    pub(super) has_nagle: bool,
    /// All that takes part in a call is known: the server is, or there is no other process.
    pub(super) is_whole: bool,
    pub(super) calls: u64,
    pub(super) median_ns: f64,
    pub(super) slow: SlowCalls,
    pub(super) mean_ns: f64,
    pub(super) writes: Option<f64>,
    pub(super) write_bytes: Option<f64>,
    pub(super) reads: Option<f64>,
    pub(super) read_bytes: Option<f64>,
    pub(super) system_calls: Option<f64>,
    pub(super) here: Option<Side>,
    pub(super) server: Option<Side>,
    pub(super) server_did: Option<ServerCounts>,
    /// Acknowledgements that were delayed, of all connections of this network namespace.
    pub(super) delayed_acks: Option<f64>,
    /// From the thread that has read an answer to the one that waits for it.
    pub(super) future_ns: Option<f64>,
    pub(super) future_median_ns: Option<f64>,
    /// How the server finds the function, and what that takes.
    pub(super) look_up: LookUp,
    pub(super) look_up_ns: f64,
    pub(super) encode_ns: f64,
    pub(super) decode_ns: f64,
    /// How many elements decoding has returned at the least, and how many it had to.
    pub(super) elements: (usize, usize),
    /// Allocations of the thread that calls, their bytes, and what one of them takes.
    pub(super) allocations: f64,
    pub(super) allocated_bytes: f64,
    pub(super) allocation_ns: f64,
    pub(super) cores: Option<Cores>,
    /// Two threads of this host that wake each other, there and back.
    pub(super) futex_ns: f64,
    /// What of that the two are on a CPU.
    pub(super) futex_cpu_ns: f64,
    pub(super) idle: Idle,
}

impl Facts {
    /// The time that neither side spends on a CPU; where the server isn't seen, this side.
    pub(super) fn off_cpu_ns(&self) -> Option<f64> {
        let server = self.server.map_or(0.0, |side| side.cpu_ns);
        self.here.map(|here| (self.mean_ns - here.cpu_ns - server).max(0.0))
    }

    /// What becomes of the time that this side is off its CPU; nothing where there is no server, or
    /// it isn't seen.
    pub(super) fn off(&self) -> Option<Off> {
        let (here, server) = (self.here?, self.server?);
        let off_cpu_ns = self.off_cpu_ns()?;
        let core_ns = self.behind_others_ns().iter().sum::<f64>().min(off_cpu_ns);
        let server_ns = server.cpu_ns.min((self.mean_ns - here.cpu_ns).max(0.0));
        Some(Off { server_ns, core_ns, wake_up_ns: off_cpu_ns - core_ns })
    }

    /// What each side works for a call, at least: its CPU time without what it uses of a core while
    /// a call only waits (with several threads more than one core).
    pub(super) fn work_ns(&self) -> [f64; 2] {
        [(self.here, self.idle.here), (self.server, self.idle.server)].map(|(side, idle)| {
            let waits_ns = idle.unwrap_or(0.0) * self.mean_ns;
            (side.map_or(0.0, |side| side.cpu_ns) - waits_ns).max(0.0)
        })
    }

    /// How long each side was ready while others than the two had its core, at the least.
    pub(super) fn behind_others_ns(&self) -> [f64; 2] {
        let (here, server) = (self.here.unwrap_or_default(), self.server.unwrap_or_default());
        // Where they may share a core, a side is also ready while the other one works; so are the
        // two threads of this side that hand an answer over.
        let of_other =
            |other: Side| if self.cores == Some(Cores::Two) { 0.0 } else { other.cpu_ns };
        let own = if self.future_ns.is_some() { here.cpu_ns } else { 0.0 };
        let longer = [here.ready_ns - of_other(server) - own, server.ready_ns - of_other(here)];
        longer.map(|ns| ns.max(0.0))
    }
}

#[cfg(test)]
impl Facts {
    /// One of this median, to test with.
    pub(super) fn of_test(median_ns: f64, writes: f64, cpu_ns: f64) -> Self {
        Self {
            has_nagle: true,
            is_whole: true,
            calls: 10,
            median_ns,
            slow: SlowCalls::default(),
            mean_ns: median_ns,
            writes: Some(writes),
            write_bytes: Some(34.0),
            reads: Some(1.0),
            read_bytes: Some(34.0),
            system_calls: Some(2.0),
            here: Some(Side { cpu_ns, ready_ns: 0.0, switches: 1.0 }),
            server: Some(Side { cpu_ns, ready_ns: 0.0, switches: 1.0 }),
            server_did: None,
            delayed_acks: None,
            future_ns: None,
            future_median_ns: None,
            look_up: LookUp::ByName,
            look_up_ns: 25.0,
            encode_ns: 20.0,
            decode_ns: 30.0,
            elements: (8, 8),
            allocations: 4.0,
            allocated_bytes: 256.0,
            allocation_ns: 20.0,
            cores: None,
            futex_ns: 1e3,
            futex_cpu_ns: 0.0,
            idle: Idle::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_off_the_cpu_is_divided_by_its_cause() {
        let side = |cpu_ns, ready_ns| Some(Side { cpu_ns, ready_ns, switches: 1.0 });
        let of = |here, server, cores| {
            Facts { here, server, cores, ..Facts::of_test(60e3, 1.0, 0.0) }.off()
        };
        let off = |server_ns, core_ns, wake_up_ns| Some(Off { server_ns, core_ns, wake_up_ns });
        let two = Some(Cores::Two);
        assert_eq!(of(side(20e3, 3e3), side(15e3, 2e3), two), off(15e3, 5e3, 20e3));
        // The rest of the time on one core is what neither side's work explains.
        let one = Some(Cores::One(0));
        assert_eq!(of(side(20e3, 18e3), side(15e3, 9e3), one), off(15e3, 3e3, 22e3));
        // Two clocks may say more than there is.
        assert_eq!(of(side(50e3, 30e3), side(15e3, 0.0), two), off(10e3, 0.0, 0.0));
        assert_eq!(of(side(20e3, 0.0), None, two), None);
    }
}
