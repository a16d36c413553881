//! Little's law, checked on every trial: N = X·R (J. D. C. Little, Oper. Res. 9, 1961).
//!
//! The number of requests in flight is throughput times latency. With slots that send as soon as
//! they are answered that has to be the number of slots; where it is less, time passes that no
//! latency counts (a busy generator, connecting), and where it is more, times or counts are wrong.

use ledger::{ArrivalsKind, ClientsRow};

use crate::groups::GroupFigures;

/// Tolerance of requests in flight against slots: the ends of slices, where slots run empty,
/// take a few hundredths.
const TOLERANCE: f64 = 0.10;

/// A group of clients at which the law is broken.
#[derive(Debug, Clone, PartialEq)]
pub struct LawViolation {
    /// The trial, as an index into the summary's.
    pub trial: usize,
    /// The group.
    pub clients: String,
    /// Requests in flight by throughput and latency.
    pub seen: f64,
    /// The requests that should have been in flight: all slots or, with a schedule, at most these.
    pub slots: f64,
}

/// Requests in flight and slots of one group over a trial, where the law applies and is
/// broken.
pub(crate) fn violation(
    trial: usize,
    groups: &[GroupFigures],
    clients: &ClientsRow,
    measured_ns: u64,
) -> Option<LawViolation> {
    let own = || groups.iter().filter(|group| group.clients == clients.name);
    let pause_ns = clients.think_ns.unwrap_or(0) as f64;
    let slots = (clients.connections * clients.pipeline) as f64;
    let under_way = |of: fn(&GroupFigures) -> &crate::latency::Latency| {
        let time = own().filter_map(|group| {
            let latency = of(group);
            Some(latency.count as f64 * (latency.mean_ns? + pause_ns))
        });
        time.sum::<f64>() / measured_ns as f64
    };
    let (seen, is_broken) = match clients.arrivals {
        ArrivalsKind::Closed | ArrivalsKind::Think => {
            let seen = under_way(|group| &group.latency);
            (seen, (seen / slots - 1.0).abs() > TOLERANCE)
        }
        // From its sending on, a scheduled request occupies a slot; not all have to be occupied.
        ArrivalsKind::Schedule => {
            let seen = under_way(|group| &group.service);
            (seen, seen > slots * (1.0 + TOLERANCE))
        }
        ArrivalsKind::Steps | ArrivalsKind::Subscribe => return None,
    };
    let any = own().any(|group| group.latency.count > 0);
    let known = any && measured_ns > 0 && seen.is_finite();
    (known && is_broken).then(|| LawViolation { trial, clients: clients.name.clone(), seen, slots })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latency;
    use ledger::PointId;

    fn group(count: u64, latency_ns: f64, service_ns: Option<f64>) -> Vec<GroupFigures> {
        let of = |ns: f64| Latency { count, mean_ns: Some(ns), ..Latency::default() };
        vec![GroupFigures {
            clients: "c".into(),
            operation: "get".into(),
            latency: of(latency_ns),
            service: service_ns.map(of).unwrap_or_default(),
            lag: Latency::default(),
        }]
    }

    fn clients(arrivals: ArrivalsKind, think_ns: Option<u64>) -> ClientsRow {
        ClientsRow {
            point_id: PointId::from(1),
            name: "c".into(),
            connections: 8,
            pipeline: 2,
            threads: 1,
            arrivals,
            think_ns,
        }
    }

    #[test]
    fn slots_that_are_always_under_way_keep_the_law_and_idle_ones_break_it() {
        let closed = clients(ArrivalsKind::Closed, None);
        // 16 slots, 100 µs each: 160,000 in a second.
        assert_eq!(violation(0, &group(158_000, 1e5, None), &closed, 1_000_000_000), None);
        let idle = violation(0, &group(80_000, 1e5, None), &closed, 1_000_000_000).unwrap();
        assert_eq!((idle.seen, idle.slots), (8.0, 16.0));
        let thinking = clients(ArrivalsKind::Think, Some(900_000));
        assert_eq!(violation(0, &group(16_000, 1e5, None), &thinking, 1_000_000_000), None);
    }

    #[test]
    fn a_schedule_may_leave_slots_idle_but_never_use_more_than_there_are() {
        let open = clients(ArrivalsKind::Schedule, None);
        assert_eq!(violation(0, &group(1_000, 5e7, Some(1e5)), &open, 1_000_000_000), None);
        assert!(violation(0, &group(1_000_000, 5e7, Some(1e5)), &open, 1_000_000_000).is_some());
        let steps = clients(ArrivalsKind::Steps, None);
        assert_eq!(violation(0, &group(1, 1.0, None), &steps, 1_000_000_000), None);
    }
}
