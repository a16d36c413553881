//! A checkup as text and as JSON.

use std::fmt::Write as _;

use lab::observe::SensorCheck;
use serde_json::{Value, json};

use super::advice::{duration, named};
use super::ceiling::{Ceiling, Engine};
use super::checkup::Checkup;
use super::measure::GAP_NS;
use lab::observe::COPY_BYTES;

/// The most programs in JSON.
const PROGRAMS: usize = 10;

pub(super) fn text(checkup: &Checkup, advice: &[String]) -> String {
    let mut out = String::new();
    let fact = |name| checkup.fact(name).unwrap_or("unseen");
    let mut line = |what: &str, says: String| {
        let _ = writeln!(out, "  {what:<19}  {says}");
    };
    line(
        "host",
        format!("{} cores, {}, Linux {}", checkup.cpus.len(), fact("cpu"), fact("kernel")),
    );
    line("clock", format!("{}; {:.0} ns a reading", fact("clock_source"), checkup.clock_read_ns));
    for timer in &checkup.timers {
        let (p50, p99) = (duration(timer.p50_late_ns), duration(timer.p99_late_ns));
        let asked = duration(timer.asked_ns);
        line("timers", format!("a sleep of {asked} ends {p50} late (p50), {p99} (p99)"));
    }
    let floor = &checkup.floor;
    let lost = 100.0 * floor.lost_ns as f64 / floor.watched_ns.max(1) as f64;
    let (longest, over) = (duration(floor.longest_ns), duration(GAP_NS));
    let watched = duration(floor.watched_ns);
    line(
        "pauses",
        format!(
            "longest {longest}; {} over {over} in {watched}, {lost:.2} % of the time, of which it \
             waited {} for a core",
            report::thousands(floor.count),
            duration(floor.waited_ns)
        ),
    );
    let others = checkup.others.foreign_share();
    let others = others.map_or("unseen".into(), |share| format!("{:.1} %", share * 100.0));
    line("other programs", format!("{others} of the cores{}", named(checkup)));
    line("CPU quota", quota(checkup));
    line("watching a run", format!("{:.2} % of one core", checkup.watching * 100.0));
    let (p50, p99) = (checkup.round_trip.p50_ns, checkup.round_trip.p99_ns);
    line(
        "loopback",
        format!("TCP there and back {} (p50), {} (p99)", duration(p50), duration(p99)),
    );
    let copied = checkup.copied_bytes_per_s / 1e9;
    line(
        "memory",
        format!("one thread copies {copied:.1} GB/s ({} MiB at a time)", COPY_BYTES >> 20),
    );
    for (name, text) in generator(checkup) {
        line(name, text);
    }
    for seen in &checkup.seen {
        line(&format!("sensor {}", seen.sensor.name), sees(seen));
    }
    out.push('\n');
    if advice.is_empty() {
        out.push_str("Nothing is off: this host is fit to measure on.\n");
    }
    for advice in advice {
        let _ = writeln!(out, "- {advice}");
    }
    report::wrapped(&out)
}

/// The CPU quota of this program's control group, and how often it was used up.
fn quota(checkup: &Checkup) -> String {
    let quota = checkup.fact("cpu_quota").unwrap_or("unseen");
    let throttled = checkup
        .others
        .quota_periods
        .map(|[periods, throttled]| format!("; throttled in {throttled} of {periods} periods"));
    format!("{quota}{}", throttled.unwrap_or_default())
}

/// The generator's cost here: against an echo server, and without a server.
fn generator(checkup: &Checkup) -> Vec<(&'static str, String)> {
    let ceiling = |ceiling: &Ceiling| {
        let Ceiling { connections, pipeline, rate_per_s, generator_cpu_ns_per_op, busy } = ceiling;
        let text = format!(
            "{}, {} CPU an operation, {:.0} % busy: one thread, {connections} connections, depth \
             {pipeline}, against a server that does nothing",
            report::rate(*rate_per_s),
            report::nanoseconds(*generator_cpu_ns_per_op),
            busy * 100.0,
        );
        ("generator", text)
    };
    let engine = |engine: &Engine| {
        let Engine { connections, pipeline, cpu_ns_per_op } = engine;
        let text = format!(
            "{cpu_ns_per_op:.1} ns CPU an operation without any system call: {connections} \
             connections, depth {pipeline}"
        );
        ("engine", text)
    };
    checkup.ceilings.iter().map(ceiling).chain(checkup.engine.iter().map(engine)).collect()
}

fn sees(seen: &SensorCheck) -> String {
    match seen.unseen.len() {
        0 => format!("seen ({})", seen.sensor.source),
        all if all == seen.sensor.series.len() => {
            format!("UNSEEN: {} ({})", seen.sensor.unseen, seen.sensor.source)
        }
        _ => format!("seen but for {}: {}", seen.unseen.join(", "), seen.sensor.unseen),
    }
}

pub(super) fn json(checkup: &Checkup, advice: &[String]) -> Value {
    let timers = checkup.timers.iter().map(|timer| {
        json!({
            "asked_ns": timer.asked_ns,
            "p50_late_ns": timer.p50_late_ns,
            "p99_late_ns": timer.p99_late_ns,
        })
    });
    let ceilings = checkup.ceilings.iter().map(|ceiling| {
        json!({
            "connections": ceiling.connections,
            "pipeline": ceiling.pipeline,
            "rate_per_s": ceiling.rate_per_s,
            "generator_cpu_ns_per_op": ceiling.generator_cpu_ns_per_op,
            "generator_busy": ceiling.busy,
        })
    });
    let engine = checkup.engine.iter().map(|engine| {
        json!({
            "connections": engine.connections,
            "pipeline": engine.pipeline,
            "cpu_ns_per_op": engine.cpu_ns_per_op,
        })
    });
    let sensors = checkup.seen.iter().map(|seen| {
        let lines = seen.sensor.series.iter();
        json!({
            "name": seen.sensor.name,
            "doc": seen.sensor.doc,
            "source": seen.sensor.source,
            "period_ns": u64::from(seen.sensor.every) * 100_000_000,
            "series": lines
                .map(|line| json!({ "name": line.name, "unit": line.unit }))
                .collect::<Vec<_>>(),
            "unseen": seen.unseen,
            "unseen_when": seen.sensor.unseen,
        })
    });
    let (floor, others) = (&checkup.floor, &checkup.others);
    let programs = others.others.iter().flat_map(|others| &others.cores);
    let programs = programs.map(|(name, cores)| json!({ "name": name, "cores": cores }));
    json!({
        "schema": 1,
        "cpus": checkup.cpus,
        "fingerprint": checkup.fingerprint,
        "clock_read_ns": checkup.clock_read_ns,
        "timers": timers.collect::<Vec<_>>(),
        "pauses": {
            "watched_ns": floor.watched_ns,
            "longest_ns": floor.longest_ns,
            "lost_ns": floor.lost_ns,
            "count": floor.count,
            "waited_ns": floor.waited_ns,
        },
        "others": {
            "cpu_share": others.foreign_share(),
            "coarse": others.coarse,
            "most_stolen_ns": others.most_stolen_ns,
            "swapped_pages": others.swapped_pages,
            "programs": programs.take(PROGRAMS).collect::<Vec<_>>(),
            "quota_periods": others.quota_periods.map(|[periods, _]| periods),
            "throttled_periods": others.quota_periods.map(|[_, throttled]| throttled),
        },
        "watching_cpu_share": checkup.watching,
        "loopback_ns": { "p50": checkup.round_trip.p50_ns, "p99": checkup.round_trip.p99_ns },
        "copied_bytes_per_s": checkup.copied_bytes_per_s,
        "generator": ceilings.collect::<Vec<_>>(),
        "engine": engine.collect::<Vec<_>>(),
        "sensors": sensors.collect::<Vec<_>>(),
        "advice": advice,
    })
}
