//! The figures of a trial from which its limits are derived: one table, each with its name, unit
//! and meaning. `None` is unseen, which is not zero.

/// Defines the struct and the table of its names from the same rows.
macro_rules! figures {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:literal,)+) => {
        /// The figures of one trial, over its measured slices alone. `None` is unseen.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Figures {
            $($(#[doc = $doc])+ pub $name: Option<f64>,)+
        }

        /// Every figure: its name, which the ledger's table `usage` uses, its unit, its meaning.
        pub static FIGURES: &[(&str, &str, &str)] =
            &[$((stringify!($name), $unit, concat!($($doc),+)),)+];

        impl Figures {
            /// The value of the figure of this name; `None` is unseen, or no such figure.
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => self.$name,)+
                    _ => None,
                }
            }

            /// Sets the figure of this name; false when there is none.
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = Some(value),)+
                    _ => return false,
                }
                true
            }
        }
    };
}

figures! {
    /// How long was measured, all slices together.
    measured_ns: "ns",
    /// Operations answered in that time.
    operations: "count",
    /// Requests that may be under way at once: connections times pipeline depth.
    outstanding: "count",
    /// 1 when the load would have taken more: a closed loop without a pause, or an overloaded
    /// schedule; else 0.
    wants_more: "count",
    /// The median latency.
    latency_p50_ns: "ns",
    /// The 99th percentile of the latency.
    latency_p99_ns: "ns",
    /// The share of answers that took 39 to 48 ms, of a schedule from when they were sent: where a
    /// delayed acknowledgement puts them.
    near_40ms: "fraction",
    /// The share of answers that took 8 to 39 ms, of a schedule from when they were sent.
    below_40ms: "fraction",
    /// The median send lag of a schedule.
    lag_p50_ns: "ns",
    /// The busiest load thread's share of time outside empty polls.
    generator_busy: "fraction",
    /// The load threads' CPU time.
    generator_cpu_ns: "ns",
    /// Its part in the kernel, known from ticks.
    generator_system_ns: "ns",
    /// How long load threads were ready and had no core.
    generator_waited_ns: "ns",
    /// How often a load thread went to sleep.
    generator_voluntary_switches: "count",
    /// How often a load thread had to make room.
    generator_involuntary_switches: "count",
    /// Load threads.
    generator_threads: "count",
    /// Cores that the load may use.
    generator_cores: "count",
    /// The target's CPU time.
    server_cpu_ns: "ns",
    /// Its part in the kernel, known from ticks.
    server_system_ns: "ns",
    /// How long its threads were ready and had no core.
    server_waited_ns: "ns",
    /// The CPU time of the thread of it that ran most.
    server_busiest_thread_ns: "ns",
    /// Its threads that wanted to run for more than a twentieth of the time.
    server_runnable_threads: "count",
    /// The time between its own slices, in which other targets were measured.
    server_outside_ns: "ns",
    /// The CPU time that it used then.
    server_outside_cpu_ns: "ns",
    /// Cores that it may use.
    server_cores: "count",
    /// How often one of its threads went to sleep.
    server_voluntary_switches: "count",
    /// How often one of its threads had to make room.
    server_involuntary_switches: "count",
    /// Its pages that had to be read from disk.
    server_major_faults: "count",
    /// What it wrote to disks.
    server_written_bytes: "bytes",
    /// Its resident memory at the end.
    server_resident_bytes: "bytes",
    /// How fast its resident memory grew over the measured time.
    server_resident_slope: "bytes_per_s",
    /// The lower end of that slope's interval, at 99 %.
    server_resident_slope_low: "bytes_per_s",
    /// The upper end.
    server_resident_slope_high: "bytes_per_s",
    /// The same of the second half alone.
    server_resident_slope_late: "bytes_per_s",
    /// Its open files and sockets at the end.
    server_descriptors: "count",
    /// How fast those grew.
    server_descriptors_slope: "per_s",
    /// The lower end of that slope's interval, at 99 %.
    server_descriptors_slope_low: "per_s",
    /// The upper end.
    server_descriptors_slope_high: "per_s",
    /// The same of the second half alone.
    server_descriptors_slope_late: "per_s",
    /// The least used of the target's cores: share of time not idle.
    server_core_least: "fraction",
    /// The most used of them.
    server_core_most: "fraction",
    /// Cores that target and load both may use.
    shared_cores: "count",
    /// Cores that the run uses.
    run_cores: "count",
    /// The core of the run that spent most of its time receiving packets (softirq).
    softirq_core_most: "fraction",
    /// The core of the run of which the hypervisor kept most.
    steal_core_most: "fraction",
    /// CPU time of other programs on the run's cores, as a share of those cores' time.
    foreign: "fraction",
    /// CPU time of the kernel's threads for disks, where the target wrote a quarter or more of
    /// what they were given: a share of the cores' time, and no part of `foreign`.
    disk_work: "fraction",
    /// The longest pause of the host.
    longest_pause_ns: "ns",
    /// Pauses over a millisecond, as a share of the time.
    paused: "fraction",
    /// Periods of the control group's CPU quota; none without a quota.
    quota_periods: "count",
    /// Those of them in which it was used up, and the run's threads stood still to the end.
    quota_throttled_periods: "count",
    /// Share of time in which some task waited for a core.
    pressure_cpu: "fraction",
    /// Share of time in which some task waited for a disk.
    pressure_io: "fraction",
    /// Share of time in which some task waited for memory.
    pressure_memory: "fraction",
    /// Memory swapped in and out.
    swapped_bytes: "bytes",
    /// Bytes that the load's own sockets sent and received.
    carried_bytes: "bytes",
    /// Packets over loopback, each sent and received.
    loopback_packets: "count",
    /// Bytes over loopback.
    loopback_bytes: "bytes",
    /// Packets over all other interfaces, both ways.
    network_packets: "count",
    /// Bytes over all other interfaces, both ways.
    network_bytes: "bytes",
    /// Packets that interfaces threw away.
    dropped_packets: "count",
    /// Received packets thrown away because a core's queue of them was full.
    backlog_dropped: "count",
    /// How often a core ran out of time for received packets.
    backlog_squeezed: "count",
    /// TCP segments sent again.
    tcp_retransmits: "count",
    /// TCP retransmission timers that ran out.
    tcp_timeouts: "count",
    /// TCP acknowledgements that were delayed until their timer ran out.
    tcp_delayed_acks: "count",
    /// Connections that found a listen queue full, of all programs on the host.
    listen_overflows: "count",
    /// Connections lost at a listening socket of the host, for whatever reason.
    listen_drops: "count",
    /// Connections lost at the target's own listening sockets.
    server_listen_drops: "count",
    /// Datagrams lost to a full receive buffer.
    udp_receive_errors: "count",
    /// Share of time in which disks had something to do; several busy disks add up.
    disk_busy: "fraction",
    /// Requests that disks were given to read.
    disk_reads: "count",
    /// Requests that disks were given to write.
    disk_writes: "count",
    /// Bytes read from disks.
    disk_read_bytes: "bytes",
    /// Bytes written to disks.
    disk_written_bytes: "bytes",
    /// Flushes of disks' caches: what an fsync costs.
    disk_flushes: "count",
    /// How fast one thread of this host copies memory, measured at the start of the run, and again
    /// before each round of messages of at least 80 kB.
    copy_bytes_per_s: "bytes_per_s",
    /// How fast its loopback carries messages of 80 MB over one connection, measured before each
    /// round of messages of at least 80 kB.
    loopback_bytes_per_s: "bytes_per_s",
}

impl Figures {
    /// A total as a share of the measured time: of nanoseconds, the cores' worth of them.
    pub fn per_ns(&self, total: Option<f64>) -> Option<f64> {
        Some(total? / self.measured_ns.filter(|ns| *ns > 0.0)?)
    }

    /// A total per second.
    pub fn per_s(&self, total: Option<f64>) -> Option<f64> {
        Some(self.per_ns(total)? * 1e9)
    }

    /// The cores that other programs used of the run's.
    pub fn foreign_cores(&self) -> Option<f64> {
        Some(self.foreign? * self.run_cores.unwrap_or(1.0))
    }

    /// A total per operation.
    pub fn per_operation(&self, total: Option<f64>) -> Option<f64> {
        Some(total? / self.operations.filter(|operations| *operations > 0.0)?)
    }

    /// Reads lines of `name value`, as the ledger's table `usage` prints them; unknown names,
    /// empty lines and those that begin with `#` are skipped.
    pub fn parse(text: &str) -> Figures {
        let mut figures = Figures::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, value)) = line.split_once(['\t', '|', ' '])
                && let Ok(value) = value.trim().parse()
            {
                figures.set(name, value);
            }
        }
        figures
    }
}

#[test]
fn every_figure_is_found_by_its_name() {
    let mut figures = Figures::default();
    for (index, (name, unit, doc)) in FIGURES.iter().enumerate() {
        assert_eq!(figures.get(name), None, "{name}");
        assert!(figures.set(name, index as f64), "{name}");
        assert_eq!(figures.get(name), Some(index as f64));
        let units = ["ns", "count", "fraction", "bytes", "bytes_per_s", "per_s"];
        assert!(units.contains(unit) && doc.ends_with('.'), "{name}");
    }
    assert!(!figures.set("nothing", 1.0));
    assert_eq!(Figures::parse("# a\noperations 7\nnothing 3\n\n").operations, Some(7.0));
}
