//! `loadline rpc why`: where the time of a call goes. Calls are made one after the other, so that
//! what neither side spends on a CPU is waiting. Control plane.

mod cause;
mod host;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use base::units::Span;
use bytes::Bytes;
use prost::Message as _;
use serde_json::json;
use service::{Outcome, out};
use tokio::runtime::Runtime;

use super::args::SessionArgs;
use super::ping::caller::{Caller, Function, Work};
use super::ping::show::time;
use super::ping::trial::{Limits, Trial};
use super::ping::{ToArgs, time_limit};
use crate::client::native::Traffic;
use crate::protocol::proto::table::Place;
use cause::{Facts, Side};
use host::{Floors, Used};

const WHO: &str = "/loadline.rpc.v1.Table/Who";

/// What is called, and for how long.
#[derive(Debug, clap::Args)]
pub(super) struct WhyArgs {
    #[command(flatten)]
    to: ToArgs,

    /// The most time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time_limit)]
    time: Span,
}

/// The process of the server, if it is another one of this host.
fn server_process(address: &str, caller: &mut Caller<'_>) -> anyhow::Result<Option<u32>> {
    let answer = caller.call(WHO, &Bytes::new())?;
    let place = Place::decode(answer).context("the answer to Who")?;
    let rest = address.split_once(':').map_or("", |(_, rest)| rest).trim_start_matches('/');
    let is_local = !address.starts_with("tcp:") && !super::ping::caller::is_grpc(address)
        || rest.is_empty()
        || ["127.", "localhost", "[::1]"].iter().any(|host| rest.starts_with(host));
    Ok(Some(place.pid).filter(|pid| is_local && *pid != std::process::id()))
}

/// Makes calls, and says where their time went.
pub(super) fn why(args: &WhyArgs, session: SessionArgs, runtime: &Runtime) -> Outcome {
    let json = session.json;
    let floors = Floors::measure()?;
    let mut started = None;
    let mut caller = args.to.caller(session, runtime, &mut started)?;
    let server = server_process(&args.to.address, &mut caller)?;
    let mut work = Work::new(Function::Echo, 8);
    // The first calls of a TCP connection are acknowledged at once: they are not like the others.
    for _ in 0..20 {
        work.once(&mut caller)?;
    }
    let now = || (Used::of(std::process::id()), server.and_then(Used::of));
    let (traffic, before, calls, begun) = (caller.traffic(), now(), work.calls(), Instant::now());
    let limits = Limits { samples: 100_000, time: args.time.duration() };
    let trial = Trial::run(limits, || work.once(&mut caller))?;
    // As all that is divided by the calls, the mean is of all of them.
    let (after, calls, took) = (now(), work.calls() - calls, begun.elapsed());
    let per_call = |sum: u64| sum as f64 / calls.max(1) as f64;
    let side = |before: Option<Used>, after: Option<Used>| {
        let used = after?.since(before?);
        Some(Side {
            cpu_ns: per_call(used.cpu_ns),
            ready_ns: per_call(used.ready_ns),
            switches: per_call(used.switches),
        })
    };
    let summary = trial.summary();
    let passed = traffic.zip(caller.traffic()).map(|(before, after)| since(before, after));
    let facts = Facts {
        has_nagle: args.to.nagle,
        calls,
        median_ns: summary.median,
        mean_ns: per_call(took.as_nanos() as u64),
        writes: passed.map(|passed| per_call(passed.writes)),
        write_bytes: passed.map(|passed| per_call(passed.written_bytes)),
        reads: passed.map(|passed| per_call(passed.reads)),
        read_bytes: passed.map(|passed| per_call(passed.read_bytes)),
        waits: passed.map(|passed| per_call(passed.waits)),
        here: side(before.0, after.0),
        server: side(before.1, after.1),
    };
    out::print(if json { as_json(args, &facts, &floors) } else { as_text(args, &facts, &floors) })?;
    Ok(ExitCode::SUCCESS)
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

fn as_text(args: &WhyArgs, facts: &Facts, floors: &Floors) -> String {
    let mut out = String::new();
    let unknown = || "–".to_owned();
    let count = |value: Option<f64>| value.map_or_else(unknown, |value| format!("{value:.2}"));
    let pieces = |count: Option<f64>, bytes: Option<f64>| match count.zip(bytes) {
        Some((count, bytes)) => format!("{count:.2} of {:.1} B", bytes / count.max(1e-9)),
        None => unknown(),
    };
    let calls = facts.writes.zip(facts.reads).zip(facts.waits);
    let system_calls = calls
        .filter(|_| args.to.address != "here:")
        .map(|((writes, reads), waits)| writes + reads + waits);
    let of = |side: Option<Side>, get: fn(Side) -> f64| side.map(get);
    let ns = |value: Option<f64>| value.map_or_else(unknown, time);
    let cpu = |side: Side| side.cpu_ns;
    let ready = |side: Side| side.ready_ns;
    let switches = |side: Side| side.switches;
    // A String takes all that is written.
    let _ = writeln!(
        out,
        "{} · echo · {} calls, one after the other: median {}, mean {}\n",
        args.to.address,
        facts.calls,
        time(facts.median_ns),
        time(facts.mean_ns)
    );
    let mut row = |name: &str, here: String, server: String| {
        let _ = writeln!(out, "  {name:<26}{here:>20}{server:>20}");
    };
    row("a call, in the mean", "this side".to_owned(), "the server".to_owned());
    row("writes", pieces(facts.writes, facts.write_bytes), unknown());
    row("reads", pieces(facts.reads, facts.read_bytes), unknown());
    row("system calls", count(system_calls), unknown());
    let [here, server] = [facts.here, facts.server];
    row("context switches", count(of(here, switches)), count(of(server, switches)));
    row("on a CPU", ns(of(here, cpu)), ns(of(server, cpu)));
    row("ready, others run", ns(of(here, ready)), ns(of(server, ready)));
    let _ = writeln!(out, "  {:<26}{:>20}", "on no CPU", ns(facts.off_cpu_ns()));
    let _ = writeln!(
        out,
        "\n  There and back between two threads of this host: futex {}, pipe {}, TCP {}\n",
        time(floors.futex_ns),
        time(floors.pipe_ns),
        time(floors.tcp_ns)
    );
    let _ = writeln!(out, "  {}", facts.cause());
    out
}

fn as_json(args: &WhyArgs, facts: &Facts, floors: &Floors) -> String {
    let side = |side: Option<Side>| {
        side.map(|side| {
            json!({
                "cpu_ns": side.cpu_ns, "ready_ns": side.ready_ns, "switches": side.switches,
            })
        })
    };
    let shown = json!({
        "schema": 1,
        "address": args.to.address,
        "calls": facts.calls,
        "median_ns": facts.median_ns,
        "mean_ns": facts.mean_ns,
        "writes": facts.writes,
        "write_bytes": facts.write_bytes,
        "reads": facts.reads,
        "read_bytes": facts.read_bytes,
        "waits": facts.waits,
        "here": side(facts.here),
        "server": side(facts.server),
        "off_cpu_ns": facts.off_cpu_ns(),
        "floors_ns": {
            "futex": floors.futex_ns, "pipe": floors.pipe_ns, "tcp": floors.tcp_ns,
        },
        "cause": facts.cause(),
    });
    format!("{shown}\n")
}
