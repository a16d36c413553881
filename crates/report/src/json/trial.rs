//! A trial with its rows, for programs.

use findings::{
    CounterFigures, EventSummary, FindingSummary, GroupFigures, SlowSummary, TrialSummary,
    ValueFigures,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::figures::FiguresJson;
use super::latency::LatencyJson;
use super::names::Names;
use super::streams::{StreamGroupJson, stream_groups};
use crate::number::hex;

#[derive(Serialize)]
pub(super) struct TrialJson<'a> {
    id: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    validity: &'static str,
    reason: Option<&'a str>,
    state: &'static str,
    measured_ns: u64,
    wrong_outside: u64,
    failed_at: Option<&'static str>,
    warmup_ns: Option<u64>,
    stationary: Option<bool>,
    steady_after_ns: Option<u64>,
    overloaded: bool,
    slices_measured_again: usize,
    groups: Vec<GroupJson<'a>>,
    stream_groups: Vec<StreamGroupJson<'a>>,
    values: Vec<ValueJson<'a>>,
    counters: Vec<CounterJson<'a>>,
    #[serde(flatten)]
    figures: FiguresJson,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    clients: &'a str,
    operation: &'a str,
    count: u64,
    latency_ns: LatencyJson,
    service_ns: Option<LatencyJson>,
    lag_ns: Option<LatencyJson>,
}

#[derive(Serialize)]
pub(super) struct ValueJson<'a> {
    name: &'a str,
    count: u64,
    min: f64,
    median: f64,
    mean: f64,
    max: f64,
}

#[derive(Serialize)]
pub(super) struct CounterJson<'a> {
    name: &'a str,
    grows: bool,
    value: f64,
    per_op: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct FindingJson<'a> {
    trial: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    at_ns: u64,
    operation: &'a str,
    key: &'a str,
    expected_hex: String,
    received_hex: String,
    note: &'a str,
}

#[derive(Serialize)]
pub(super) struct EventJson<'a> {
    trial: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    at_ns: u64,
    took_ns: u64,
    name: &'a str,
    action: &'a str,
    exit_status: Option<i32>,
    failure: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct SlowJson<'a> {
    trial: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    at_ns: u64,
    latency_ns: u64,
    clients: &'a str,
    operation: &'a str,
}

impl<'a> Names<'a> {
    pub(super) fn trial(&self, trial: &'a TrialSummary) -> TrialJson<'a> {
        TrialJson {
            id: trial.id.get(),
            target: self.target(trial.target),
            point: self.point(trial.point),
            round: trial.round,
            validity: trial.row.validity.word(),
            reason: trial.row.reason.as_deref(),
            state: trial.row.state.word(),
            measured_ns: trial.row.measured_ns,
            wrong_outside: trial.row.wrong_outside,
            failed_at: trial.row.failed_at.map(ledger::FailedAt::word),
            warmup_ns: trial.row.warmup_ns,
            stationary: trial.row.stationary,
            steady_after_ns: trial.row.steady_after_ns,
            overloaded: trial.row.overloaded,
            slices_measured_again: trial.slices_measured_again,
            groups: trial.groups.iter().map(GroupJson::of).collect(),
            stream_groups: stream_groups(&trial.stream_groups),
            values: values(&trial.values),
            counters: counters(&trial.counters),
            figures: FiguresJson::of(&trial.figures),
        }
    }

    pub(super) fn findings_of(
        &self,
        findings: impl Iterator<Item = &'a FindingSummary>,
    ) -> Vec<FindingJson<'a>> {
        let finding = |one: &'a FindingSummary| {
            let trial = &self.summary.trials[one.trial];
            FindingJson {
                trial: trial.id.get(),
                target: self.target(trial.target),
                point: self.point(trial.point),
                round: trial.round,
                at_ns: one.row.at_ns,
                operation: &one.row.operation,
                key: &one.row.key,
                expected_hex: hex(&one.row.expected),
                received_hex: hex(&one.row.received),
                note: &one.row.note,
            }
        };
        findings.map(finding).collect()
    }

    pub(super) fn events_of(
        &self,
        events: impl Iterator<Item = &'a EventSummary>,
    ) -> Vec<EventJson<'a>> {
        let json = |one: &'a EventSummary| {
            let trial = &self.summary.trials[one.trial];
            EventJson {
                trial: trial.id.get(),
                target: self.target(trial.target),
                point: self.point(trial.point),
                round: trial.round,
                at_ns: one.row.at_ns,
                took_ns: one.row.took_ns,
                name: &one.row.name,
                action: &one.row.action,
                exit_status: one.row.exit_status,
                failure: one.row.failure.as_deref(),
            }
        };
        events.map(json).collect()
    }

    pub(super) fn slow_of(&self, slow: impl Iterator<Item = &'a SlowSummary>) -> Vec<SlowJson<'a>> {
        let json = |one: &'a SlowSummary| {
            let trial = &self.summary.trials[one.trial];
            SlowJson {
                trial: trial.id.get(),
                target: self.target(trial.target),
                point: self.point(trial.point),
                round: trial.round,
                at_ns: one.row.at_ns,
                latency_ns: one.row.latency_ns,
                clients: &one.row.clients,
                operation: &one.row.operation,
            }
        };
        slow.map(json).collect()
    }
}

impl<'a> GroupJson<'a> {
    fn of(group: &'a GroupFigures) -> GroupJson<'a> {
        GroupJson {
            clients: &group.clients,
            operation: &group.operation,
            count: group.latency.count,
            latency_ns: LatencyJson::of(&group.latency),
            service_ns: LatencyJson::if_any(&group.service),
            lag_ns: LatencyJson::if_any(&group.lag),
        }
    }
}

pub(super) fn values(figures: &[ValueFigures]) -> Vec<ValueJson<'_>> {
    fn value(one: &ValueFigures) -> ValueJson<'_> {
        let ValueFigures { ref name, count, min, median, mean, max } = *one;
        ValueJson { name, count, min, median, mean, max }
    }
    figures.iter().map(value).collect()
}

pub(super) fn counters(figures: &[CounterFigures]) -> Vec<CounterJson<'_>> {
    fn counter(one: &CounterFigures) -> CounterJson<'_> {
        let CounterFigures { ref name, grows, value, per_op } = *one;
        CounterJson { name, grows, value, per_op }
    }
    figures.iter().map(counter).collect()
}
