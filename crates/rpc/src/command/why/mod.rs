//! `loadline rpc why`: where the time of a call goes. Calls are made one after the other, so that
//! what neither side spends on a CPU is waiting. Control plane.

mod cause;
mod facts;
mod host;
mod peer;
mod show;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use base::units::Span;
use prost::Message as _;
use service::{Outcome, out};

use super::args::{self, SessionArgs};
use super::ping::ToArgs;
use super::ping::caller::{Caller, Function, Work, is_grpc};
use super::ping::seen::{Seen, who};
use super::ping::trial::{Limits, Trial, quantile};
use crate::carriers::Peer;
use crate::client::native::Traffic;
use crate::parts::{self, LookUp, Parts, look_up_ns};
use crate::protocol::table::{Pause, Place};
use facts::{Cores, Did, Facts, Idle, Side, Slow};
use host::{Floors, Threads, Used};
use show::Shown;

const SLEEP: &str = "/loadline.rpc.v1.Table/Sleep";

/// Calls that say where both sides run, before the trial and after it.
const LOOKS: usize = 16;

/// How long a call waits while both sides should be idle.
const IDLE: Duration = Duration::from_millis(200);

/// Calls whose allocations are counted.
const COUNTED: u32 = 20;

/// What is called, and for how long.
#[derive(Debug, clap::Args)]
pub(super) struct WhyArgs {
    #[command(flatten)]
    to: ToArgs,

    /// The most time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = args::time)]
    time: Span,

    /// Allocate memory this many times a call, to see what that costs
    #[arg(long, value_name = "NUMBER", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    allocate: u32,

    /// What answers are decoded from
    #[arg(long, value_name = "BUFFER", default_value = "fresh")]
    decode: parts::From,
}

/// The server, where it is another process of this host; else why its figures are left out.
struct Server {
    pid: Option<u32>,
    note: Option<String>,
}

impl Server {
    fn find(caller: &mut Caller) -> anyhow::Result<Self> {
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
    fn of_others() -> Self {
        let note = "The server has had calls of others meanwhile, so its figures are left out.";
        Self { pid: None, note: Some(note.to_owned()) }
    }

    fn used(&self) -> Option<Used> {
        self.pid.and_then(Used::of)
    }
}

/// Where both sides ran, as they were seen.
fn cores(seen: &Seen) -> Option<Cores> {
    match seen.share_of_one(LOOKS)? {
        share if share >= 0.9 => seen.one().map(Cores::One),
        share if share <= 0.1 => Some(Cores::Two),
        _ => Some(Cores::Changing),
    }
}

/// Whether a server with these counts of reads, before a call and after it, has had no other calls.
/// Of its own it may have had `most`.
/// Both numbers are what it sends: one behind a balancer, or started anew, may send fewer.
fn is_alone(before: u64, after: u64, most: u64) -> bool {
    after.checked_sub(before).is_some_and(|reads| reads <= most)
}

/// Which share of a core each side wants while a call waits. It is not known where the server won't
/// sleep, or has other calls meanwhile.
fn idle(caller: &mut Caller, server: &Server) -> anyhow::Result<Idle> {
    let now = || (Threads::of(std::process::id()), server.pid.and_then(Threads::of));
    let (reads, traffic) = (who(caller)?.reads, caller.traffic());
    let (begun, before) = (Instant::now(), now());
    let pause = Pause { ns: IDLE.as_nanos() as u64 }.encode_to_vec();
    if caller.find(SLEEP).and_then(|sleep| caller.call(sleep, &pause.into())).is_err() {
        return Ok(Idle::default());
    }
    let (after, took) = (now(), begun.elapsed().as_nanos() as f64);
    let reads_after = who(caller)?.reads;
    let share =
        |before: Option<Threads>, after: Option<Threads>| Some(after?.wanted(&before?, took));
    // Each write of this side may be read by itself.
    let passed = traffic.zip(caller.traffic()).map(|(before, after)| since(before, after));
    let most = passed.map_or(0, |passed| passed.writes).max(2) * 2;
    let theirs = share(before.1, after.1).filter(|_| is_alone(reads, reads_after, most));
    Ok(Idle { here: share(before.0, after.0), server: theirs })
}

/// What was counted while the calls of the trial were made.
struct Counted {
    calls: u64,
    took_ns: u64,
    median_ns: f64,
    slow: Slow,
    traffic: Option<Traffic>,
    handed_ns: Option<u64>,
    /// The median of it.
    handed_median_ns: Option<f64>,
    delayed_acks: Option<u64>,
    here: Option<Used>,
    server: Option<Used>,
    did: Option<Place>,
    /// The server has had no other calls.
    is_ours: bool,
}

/// What was measured besides the calls of the trial.
struct Beside {
    /// All that takes part in a call is known.
    is_whole: bool,
    cores: Option<Cores>,
    idle: Idle,
    parts: Parts,
    /// Of one call.
    allocations: f64,
    futex_ns: f64,
}

/// What the server has counted between two of its answers: nothing where it counts nothing, as one
/// that has no more than the method does.
fn served(before: &Place, after: Place) -> Option<Place> {
    let is_counted = [after.reads, after.writes, after.system_calls] != [0; 3];
    is_counted.then(|| Place {
        reads: after.reads.saturating_sub(before.reads),
        writes: after.writes.saturating_sub(before.writes),
        system_calls: after.system_calls.saturating_sub(before.system_calls),
        ..after
    })
}

/// Makes the calls.
fn count(
    args: &WhyArgs,
    caller: &mut Caller,
    work: &mut Work,
    server: &Server,
) -> anyhow::Result<Counted> {
    let now = || (Used::of(std::process::id()), server.used());
    let did = who(caller)?;
    let (traffic, handed, calls) = (caller.traffic(), caller.handed_ns(), work.calls());
    let delayed = host::delayed_acks();
    let (before, begun) = (now(), Instant::now());
    let mut each_handed = Vec::new();
    let stop = AtomicBool::new(false);
    let limits = Limits { samples: 100_000, time: args.time.duration(), stop: &stop };
    let trial = Trial::run(limits, || {
        parts::allocate(args.allocate);
        let handed = caller.handed_ns();
        work.once(caller)?;
        if let Some((before, after)) = handed.zip(caller.handed_ns()) {
            each_handed.push((after - before) as f64);
        }
        Ok(())
    })?;
    let (after, took) = (now(), begun.elapsed());
    let delayed = delayed.zip(host::delayed_acks());
    each_handed.sort_by(f64::total_cmp);
    let passed = traffic.zip(caller.traffic()).map(|(before, after)| since(before, after));
    // Within this process nothing passes.
    let passed = passed.filter(|passed| passed.writes > 0);
    let handed = handed.zip(caller.handed_ns()).map(|(before, after)| after - before);
    let used = |before: Option<Used>, after: Option<Used>| Some(after?.since(before?));
    let done = who(caller)?;
    let written = traffic.zip(caller.traffic());
    let written = written.map_or(0, |(before, after)| after.writes - before.writes);
    // Of a ring head and message of a write may be read apart. Few calls of others are no matter.
    let is_ring = ["shm:", "mpi:"].iter().any(|scheme| args.to.address.starts_with(scheme));
    let most = if is_ring { 2 * written } else { written + written / 10 };
    let is_ours = is_alone(did.reads, done.reads, most + 1);
    Ok(Counted {
        calls: work.calls() - calls,
        took_ns: took.as_nanos() as u64,
        median_ns: trial.summary().median,
        slow: Slow::of(&trial.samples_ns),
        traffic: passed,
        handed_ns: handed,
        handed_median_ns: handed.map(|_| quantile(&each_handed, 0.5)),
        delayed_acks: delayed.map(|(before, after)| after.saturating_sub(before)),
        here: used(before.0, after.0),
        server: used(before.1, after.1).filter(|_| is_ours),
        did: server.pid.filter(|_| is_ours).and_then(|_| served(&did, done)),
        is_ours,
    })
}

/// Makes calls, and says where their time went.
pub(super) fn why(args: &WhyArgs, session: SessionArgs) -> Outcome {
    if let Some(served) = args.to.serve_rank()? {
        return Ok(served);
    }
    let json = session.json;
    let floors = Floors::measure(args.to.cpus())?;
    let mut started = None;
    let mut caller = args.to.caller(session, &mut started)?;
    let server = Server::find(&mut caller)?;
    let mut work = Work::new(Function::Echo, 8);
    // The first calls of a TCP connection are acknowledged at once: they are not like the others.
    for _ in 0..20 {
        work.once(&mut caller)?;
    }
    let mut seen = Seen::default();
    seen.look(&mut caller, LOOKS)?;
    let counted = count(args, &mut caller, &mut work, &server)?;
    let is_shared = server.pid.is_some() && !counted.is_ours;
    let server = if is_shared { Server::of_others() } else { server };
    seen.look(&mut caller, LOOKS)?;
    let is_elsewhere = server.pid.is_some();
    let beside = Beside {
        // What is another process is seen where its use of a CPU is.
        is_whole: server.note.is_none() && is_elsewhere == counted.server.is_some(),
        cores: cores(&seen).filter(|_| is_elsewhere),
        idle: idle(&mut caller, &server)?,
        parts: Parts::measure(work.request(), args.decode)?,
        allocations: allocations(args, &mut caller, &mut work)?,
        futex_ns: floors.futex_ns,
    };
    caller.note_steps();
    work.once(&mut caller)?;
    let shown = Shown {
        facts: &of_one_call(args, &counted, &beside),
        floors: &floors,
        steps: &caller.take_steps(),
        seen: &seen,
        note: server.note.as_deref(),
    };
    let address = &args.to.address;
    out::print(match json {
        true => show::json(address, &shown),
        false => show::text(address, &shown),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// How often this thread allocates for a call.
fn allocations(args: &WhyArgs, caller: &mut Caller, work: &mut Work) -> anyhow::Result<f64> {
    let mut failed = None;
    let allocated = base::allocations::measure(|| {
        for _ in 0..COUNTED {
            parts::allocate(args.allocate);
            failed = work.once(caller).err().or(failed.take());
        }
    });
    failed.map_or(Ok(()), Err)?;
    Ok(allocated.count as f64 / f64::from(COUNTED))
}

/// What was measured, for one call.
fn of_one_call(args: &WhyArgs, counted: &Counted, beside: &Beside) -> Facts {
    // As all that is divided by the calls, the mean is of all of them.
    let per_call = |sum: u64| sum as f64 / counted.calls.max(1) as f64;
    let side = |used: Used| Side {
        cpu_ns: per_call(used.cpu_ns),
        ready_ns: per_call(used.ready_ns),
        switches: per_call(used.switches),
    };
    // The call that asks for the server's count is one of those that it has counted.
    let per_served = |sum: u64| sum as f64 / (counted.calls + 1) as f64;
    let passed = counted.traffic;
    let of = |get: fn(Traffic) -> u64| passed.map(|passed| per_call(get(passed)));
    // Rings and messages of MPI are read and written without the system.
    let system_calls = match args.to.address.split(':').next() {
        Some("here" | "frames") => None,
        _ if is_grpc(&args.to.address) => None,
        Some("shm" | "mpi") => of(|passed| passed.waits),
        _ => of(|passed| passed.writes + passed.reads + passed.waits),
    };
    // Own frames have the number that the greeting gives a name once.
    let look_up = if is_grpc(&args.to.address) { LookUp::ByName } else { LookUp::ByNumber };
    let Parts { encode_ns, decode_ns, elements } = beside.parts;
    Facts {
        has_nagle: args.to.nagle,
        is_whole: beside.is_whole,
        calls: counted.calls,
        median_ns: counted.median_ns,
        slow: counted.slow,
        mean_ns: per_call(counted.took_ns),
        writes: of(|passed| passed.writes),
        write_bytes: of(|passed| passed.written_bytes),
        reads: of(|passed| passed.reads),
        read_bytes: of(|passed| passed.read_bytes),
        system_calls,
        here: counted.here.map(side),
        server: counted.server.map(side),
        server_did: counted.did.as_ref().map(|did| Did {
            reads: per_served(did.reads),
            writes: per_served(did.writes),
            system_calls: per_served(did.system_calls),
        }),
        delayed_acks: counted.delayed_acks.map(per_call),
        future_ns: counted.handed_ns.map(per_call),
        future_median_ns: counted.handed_median_ns,
        look_up,
        look_up_ns: look_up_ns(look_up),
        encode_ns,
        decode_ns,
        elements,
        allocations: beside.allocations,
        allocation_ns: parts::allocation_ns(),
        cores: beside.cores,
        futex_ns: beside.futex_ns,
        idle: beside.idle,
    }
}

fn since(before: Traffic, after: Traffic) -> Traffic {
    Traffic {
        writes: after.writes - before.writes,
        written_bytes: after.written_bytes - before.written_bytes,
        reads: after.reads - before.reads,
        read_bytes: after.read_bytes - before.read_bytes,
        waits: after.waits - before.waits,
    }
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
    fn one_core_is_the_one_on_which_both_were_seen() {
        let seen = |same: &[(usize, usize)]| Seen {
            here: [0].into(),
            server: [0, 1].into(),
            looks: 32,
            same: same.iter().copied().collect(),
        };
        assert_eq!(cores(&seen(&[(0, 31)])), Some(Cores::One(0)), "once it was on another");
        assert_eq!(cores(&seen(&[(0, 2), (1, 28)])), Some(Cores::One(1)));
        assert_eq!(cores(&seen(&[(0, 16)])), Some(Cores::Changing));
        assert_eq!(cores(&seen(&[])), Some(Cores::Two));
        assert_eq!(cores(&Seen { looks: LOOKS - 1, ..seen(&[(0, 9)]) }), None);
    }

    #[test]
    fn a_server_whose_count_of_reads_falls_is_not_alone() {
        assert!(is_alone(7, 7, 4) && is_alone(7, 11, 4) && is_alone(7, 12, 32));
        assert!(!is_alone(7, 12, 4) && !is_alone(7, 6, 4) && !is_alone(u64::MAX, 0, 4));
    }
}
