//! The thresholds of every limit in one table, each with its reason.

/// The value of a figure from which a limit holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Its name.
    pub name: &'static str,
    /// The value.
    pub value: f64,
    /// The reason for this value.
    pub why: &'static str,
}

/// Defines each threshold as a constant and all of them as a table.
macro_rules! thresholds {
    ($($constant:ident = $value:literal, $name:literal, $why:literal;)+) => {
        $(pub(super) const $constant: f64 = $value;)+

        /// Every threshold.
        pub static THRESHOLDS: &[Threshold] =
            &[$(Threshold { name: $name, value: $value, why: $why },)+];
    };
}

/// Whether a generator whose busiest thread is busy for this share of the time is at its limit.
pub fn is_generator_bound(busy: f64) -> bool {
    busy >= GENERATOR_BUSY
}

thresholds! {
    GENERATOR_BUSY = 0.90, "busy share of the busiest load thread",
        "the share above which throughput verdicts are refused; a queue at 90 % of its server \
         already waits nine service times";
    THREAD_FULL = 0.90, "CPU share of the busiest server thread",
        "a thread that never sleeps reads 95 to 100 %: slices begin and end with nothing to do";
    CORES_FULL = 0.90, "use of the least used of a side's cores",
        "the same, for cores";
    SOFTIRQ_FULL = 0.60, "softirq share of one core",
        "received packets are worked off by one core per queue, in turns with the task that runs \
         there: two such machines in the field stood still at 75 %";
    DATAGRAMS_LOST = 0.0001, "datagrams or received packets lost per operation",
        "one in ten thousand moves p99.99 to the time-out; less is what a busy host loses anyway";
    FOREIGN = 0.10, "cores' worth of other programs on the run's cores",
        "a tenth of a core is five times what makes a slice disturbed: it explains figures";
    TAKEN = 0.25, "share of the run's cores that other programs used",
        "threads that wake up then find every fourth core taken: what the run lacks may be cores";
    OUTSIDE_FIRST = 0.10, "share of the time from which on what comes from outside stands first",
        "what takes less of the time moves a rate or a median by less than that: another limit \
         explains them";
    OUTSIDE_ALONE = 0.50, "share of the time from which on it explains that threads wait",
        "it takes most of the time: what threads wait for besides takes less";
    THROTTLED = 0.02, "share of the CPU quota's periods in which it was used up",
        "as much as other programs may take: in each the run stands still for up to 100 ms";
    WAITED = 0.05, "share of time that a side waited for a core",
        "measured: quiet runs stay under 2 % and disturbed ones begin at 9 %";
    SWITCHES = 0.5, "times per operation that a thread went to sleep, both sides",
        "one operation that waits for another thread costs one or two; batches share them";
    LISTEN_LOST = 1.0, "connections lost at listening sockets per second",
        "each costs its client a second (the first SYN's time-out, RFC 6298)";
    DISK_BUSY = 0.40, "share of time in which a disk was busy",
        "a thread that waits for each write keeps a fast disk half busy, for it also has to ask";
    DISK_PER_OPERATION = 0.1, "writes, reads and flushes of disks per operation",
        "fewer than one in ten operations that touch a disk do not explain a median";
    PRESSURE_IO = 0.15, "share of time in which some task waited for a disk",
        "with fewer, most of the time is elsewhere";
    COPIED = 0.90, "bytes per second over the load's sockets over what one thread can copy",
        "each side copies each byte once at least, into the kernel or out of it: from there on a \
         thread of it does nothing else";
    PRESSURE_MEMORY = 0.02, "share of time in which some task waited for memory",
        "memory that suffices gives 0: two hundredths are reclaim in every slice";
    SWAPPED = 1e6, "bytes swapped per second",
        "what the kernel reads ahead for any program that wakes up stays below";
    FAULTS = 50.0, "pages per second that the target had to read from disk",
        "each stops a thread for as long as the disk takes";
    NEAR_40MS = 0.05, "share of answers that took 39 to 48 ms",
        "Linux holds an acknowledgement back for 40 ms (TCP_DELACK_MIN), and a writer under \
         Nagle's rule (RFC 896) waits for it: answers of such a writer make a step there";
    OF_THE_MEDIAN = 0.5, "share of answers from which on that stall comes first",
        "the median is one of them, and no neighbour takes 40 ms from every other answer";
    DELAYED = 0.1, "delayed acknowledgements of the host per answer that took 39 to 48 ms",
        "each holds up all that is pipelined behind it; measured: 1.2 under Nagle's rule one at a \
         time, 0.00 to 0.05 of a server that takes 40 to 47 ms by itself";
    STEP = 3.0, "answers of 39 to 48 ms over those of 8 to 39 ms",
        "a step has little below it; a long tail has more the further down";
    PAUSED = 0.01, "share of time in which the host stood still",
        "quiet virtual machines lose a thousandth";
    PAUSE = 10e6, "nanoseconds of the longest pause",
        "2 % of a slice of half a second";
    STOLEN = 0.02, "share of a core that the hypervisor kept",
        "as much as other programs may take of a slice that counts";
    GROWN = 0.02, "growth over the measured time, of what it began with",
        "less may be an allocator that settles";
    GROWN_BYTES = 1e6, "growth of memory over the measured time, in bytes",
        "allocators ask for memory in pieces up to this size";
    GROWN_DESCRIPTORS = 5.0, "growth of open files over the measured time",
        "connections that come and go move it by a few";
    STEADY = 0.4, "growth in the second half over that of the whole",
        "what fills up slows down; a leak does not";
}

#[test]
fn every_threshold_says_why_and_no_two_are_called_the_same() {
    let mut names = std::collections::BTreeSet::new();
    for threshold in THRESHOLDS {
        assert!(names.insert(threshold.name), "{}", threshold.name);
        assert!(threshold.why.len() > 10 && threshold.value > 0.0, "{}", threshold.name);
    }
}
