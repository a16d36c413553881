//! What was seen of the host, and what an operation costs there.

use crate::ids::{PointId, RunId, SeriesId, TargetId};
use crate::table::rows;

rows! {
    /// One system call of one side at one point.
    ///
    /// Counted by `loadline run --cost` in a short trial of its own, with `strace` attached: counts
    /// stand, timings of that trial are kept nowhere.
    call: CallRow {
        /// The point.
        point_id: PointId,
        /// The target.
        target_id: TargetId,
        /// Who made it: `server` or `generator`.
        of_generator in side: bool as Side,
        /// Its name.
        name: String,
        /// Operations answered while it was counted.
        operations: u64,
        /// Number of calls.
        calls: u64,
        /// How often it failed; "nothing there yet" is a failure to the kernel.
        errors: u64,
        /// CPU time in the kernel, as the tracer has it: good for shares.
        system_ns: u64,
    }
    key "point_id, target_id, side, name"
    index "target_id"

    /// A floor: what a basic operation costs on the host of a run.
    floor: FloorRow {
        /// The run.
        run_id: RunId,
        /// `clock_read`, `system_call` (the shortest there is), `round_trip` (16 bytes over
        /// loopback between two threads), and parts of an operation that its workload has measured
        /// by themselves.
        name: String,
        /// The time; of round trips the median.
        value_ns: f64,
    }
    key "run_id, name"

    /// The share of a target's CPU time that one function took in one profile.
    profile: ProfileRow {
        /// The point.
        point_id: PointId,
        /// The target.
        target_id: TargetId,
        /// Which of the profiles, from 1.
        ordinal: u32,
        /// The function; the kernel's end in ` [kernel]`.
        function: String,
        /// Its share of the samples, 0 to 1; at most 32 functions a profile are kept.
        share: f64,
    }
    key "point_id, target_id, ordinal, function"
    index "target_id"

    /// One series of values over the time of a run.
    series: SeriesRow with id {
        /// The run.
        run_id: RunId,
        /// The target that it is of; NULL = the host.
        target_id: Option<TargetId>,
        /// The sensor.
        sensor: String,
        /// Its name within the sensor: `cpu0.user`.
        name: String,
        /// `fraction` (of the time, or of a core), `cores`, `count`, `bytes`, `ns`, `per_s` or
        /// `bytes_per_s`.
        unit: String,
    }
    unique "run_id, ifnull(target_id, -1), sensor, name"
    index "target_id"

    /// Ten seconds of a series.
    chunk: ChunkRow {
        /// The series.
        series_id: SeriesId,
        /// When the ten seconds begin: a whole multiple of 10^10.
        start_ns: u64,
        /// Number of values, at least one.
        count: u64,
        /// The least of them, unrounded.
        min: f64,
        /// Their mean.
        mean: f64,
        /// The greatest.
        max: f64,
        /// The values, packed as [below](#how-a-chunk-is-packed).
        data: Vec<u8>,
    }
    key "series_id, start_ns"
    check "count > 0"
}
