//! Sensors of the host and of process groups. A reading that is not possible is unseen, not zero.
//! Control plane.
//!
//! | file | what it holds |
//! |---|---|
//! | `sensor`, `sensors/` | what a sensor is, the index of all, and one file for each |
//! | `watch` | the thread that reads them ten times a second |
//! | `taken` | what the samples of a slice say of time that disturbances took |
//! | `hiccup` | the thread that measures pauses of the host |
//! | `mark`, `disturbance/` | the readings around a slice, and the rules that judge it |
//! | `census` | which programs used CPU time around a slice |
//! | `disk_work` | CPU time of the kernel's threads that work for disks |
//! | `totals` | the host's counters over a slice, for the rules on limits |
//! | `memory`, `loopback` | how fast this host copies, and carries large messages |
//! | `floors` | what the simplest things cost on this host |
//! | `group`, `members` | CPU time and memory of a process group |
//! | `owner`, `roots` | whose an address is, and where a target's processes begin |
//! | `route` | the way to an address, and whether it leaves this machine |
//! | `listeners` | connections lost at each listening socket |
//! | `counters` | the threads that read services' own counters |
//! | `advisor` | the threads that ask targets what they do and what would help |
//! | `series_writer` | samples into the ledger |
//! | `check` | which sensors are unseen on this host |
//! | `fingerprint` | what the host and this program are |
//! | `program` | what a target's program file is |
//! | `source`, `listing` | files of the kernel's, opened once, and the processes that there are |

mod advisor;
mod census;
mod check;
mod counters;
mod disk_work;
mod disturbance;
mod fingerprint;
mod floors;
mod group;
mod hiccup;
mod listeners;
mod listing;
mod loopback;
mod mark;
mod members;
mod memory;
mod owner;
mod program;
mod roots;
mod route;
mod sensor;
mod sensors;
mod series_writer;
mod source;
mod taken;
mod totals;
mod watch;

pub(crate) use advisor::AdvisorMeter;
pub use census::OtherPrograms;
pub use check::{SensorCheck, check_sensors};
pub use counters::{CounterMeter, Reading};
pub(crate) use counters::{between, plus};
pub use disturbance::{Disturbance, OwnCpu, RULES, Rule, Wait};
pub(crate) use fingerprint::sha256;
pub use fingerprint::{fingerprint, fingerprint_with};
pub use floors::{RoundTrip, clock_read_ns, floors, round_trip, system_call_ns};
pub use group::{
    Cpu, GroupMeter, group_members, load_threads, own_resident_bytes, process_cpu_ns, thread_cpu,
};
pub use hiccup::Pauses;
pub(crate) use listeners::Listeners;
pub use loopback::{MESSAGE_BYTES, loopback_bytes_per_s};
pub use mark::{CoreMark, Mark};
pub use memory::{COPY_BYTES, copied_bytes_per_s};
pub use owner::Owner;
pub use program::compilers_of;
pub(crate) use program::program_facts;
pub use roots::Roots;
pub use sensor::{Line, Sensor};
pub use sensors::SENSORS;
pub use series_writer::SeriesWriter;
pub(crate) use taken::Busy;
pub use totals::Totals;
pub use watch::{RecentSamples, Sample, Series, Sink, Watch};
