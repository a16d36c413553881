//! What a suite's author should know before it runs, though it can.

use base::units::{ByteCount, Span};

use super::error::printable;
use super::suite::{SliceSpec, SuiteSpec};
use super::types::{Point, Registry, Target, TargetKind};
use crate::cpus::cpus_here;

/// The notes of a suite, each once.
pub(super) fn notes(
    spec: &SuiteSpec,
    points: &[Point],
    measure: Span,
    registry: Registry<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if spec.workload.contains_key("room") {
        notes.push("`room` is called `service` now: write workload.service in this suite".into());
    }
    if let Some(SliceSpec::Length(slice)) = spec.rounds.slice
        && slice > measure
    {
        notes.push(format!(
            "rounds.slice is {slice}, and rounds.measure only {measure}: each target is measured \
             in one piece"
        ));
    }
    notes.extend(methods(&spec.workload));
    let misses = spec.workload.get("misses").and_then(toml::Value::as_str);
    for point in points {
        notes.extend(shared_cpus(point));
        let overfull = |target| overfull(point, target, registry);
        notes.extend(point.targets.iter().filter(|_| misses.is_none()).filter_map(overfull));
    }
    let mut seen = Vec::new();
    notes.retain(|note| {
        let is_new = !seen.contains(note);
        seen.extend(is_new.then(|| note.clone()));
        is_new
    });
    notes.iter().map(|note| printable(note)).collect()
}

/// Methods of requests are case-sensitive, and those that servers know are in capitals.
fn methods(workload: &toml::Table) -> Option<String> {
    let requests = workload.get("request")?.as_array()?;
    let methods = requests.iter().filter_map(|request| request.get("method")?.as_str());
    let mut odd = methods.filter(|method| method.chars().any(|c| c.is_ascii_lowercase()));
    let method = odd.next()?;
    let meant = method.to_ascii_uppercase();
    Some(format!("the method \"{method}\" is sent as it is written; servers know \"{meant}\""))
}

/// A load and a target that take turns on the same CPU.
fn shared_cpus(point: &Point) -> Option<String> {
    if let [cpu] = cpus_here()[..] {
        return Some(format!(
            "load and targets share CPU {cpu}, the only one here: each waits for the other"
        ));
    }
    let pairs = point.targets.iter().flat_map(|target| {
        point.clients.iter().flat_map(move |group| {
            let shared = target.cpus.iter().filter(|cpu| group.cpus.contains(cpu));
            shared.map(move |cpu| (target, group, *cpu))
        })
    });
    let (target, group, cpu) = pairs.into_iter().next()?;
    Some(format!(
        "{} and the load of {} share CPU {cpu}, so each waits for the other: give them different \
         cpus",
        target.name, group.name
    ))
}

/// Data that don't fit the memory that a target is given, where a read that misses is wrong.
fn overfull(point: &Point, target: &Target, registry: Registry<'_>) -> Option<String> {
    let (data, memory) = too_much(point, target, registry)?;
    let name = &target.name;
    Some(format!(
        "{data} of keys and values don't fit the {memory} of {name}: reads of what it evicts are \
         wrong answers. Give it more memory, or say workload.misses = \"allowed\""
    ))
}

/// The data of a point and the memory of a target that they don't fit.
fn too_much(
    point: &Point,
    target: &Target,
    registry: Registry<'_>,
) -> Option<(ByteCount, ByteCount)> {
    let data = ByteCount { bytes: point.workload.workload.preparation().bytes };
    let memory = memory(target, registry)?;
    (data > memory).then_some((data, memory))
}

/// Keeps with a target that its data don't fit, as reports name it beside misses: its fact
/// `overfull`, of the point with most data.
pub(super) fn keep_overfull(points: &mut [Point], registry: Registry<'_>) {
    for index in 0..points.first().map_or(0, |point| point.targets.len()) {
        let found = points.iter().filter_map(|point| {
            let (data, memory) = too_much(point, point.targets.get(index)?, registry)?;
            Some((data, format!("{data} of keys and values in {memory} of memory")))
        });
        if let Some((_, said)) = found.max_by_key(|(data, _)| *data) {
            points[0].targets[index].facts.push(("overfull".to_owned(), said));
        }
    }
}

/// The memory that a target's command line gives it, where that is known.
fn memory(target: &Target, registry: Registry<'_>) -> Option<ByteCount> {
    match &target.kind {
        TargetKind::Service(service, arguments) => {
            let given = arguments.iter().find_map(|one| one.strip_prefix("--memory="));
            let usual = || (registry.default_of)(service, "memory");
            given.map(str::to_owned).or_else(usual)?.parse().ok()
        }
        TargetKind::Command(command) => {
            let value_of = |flag: &str| {
                let after = command.iter().position(|one| one == flag).map(|at| at + 1);
                after.and_then(|at| command.get(at)).map(String::as_str)
            };
            let program = command.first()?.rsplit('/').next()?;
            let megabytes = || value_of("-m")?.parse::<u64>().ok()?.checked_mul(1 << 20);
            match program {
                "memcached" => Some(ByteCount { bytes: megabytes()? }),
                _ => value_of("--memory")?.parse().ok(),
            }
        }
        TargetKind::Batch(_) | TargetKind::Address(_) | TargetKind::InProcess => None,
    }
}
