//! Groups that memcached does not have: evictions, CPU time per command, hot keys.

use super::sink::Put;
use crate::model::{Log2Histogram, Seconds};
use crate::protocol::text::put_encoded;
use crate::server::sampling::{self, ONE_IN, Samples};
use crate::server::service::Service;

/// The number of keys shown at most.
const MAX_SHOWN: usize = 20;

fn all(service: &Service) -> impl Iterator<Item = &Samples> + Clone {
    service.threads.iter().map(|thread| &thread.samples)
}

/// `stats evictions`: the policy, and the idle times and sizes of evicted items.
pub(super) fn put_evictions(service: &Service, _now_s: Seconds, put: &mut Put<'_>) {
    let (counts, evictions) = (service.store.counts(), service.store.eviction_stats());
    put("policy", &service.options.policy.name());
    put("policy_in_force", &service.store.policy_in_force().name());
    put("evictions", &counts.evictions);
    put("evicted_bytes", &evictions.bytes);
    put("evicted_unfetched", &counts.evicted_unfetched);
    put("evicted_active", &counts.evicted_active);
    put("evicted_mortal", &evictions.mortal);
    put("reclaimed_expired", &counts.reclaimed);
    put("last_idle_s", &evictions.last_idle_s);
    let mut put_all = |name: &str, histogram: &Log2Histogram| {
        for (first, last, count) in histogram.counted() {
            match first == last {
                true => put(&format!("{name}:{first}"), &count),
                false => put(&format!("{name}:{first}-{last}"), &count),
            }
        }
    };
    put_all("idle_s", &evictions.by_idle_s);
    put_all("bytes", &evictions.by_bytes);
}

/// `stats cpu`: what a command costs, from a sample, and what threads have used in all.
pub(super) fn put_cpu(service: &Service, _now_s: Seconds, put: &mut Put<'_>) {
    put("sampled_one_batch_in", &ONE_IN);
    for cost in sampling::costs(all(service)) {
        let name = &cost.name;
        put(&format!("{name}:sampled"), &cost.sampled);
        put(&format!("{name}:ns"), &format_args!("{:.1}", cost.ns));
        match cost.error_ns {
            Some(error_ns) => put(&format!("{name}:ns_error"), &format_args!("{error_ns:.1}")),
            None => put(&format!("{name}:ns_error"), &"unseen"),
        }
    }
    for (name, ns) in thread_cpu() {
        put(&format!("thread:{name}:ns"), &ns);
    }
}

/// `stats hotkeys`: the keys asked for most in the last half-lives.
pub(super) fn put_hot_keys(service: &Service, now_s: Seconds, put: &mut Put<'_>) {
    let (hot, total) = sampling::hot_keys(all(service), now_s);
    put("sampled_one_batch_in", &ONE_IN);
    put("sampled_requests", &total);
    // A key that was certainly seen only once is not hot, however short the list is.
    let certain = hot.iter().filter(|hot| hot.count - hot.over >= 2);
    for (index, hot) in certain.take(MAX_SHOWN).enumerate() {
        let number = index + 1;
        let mut key = Vec::new();
        put_encoded(&hot.key, &mut key);
        let share = hot.count as f64 / total.max(1) as f64;
        put(&format!("hot:{number}:key"), &String::from_utf8_lossy(&key));
        put(&format!("hot:{number}:share"), &format_args!("{share:.4}"));
        put(&format!("hot:{number}:sampled"), &hot.count);
        put(&format!("hot:{number}:sampled_at_least"), &(hot.count - hot.over));
    }
}

/// The CPU time of each of this process's threads, in nanoseconds, as far as the kernel reports it.
pub(super) fn thread_cpu() -> Vec<(String, u64)> {
    let Ok(folder) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let of = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let ns = times.split_ascii_whitespace().next()?.parse().ok()?;
        Some((name.trim_end().replace(' ', "_"), ns))
    };
    let mut all: Vec<(String, u64)> = folder.flatten().filter_map(of).collect();
    all.sort();
    all
}
