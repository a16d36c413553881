//! What the figures of a call come to in words.

/// A delayed acknowledgement of Linux takes 40 ms at least.
const DELAYED_NS: f64 = 38e6;

/// Two of them, and what a busy host adds.
const MOST_DELAYED_NS: f64 = 120e6;

/// What one side uses for a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) cpu_ns: f64,
    pub(super) ready_ns: f64,
    pub(super) switches: f64,
}

/// A call, in the mean; what isn't known is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Nagle's algorithm is on at this side.
    pub(super) has_nagle: bool,
    pub(super) calls: u64,
    pub(super) median_ns: f64,
    pub(super) mean_ns: f64,
    pub(super) writes: Option<f64>,
    pub(super) write_bytes: Option<f64>,
    pub(super) reads: Option<f64>,
    pub(super) read_bytes: Option<f64>,
    pub(super) waits: Option<f64>,
    pub(super) here: Option<Side>,
    pub(super) server: Option<Side>,
}

impl Facts {
    /// The time that neither side spends on a CPU.
    pub(super) fn off_cpu_ns(&self) -> Option<f64> {
        let server = self.server.map_or(0.0, |side| side.cpu_ns);
        self.here.map(|here| (self.mean_ns - here.cpu_ns - server).max(0.0))
    }

    /// What takes the time, as far as the figures show it.
    pub(super) fn cause(&self) -> String {
        let writes = self.writes.unwrap_or(1.0);
        let off = self.off_cpu_ns().map_or(0.0, |off| off / self.mean_ns.max(1.0));
        let has_several = writes >= 1.5;
        let is_delayed = (DELAYED_NS..MOST_DELAYED_NS).contains(&self.median_ns);
        let is_waiting = is_delayed && off > 0.8;
        if self.has_nagle && has_several && is_waiting {
            return format!(
                "{:.0} ms = Nagle + delayed acknowledgement: {writes:.0} writes per request. Write \
                 each request at once, or set TCP_NODELAY.",
                self.median_ns / 1e6
            );
        }
        if is_waiting && self.reads.is_some_and(|reads| reads >= 1.5) {
            return format!(
                "{:.0} ms, and {:.0} reads per answer: the server's writes may wait for a delayed \
                 acknowledgement. If --quickack ends it, that is the cause: the server should \
                 write each answer at once, or set TCP_NODELAY.",
                self.median_ns / 1e6,
                self.reads.unwrap_or(0.0)
            );
        }
        let share = format!("{:.0} % of the time is on no CPU", off * 100.0);
        if has_several {
            return format!(
                "{share}. {writes:.0} writes per request: each is a system call, and may wake the \
                 server; write each request at once."
            );
        }
        match off > 0.5 {
            true => format!("{share}: wake-ups of the other side, and waiting."),
            false => format!("{share}: the rest is work of both sides."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(median_ns: f64, writes: f64, cpu_ns: f64) -> Facts {
        Facts {
            has_nagle: true,
            calls: 10,
            median_ns,
            mean_ns: median_ns,
            writes: Some(writes),
            write_bytes: Some(34.0),
            reads: Some(1.0),
            read_bytes: Some(34.0),
            waits: Some(0.0),
            here: Some(Side { cpu_ns, ready_ns: 0.0, switches: 1.0 }),
            server: Some(Side { cpu_ns, ready_ns: 0.0, switches: 1.0 }),
        }
    }

    #[test]
    fn the_cause_is_named_by_what_shows_it() {
        let planted = facts(44e6, 2.0, 10e3);
        let words = "44 ms = Nagle + delayed acknowledgement: 2 writes per request.";
        assert!(planted.cause().starts_with(words), "{}", planted.cause());
        // One write has nothing to wait for, whatever else takes 44 ms.
        assert!(!facts(44e6, 1.0, 10e3).cause().contains("Nagle"));
        // A server that works for 44 ms.
        assert!(!facts(44e6, 2.0, 21e6).cause().contains("Nagle"));
        // A long way, not Nagle's algorithm.
        let far = Facts { has_nagle: false, ..planted };
        assert!(!far.cause().contains("acknowledgement"), "{}", far.cause());
        let answered = Facts { reads: Some(2.0), ..far };
        assert!(answered.cause().contains("may wait"), "{}", answered.cause());
        assert!(facts(12e3, 8.0, 1e3).cause().contains("8 writes per request"));
        assert!(facts(12e3, 1.0, 1e3).cause().contains("wake-ups"));
        assert_eq!(facts(10.0, 1.0, 2.5).off_cpu_ns(), Some(5.0));
    }
}
