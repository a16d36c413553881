//! The calls of the trial, and what both sides and the kernel count meanwhile.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::super::ping::caller::{Caller, Work};
use super::super::ping::seen::who;
use super::super::ping::trial::{Limits, Trial, quantile};
use super::facts::SlowCalls;
use super::host::{self, Used};
use super::server::{Server, is_alone, served};
use super::typed::WhyArgs;
use crate::client::native::Traffic;
use crate::parts;
use crate::protocol::table::Place;

/// What was counted while the calls of the trial were made, its warm-up included.
pub(super) struct Counted {
    pub(super) calls: u64,
    pub(super) took_ns: u64,
    /// Of the calls behind the warm-up, as are those that were slow.
    pub(super) median_ns: f64,
    pub(super) slow: SlowCalls,
    pub(super) traffic: Option<Traffic>,
    /// How long answers were on their way from the thread that has read them.
    pub(super) handed_ns: Option<u64>,
    /// The median of it.
    pub(super) handed_median_ns: Option<f64>,
    pub(super) delayed_acks: Option<u64>,
    pub(super) here: Option<Used>,
    pub(super) server: Option<Used>,
    /// What the server has counted itself.
    pub(super) did: Option<Place>,
    /// The server has had no other calls.
    pub(super) is_ours: bool,
}

/// What is counted from the start of each side on.
struct Reading {
    here: Option<Used>,
    server: Option<Used>,
    traffic: Option<Traffic>,
    handed_ns: Option<u64>,
    delayed_acks: Option<u64>,
    at: Instant,
}

impl Reading {
    fn of(caller: &Caller, server: &Server) -> Self {
        Self {
            here: Used::of(std::process::id()),
            server: server.used(),
            traffic: caller.traffic(),
            handed_ns: caller.handed_ns(),
            delayed_acks: host::delayed_acks(),
            at: Instant::now(),
        }
    }
}

/// Makes the calls.
pub(super) fn count(
    args: &WhyArgs,
    caller: &mut Caller,
    work: &mut Work,
    server: &Server,
) -> anyhow::Result<Counted> {
    let (did, calls) = (who(caller)?, work.calls());
    let before = Reading::of(caller, server);
    let mut each_handed = Vec::new();
    let stop = AtomicBool::new(false);
    let limits = Limits { samples: 100_000, time: args.time.duration(), stop: &stop };
    let trial = Trial::run(limits, || {
        parts::allocate(args.allocate);
        let handed = caller.handed_ns();
        work.once(caller)?;
        each_handed.extend(grown(handed, caller.handed_ns()).map(|ns| ns as f64));
        Ok(())
    })?;
    let after = Reading::of(caller, server);
    let done = who(caller)?;
    let made = work.calls() - calls;
    let is_ours = is_alone(did.calls, done.calls, made + 1);
    each_handed.sort_by(f64::total_cmp);
    let handed_ns = grown(before.handed_ns, after.handed_ns);
    let used = |before: Option<Used>, after: Option<Used>| Some(after?.since(before?));
    Ok(Counted {
        calls: made,
        took_ns: (after.at - before.at).as_nanos() as u64,
        median_ns: trial.summary().median,
        slow: SlowCalls::of(&trial.samples_ns),
        // Within this process nothing passes.
        traffic: passed(before.traffic, after.traffic).filter(|passed| passed.writes > 0),
        handed_ns,
        handed_median_ns: handed_ns.map(|_| quantile(&each_handed, 0.5)),
        delayed_acks: grown(before.delayed_acks, after.delayed_acks),
        here: used(before.here, after.here),
        server: used(before.server, after.server).filter(|_| is_ours),
        did: server.pid.filter(|_| is_ours).and_then(|_| served(&did, done)),
        is_ours,
    })
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// What has passed between two counts.
fn passed(before: Option<Traffic>, after: Option<Traffic>) -> Option<Traffic> {
    let (before, after) = (before?, after?);
    Some(Traffic {
        writes: after.writes - before.writes,
        written_bytes: after.written_bytes - before.written_bytes,
        reads: after.reads - before.reads,
        read_bytes: after.read_bytes - before.read_bytes,
        waits: after.waits - before.waits,
    })
}
