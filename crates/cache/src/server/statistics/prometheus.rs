//! The counters as Prometheus reads them: the same as `stats`, each as `cache_NAME`, or
//! `cache_NAME_total` where it only grows. Text format 0.0.4. Control plane.

use std::fmt::Write as _;

use wire::Ns;

use super::{general, insight};
use crate::model::{Log2Histogram, Seconds};
use crate::server::sampling;
use crate::server::service::Service;

/// Statistics that go up and down, or never change; the others only grow.
const GAUGES: &[&str] = &[
    "accepting_conns",
    "bytes",
    "connection_structures",
    "curr_connections",
    "curr_items",
    "hash_bytes",
    "hash_is_expanding",
    "hash_power_level",
    "limit_maxbytes",
    "log_watchers",
    "lru_crawler_running",
    "max_connections",
    "pid",
    "pointer_size",
    "read_buf_bytes",
    "read_buf_bytes_free",
    "read_buf_count",
    "reserved_fds",
    "response_obj_bytes",
    "response_obj_bytes_limit",
    "response_obj_count",
    "slab_global_page_pool",
    "slab_reassign_running",
    "threads",
    "time",
    "touched_bytes",
    "uptime",
];

impl Service {
    /// Returns the counters as Prometheus reads them.
    pub fn prometheus(&self, now_ns: Ns) -> String {
        text(self, self.seconds(now_ns))
    }
}

fn text(service: &Service, now_s: Seconds) -> String {
    let mut text = String::new();
    general::put(service, now_s, &mut |name, value| {
        let value = value.to_string();
        if name == "version" {
            // Writing to a string can't fail, here and below.
            let _ = writeln!(text, "# TYPE cache_info gauge\ncache_info{{version={value:?}}} 1");
        } else if value.parse::<f64>().is_ok() {
            let (kind, end) =
                if GAUGES.contains(&name) { ("gauge", "") } else { ("counter", "_total") };
            let _ = writeln!(text, "# TYPE cache_{name}{end} {kind}\ncache_{name}{end} {value}");
        }
    });
    let evictions = service.store.eviction_stats();
    put_histogram("cache_evicted_idle_seconds", &evictions.by_idle_s, &mut text);
    put_histogram("cache_evicted_item_bytes", &evictions.by_bytes, &mut text);
    put_cpu(service, &mut text);
    text
}

fn put_cpu(service: &Service, text: &mut String) {
    let samples = service.threads.iter().map(|thread| &thread.samples);
    let costs = sampling::costs(samples);
    let _ = writeln!(text, "# TYPE cache_command_cpu_nanoseconds gauge");
    for cost in &costs {
        let (name, ns) = (&cost.name, cost.ns);
        let _ = writeln!(text, "cache_command_cpu_nanoseconds{{command={name:?}}} {ns:.1}");
    }
    let _ = writeln!(text, "# TYPE cache_command_cpu_error_nanoseconds gauge");
    for cost in &costs {
        if let Some(ns) = cost.error_ns {
            let name = &cost.name;
            let _ =
                writeln!(text, "cache_command_cpu_error_nanoseconds{{command={name:?}}} {ns:.1}");
        }
    }
    let _ = writeln!(text, "# TYPE cache_thread_cpu_nanoseconds_total counter");
    for (index, (name, ns)) in insight::thread_cpu().iter().enumerate() {
        let labels = format!("thread={name:?},number=\"{index}\"");
        let _ = writeln!(text, "cache_thread_cpu_nanoseconds_total{{{labels}}} {ns}");
    }
}

fn put_histogram(name: &str, histogram: &Log2Histogram, text: &mut String) {
    let _ = writeln!(text, "# TYPE {name} histogram");
    let mut total = 0;
    for (_, last, count) in histogram.counted() {
        total += count;
        let _ = writeln!(text, "{name}_bucket{{le=\"{last}\"}} {total}");
    }
    let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {total}\n{name}_count {total}");
}
