//! Limits that were planted and recorded, and what the rules make of them.

use super::*;

/// Figures of trials of `suites/credibility/limits.toml`, each with this planted in its target;
/// the host had other work to do meanwhile, as hosts have.
const RECORDED: &[(&str, &str)] = &[
    ("contention", include_str!("recorded/contention.txt")),
    ("generator", include_str!("recorded/generator.txt")),
    ("server_thread", include_str!("recorded/server_thread.txt")),
    ("server_cores", include_str!("recorded/server_cores.txt")),
    ("listen", include_str!("recorded/listen.txt")),
    ("disk", include_str!("recorded/disk.txt")),
    ("delayed_ack", include_str!("recorded/delayed_ack.txt")),
    ("growth", include_str!("recorded/growth.txt")),
    // Not planted: reads of 900 kB over loopback, with 38 % of what one thread copies.
    ("generator", include_str!("recorded/memory_bandwidth.txt")),
];

fn none() -> Figures {
    Figures::parse(include_str!("recorded/none.txt"))
}

/// Threads that wait for a lock, recorded while other programs used 93 % of the cores, as if these
/// had been idle.
fn behind_a_lock() -> Figures {
    let recorded = Figures::parse(include_str!("recorded/wakeups.txt"));
    Figures { foreign: Some(0.01), ..recorded }
}

fn codes(figures: &Figures) -> Vec<&'static str> {
    limits_reached(figures).iter().map(|one| one.limit.code).collect()
}

#[test]
fn each_planted_limit_that_was_recorded_is_the_first_in_the_list() {
    for (planted, text) in RECORDED {
        let figures = Figures::parse(text);
        assert!(figures.operations > Some(100.0), "{planted}");
        assert_eq!(codes(&figures).first(), Some(planted), "{:?}", limits_reached(&figures));
    }
}

/// A neighbour's cores and a stall of most answers at once: the stall explains the median.
#[test]
fn a_stall_of_the_median_comes_before_a_neighbour() {
    let contention = Figures::parse(include_str!("recorded/contention.txt"));
    let stalled = |near, acks_each| Figures {
        near_40ms: Some(near),
        below_40ms: Some(0.0),
        tcp_delayed_acks: contention.operations.map(|all| all * near * acks_each),
        ..contention.clone()
    };
    assert_eq!(codes(&stalled(0.6, 1.0))[0], "delayed_ack");
    let some = codes(&stalled(0.1, 1.0));
    assert_eq!(some[0], "contention");
    assert!(some.contains(&"delayed_ack"), "{some:?}");
    // A server, or a program that is no server, which takes as long by itself.
    assert!(!codes(&stalled(1.0, 0.05)).contains(&"delayed_ack"));
    let uncounted = Figures { tcp_delayed_acks: None, ..stalled(1.0, 0.0) };
    assert!(!codes(&uncounted).contains(&"delayed_ack"));
}

#[test]
fn a_light_load_reaches_nothing_and_neither_does_one_without_figures() {
    assert_eq!(codes(&none()), Vec::<&str>::new());
    assert_eq!(codes(&Figures::default()), Vec::<&str>::new());
    // Arrays of 8 MB, a segment of every tenth sent again, and no connection lost.
    let sent_again = Figures { tcp_retransmits: Some(300.0), listen_drops: Some(0.0), ..none() };
    assert_eq!(codes(&sent_again), Vec::<&str>::new());
}

/// The kernel's sum is of all listening sockets of a host.
#[test]
fn a_full_listen_queue_is_the_targets_another_programs_or_not_known_whose() {
    let lost = |own| {
        let lost = Figures { listen_drops: Some(300.0), server_listen_drops: own, ..none() };
        let first = limits_reached(&lost).into_iter().next();
        first.map(|one| (one.limit.code, one.limit.name, one.evidence))
    };
    let (code, name, evidence) = lost(None).unwrap();
    assert_eq!((code, name), ("listen_host", "a listen queue on this host"));
    assert!(evidence.contains("of this host, the target's or others"), "{evidence}");
    let (code, name, evidence) = lost(Some(299.0)).unwrap();
    assert_eq!((code, name), ("listen", "the listen queue"));
    assert!(evidence.contains("299 connections lost at the target's"), "{evidence}");
    assert_eq!(lost(Some(0.0)), None, "it is another program's");
}

/// What was not planted live: the light load that was recorded, with what such a limit changes.
#[test]
fn limits_that_take_special_hosts_are_the_first_in_the_list() {
    let softirq = Figures {
        // A cache on four cores that used two and a half of them, while the kernel's thread for
        // packets ran for three quarters of the time.
        softirq_core_most: Some(0.75),
        server_cores: Some(4.0),
        server_cpu_ns: Some(2.5 * 3e9),
        wants_more: Some(1.0),
        ..none()
    };
    assert_eq!(codes(&softirq)[0], "network_receive");
    let datagrams = Figures { udp_receive_errors: Some(150.0), ..none() };
    assert_eq!(codes(&datagrams)[0], "network_receive");
    let copying = Figures {
        carried_bytes: Some(3.0 * 9e9),
        copy_bytes_per_s: Some(9.5e9),
        server_busiest_thread_ns: Some(2.95e9),
        ..none()
    };
    assert_eq!(codes(&copying), ["memory_bandwidth", "server_thread"]);
    let beyond = Figures { copy_bytes_per_s: Some(6e9), ..copying.clone() };
    for (figures, is_doubted) in [(&copying, false), (&beyond, true)] {
        let evidence = &limits_reached(figures)[0].evidence;
        assert_eq!(evidence.contains("at a worse moment"), is_doubted, "{evidence}");
    }
    let swapping = Figures { swapped_bytes: Some(60e6), pressure_memory: Some(0.2), ..none() };
    assert_eq!(codes(&swapping)[0], "memory");
    let faulting = Figures { server_major_faults: Some(900.0), ..none() };
    assert_eq!(codes(&faulting)[0], "memory");
    let stalled = Figures { paused: Some(0.03), longest_pause_ns: Some(45e6), ..none() };
    assert_eq!(codes(&stalled)[0], "host_stalls");
    let stolen = Figures { steal_core_most: Some(0.04), ..none() };
    assert_eq!(codes(&stolen)[0], "host_stalls");
}

#[test]
fn what_a_quota_stops_is_not_blamed_on_a_neighbour() {
    let contention = Figures::parse(include_str!("recorded/contention.txt"));
    let throttled = |periods| Figures {
        quota_periods: Some(220.0),
        quota_throttled_periods: Some(periods),
        ..contention.clone()
    };
    assert_eq!(codes(&throttled(0.0))[0], "contention");
    assert_eq!(codes(&throttled(22.0))[0], "quota");
    assert!(!codes(&throttled(22.0)).contains(&"contention"));
}

#[test]
fn waiting_for_a_core_that_answers_do_not_feel_is_no_limit() {
    // A thousand answers a second, and two threads that wait for a third of the time.
    let waits = |p50_ns, wants| Figures {
        foreign: Some(0.9),
        operations: Some(3_000.0),
        measured_ns: Some(3e9),
        generator_waited_ns: Some(1e9),
        server_waited_ns: Some(1e9),
        server_busiest_thread_ns: Some(0.1e9),
        server_runnable_threads: Some(wants),
        latency_p50_ns: Some(p50_ns),
        ..none()
    };
    assert_eq!(codes(&waits(5e6, 0.0))[0], "contention", "0.67 of 5 ms");
    assert!(!codes(&waits(20e6, 0.0)).contains(&"contention"), "0.67 of 20 ms");
    let queue = waits(10e6, 1.0);
    assert_eq!(codes(&queue)[0], "contention", "others wait behind it, 1.2 of 10 ms in all");
}

#[test]
fn what_comes_from_outside_is_first_and_waiting_only_where_nothing_else_explains_it() {
    let text = include_str!("recorded/server_thread.txt");
    let stalled =
        |paused, rest| Figures { paused: Some(paused), longest_pause_ns: Some(45e6), ..rest };
    let full = || Figures::parse(text);
    assert_eq!(codes(&stalled(0.12, full()))[..2], ["host_stalls", "server_thread"]);
    // What is slight explains no rate: it stands behind what does.
    assert_eq!(codes(&stalled(0.03, full()))[..2], ["server_thread", "host_stalls"]);
    assert_eq!(codes(&stalled(0.03, behind_a_lock())), ["wakeups", "host_stalls"]);
    assert_eq!(codes(&stalled(0.12, behind_a_lock())), ["host_stalls", "wakeups"]);
    assert_eq!(codes(&stalled(0.52, behind_a_lock())), ["host_stalls"]);
    // Its threads sleep as often as those behind a lock do; the disk is why.
    let disk = Figures::parse(include_str!("recorded/disk.txt"));
    assert_eq!(codes(&disk), ["disk"]);
    let slept = disk.per_operation(disk.server_voluntary_switches).unwrap();
    assert!(slept > 0.5, "{slept}");
}

#[test]
fn a_schedule_that_is_met_waits_for_nothing() {
    assert_eq!(codes(&behind_a_lock()), ["wakeups"]);
    let met = Figures { wants_more: Some(0.0), ..behind_a_lock() };
    assert_eq!(codes(&met), Vec::<&str>::new());
}

#[test]
fn no_wake_ups_are_named_where_other_programs_took_the_cores_and_none_reached_is_not_said() {
    let taken = Figures { foreign: Some(0.8), ..behind_a_lock() };
    assert_eq!(codes(&taken), Vec::<&str>::new());
    assert_eq!(unseen(&taken).unwrap(), "other programs took 1.6 of the run's 2 cores");
    assert_eq!(unseen(&behind_a_lock()), None);
    // A schedule that is met lacks nothing.
    assert_eq!(unseen(&none()), None);
    let unknown = Figures { server_cpu_ns: None, ..none() };
    assert_eq!(unseen(&unknown).unwrap(), "the target's processes are not known");
}

#[test]
fn bytes_are_the_memorys_limit_only_near_what_a_thread_copies_and_if_they_are_the_loads_own() {
    let copying = |carried: Option<f64>| Figures {
        carried_bytes: carried.map(|share| share * 3e9 * 6.7),
        measured_ns: Some(3e9),
        copy_bytes_per_s: Some(6.7e9),
        loopback_bytes: Some(3.0 * 6.7e9),
        ..none()
    };
    assert_eq!(codes(&copying(Some(0.91))), ["memory_bandwidth"]);
    assert_eq!(codes(&copying(Some(0.47))), Vec::<&str>::new());
    assert_eq!(codes(&copying(None)), Vec::<&str>::new(), "a command, beside others' connections");
}

#[test]
fn what_fills_up_and_then_stays_is_no_leak() {
    let leak = Figures::parse(include_str!("recorded/growth.txt"));
    assert_eq!(codes(&leak), ["growth"]);
    let settled = Figures {
        server_resident_slope_late: Some(0.0),
        server_descriptors_slope_late: Some(0.0),
        ..leak
    };
    assert_eq!(codes(&settled), Vec::<&str>::new());
}

#[test]
fn another_programs_writes_are_no_limit_of_this_target() {
    let disk = Figures::parse(include_str!("recorded/disk.txt"));
    let foreign = Figures { server_written_bytes: Some(0.0), ..disk };
    assert!(!codes(&foreign).contains(&"disk"));
}

#[test]
fn every_limit_says_what_it_is_and_no_two_have_one_code() {
    let mut found = std::collections::BTreeSet::new();
    for limit in LIMITS {
        assert!(found.insert(limit.code) && limit_coded(limit.code).is_some(), "{}", limit.code);
        for text in [limit.name, limit.condition, limit.advice] {
            assert!(text.len() > 7 && !text.ends_with('.'), "{text}");
        }
    }
    assert_eq!(found.len(), 15);
}

#[test]
fn the_documentation_names_every_limit_threshold_and_figure() {
    let docs = include_str!("../../../../docs/limits.md");
    for limit in LIMITS {
        let row = format!("| `{}` | {} |", limit.code, limit.name);
        assert!(docs.contains(&row), "{row}");
    }
    for threshold in THRESHOLDS {
        assert!(docs.contains(threshold.name), "{}", threshold.name);
    }
    for (name, unit, _) in FIGURES {
        assert!(docs.contains(&format!("| `{name}` | {unit} |")), "{name}");
    }
}
