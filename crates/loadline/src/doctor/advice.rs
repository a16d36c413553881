//! What to do about a host: one row per thing that may be off, each a sentence or two that say
//! what was seen and what would be right.

use super::checkup::Checkup;

/// Everything that is off here.
pub(super) fn advice(checkup: &Checkup) -> Vec<String> {
    ROWS.iter().filter_map(|row| row(checkup)).collect()
}

const ROWS: &[fn(&Checkup) -> Option<String>] = &[
    others,
    quota,
    few_cores,
    clock,
    governor,
    timers,
    pauses,
    steal,
    huge_pages,
    open_files,
    swap,
    generator,
    debug_build,
    unseen,
];

fn others(checkup: &Checkup) -> Option<String> {
    let share = checkup.others.foreign_share().filter(|share| *share > 0.02)?;
    Some(format!(
        "Other programs use {:.0} % of the cores right now{}. Above 2 % every slice counts as \
         disturbed: stop them, or measure on cores that they don't use (`cpus`).",
        share * 100.0,
        named(checkup)
    ))
}

/// The programs that used most, to be read after how much all did; empty where they are unseen.
pub(super) fn named(checkup: &Checkup) -> String {
    let named = report::programs(&checkup.others.programs());
    if named.is_empty() { named } else { format!(": {named}") }
}

fn quota(checkup: &Checkup) -> Option<String> {
    let quota = checkup.fact("cpu_quota").filter(|quota| *quota != "none")?;
    Some(format!(
        "This program and all that it starts have a CPU quota of {quota} together: once it is used \
         up they stand still for the rest of the period, and such slices count as disturbed. Raise \
         it (cpu.max, cpu.cfs_quota_us, a container's --cpus), or ask for less load."
    ))
}

fn few_cores(checkup: &Checkup) -> Option<String> {
    match checkup.cpus.len() {
        0 | 1 => Some(
            "There is one core: target and generator take it from each other, so only CPU time \
             per operation means anything. Measure on a host with at least two."
                .to_owned(),
        ),
        2 => Some(
            "There are two cores: give the target one and the generator the other (`cpus = [0]`, \
             `cpus = [1]`). A target of several threads can't be judged here."
                .to_owned(),
        ),
        _ => None,
    }
}

fn clock(checkup: &Checkup) -> Option<String> {
    let slow = checkup.clock_read_ns > 100.0;
    slow.then(|| {
        format!(
            "Reading the clock costs {:.0} ns: the clock source \"{}\" needs a system call. \
             Choose tsc if the kernel trusts it (clocksource0/available_clocksource).",
            checkup.clock_read_ns,
            checkup.fact("clock_source").unwrap_or("unseen")
        )
    })
}

fn governor(checkup: &Checkup) -> Option<String> {
    let governor = checkup.fact("governor").filter(|governor| *governor != "performance")?;
    Some(format!(
        "The CPU's governor is \"{governor}\", so its speed follows the load: set it to \
         performance while measuring (cpupower frequency-set -g performance)."
    ))
}

fn timers(checkup: &Checkup) -> Option<String> {
    let late_ns = checkup.timers.iter().map(|timer| timer.p99_late_ns).max()?;
    (late_ns > 500_000).then(|| {
        format!(
            "Sleeps end up to {} late: give the generator cores of its own (`clients.cpus`), where \
             it spins for the last 60 µs before a request is due.",
            duration(late_ns)
        )
    })
}

fn pauses(checkup: &Checkup) -> Option<String> {
    let floor = &checkup.floor;
    (floor.longest_ns > 1_000_000).then(|| {
        format!(
            "This host paused for {}: no latency beyond the percentile that meets such a pause can \
             be trusted. On a shared virtual machine measure at another time, or elsewhere.",
            duration(floor.longest_ns)
        )
    })
}

fn steal(checkup: &Checkup) -> Option<String> {
    let stolen_ns = checkup.others.most_stolen_ns.filter(|stolen_ns| *stolen_ns >= 20_000_000)?;
    Some(format!(
        "The hypervisor kept {} of a core in two seconds: its host is overcommitted. Slices in \
         which that happens count as disturbed.",
        duration(stolen_ns)
    ))
}

fn huge_pages(checkup: &Checkup) -> Option<String> {
    checkup.fact("huge_pages").filter(|setting| setting.contains("[always]"))?;
    Some(
        "Transparent huge pages are \"always\": memory and latency depend on what the kernel \
         happens to have joined. Set madvise to take that out \
         (/sys/kernel/mm/transparent_hugepage/enabled)."
            .to_owned(),
    )
}

/// Enough for a thousand connections of each of target and generator, and some.
const OPEN_FILES: u64 = 4096;

fn open_files(checkup: &Checkup) -> Option<String> {
    let mut words = checkup.fact("open_files_limit")?.split(' ');
    let (soft, hard) = (words.next()?, words.next()?);
    let few = soft.parse::<u64>().is_ok_and(|limit| limit < OPEN_FILES);
    few.then(|| {
        format!(
            "Only {soft} files may be open, and every connection is one: raise it before measuring \
             many connections (ulimit -n {hard})."
        )
    })
}

fn swap(checkup: &Checkup) -> Option<String> {
    let pages = checkup.others.swapped_pages.filter(|pages| *pages > 0)?;
    Some(format!(
        "The host swapped {pages} pages within two seconds: it is short of memory. Stop what holds \
         it, or switch swap off while measuring (swapoff -a)."
    ))
}

fn generator(checkup: &Checkup) -> Option<String> {
    let best = checkup.ceilings.iter().map(|ceiling| ceiling.rate_per_s).fold(0.0, f64::max);
    (best < 100_000.0).then(|| {
        format!(
            "One generator thread reaches {} against a server that does nothing: faster targets \
             can't be told apart here. Is the host busy?",
            report::rate(best)
        )
    })
}

fn debug_build(checkup: &Checkup) -> Option<String> {
    checkup.fact("program_build").filter(|build| *build == "debug")?;
    Some(
        "This is a debug build: neither its services nor its generator are as fast as they are. \
         Build with --release."
            .to_owned(),
    )
}

fn unseen(checkup: &Checkup) -> Option<String> {
    let unseen = checkup.seen.iter().filter(|seen| !seen.unseen.is_empty());
    let names: Vec<&str> = unseen.map(|seen| seen.sensor.name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not everything is seen here ({}): what depends on it is reported as unseen, never as \
             zero. The list above says when that happens.",
            names.join(", ")
        )
    })
}

/// A time as reports show it.
pub(super) fn duration(ns: u64) -> String {
    report::duration(ns as f64)
}

#[cfg(test)]
mod tests {
    use lab::observe::{Disturbance, OtherPrograms};
    use serde_json::json;

    use super::super::ceiling::Ceiling;
    use lab::observe::RoundTrip;

    use super::super::measure::{Floor, Timer};
    use super::*;

    /// A host on which nothing is off.
    fn quiet() -> Checkup {
        Checkup {
            cpus: (0..8).collect(),
            fingerprint: json!({
                "clock_source": "tsc",
                "governor": "performance",
                "huge_pages": "always [madvise] never",
                "open_files_limit": "20000 1048576 files",
                "program_build": "release",
                "cpu_quota": "none",
            }),
            clock_read_ns: 18.0,
            timers: vec![Timer { asked_ns: 50_000, p50_late_ns: 54_000, p99_late_ns: 76_000 }],
            floor: Floor { watched_ns: 2_000_000_000, longest_ns: 274_000, ..Floor::default() },
            others: Disturbance {
                length_ns: 2_000_000_000,
                core_time_ns: 16_000_000_000,
                foreign_ns: Some(50_000_000),
                most_stolen_ns: Some(10_000_000),
                swapped_pages: Some(0),
                ..Disturbance::default()
            },
            watching: 0.004,
            round_trip: RoundTrip { p50_ns: 9_900, p99_ns: 13_700 },
            copied_bytes_per_s: 1e10,
            ceilings: vec![Ceiling {
                connections: 16,
                pipeline: 1,
                rate_per_s: 600_000.0,
                generator_cpu_ns_per_op: 1_600.0,
                busy: 1.0,
            }],
            engine: Vec::new(),
            seen: Vec::new(),
        }
    }

    #[test]
    fn a_good_host_needs_no_advice_and_neither_does_what_is_unseen() {
        assert_eq!(advice(&quiet()), Vec::<String>::new());
        let blind = Checkup { fingerprint: json!({}), others: Disturbance::default(), ..quiet() };
        assert_eq!(advice(&blind), Vec::<String>::new());
    }

    #[test]
    fn everything_that_is_off_is_said_with_what_to_do() {
        let off = Checkup {
            cpus: vec![0, 1],
            fingerprint: json!({
                "clock_source": "hpet",
                "governor": "powersave",
                "huge_pages": "[always] madvise never",
                "open_files_limit": "1024 1048576 files",
                "program_build": "debug",
                "cpu_quota": "1.50 cores",
            }),
            clock_read_ns: 900.0,
            timers: vec![Timer { asked_ns: 50_000, p50_late_ns: 1, p99_late_ns: 4_000_000 }],
            floor: Floor { longest_ns: 23_000_000, ..Floor::default() },
            others: Disturbance {
                length_ns: 2_000_000_000,
                core_time_ns: 4_000_000_000,
                foreign_ns: Some(1_000_000_000),
                others: Some(OtherPrograms {
                    cores: vec![("rustc".into(), 0.48)],
                    also_elsewhere: false,
                }),
                most_stolen_ns: Some(300_000_000),
                swapped_pages: Some(9),
                ..Disturbance::default()
            },
            ceilings: Vec::new(),
            ..quiet()
        };
        let said = advice(&off).join("\n");
        let words = [
            "use 25 % of the cores right now: rustc 0.5 cores.",
            "quota of 1.50 cores",
            "two cores",
            "hpet",
            "powersave",
            "4.00 ms late",
            "paused for 23.0 ms",
            "kept 300 ms",
            "madvise",
            "ulimit -n 1048576",
            "9 pages",
            "against a server that does nothing",
            "--release",
        ];
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}
