//! What a call takes, as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::super::ping::show::time;
use super::cause::{Cores, Facts, Side};
use super::host::Floors;

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

/// The rows of the table: what, this side's, and the server's.
fn rows(facts: &Facts) -> Vec<[String; 3]> {
    let of = |side: Option<Side>, get: fn(Side) -> f64| side.map(get);
    let [here, server] = [facts.here, facts.server];
    let did = facts.server_did;
    let cpu = |side: Side| side.cpu_ns;
    let ready = |side: Side| side.ready_ns;
    let switches = |side: Side| side.switches;
    let row = |name: &str, here: String, server: String| [name.to_owned(), here, server];
    let mut rows = vec![
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
        row("its message encoded", time(facts.encode_ns), String::new()),
        row("its answer decoded", time(facts.decode_ns), String::new()),
        row(
            "allocations",
            format!("{:.0} of {}", facts.allocations, time(facts.allocation_ns)),
            String::new(),
        ),
    ];
    if let Some(future) = facts.future_ns {
        rows.push(row("the future", time(future), String::new()));
    }
    rows.push(row("while a call waits", percent(facts.idle.here), percent(facts.idle.server)));
    rows
}

/// The figures as text.
pub(super) fn text(address: &str, facts: &Facts, floors: &Floors, note: Option<&str>) -> String {
    let mut out = String::new();
    // A String takes all that is written.
    let _ = writeln!(
        out,
        "{address} · echo · {} calls, one after the other: median {}, mean {}, 99 % {}, most {}\n",
        facts.calls,
        time(facts.median_ns),
        time(facts.mean_ns),
        time(facts.slow.p99_ns),
        time(facts.slow.max_ns)
    );
    for [name, here, server] in rows(facts) {
        let row = format!("  {name:<26}{here:>20}{server:>20}");
        let _ = writeln!(out, "{}", row.trim_end());
    }
    if let Some(note) = note {
        let _ = writeln!(out, "\n  {note}");
    }
    let _ = writeln!(
        out,
        "\n  There and back between two threads of this host: futex {}, pipe {}, TCP {}",
        time(floors.futex_ns),
        time(floors.pipe_ns),
        time(floors.tcp_ns)
    );
    if let Some(bytes) = facts.write_bytes {
        let (rate, least) = (floors.tcp_bytes_per_ns, bytes / floors.tcp_bytes_per_ns);
        let _ = writeln!(
            out,
            "  {bytes:.0} bytes at the {:.1} Gbit/s of its loopback: {}",
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
pub(super) fn json(address: &str, facts: &Facts, floors: &Floors, note: Option<&str>) -> String {
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
        "system_calls": facts.system_calls,
        "here": side(facts.here),
        "server": side(facts.server),
        "server_did": did,
        "note": note,
        "whole": facts.is_whole,
        "off_cpu_ns": facts.off_cpu_ns(),
        "encode_ns": facts.encode_ns,
        "decode_ns": facts.decode_ns,
        "allocations": facts.allocations,
        "allocation_ns": facts.allocation_ns,
        "future_ns": facts.future_ns,
        "cores": cores,
        "idle": { "here": facts.idle.here, "server": facts.idle.server },
        "floors_ns": {
            "futex": floors.futex_ns, "pipe": floors.pipe_ns, "tcp": floors.tcp_ns,
        },
        "tcp_bytes_per_ns": floors.tcp_bytes_per_ns,
        "cause": causes.first(),
        "causes": causes,
    });
    format!("{shown}\n")
}
