//! What a written suite means.

use std::collections::BTreeMap;
use std::path::Path;

use judge::Metrics;
use load::{Reach, Scenario, Service, WorkloadSpec};

use super::check::{Result, all_of, both, unique};
use super::clients;
use super::error::Source;
use super::event::EventSpec;
use super::figures;
use super::fill::{self, Unfilled};
use super::near::nearest;
use super::notes::{keep_overfull, notes};
use super::require::{Names, Requirement};
use super::rounds;
use super::rung;
use super::rung::Rung;
use super::suite::{StateSpec, SuiteSpec};
use super::sweep::{self, Setting};
use super::target;
use super::types::{Plan, Point, Registry, Target, TargetKind};
use super::wording::{self, Worded};
use crate::drive::{Arrivals, Clients, batch, program};

pub(super) fn resolve(
    path: &Path,
    text: String,
    settings: &[Setting],
    registry: Registry<'_>,
) -> Result<Plan> {
    let source = Source::new(path, text);
    // The text itself is read first, because only then do errors have a place in it.
    let spec: SuiteSpec = source.read()?;
    let mut table: toml::Table =
        source.text.parse().map_err(|_| source.error(None, "it can't be read", None))?;
    sweep::apply_settings(&mut table, settings).map_err(|problem| {
        source.error(None, problem, Some("--set takes the suite's dotted keys".into()))
    })?;
    let overridden = read_table(&table).map_err(|Misread { path, message, help }| {
        let key = set_at(settings, &path).unwrap_or_default();
        source.error(None, format!("with --set {key}: {message}"), help)
    })?;
    let metrics = figures::resolve(&source, &overridden.figures)?;
    let folder = folder_of(path);
    // A point has one value of each key: all of them would be copied for every point.
    table.remove("sweep");
    let mut points = Vec::new();
    for setting in sweep::points(&overridden.sweep, &source)? {
        let table = at_point(&source, &table, &setting)?;
        let table = filled(&source, table, &folder)?;
        let spec = read_table(&table).map_err(|Misread { path, message, help }| {
            match set_at(&setting, &path) {
                Some(key) => source.error_at_swept(&key, format!("{key}: {message}"), help),
                None => source.error_at(&path, message, help),
            }
        })?;
        let written = Written { spec: &spec, table: &table, metrics: &metrics };
        points.push(resolve_point(&source, written, setting, registry)?);
    }
    if points.is_empty() {
        return Err(source.error(None, "the sweep has no point", None));
    }
    let rounds = rounds::resolve(&source, settings, &overridden.rounds, &metrics, &points)?;
    keep_overfull(&mut points, registry);
    let plan = Plan {
        path: path.to_owned(),
        settings: settings.to_vec(),
        notes: notes(&overridden, &points, rounds.measure, registry),
        title: spec.title.clone(),
        claims: spec.claims.to_vec(),
        compromises: spec.compromises.to_vec(),
        rounds,
        metrics,
        points,
        text: source.text.clone(),
    };
    check_budget(&source, &plan)?;
    Ok(plan)
}

/// A table that is no suite, with the place of what is wrong.
struct Misread {
    path: String,
    message: String,
    help: Option<String>,
}

fn read_table(table: &toml::Table) -> std::result::Result<SuiteSpec, Misread> {
    serde_path_to_error::deserialize(table.clone()).map_err(|error| {
        let path = error.path().to_string();
        let Worded { message, help } = wording::worded(&path, error.inner().message());
        Misread { path, message, help }
    })
}

/// The key that was set and ends as `path` does; any, if none does.
fn set_at(settings: &[Setting], path: &str) -> Option<String> {
    let last = |key: &str| wording::without_indices(key).rsplit('.').next().map(str::to_owned);
    let ends = |(key, _): &&Setting| last(key) == last(path);
    let found = settings.iter().find(ends).or_else(|| settings.first());
    found.map(|(key, _)| key.clone())
}

/// The folder that a suite is in, from anywhere.
fn folder_of(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()).display().to_string()
}

/// The suite's table with a point's values in it.
fn at_point(source: &Source, table: &toml::Table, setting: &[Setting]) -> Result<toml::Table> {
    let mut table = table.clone();
    for (key, value) in setting {
        if key.starts_with("rounds.") {
            let help = "write a suite for each, or say it with --set".to_owned();
            let message = format!("{key} is the same at every point and can't be swept");
            return Err(source.error_at_swept(key, message, Some(help)));
        }
        sweep::assign(&mut table, key, value.clone())
            .map_err(|problem| source.error_at_swept(key, format!("{key}: {problem}"), None))?;
    }
    Ok(table)
}

/// The table with the placeholders filled in that are known before anything starts.
fn filled(source: &Source, mut table: toml::Table, folder: &str) -> Result<toml::Table> {
    match fill::fill(&mut table, folder) {
        Ok(()) => Ok(table),
        Err(Unfilled { key, message, help }) => Err(source.error_at(&key, message, Some(help))),
    }
}

fn check_budget(source: &Source, plan: &Plan) -> Result<()> {
    let (Some(budget), shortest) = (plan.rounds.budget, plan.shortest()) else { return Ok(()) };
    if shortest <= budget {
        return Ok(());
    }
    let message = format!("{} rounds need at least {shortest}", plan.rounds.at_least);
    let help = "raise the budget, or lower rounds.measure, rounds.at_least or the points";
    Err(source.error_at("rounds.budget", message, Some(help.into())))
}

/// A suite as a point has it.
#[derive(Clone, Copy)]
struct Written<'a> {
    spec: &'a SuiteSpec,
    table: &'a toml::Table,
    metrics: &'a Metrics,
}

fn resolve_point(
    source: &Source,
    Written { spec, table, metrics }: Written<'_>,
    setting: Vec<Setting>,
    registry: Registry<'_>,
) -> Result<Point> {
    let written = WorkloadSpec::read(spec.workload.clone());
    let written = written.map_err(|error| source.spec_error(&error))?;
    let service = service_of(source, &written, registry)?;
    let (workload, clients) = clients::resolve(source, spec, &written, service)?;
    let conditions = conditions_of(source, Written { spec, table, metrics });
    let targets = resolve_targets(source, Written { spec, table, metrics }, &workload, registry);
    let (targets, [requirements, expected, abort_on]) = both(targets, conditions)?;
    let carried = carried_of(source, Written { spec, table, metrics })?;
    let batches = targets.iter().filter(|target| matches!(target.kind, TargetKind::Batch(_)));
    if (service.name == batch::SERVICE.name) != (batches.count() == targets.len()) {
        let message = "batch targets, and only they, go with workload.service = \"batch\"";
        return Err(source.error_at("workload.service", message, None));
    }
    check_programs(source, service, &clients, &targets)?;
    if targets.is_empty() {
        return Err(source.error_at("target", "a suite needs at least one target", None));
    }
    clients::check_streams(source, &workload, &clients, &targets)?;
    let event = |(index, event): (usize, &EventSpec)| {
        let event = event.resolve(targets.iter().map(|target| &target.name[..]));
        event.map_err(|problem| source.error_at(&format!("event[{index}]"), problem, None))
    };
    let events = all_of(spec.event.iter().enumerate().map(event))?;
    let mut keys: BTreeMap<_, _> = setting
        .into_iter()
        .map(|(key, value)| (key, serde_json::to_value(value).unwrap_or_default()))
        .collect();
    let operation = operation_label(&workload, &clients);
    keys.insert("workload.operation".into(), operation.clone().into());
    if spec.rounds.state == Some(StateSpec::Cold) {
        keys.insert("rounds.state".into(), "cold".into());
    }
    let label = label(&workload, &operation, &clients, &keys);
    let may_miss = (registry.may_miss)(service.name);
    let point = Point {
        label,
        keys,
        workload,
        may_miss,
        clients,
        targets,
        requirements,
        carried,
        expected,
        abort_on,
        events,
    };
    figures::check_required(source, metrics, &point)?;
    Ok(point)
}

/// The service that the workload names.
fn service_of(
    source: &Source,
    written: &WorkloadSpec,
    registry: Registry<'_>,
) -> Result<&'static Service> {
    let services = || registry.services.iter().copied().chain([&batch::SERVICE, &program::SERVICE]);
    let name = written.service();
    if let Some(service) = services().find(|service| service.name == name) {
        return Ok(service);
    }
    let key = if written.says_room { "workload.room" } else { "workload.service" };
    if let Some(service) = services().find(|service| service.dialect(name).is_some()) {
        let service = service.name;
        let message = format!("\"{name}\" is a dialect of {service}, not a service");
        let help = format!("service = \"{service}\" here, and speaks = \"{name}\" in the target");
        return Err(source.error_at(key, message, Some(help)));
    }
    let known: Vec<_> = services().map(|service| service.name).collect();
    let message = format!("no service \"{name}\"; there are: {}", known.join(", "));
    let help = nearest(name, known).map(|near| format!("did you mean \"{near}\"?"));
    Err(source.error_at(key, message, help))
}

/// What is required, expected, and ends the run.
fn conditions_of(source: &Source, written: Written<'_>) -> Result<[Vec<Requirement>; 3]> {
    let Written { spec, table, metrics } = written;
    let names = Names { derived: &spec.derive, table, metrics };
    names
        .check()
        .map_err(|(name, problem)| source.error_at(&format!("derive.{name}"), problem, None))?;
    let sections =
        [("require", &spec.require), ("expect", &spec.expect), ("abort_on", &spec.abort_on)];
    let conditions = |(section, written): (&str, &BTreeMap<String, String>)| {
        all_of(written.iter().map(|(figure, bound)| {
            let requirement = Requirement::parse(figure, bound, &names);
            requirement
                .map_err(|problem| source.error_at(&format!("{section}.{figure}"), problem, None))
        }))
    };
    let all = all_of(sections.map(conditions))?;
    Ok(<[Vec<Requirement>; 3]>::try_from(all).unwrap_or_default())
}

/// The named loads, each with a figure, a sign and a bound: `latency.mean <= 5s`.
fn carried_of(source: &Source, written: Written<'_>) -> Result<Vec<(String, Requirement)>> {
    let Written { spec, table, metrics } = written;
    let names = Names { derived: &spec.derive, table, metrics };
    all_of(spec.carry.iter().map(|(name, condition)| {
        let sign = condition.find(['<', '>', '=']).unwrap_or(condition.len());
        let (figure, bound) = condition.split_at(sign);
        let requirement = Requirement::parse(figure.trim(), bound, &names);
        let requirement = requirement
            .map_err(|problem| source.error_at(&format!("carry.{name}"), problem, None))?;
        Ok((name.clone(), requirement))
    }))
}

/// A program stands for one group of clients and decides itself when it sends.
fn check_programs(
    source: &Source,
    service: &Service,
    clients: &[Clients],
    targets: &[Target],
) -> Result<()> {
    check_busy(source, clients, targets)?;
    let is_program =
        |target: &&Target| target.client.is_some() || target.kind == TargetKind::InProcess;
    let Some(target) = targets.iter().find(is_program) else {
        let message = "no target of this service can be loaded without client = [\"program\", …]";
        return match service.name == program::SERVICE.name {
            true => Err(source.error_at("workload.service", message, None)),
            false => Ok(()),
        };
    };
    let key = |part: &str| format!("target.{}.{part}", target.name);
    if target.kind == TargetKind::InProcess && clients.iter().any(|group| group.connections != 1) {
        let message = "one thread evaluates: leave connections out";
        return Err(source.error_at("clients.connections", message, None));
    }
    if clients.len() != 1 || clients[0].arrivals != Arrivals::Closed {
        let message = "a program stands for one group of clients and decides when it sends: \
                       leave arrivals and other groups out";
        return Err(source.error_at(&key("client"), message, None));
    }
    if let Some(bare) = targets.iter().find(|target| target.client.is_none())
        && service.name == program::SERVICE.name
    {
        let message = format!("{} needs client = [\"program\", …] in this service", bare.name);
        return Err(source.error_at(&format!("target.{}.name", bare.name), message, None));
    }
    if matches!(target.kind, TargetKind::Batch(_)) {
        let message = "a batch is run to its end and takes no client";
        return Err(source.error_at(&key("client"), message, None));
    }
    Ok(())
}

/// Calls that are too short for the clock are timed many at a time, one after another.
fn check_busy(source: &Source, clients: &[Clients], targets: &[Target]) -> Result<()> {
    let is_busy = |target: &&Target| target.speaks.dialect.reach == Reach::Busy;
    let Some(target) = targets.iter().find(is_busy) else { return Ok(()) };
    for group in clients {
        let operations = group.mix.as_ref().map_or(1, Vec::len);
        if group.arrivals != Arrivals::Closed || group.pipeline != 1 || operations != 1 {
            let message = format!(
                "{} is called too often for the clock: such calls are closed, one at a time and \
                 of one operation",
                target.name
            );
            return Err(source.error_at(&format!("clients.{}", group.name), message, None));
        }
    }
    Ok(())
}

/// The suite's targets, rungs of a ladder first.
fn resolve_targets(
    source: &Source,
    Written { spec, table, .. }: Written<'_>,
    workload: &Scenario,
    registry: Registry<'_>,
) -> Result<Vec<Target>> {
    let written = rung::targets(&spec.target, &spec.rung)
        .map_err(|problem| source.error_at("rung", problem, None))?;
    let rungs = spec.rung.len();
    let place = |index: usize| match index.checked_sub(rungs) {
        Some(other) if rungs > 0 => format!("target[{}].name", other + 1),
        Some(index) => format!("target[{index}].name"),
        None => format!("rung[{index}].name"),
    };
    unique(source, &place, written.iter().map(|(target, _)| &target.name[..]))?;
    let resolve = |(target, rung): (_, Option<Rung>)| {
        let target = target::resolve(source, &target, table, workload, registry)?;
        let not_tried = rung.as_ref().and_then(|rung| rung.not_tried.clone());
        Ok(Target { skipped: not_tried.or(target.skipped), rung, ..target })
    };
    all_of(written.into_iter().map(resolve))
}

/// What the groups do: the mix of all; of groups with different ones, all their operations.
fn operation_label(workload: &Scenario, clients: &[Clients]) -> String {
    if clients.iter().all(|group| group.mix.is_none()) {
        return workload.operation_label();
    }
    let name = |(index, _): &(usize, u32)| &workload.operations()[*index].name[..];
    workload.mix.iter().map(name).collect::<Vec<_>>().join("+")
}

/// The point in words: what every report shows in its header.
fn label(
    workload: &Scenario,
    operation: &str,
    clients: &[Clients],
    keys: &BTreeMap<String, serde_json::Value>,
) -> String {
    let groups: Vec<_> = clients
        .iter()
        .map(|group| {
            let name = if clients.len() > 1 { format!("{} ", group.name) } else { String::new() };
            let own = group.scenario(workload).operation_label();
            let own = group.mix.as_ref().map_or(String::new(), |_| format!("{own} "));
            format!(
                "{name}{own}{} conns · depth {} · {}",
                group.connections, group.pipeline, group.arrivals
            )
        })
        .collect();
    let said = ["workload.operation", "clients.connections", "clients.pipeline", "rounds.state"];
    let is_said = |key: &str| {
        let mut parts = key.split('.');
        let mix = parts.next() == Some("clients")
            && parts.next_back().is_some_and(|last| matches!(last, "operation" | "mix"));
        said.contains(&key) || key.starts_with("clients.arrivals") || mix
    };
    let others: String = keys
        .iter()
        .filter(|(key, _)| !is_said(key))
        .map(|(key, value)| match value {
            serde_json::Value::String(text) => format!(" · {key} {text}"),
            value => format!(" · {key} {value}"),
        })
        .collect();
    let state = if keys.contains_key("rounds.state") { " · cold" } else { "" };
    format!("{}/{operation}  {}{state}{others}", workload.service.name, groups.join(" + "))
}

#[cfg(test)]
mod tests {
    use super::super::types::Rounds;
    use super::*;
    use base::units::Span;
    use load::kv::{Role, Rules};
    use load::{DialectRow, Service};

    use super::super::toy;

    static SERVICE: Service = Service {
        name: "toy",
        doc: "",
        read: |part| toy::read(part, &RULES),
        dialects: &[DialectRow::new("plain", "", Reach::Stream)],
    };

    static RULES: Rules = Rules {
        operations: &[("get", Role::Read, "")],
        longest_key_bytes: 250,
        longest_value_bytes: 1024,
    };

    const SUITE: &str = r#"
title = "t"
[[target]]
name = "a"
serve = "toy"
options = { threads = 2, fast = true }
[workload]
service = "toy"
operation = "get"
keys = { count = 10 }
value = { bytes = 16 }
[[clients]]
connections = 4
[sweep]
"clients.pipeline" = [1, 2]
[require]
wrong = "= 0"
[rounds]
measure = "1s"
"#;

    fn read(text: &str, settings: &[Setting]) -> Result<Plan> {
        let check = |_: &str, arguments: &[String]| match arguments {
            [first, ..] if first == "--fast" => Ok(()),
            _ => Err("unexpected argument".to_owned()),
        };
        let registry = Registry {
            services: &[&SERVICE],
            check_arguments: &check,
            default_of: toy::NO_DEFAULT,
            page: toy::NO_PAGE,
            may_miss: |_| true,
        };
        Plan::parse(Path::new("t.toml"), text.to_owned(), settings, registry)
    }

    /// The message and suggestion of what is wrong with a suite, and the text it points at.
    fn wrong(text: &str) -> (String, String) {
        use miette::Diagnostic;
        let error = read(text, &[]).expect_err("the suite is wrong");
        let help = error.help().map(|help| format!(" ({help})")).unwrap_or_default();
        let mut labels = error.labels().into_iter().flatten();
        let place = labels.next().map(|label| label.offset()..label.offset() + label.len());
        (format!("{error}{help}"), place.map_or(String::new(), |place| text[place].to_owned()))
    }

    #[test]
    fn a_suite_becomes_points_in_words_with_its_keys() {
        let plan = read(SUITE, &[]).unwrap();
        let labels: Vec<_> = plan.points.iter().map(|point| &point.label[..]).collect();
        let expected =
            ["toy/get  4 conns · depth 1 · closed", "toy/get  4 conns · depth 2 · closed"];
        assert_eq!(labels, expected);
        assert_eq!(plan.points[1].keys["clients.pipeline"], 2);
        assert_eq!(plan.points[1].keys["workload.operation"], "get");
        let flags = TargetKind::Service("toy", vec!["--fast".into(), "--threads=2".into()]);
        assert_eq!(plan.targets()[0].kind, flags);
    }

    #[test]
    fn the_old_name_of_a_service_is_read_and_noted() {
        // A host of one core has a note of its own.
        let is_noted = |suite: &str| {
            let notes = read(suite, &[]).unwrap().notes;
            notes.iter().any(|note| note.contains("`room` is called `service` now"))
        };
        assert!(is_noted(&SUITE.replace("service = \"toy\"", "room = \"toy\"")));
        assert!(!is_noted(SUITE));
    }

    #[test]
    fn a_setting_wins_over_suite_and_sweep() {
        let settings = [("clients.pipeline".to_owned(), 9.into())];
        let plan = read(SUITE, &settings).unwrap();
        assert_eq!(plan.points.len(), 1);
        assert_eq!(plan.points[0].clients[0].pipeline, 9);
        let unknown = [("clients.pipelin".to_owned(), 9.into())];
        let error = read(SUITE, &unknown).unwrap_err();
        assert!(error.to_string().contains("unknown key `pipelin`"), "{error}");
    }

    #[test]
    fn mistakes_are_named_where_they_stand_with_what_would_be_right() {
        let case = |from: &str, to: &str| wrong(&SUITE.replace(from, to));
        let (said, place) = case("connections = 4", "conections = 4");
        assert!(said.ends_with("(did you mean `connections`?)"), "{said}");
        assert_eq!(place, "conections");
        let (said, place) = case("\"1s\"", "1");
        assert!(said.contains("is not a time such as"), "{said}");
        assert_eq!(place, "1");
        let (said, place) = case("operation = \"get\"", "operation = \"put\"");
        assert!(said.contains("toy has no operation \"put\"; it has get"), "{said}");
        assert_eq!(place, "\"put\"");
        let (said, _) = case("fast = true", "quick = true");
        assert!(said.contains("target.a.options: unexpected argument"), "{said}");
        let (said, place) = case("[1, 2]", "[1, 0]");
        assert!(said.contains("0 is not from 1 to 4096"), "{said}");
        assert_eq!(place, "[1, 0]");
        let (said, _) = case("wrong = ", "wrnog = ");
        assert!(said.contains("did you mean \"wrong\"?"), "{said}");
        let (said, _) = case("measure = \"1s\"", "measure = \"1s\"\nbudget = \"2s\"");
        assert!(said.contains("rounds need at least"), "{said}");
        let (said, _) = case("serve = \"toy\"", "address = \"192.0.2.1:80\"\nspeaks = \"plain\"");
        assert!(said.contains("only a target with `serve` has options"), "{said}");
        let (said, place) = case("serve = \"toy\"", "serve = \"toy\"\nstop_signal = \"KILL\"");
        assert!(said.contains("\"KILL\" is none of SIGHUP, SIGINT, SIGKILL"), "{said}");
        assert_eq!(place, "\"KILL\"");
    }

    #[test]
    fn cold_data_are_measured_once_and_nothing_may_warm_them() {
        let cold = SUITE.replace("measure = \"1s\"", "measure = \"1s\"\nstate = \"cold\"");
        let plan = read(&cold, &[]).unwrap();
        let Rounds { is_cold, slice, warm_up, .. } = plan.rounds;
        assert_eq!((is_cold, slice, warm_up), (true, None, Span::default()));
        assert_eq!(plan.points[0].label, "toy/get  4 conns · depth 1 · closed · cold");
        assert_eq!(plan.shortest_disturbed(), plan.shortest(), "nothing is measured again");
        for (more, said) in [
            ("warm_up = \"1s\"", "before any other load (leave warm_up out)"),
            ("slice = \"100ms\"", "in one piece: after the first slice data are warm"),
            ("restart = \"never\"", "on a fresh start"),
        ] {
            let (message, place) = wrong(&format!("{cold}{more}\n"));
            assert!(message.contains(said), "{message}");
            assert_eq!(place, more.split_once(" = ").unwrap().1);
        }
        let warm = cold.replace("state = \"cold\"", "state = \"warm\"\nwarm_up = \"0s\"");
        let (said, _) = wrong(&warm);
        assert!(said.contains("warm data have been loaded"), "{said}");
        let there = "address = \"127.0.0.1:1\"\nspeaks = \"plain\"";
        let there = cold.replace("serve = \"toy\"", there);
        let (said, _) = wrong(&there.replace("options = { threads = 2, fast = true }\n", ""));
        assert!(said.contains("a is not started by the lab"), "{said}");
    }

    #[test]
    fn rounds_times_and_names_that_can_not_be_are_refused() {
        let with = |rounds: &str| SUITE.replace("measure = \"1s\"", rounds);
        assert!(wrong(&with("at_least = 0")).0.contains("at least 0 and at most 50"));
        assert!(wrong(&with("at_least = 6\nat_most = 3")).0.contains("at least 6 and at most 3"));
        let rounds = read(&with("at_most = 3"), &[]).unwrap().rounds;
        assert_eq!((rounds.at_least, rounds.at_most), (3, 3), "no more than were asked for");
        let now = SUITE.replace("connections = 4", "connections = 4\ntimeout = '0s'");
        assert!(wrong(&now).0.contains("more than 0"));
        for name in ["", "../up", "two\\nlines", &"long".repeat(26)] {
            let (said, _) = wrong(&SUITE.replace("name = \"a\"", &format!("name = \"{name}\"")));
            assert!(said.contains("a name has 1 to 100 bytes"), "{name}: {said}");
        }
    }

    #[test]
    fn what_no_point_can_have_is_refused() {
        let (said, _) = wrong(&SUITE.replace("clients.pipeline", "rounds.warm_up"));
        assert!(said.contains("can't be swept"), "{said}");
        let each = SUITE.replace("connections = 4", "connections = 4\nconnect = \"each\"");
        let (said, place) = wrong(&each);
        assert!(said.contains("a connection for 1 requests never has more under way"), "{said}");
        assert_eq!(place, "[1, 2]");
    }

    #[test]
    fn an_event_that_no_slice_reaches_is_refused() {
        let event = "[[event]]\nat = \"AT\"\ndo = \"SIGHUP\"\n[[clients]]";
        let at = |at: &str| SUITE.replacen("[[clients]]", &event.replace("AT", at), 1);
        assert_eq!(read(&at("499ms"), &[]).unwrap().points[0].events.len(), 1);
        let (said, _) = wrong(&at("500ms"));
        assert!(said.contains("\"SIGHUP\" never happens: a slice is over after 500 ms"), "{said}");
    }

    #[test]
    fn only_loopback_addresses_are_loaded() {
        let text = SUITE.replace("options = { threads = 2, fast = true }\n", "");
        let remote = "address = \"192.0.2.1:80\"\nspeaks = \"plain\"";
        let (said, place) = wrong(&text.replace("serve = \"toy\"", remote));
        assert!(said.contains("only loopback"), "{said}");
        assert_eq!(place, "\"192.0.2.1:80\"");
    }
}
