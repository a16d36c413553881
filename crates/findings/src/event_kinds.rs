//! The events of a suite by kind: how often each ran against a target, and how it ended.

use judge::median;

use crate::summary::{EventSummary, Summary};

/// One of the suite's events against one target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventKind<'a> {
    /// The target.
    pub target: usize,
    /// Its name.
    pub name: &'a str,
    /// The action.
    pub action: &'a str,
    /// Number of times.
    pub times: usize,
    /// Number of trials.
    pub trials: usize,
    /// When it first began, in ns since the run started.
    pub first_ns: u64,
    /// When it last began.
    pub last_ns: u64,
    /// Its duration: the median, in ns.
    pub took_ns: f64,
    /// Number of failures.
    pub failed: usize,
    /// Why it failed first.
    pub failure: Option<&'a str>,
}

/// The events at a point, or at all of them, by target and first time.
pub fn event_kinds(summary: &Summary, point: Option<usize>) -> Vec<EventKind<'_>> {
    let place = |one: &EventSummary| summary.trials[one.trial].point;
    let range = match point {
        None => 0..summary.events.len(),
        Some(point) => {
            let from = summary.events.partition_point(|one| place(one) < point);
            from..summary.events.partition_point(|one| place(one) <= point)
        }
    };
    let mut all: Vec<(EventKind<'_>, Vec<f64>, usize)> = Vec::new();
    for EventSummary { trial, row } in &summary.events[range] {
        let here = &summary.trials[*trial];
        let key = (here.target, &row.name[..], &row.action[..]);
        let place = all.iter().position(|(one, ..)| (one.target, one.name, one.action) == key);
        let place = place.unwrap_or_else(|| {
            let (target, name, action) = key;
            let kind =
                EventKind { target, name, action, first_ns: row.at_ns, ..Default::default() };
            all.push((kind, Vec::new(), usize::MAX));
            all.len() - 1
        });
        let (kind, took, last_trial) = &mut all[place];
        kind.times += 1;
        kind.trials += usize::from(*last_trial != *trial);
        *last_trial = *trial;
        kind.first_ns = kind.first_ns.min(row.at_ns);
        kind.last_ns = kind.last_ns.max(row.at_ns);
        kind.failed += usize::from(row.failure.is_some());
        kind.failure = kind.failure.or(row.failure.as_deref());
        took.push(row.took_ns as f64);
    }
    let mut kinds = Vec::with_capacity(all.len());
    for (kind, took, _) in all {
        kinds.push(EventKind { took_ns: median(&took).unwrap_or_default(), ..kind });
    }
    kinds.sort_by_key(|kind| (kind.target, kind.first_ns));
    kinds
}
