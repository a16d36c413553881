//! A run's latencies as an HdrHistogram log, read back by Python's implementation of it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::fixture::begin_run;
use ledger::{Histogram, HistogramKind, HistogramRow, Ledger};

/// Prints every line of a log: its tag, its start, and a few figures of its histogram.
const READER: &str = "
import sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600 * 10**9, 3))
while True:
    one = reader.get_next_interval_histogram()
    if one is None:
        break
    values = [one.get_value_at_percentile(p) for p in (50, 90, 99, 100)]
    print(one.get_tag(), one.get_total_count(), *values)
";

#[test]
fn another_implementation_reads_every_second_with_its_percentiles() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/lab/bin/python");
    let has = Command::new(&python).args(["-c", "import hdrh"]).status();
    if !has.is_ok_and(|status| status.success()) {
        testing::skip("hdrhistogram (Python) is not installed (`cargo xtask peers` installs it)");
        return;
    }
    let mut ledger = Ledger::in_memory().unwrap();
    let begun = begin_run(&mut ledger);
    let mut written = Vec::new();
    for second in 0..3_u32 {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in 1..=1_000_u64 {
            histogram.record(value * 1_000 * u64::from(second + 1)).unwrap();
        }
        let kind = HistogramKind::Latency;
        let at = Some(second);
        let row = HistogramRow::of(begun.trial, "web tier", "get", kind, at, &histogram).unwrap();
        ledger.add_histogram(&row).unwrap();
        let kept = row.histogram().unwrap();
        let value = |q: f64| kept.value_at_quantile(q);
        let values = [value(0.5), value(0.9), value(0.99), value(1.0)].map(|v| v.to_string());
        written.push(format!("loadline.web_tier.get 1000 {}", values.join(" ")));
    }
    let base = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.hlog");
    std::fs::write(&path, ledger.hlog(begun.run, base).unwrap()).unwrap();
    let output = Command::new(python).args(["-c", READER]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8(output.stdout).unwrap();
    assert_eq!(read.lines().collect::<Vec<_>>(), written);
}
