//! `loadline rpc why`: where the time of a call goes. Calls are made one after the other, so that
//! what neither side spends on a CPU is waiting. Control plane.

mod cause;
mod counted;
mod facts;
mod host;
mod peer;
mod server;
mod show;
mod typed;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use prost::Message as _;
use service::{Outcome, out};

use super::args::SessionArgs;
use super::ping::caller::{Caller, Function, Work, is_grpc};
use super::ping::cpus::Cpus;
use super::ping::seen::{Seen, who};
use crate::client::native::Traffic;
use crate::parts::{self, LookUp, Parts, look_up_ns};
use crate::protocol::table::Pause;
use counted::{Counted, count};
use facts::{Cores, Facts, Idle, ServerCounts, Side};
use host::{Floors, Threads, Used};
use server::{Server, is_alone};
use show::Shown;
pub(super) use typed::WhyArgs;

const SLEEP: &str = "/loadline.rpc.v1.Table/Sleep";

/// Calls that say where both sides run, before the trial and after it.
const LOOKS: usize = 16;

/// How long a call waits while both sides should be idle.
const IDLE: Duration = Duration::from_millis(200);

/// Calls whose allocations are counted.
const COUNTED: u32 = 20;

/// Where both sides ran, as they were seen.
fn cores(seen: &Seen) -> Option<Cores> {
    match seen.share_of_one(LOOKS)? {
        share if share >= 0.9 => seen.most(true).map(|(core, _)| Cores::One(core)),
        share if share <= 0.1 => Some(Cores::Two),
        _ => Some(Cores::Changing),
    }
}

/// The floors of this host between the cores that calls ran on, where they may run anywhere.
fn floors(cpus: Cpus, cores: Option<Cores>, seen: &Seen) -> anyhow::Result<Floors> {
    let found = match cores {
        _ if cpus != Cpus::default() => None,
        Some(Cores::One(core)) => Some((core, core)),
        Some(Cores::Two) => seen.most(false),
        Some(Cores::Changing) | None => None,
    };
    let found = found.map(|(here, there)| Cpus { client: Some(here), server: Some(there) });
    // The server may run where this process may not.
    let between = found.and_then(|cpus| Floors::measure(cpus).ok());
    between.map_or_else(|| Floors::measure(cpus), Ok)
}

/// Which share of a core each side wants while a call waits. It is not known where the server won't
/// sleep, or has other calls meanwhile.
fn idle(caller: &mut Caller, server: &Server) -> anyhow::Result<Idle> {
    let now = || (Threads::of(std::process::id()), server.pid.and_then(Threads::of));
    let calls = who(caller)?.calls;
    let (begun, before) = (Instant::now(), now());
    let pause = Pause { ns: IDLE.as_nanos() as u64 }.encode_to_vec();
    if caller.find(SLEEP).and_then(|sleep| caller.call(sleep, &pause.into())).is_err() {
        return Ok(Idle::default());
    }
    let (after, took) = (now(), begun.elapsed().as_nanos() as f64);
    let calls_after = who(caller)?.calls;
    let share =
        |before: Option<Threads>, after: Option<Threads>| Some(after?.wanted(&before?, took));
    // The sleep, and the question behind it.
    let theirs = share(before.1, after.1).filter(|_| is_alone(calls, calls_after, 2));
    Ok(Idle { here: share(before.0, after.0), server: theirs })
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
    allocated_bytes: f64,
    floors: Floors,
}

/// Makes calls, and says where their time went.
pub(super) fn why(args: &WhyArgs, session: SessionArgs) -> Outcome {
    if let Some(served) = args.to.serve_rank()? {
        return Ok(served);
    }
    let json = session.json;
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
    let cores = cores(&seen).filter(|_| is_elsewhere);
    let floors = floors(args.to.cpus(), cores, &seen)?;
    let (allocations, allocated_bytes) = allocated(args, &mut caller, &mut work)?;
    let beside = Beside {
        // What is another process is seen where its use of a CPU is.
        is_whole: server.note.is_none() && is_elsewhere == counted.server.is_some(),
        cores,
        idle: idle(&mut caller, &server)?,
        parts: Parts::measure(work.request(), args.decode)?,
        allocations,
        allocated_bytes,
        floors,
    };
    caller.note_steps();
    work.once(&mut caller)?;
    let shown = Shown {
        facts: &of_one_call(args, &counted, &beside),
        floors: &beside.floors,
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

/// How often this thread allocates for a call, and how many bytes.
fn allocated(args: &WhyArgs, caller: &mut Caller, work: &mut Work) -> anyhow::Result<(f64, f64)> {
    let mut failed = None;
    let allocated = base::allocations::measure(|| {
        for _ in 0..COUNTED {
            parts::allocate(args.allocate);
            failed = work.once(caller).err().or(failed.take());
        }
    });
    failed.map_or(Ok(()), Err)?;
    let per_call = |sum: u64| sum as f64 / f64::from(COUNTED);
    Ok((per_call(allocated.count), per_call(allocated.bytes)))
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
        server_did: counted.did.as_ref().map(|did| ServerCounts {
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
        allocated_bytes: beside.allocated_bytes,
        allocation_ns: parts::allocation_ns(),
        cores: beside.cores,
        futex_ns: beside.floors.futex_ns,
        futex_cpu_ns: beside.floors.futex_cpu_ns,
        idle: beside.idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_the_one_on_which_both_were_seen() {
        let seen = |pairs: &[((usize, usize), usize)]| Seen {
            here: [0].into(),
            server: [0, 1].into(),
            looks: 32,
            pairs: pairs.iter().copied().collect(),
        };
        assert_eq!(
            cores(&seen(&[((0, 0), 31), ((0, 1), 1)])),
            Some(Cores::One(0)),
            "once it was on another"
        );
        assert_eq!(cores(&seen(&[((0, 0), 2), ((1, 1), 28)])), Some(Cores::One(1)));
        assert_eq!(cores(&seen(&[((0, 0), 16), ((0, 1), 16)])), Some(Cores::Changing));
        let apart = seen(&[((0, 1), 12), ((1, 0), 20)]);
        assert_eq!((cores(&apart), apart.most(false)), (Some(Cores::Two), Some((1, 0))));
        let spread = seen(&[((0, 0), 3), ((0, 1), 2), ((0, 2), 2), ((0, 3), 2)]);
        assert_eq!((cores(&spread), spread.most(false)), (Some(Cores::Two), Some((0, 3))));
        assert_eq!(cores(&Seen { looks: LOOKS - 1, ..seen(&[((0, 0), 9)]) }), None);
    }
}
