//! What a call takes, as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::super::ping::caller::is_grpc;
use super::super::ping::seen::Seen;
use super::super::ping::show::time;
use super::facts::{Cores, Facts, Off, Side};
use super::host::Floors;
use crate::client::native::Step;
use crate::parts::LookUp;
use base::many;

/// The most writes, or reads, of a call that a line lists one by one.
const MOST_LISTED: usize = 16;

/// What isn't known of a call over gRPC.
const OVER_GRPC: &str = "Not measured over gRPC: this side's system calls (beside its writes and \
                         reads are waits of its runtime, which doesn't count all of them), and the \
                         future (who reads an answer and who waits for it are tasks of one thread, \
                         and what is between them is part of its time on a CPU).";

/// What is shown.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) facts: &'a Facts,
    pub(super) floors: &'a Floors,
    /// What passed in one call, in order; nothing where that isn't known.
    pub(super) steps: &'a [Step],
    pub(super) seen: &'a Seen,
    /// Why the server's figures are left out.
    pub(super) note: Option<&'a str>,
}

fn unknown() -> String {
    "–".to_owned()
}

fn count(value: Option<f64>) -> String {
    value.map_or_else(unknown, |value| format!("{value:.2}"))
}

/// Several of a kind, and the bytes of one.
fn pieces(count: Option<f64>, bytes: Option<f64>) -> String {
    match count.zip(bytes) {
        Some((count, bytes)) => format!("{count:.2} of {:.1} B", bytes / count.max(1e-9)),
        None => unknown(),
    }
}

fn ns(value: Option<f64>) -> String {
    value.map_or_else(unknown, time)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(unknown, |share| format!("{:.1} % of a core", share * 100.0))
}

/// What passed, in order: `2 writes of 24, 10 B, then a read of 34 B`.
fn in_order(steps: &[Step]) -> String {
    let is_write = |step: &Step| matches!(step, Step::Write(_));
    let alike = steps.chunk_by(|one, other| is_write(one) == is_write(other));
    let words = alike.map(|steps| {
        let kind = if steps.first().is_some_and(is_write) { "write" } else { "read" };
        let bytes = steps.iter().map(|(Step::Write(bytes) | Step::Read(bytes))| bytes.to_string());
        let listed = bytes.take(MOST_LISTED).collect::<Vec<_>>().join(", ");
        let more = if steps.len() > MOST_LISTED { ", …" } else { "" };
        match steps.len() {
            1 => format!("a {kind} of {listed} B"),
            count => format!("{count} {kind}s of {listed}{more} B"),
        }
    });
    words.collect::<Vec<_>>().join(", then ")
}

/// What a profile of this side doesn't show.
fn off_by_cause(off: Off) -> String {
    let Off { server_ns, core_ns, wake_up_ns } = off;
    format!(
        "Off this side's CPU {}: the server works {}, a core has other work {}, wake-ups and the \
         way {}",
        time(server_ns + core_ns + wake_up_ns),
        time(server_ns),
        time(core_ns),
        time(wake_up_ns)
    )
}

/// The rows of the table: what, this side's, and the server's. `without` is shown where no future
/// is measured.
fn rows(facts: &Facts, without: &str) -> Vec<[String; 3]> {
    let of = |side: Option<Side>, get: fn(Side) -> f64| side.map(get);
    let [here, server] = [facts.here, facts.server];
    let did = facts.server_did;
    let cpu = |side: Side| side.cpu_ns;
    let ready = |side: Side| side.ready_ns;
    let switches = |side: Side| side.switches;
    let row = |name: &str, here: String, server: String| [name.to_owned(), here, server];
    vec![
        row("a call, in the mean", "this side".to_owned(), "the server".to_owned()),
        row("writes", pieces(facts.writes, facts.write_bytes), count(did.map(|did| did.writes))),
        row("reads", pieces(facts.reads, facts.read_bytes), count(did.map(|did| did.reads))),
        row("system calls", count(facts.system_calls), count(did.map(|did| did.system_calls))),
        row("context switches", count(of(here, switches)), count(of(server, switches))),
        row("on a CPU", ns(of(here, cpu)), ns(of(server, cpu))),
        row("ready, others run", ns(of(here, ready)), ns(of(server, ready))),
        row(
            if facts.is_whole { "on no CPU" } else { "not on this side's CPU" },
            ns(facts.off_cpu_ns()),
            String::new(),
        ),
        row(
            match facts.look_up {
                LookUp::ByName => "its function, by name",
                LookUp::ByNumber => "its function, by number",
            },
            time(facts.look_up_ns),
            String::new(),
        ),
        row("its message encoded", time(facts.encode_ns), String::new()),
        row("its answer decoded", time(facts.decode_ns), String::new()),
        row(
            "allocations",
            format!("{:.0} of {}", facts.allocations, time(facts.allocation_ns)),
            String::new(),
        ),
        row("allocated", format!("{:.1} B", facts.allocated_bytes), String::new()),
        // A caller that reads its answer itself has none.
        row("the future", facts.future_ns.map_or_else(|| without.to_owned(), time), String::new()),
        row("while a call waits", percent(facts.idle.here), percent(facts.idle.server)),
    ]
}

/// The figures as text.
pub(super) fn text(address: &str, shown: &Shown<'_>) -> String {
    let Shown { facts, floors, steps, note, .. } = *shown;
    let mut out = String::new();
    // A String takes all that is written.
    let _ = writeln!(
        out,
        "{address} · echo · {}, one after the other: median {}, mean {}, 99 % {}, most {}\n",
        many(facts.calls, "call"),
        time(facts.median_ns),
        time(facts.mean_ns),
        time(facts.slow.p99_ns),
        time(facts.slow.max_ns)
    );
    for [name, here, server] in rows(facts, if is_grpc(address) { "–" } else { "none" }) {
        let row = format!("  {name:<26}{here:>20}{server:>20}");
        let _ = writeln!(out, "{}", row.trim_end());
    }
    if let Some(off) = facts.off() {
        let _ = writeln!(out, "\n  {}", off_by_cause(off));
    }
    if !steps.is_empty() {
        let _ = writeln!(out, "\n  One call, in order: {}", in_order(steps));
    }
    let over_grpc = is_grpc(address).then_some(OVER_GRPC);
    for note in note.into_iter().chain(over_grpc) {
        let _ = writeln!(out, "\n  {note}");
    }
    let line = floors.cache_line_ns.map_or_else(
        || "none (on one core neither can wait on the CPU for the other)".to_owned(),
        time,
    );
    let _ = writeln!(
        out,
        "\n  There and back between two threads of this host: cache line {line}, futex {}, pipe \
         {}, TCP {}",
        time(floors.futex_ns),
        time(floors.pipe_ns),
        time(floors.tcp_ns)
    );
    if let Some(bytes) = facts.write_bytes {
        let (rate, least) = (floors.tcp_bytes_per_ns, bytes / floors.tcp_bytes_per_ns);
        let _ = writeln!(
            out,
            "  {} at the {:.1} Gbit/s of its loopback: {}",
            many(bytes.round(), "byte"),
            rate * 8.0,
            time(least)
        );
    }
    out.push('\n');
    for cause in facts.causes() {
        let _ = writeln!(out, "  {cause}");
    }
    out
}

/// The figures as JSON.
pub(super) fn json(address: &str, shown: &Shown<'_>) -> String {
    let Shown { facts, floors, steps, seen, note } = *shown;
    let side = |side: Option<Side>| {
        side.map(|side| {
            json!({
                "cpu_ns": side.cpu_ns, "ready_ns": side.ready_ns, "switches": side.switches,
            })
        })
    };
    let did = facts.server_did.map(|did| {
        json!({
            "reads": did.reads, "writes": did.writes, "system_calls": did.system_calls,
        })
    });
    let cores = facts.cores.map(|cores| match cores {
        Cores::One(_) => "one",
        Cores::Two => "two",
        Cores::Changing => "changing",
    });
    let causes = facts.causes();
    let steps = steps.iter().map(|step| match step {
        Step::Write(bytes) => json!({ "write": bytes }),
        Step::Read(bytes) => json!({ "read": bytes }),
    });
    let shown = json!({
        "schema": 1,
        "address": address,
        "calls": facts.calls,
        "median_ns": facts.median_ns,
        "mean_ns": facts.mean_ns,
        "p99_ns": facts.slow.p99_ns,
        "max_ns": facts.slow.max_ns,
        "slow": { "share": facts.slow.share, "of_time": facts.slow.of_time },
        "writes": facts.writes,
        "write_bytes": facts.write_bytes,
        "reads": facts.reads,
        "read_bytes": facts.read_bytes,
        "in_order": steps.collect::<Vec<_>>(),
        "system_calls": facts.system_calls,
        "here": side(facts.here),
        "server": side(facts.server),
        "server_did": did,
        "note": note,
        "whole": facts.is_whole,
        "off_cpu_ns": facts.off_cpu_ns(),
        "off": facts.off().map(|off| json!({
            "server_ns": off.server_ns, "core_ns": off.core_ns, "wake_up_ns": off.wake_up_ns,
        })),
        "look_up_ns": facts.look_up_ns,
        "encode_ns": facts.encode_ns,
        "decode_ns": facts.decode_ns,
        "allocations": facts.allocations,
        "allocated_bytes": facts.allocated_bytes,
        "allocation_ns": facts.allocation_ns,
        "future_ns": facts.future_ns,
        "future_median_ns": facts.future_median_ns,
        "delayed_acks": facts.delayed_acks,
        "cores": cores,
        "cores_seen": { "here": seen.here, "server": seen.server },
        "idle": { "here": facts.idle.here, "server": facts.idle.server },
        "floors_ns": {
            "cache_line": floors.cache_line_ns, "futex": floors.futex_ns,
            "pipe": floors.pipe_ns, "tcp": floors.tcp_ns,
        },
        "tcp_bytes_per_ns": floors.tcp_bytes_per_ns,
        "cause": causes.first(),
        "causes": causes,
    });
    format!("{shown}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_listed_in_order() {
        use Step::{Read, Write};
        assert_eq!(in_order(&[]), "");
        let plain = in_order(&[Write(34), Read(34)]);
        assert_eq!(plain, "a write of 34 B, then a read of 34 B");
        let parts = [Write(24), Write(10), Read(8), Read(26), Write(1)];
        let right = "2 writes of 24, 10 B, then 2 reads of 8, 26 B, then a write of 1 B";
        assert_eq!(in_order(&parts), right);
        let many = in_order(&[Read(7); 20]);
        let listed = ["7"; MOST_LISTED].join(", ");
        assert_eq!(many, format!("20 reads of {listed}, … B"));
    }
}
