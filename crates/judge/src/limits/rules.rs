//! The index of limits: one row each, with its condition right behind it.

use super::figures::Figures;
use super::limit::{Finding, Limit, LimitKind};
use super::threshold as at;

/// Every limit.
pub static LIMITS: &[Limit] = &[
    Limit {
        code: "quota",
        name: "the CPU quota",
        condition: "the quota of the run's control group is used up in 2 % of its periods",
        advice: "raise the quota (cpu.max, cpu.cfs_quota_us, a container's --cpus), or ask for \
            less",
        kind: LimitKind::Outside,
        holds: quota,
    },
    Limit {
        code: "contention",
        name: "CPU contention or a neighbour",
        condition: "other programs take 0.1 cores of the run's, and a side goes without a core \
            that it wants for 5 % of the time, and waits for one a tenth of what an operation \
            takes",
        advice: "stop the other program, or pin target and load to cores that are otherwise idle",
        kind: LimitKind::Outside,
        holds: contention,
    },
    Limit {
        code: "host_stalls",
        name: "host stalls",
        condition: "the host stands still for 1 % of the time and once for 10 ms, or the \
            hypervisor keeps 2 % of a core",
        advice: "measure on a quieter host; on a virtual machine ask for cores of its own",
        kind: LimitKind::Outside,
        holds: host_stalls,
    },
    Limit {
        code: "memory",
        name: "memory pressure or swapping",
        condition: "tasks wait for memory 2 % of the time, the host swaps 1 MB/s, or the target \
            reads 50 of its pages a second from disk",
        advice: "give the target less data or the host more memory; stop what else fills it",
        kind: LimitKind::Outside,
        holds: memory,
    },
    Limit {
        code: "generator",
        name: "the generator",
        condition: "the busiest load thread is busy for 90 % of the time: it runs, and not in \
            empty polls",
        advice: "the result is a lower bound: give the clients more threads and cores, or ask for \
            less",
        kind: LimitKind::Full,
        holds: generator,
    },
    Limit {
        code: "server_thread",
        name: "one server thread",
        condition: "one thread of the target runs for 90 % of the time, while other cores of the \
            target's idle or it has but one",
        advice: "spread the work over more threads, or make that thread's work cheaper",
        kind: LimitKind::Full,
        holds: server_thread,
    },
    Limit {
        code: "server_cores",
        name: "all server cores",
        condition: "the least used of the target's cores is used for 90 % of the time, and target \
            and load take that much",
        advice: "the target has all it can get: make an operation cheaper, or give it more cores",
        kind: LimitKind::Full,
        holds: server_cores,
    },
    Limit {
        code: "network_receive",
        name: "the network receive path",
        condition: "one core spends 60 % of its time on received packets (softirq), or packets \
            and datagrams are lost to full queues",
        advice: "spread interrupts over more queues and cores (RSS, RPS), or send fewer, larger \
            packets; the service's own code is not the limit",
        kind: LimitKind::Full,
        holds: network_receive,
    },
    Limit {
        code: "listen",
        name: "the listen queue",
        condition: "a connection a second is lost at the target's own listening sockets",
        advice: "accept faster or in more threads, raise the listen backlog and \
            net.core.somaxconn, or keep connections",
        kind: LimitKind::Full,
        holds: listen,
    },
    Limit {
        code: "listen_host",
        name: "a listen queue on this host",
        condition: "a connection a second is lost at the listening sockets of the host, and it \
            isn't seen whose they are",
        advice: "see whose it is (ss -lntm: Recv-Q reaches Send-Q, d counts what was lost); if it \
            is the target's, accept faster or in more threads, raise the listen backlog and \
            net.core.somaxconn, or keep connections",
        kind: LimitKind::Full,
        holds: listen_host,
    },
    Limit {
        code: "disk",
        name: "the disk",
        condition: "a disk is busy for 40 % of the time, or tasks wait for one 15 % of it, while \
            one operation in ten touches it and the target writes or reads",
        advice: "sync several operations at once (group commit), write less, or use a faster disk",
        kind: LimitKind::Full,
        holds: disk,
    },
    Limit {
        code: "memory_bandwidth",
        name: "memory bandwidth",
        condition: "the load's sockets carry 90 % of the bytes that one thread of this host copies \
            in that time",
        advice: "copy less: send shared slices, read into place, or measure with smaller values",
        kind: LimitKind::Full,
        holds: memory_bandwidth,
    },
    Limit {
        code: "delayed_ack",
        name: "Nagle with delayed acknowledgement",
        condition: "one answer in twenty takes 39 to 48 ms, few take less long, and the host \
            counts a delayed acknowledgement for every ten of them",
        advice: "set TCP_NODELAY on the accepted sockets, and send an answer with one write",
        kind: LimitKind::Full,
        holds: delayed_ack,
    },
    Limit {
        code: "wakeups",
        name: "wake-ups or a lock",
        condition: "the load wants more, nothing is full, other programs use less than a quarter \
            of the run's cores, and threads go to sleep once in two operations",
        advice: "let threads find more work when they wake (batches, pipelining, more \
            connections), and hold locks for less long",
        kind: LimitKind::Waiting,
        holds: wakeups,
    },
    Limit {
        code: "growth",
        name: "memory or descriptors that grow",
        condition: "the slope's interval over the measured time lies above zero, it adds up to \
            2 % and 1 MB or to 5 descriptors, and the second half still grows",
        advice: "look for what is kept per operation; measure longer to see whether it ends",
        kind: LimitKind::Growing,
        holds: growth,
    },
];

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Why it can't be said of a trial without a limit that it reached none; `None` where it can.
pub fn unseen(figures: &Figures) -> Option<String> {
    if figures.server_cpu_ns.is_none() {
        return Some("the target's processes are not known".to_owned());
    }
    let is_taken = figures.foreign.is_some_and(|share| share >= at::TAKEN);
    let cores = figures.foreign_cores().filter(|_| is_taken && figures.wants_more == Some(1.0))?;
    let all = figures.run_cores.unwrap_or(1.0);
    Some(format!("other programs took {cores:.1} of the run's {all} cores"))
}

/// The share of the time that a thread of each side waited for a core on average, server first. A
/// side with more threads than cores waits for itself: only its unmet demand counts.
fn waited(figures: &Figures) -> [f64; 2] {
    let share = |total| figures.per_ns(total).unwrap_or(0.0);
    let mean = |total, threads: Option<f64>| share(total) / threads.unwrap_or(1.0).max(1.0);
    let server = mean(figures.server_waited_ns, figures.server_runnable_threads);
    let generator = mean(figures.generator_waited_ns, figures.generator_threads);
    let cores = figures.server_cores.unwrap_or(1.0);
    let server = match figures.server_runnable_threads.is_some_and(|threads| threads > cores) {
        false => server,
        true if figures.server_core_least.unwrap_or(0.0) < at::CORES_FULL => 0.0,
        true => {
            let unmet = (at::CORES_FULL - share(figures.server_cpu_ns) / cores).max(0.0);
            unmet.min(server)
        }
    };
    let cores = figures.generator_cores.unwrap_or(1.0);
    let generator = match figures.generator_threads.is_some_and(|threads| threads > cores) {
        false => generator,
        true => 0.0,
    };
    [server, generator].map(|share| share.min(1.0))
}

fn quota(figures: &Figures) -> Finding {
    let periods = figures.quota_periods.filter(|periods| *periods > 0.0)?;
    let throttled = figures.quota_throttled_periods?;
    let share = throttled / periods;
    // The whole run stands still: whatever else waits does so for this.
    let evidence = format!("throttled in {throttled:.0} of {periods:.0} periods");
    (share >= at::THROTTLED).then_some((1.0 + share, evidence))
}

fn contention(figures: &Figures) -> Finding {
    // Threads that a quota has stopped wait for a core, but not for another program.
    if quota(figures).is_some() {
        return None;
    }
    let [server, generator] = waited(figures);
    let most = server.max(generator);
    let cores = figures.run_cores.unwrap_or(1.0);
    let foreign = figures.foreign_cores();
    // Where it is unseen, only sides on separate cores can't have waited for one another.
    let neighbour = match foreign {
        Some(cores) => cores >= at::FOREIGN,
        None => figures.shared_cores == Some(0.0),
    };
    if most < at::WAITED || !neighbour || !is_felt(figures, server) {
        return None;
    }
    let side = if server >= generator { "the server" } else { "the generator" };
    let taken = foreign.map_or("an unseen share".to_owned(), |cores| format!("{cores:.2}"));
    let evidence = format!(
        "other programs took {taken} of the run's {cores} cores; {side} went without one that it \
         wanted {} of the time",
        percent(most)
    );
    Some((most, evidence))
}

/// Whether waiting for a core is a part of what an operation takes: threads that sleep most of the
/// time may wait for one whenever they wake, and answers still take as long. A thread of the target
/// that wants to run makes those behind it wait as well, `1 / (1 - use)` times as long in all.
fn is_felt(figures: &Figures, server: f64) -> bool {
    let waited_ns = [figures.server_waited_ns, figures.generator_waited_ns].into_iter().flatten();
    let each = figures.per_operation(Some(waited_ns.sum()));
    let Some((each_ns, p50_ns)) = each.zip(figures.latency_p50_ns).filter(|of| of.1 > 0.0) else {
        return true;
    };
    let wants = figures.server_runnable_threads.is_none_or(|threads| threads >= 1.0);
    let waits = if wants { server } else { 0.0 };
    let idle = 1.0 - (server_busiest(figures).unwrap_or(0.0) + waits).min(1.0);
    each_ns / p50_ns >= at::OUTSIDE_FIRST * idle
}

fn host_stalls(figures: &Figures) -> Finding {
    let paused = figures.paused.unwrap_or(0.0);
    let longest_ns = figures.longest_pause_ns.unwrap_or(0.0);
    let stolen = figures.steal_core_most.unwrap_or(0.0);
    let stood = paused >= at::PAUSED && longest_ns >= at::PAUSE;
    if !stood && stolen < at::STOLEN {
        return None;
    }
    let evidence = format!(
        "the host stood still for {:.1} % of the time, at most {:.1} ms at once; the hypervisor \
         kept {:.1} % of a core",
        paused * 100.0,
        longest_ns / 1e6,
        stolen * 100.0
    );
    Some((paused.max(stolen), evidence))
}

fn memory(figures: &Figures) -> Finding {
    let pressure = figures.pressure_memory.unwrap_or(0.0);
    let swapped = figures.per_s(figures.swapped_bytes).unwrap_or(0.0);
    let faults = figures.per_s(figures.server_major_faults).unwrap_or(0.0);
    let from_disk = swapped >= at::SWAPPED || faults >= at::FAULTS;
    let holds = pressure >= at::PRESSURE_MEMORY || from_disk;
    let evidence = format!(
        "tasks waited for memory {} of the time; {:.1} MB/s swapped; the server read {faults:.0} \
         of its pages a second from disk",
        percent(pressure),
        swapped / 1e6
    );
    // Pages that come from disk stop threads for a time that isn't measured: at least first.
    let least = if from_disk { at::OUTSIDE_FIRST } else { 0.0 };
    holds.then_some((pressure.max(least), evidence))
}

fn generator(figures: &Figures) -> Finding {
    let busy = figures.generator_busy.filter(|busy| at::is_generator_bound(*busy))?;
    let thread = server_busiest(figures)
        .map_or(String::new(), |share| format!("; the busiest server thread {}", percent(share)));
    Some((busy, format!("its busiest thread is busy {} of the time{thread}", percent(busy))))
}

/// The share of time for which the busiest thread of the target ran.
fn server_busiest(figures: &Figures) -> Option<f64> {
    figures.per_ns(figures.server_busiest_thread_ns)
}

fn server_thread(figures: &Figures) -> Finding {
    let busiest = server_busiest(figures).filter(|share| *share >= at::THREAD_FULL)?;
    let cores = figures.server_cores.unwrap_or(1.0);
    let used = figures.per_ns(figures.server_cpu_ns).unwrap_or(busiest);
    if cores > 1.0 && used >= at::CORES_FULL * cores {
        return None;
    }
    let kernel = figures
        .server_system_ns
        .zip(figures.server_cpu_ns)
        .filter(|(_, cpu)| *cpu > 0.0)
        .map_or(String::new(), |(system, cpu)| format!(" ({} kernel)", percent(system / cpu)));
    let generator = figures
        .generator_busy
        .map_or(String::new(), |busy| format!("; generator {}", percent(busy)));
    let of = if cores > 1.0 {
        format!(", {used:.1} of {cores} cores used by all")
    } else {
        String::new()
    };
    Some((busiest, format!("it runs {} of the time{kernel}{of}{generator}", percent(busiest))))
}

fn server_cores(figures: &Figures) -> Finding {
    let least = figures.server_core_least.filter(|used| *used >= at::CORES_FULL)?;
    let cores = figures.server_cores?;
    let server = figures.per_ns(figures.server_cpu_ns)?;
    let generator = figures.per_ns(figures.generator_cpu_ns).unwrap_or(0.0);
    let shares = figures.shared_cores.unwrap_or(0.0) > 0.0;
    let ours = if shares { server + generator } else { server };
    let one = cores == 1.0 && server_busiest(figures).unwrap_or(0.0) >= at::THREAD_FULL;
    if one || ours < at::CORES_FULL * cores {
        return None;
    }
    let load = if shares { format!(", the generator {generator:.2}") } else { String::new() };
    let noun = if cores == 1.0 { "its core is" } else { "the least used of its cores is" };
    let evidence = format!(
        "{noun} used {} of the time; the server takes {server:.2} of {cores}{load}",
        percent(least)
    );
    Some((ours / cores, evidence))
}

fn network_receive(figures: &Figures) -> Finding {
    let softirq = figures.softirq_core_most.unwrap_or(0.0);
    let lost = [figures.backlog_dropped, figures.udp_receive_errors];
    let lost: f64 = lost.into_iter().flatten().sum();
    let lost_each = figures.per_operation(Some(lost)).unwrap_or(0.0);
    if softirq < at::SOFTIRQ_FULL && lost_each < at::DATAGRAMS_LOST {
        return None;
    }
    let evidence = format!(
        "one core spends {} of its time on received packets; {lost:.0} packets and datagrams were \
         lost to full queues",
        percent(softirq)
    );
    // A core that does nothing but receive is the cause of whatever else is full.
    let strength = if softirq >= at::SOFTIRQ_FULL { 1.0 + softirq } else { lost_each.min(0.9) };
    Some((strength, evidence))
}

fn listen(figures: &Figures) -> Finding {
    lost_connections(figures, figures.server_listen_drops?, "the target's listening sockets")
}

/// Where it is known how many the target lost, the rest are another program's.
fn listen_host(figures: &Figures) -> Finding {
    if figures.server_listen_drops.is_some() {
        return None;
    }
    let lost = figures.listen_drops.unwrap_or(0.0).max(figures.listen_overflows.unwrap_or(0.0));
    lost_connections(figures, lost, "listening sockets of this host, the target's or others")
}

fn lost_connections(figures: &Figures, lost: f64, place: &str) -> Finding {
    let per_s = figures.per_s(Some(lost))?;
    // Retransmissions have many causes: without a lost connection they are no evidence.
    if per_s < at::LISTEN_LOST {
        return None;
    }
    let retransmits = figures.tcp_retransmits.unwrap_or(0.0);
    let evidence = format!(
        "{lost:.0} connections lost at {place} ({per_s:.1} a second), {retransmits:.0} segments \
         sent again"
    );
    let share = figures.per_operation(Some(lost)).unwrap_or(1.0);
    Some((0.8 + 0.1 * share.min(1.0), evidence))
}

fn disk(figures: &Figures) -> Finding {
    let busy = figures.disk_busy.unwrap_or(0.0);
    let pressure = figures.pressure_io.unwrap_or(0.0);
    let asked = [figures.disk_reads, figures.disk_writes, figures.disk_flushes];
    let each = figures.per_operation(Some(asked.into_iter().flatten().sum()))?;
    // The disk is the whole host's: other programs' writes are no limit of this target.
    let own = [figures.server_written_bytes, figures.server_major_faults];
    let own: f64 = own.into_iter().flatten().sum();
    let full = busy >= at::DISK_BUSY || pressure >= at::PRESSURE_IO;
    if !full || each < at::DISK_PER_OPERATION || own <= 0.0 {
        return None;
    }
    let flushes = figures.per_operation(figures.disk_flushes).unwrap_or(0.0);
    let written = figures.per_operation(figures.server_written_bytes).unwrap_or(0.0);
    let evidence = format!(
        "it is busy {} of the time and tasks wait for it {}; {flushes:.1} flushes and {written:.0} \
         bytes written per operation",
        percent(busy),
        percent(pressure)
    );
    Some((busy.max(pressure).min(1.0), evidence))
}

fn memory_bandwidth(figures: &Figures) -> Finding {
    // Interfaces carry other programs' bytes, too.
    let per_s = figures.per_s(figures.carried_bytes)?;
    let share = per_s / figures.copy_bytes_per_s?;
    let doubt = match share > 1.0 {
        true => " (several threads copy more, or it was measured at a worse moment)",
        false => "",
    };
    let evidence = format!(
        "{:.1} GB/s over the sockets, {} of the {:.1} GB/s that one thread copies here{doubt}",
        per_s / 1e9,
        percent(share),
        figures.copy_bytes_per_s? / 1e9
    );
    // The copying thread is saturated as well; the cause says more than the symptom.
    (share >= at::COPIED).then_some((1.0 + share, evidence))
}

fn delayed_ack(figures: &Figures) -> Finding {
    let near = figures.near_40ms.filter(|share| *share >= at::NEAR_40MS)?;
    if near < at::STEP * figures.below_40ms.unwrap_or(0.0) {
        return None;
    }
    // A server may just as well take 42 ms for each answer: then the host counts none.
    let delayed = figures.per_operation(figures.tcp_delayed_acks)?;
    (delayed >= at::DELAYED * near).then(|| {
        let evidence = format!(
            "{} of answers take 39 to 48 ms; {delayed:.2} acknowledgements per operation waited \
             for their timer",
            percent(near)
        );
        (0.9 + 0.1 * near, evidence)
    })
}

fn wakeups(figures: &Figures) -> Finding {
    let outstanding = figures.outstanding.unwrap_or(1.0);
    let switches = figures.server_voluntary_switches? + figures.generator_voluntary_switches?;
    let each = figures.per_operation(Some(switches))?;
    let is_taken = figures.foreign.is_some_and(|share| share >= at::TAKEN);
    if figures.wants_more != Some(1.0) || each < at::SWITCHES || is_taken {
        return None;
    }
    let used = figures.per_ns(figures.server_cpu_ns).unwrap_or(0.0);
    let words = match outstanding > 1.0 {
        true => format!("with {outstanding} requests under way"),
        false => "one request at a time".to_owned(),
    };
    let evidence = format!(
        "{words}, threads go to sleep {each:.1} times per operation and nothing is full (server \
         {used:.2} cores, generator {} busy)",
        percent(figures.generator_busy.unwrap_or(0.0))
    );
    Some((each.min(1.0), evidence))
}

fn growth(figures: &Figures) -> Finding {
    let seconds = figures.measured_ns? / 1e9;
    let steady = |late: Option<f64>, slope: f64| late.is_none_or(|late| late >= at::STEADY * slope);
    let memory = || {
        let slope = figures.server_resident_slope?;
        let low = figures.server_resident_slope_low?;
        let (grown, now) = (slope * seconds, figures.server_resident_bytes?);
        let enough = grown >= at::GROWN_BYTES && grown >= at::GROWN * (now - grown).max(0.0);
        let holds = low > 0.0 && enough && steady(figures.server_resident_slope_late, slope);
        let high = figures.server_resident_slope_high.unwrap_or(slope);
        let [slope, low, high] = [slope, low, high].map(|bytes| bytes / 1e6);
        let each = figures.per_operation(Some(grown)).unwrap_or(0.0);
        holds.then(|| {
            format!("memory {slope:.2} MB/s [{low:.2}, {high:.2}], {each:.0} bytes per operation")
        })
    };
    let descriptors = || {
        let slope = figures.server_descriptors_slope?;
        let low = figures.server_descriptors_slope_low?;
        let holds = low > 0.0
            && slope * seconds >= at::GROWN_DESCRIPTORS
            && steady(figures.server_descriptors_slope_late, slope);
        let high = figures.server_descriptors_slope_high.unwrap_or(slope);
        holds.then(|| format!("open files {slope:.1}/s [{low:.1}, {high:.1}]"))
    };
    let grown: Vec<String> = [memory(), descriptors()].into_iter().flatten().collect();
    let evidence = format!("{} over {seconds:.0} s of load", grown.join(" and "));
    (!grown.is_empty()).then_some((1.0, evidence))
}
