//! What a written suite means: the groups of clients, and the operations of each.

use std::path::Path;

use base::units::Span;
use load::{Kind, Reach, Scenario, Service, WorkloadSpec};
use wire::Backend;

use super::check::{Result, all_of, check_cpus, unique};
use super::error::Source;
use super::suite::{ClientsSpec, ConnectSpec, IoSpec, SuiteSpec, WaitSpec};
use super::types::Target;
use crate::drive::{Arrivals, Clients, batch};

/// Limits of one group of clients; a suite beyond them is a mistake.
const MAX_CONNECTIONS: usize = 100_000;
const MAX_PIPELINE: usize = 4_096;
const MAX_THREADS: usize = 256;

/// How much faster simulated time runs, unless a suite says otherwise.
const TIME_SCALE: f64 = 100.0;
const MAX_TIME_SCALE: f64 = 1e6;

/// The groups, and what all of them do together: its mix is of every operation that any group does.
pub(super) fn resolve(
    source: &Source,
    spec: &SuiteSpec,
    workload: &WorkloadSpec,
    service: &'static Service,
) -> Result<(Scenario, Vec<Clients>)> {
    let written = &spec.clients[..];
    let time_scale = time_scale(source, spec)?;
    let group = |(index, group): (usize, &ClientsSpec)| {
        let name = group.name.clone().unwrap_or_else(|| match index {
            0 => "clients".into(),
            _ => format!("clients{index}"),
        });
        let key = group
            .name
            .as_ref()
            .map_or(format!("clients[{index}]"), |name| format!("clients.{name}"));
        resolve_group(source, (name, &key), group, service, time_scale)
    };
    let mut clients = all_of(written.iter().enumerate().map(group))?;
    if clients.is_empty() {
        let help = Some("[[clients]]\nconnections = 4".to_owned());
        return Err(source.error_at("clients", "a suite needs at least one group", help));
    }
    let place = |index| format!("clients[{index}].name");
    unique(source, &place, clients.iter().map(|group| &group.name[..]))?;
    let all = resolve_scenario(source, written, workload, service, &mut clients)?;
    all.check().map_err(|error| source.spec_error(&error))?;
    check_steps(source, &clients, &all)?;
    Ok((all, clients))
}

/// How much faster simulated time runs. Saying it is a mistake where no schedule is in it.
fn time_scale(source: &Source, spec: &SuiteSpec) -> Result<f64> {
    let Some(scale) = spec.time_scale else { return Ok(TIME_SCALE) };
    let wrong = |message: &str| source.error_at("time_scale", message, None);
    if !(scale > 0.0 && scale <= MAX_TIME_SCALE) {
        return Err(wrong("simulated time runs above 0 and at most 1000000 times as fast"));
    }
    match spec.clients.iter().any(|group| group.arrivals.is_simulated()) {
        true => Ok(scale),
        false => Err(wrong("no schedule is in simulated time: arrivals = { every = \"5s\" }")),
    }
}

/// What all groups do together; where one of them reads what another writes, the right answers are
/// those of both. Groups get mixes of their own where they differ.
fn resolve_scenario(
    source: &Source,
    written: &[ClientsSpec],
    workload: &WorkloadSpec,
    service: &'static Service,
    clients: &mut [Clients],
) -> Result<Scenario> {
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    let wrong = |error: load::SpecError| source.spec_error(&error);
    let read = workload.workload(service, folder).map_err(wrong)?;
    let has_own = |group: &ClientsSpec| group.operation.is_some() || group.mix.is_some();
    if !written.iter().any(has_own) {
        return workload.choose(&read).map_err(wrong);
    }
    if let Some(key) = workload.chosen_by()
        && written.iter().all(has_own)
    {
        let message = "every group of clients has operations of its own, so no group does these";
        return Err(source.error_at(&format!("workload.{key}"), message, None));
    }
    let mut each = Vec::new();
    for (group, written) in clients.iter().zip(written) {
        each.push(match has_own(written) {
            true => own(source, &read, group, written)?,
            false => workload.choose(&read).map_err(wrong)?,
        });
    }
    let mut all = each[0].clone();
    for scenario in &each[1..] {
        let is_new =
            |(operation, _): &&(usize, u32)| all.mix.iter().all(|(one, _)| one != operation);
        let new: Vec<_> = scenario.mix.iter().filter(is_new).copied().collect();
        all.mix.extend(new);
        // A group with operations of its own takes no steps.
        if all.steps.is_empty() {
            all.steps.clone_from(&scenario.steps);
        }
    }
    if each.iter().any(|scenario| scenario.mix != each[0].mix) {
        for (group, scenario) in clients.iter_mut().zip(each) {
            group.mix = Some(scenario.mix);
        }
    }
    Ok(all)
}

/// The workload with a group's own operations.
fn own(
    source: &Source,
    read: &Scenario,
    group: &Clients,
    written: &ClientsSpec,
) -> Result<Scenario> {
    let key = format!("clients.{}", group.name);
    if group.arrivals == Arrivals::Steps {
        let part = if written.mix.is_some() { "mix" } else { "operation" };
        let message = "steps are the workload's: leave this out";
        return Err(source.error_at(&format!("{key}.{part}"), message, None));
    }
    let mix = read.mix_of(&key, written.operation.as_deref(), written.mix.as_ref());
    let mix = mix.map_err(|error| source.spec_error(&error))?;
    Ok(Scenario { mix, ..read.clone() })
}

fn resolve_group(
    source: &Source,
    (name, place): (String, &str),
    spec: &ClientsSpec,
    service: &Service,
    time_scale: f64,
) -> Result<Clients> {
    let within = |key: &str, value: usize, most: usize| {
        if (1..=most).contains(&value) {
            return Ok(());
        }
        let message = format!("{value} is not from 1 to {most}");
        Err(source.error_at(&format!("{place}.{key}"), message, None))
    };
    within("connections", spec.connections, MAX_CONNECTIONS)?;
    within("pipeline", spec.pipeline, MAX_PIPELINE)?;
    within("threads", spec.threads, MAX_THREADS)?;
    let threads = spec.threads.min(spec.connections);
    let key = |part: &str| format!("{place}.{part}");
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    let arrivals = spec.arrivals.resolve(folder, time_scale);
    let arrivals = arrivals.map_err(|problem| source.error_at(&key("arrivals"), problem, None))?;
    let reconnect_every = match (spec.connect, spec.reconnect_every) {
        (Some(ConnectSpec::Each), None) => Some(1),
        (Some(ConnectSpec::Each), Some(_)) | (_, Some(0)) => {
            let message = "say either connect = \"each\" or reconnect_every = a number above 0";
            return Err(source.error_at(&key("reconnect_every"), message, None));
        }
        (Some(ConnectSpec::Once) | None, every) => every,
    };
    if let Some(every) = reconnect_every.filter(|every| *every < spec.pipeline as u64) {
        let message = format!("a connection for {every} requests never has more under way");
        let help = format!("say pipeline = {every}, or keep connections longer");
        return Err(source.error_at(&key("pipeline"), message, Some(help)));
    }
    check_cpus(source, &key("cpus"), &spec.cpus)?;
    let is_alone = arrivals != Arrivals::Closed || service.name == batch::SERVICE.name;
    if spec.io == IoSpec::Uring && is_alone {
        let message =
            "calls are made together only where requests follow answers: arrivals = \"closed\"";
        let help = Some("leave io out, or say \"auto\"".to_owned());
        return Err(source.error_at(&key("io"), message, help));
    }
    if spec.timeout.is_some_and(|timeout| timeout.ns == 0) {
        let message = "an answer takes some time: say more than 0";
        return Err(source.error_at(&key("timeout"), message, None));
    }
    Ok(Clients {
        connections: spec.connections,
        pipeline: spec.pipeline,
        reconnect_every,
        spin: spec.wait.map_or(!spec.cpus.is_empty(), |wait| wait == WaitSpec::Hybrid),
        io: match spec.io {
            IoSpec::Auto => Backend::Auto,
            IoSpec::Epoll => Backend::Epoll,
            IoSpec::Uring => Backend::Uring,
        },
        threads,
        cpus: spec.cpus.clone(),
        // A step may be the loading of a whole data set, and a batch anything.
        timeout: spec.timeout.unwrap_or(match arrivals {
            Arrivals::Steps => Span::from_ms(600_000),
            _ if service.name == batch::SERVICE.name => Span::from_ms(600_000),
            _ => Span::from_ms(1000),
        }),
        arrivals,
        mix: None,
        name,
    })
}

/// Steps are taken by clients that say so, one at a time, and in one piece.
fn check_steps(source: &Source, clients: &[Clients], workload: &Scenario) -> Result<()> {
    let wrong = |key: &str, message: &str| Err(source.error_at(key, message, None));
    let mut taking = clients.iter().filter(|group| group.arrivals == Arrivals::Steps).peekable();
    match (taking.peek().is_some(), workload.steps.is_empty()) {
        (false, true) => return Ok(()),
        (false, false) => {
            let message = "no clients take these steps; say arrivals = \"steps\" of those who do";
            return wrong("workload.steps", message);
        }
        (true, true) => {
            return wrong("clients", "arrivals = \"steps\" needs workload.steps = [\"…\", …]");
        }
        (true, false) => {}
    }
    if taking.any(|group| group.pipeline != 1) {
        return wrong("clients", "steps are done one after another, so their pipeline is 1");
    }
    Ok(())
}

/// Groups that subscribe need an operation that does, the others one that does not, and every
/// operation of the mix a group.
pub(super) fn check_streams(
    source: &Source,
    workload: &Scenario,
    clients: &[Clients],
    targets: &[Target],
) -> Result<()> {
    for group in clients {
        let (streams, calls) = group.scenario(workload).streams_and_calls();
        let subscribes = group.arrivals.subscribes();
        let key = format!("clients.{}.arrivals", group.name);
        let wrong = |message: &str, help: &str| source.error_at(&key, message, Some(help.into()));
        if subscribes && !streams {
            return Err(wrong("no operation of the mix subscribes", "say \"closed\" instead"));
        }
        if !subscribes && !calls {
            let help = "say arrivals = \"subscribe\"";
            return Err(wrong("every operation of the mix subscribes", help));
        }
        if subscribes && group.reconnect_every.is_some() {
            return Err(wrong("a stream keeps its connection", "take the reconnecting away"));
        }
        let streamed = |target: &Target| target.speaks.dialect.reach == Reach::Stream;
        if let Some(target) = targets.iter().find(|target| subscribes && !streamed(target)) {
            let message = format!("{} has no streams", target.speaks.dialect.name);
            return Err(wrong(&message, "only what speaks over a connection has"));
        }
    }
    let does = |group: &Clients, operation: usize| {
        let is_stream = workload.operations()[operation].kind == Kind::Stream;
        let mix = group.mix.as_ref().unwrap_or(&workload.mix);
        group.arrivals.subscribes() == is_stream && mix.iter().any(|(one, _)| *one == operation)
    };
    let is_done =
        |(operation, _): &(usize, u32)| clients.iter().any(|group| does(group, *operation));
    if !workload.mix.iter().all(is_done) {
        let message = "the mix both subscribes and asks, so it needs a group for either";
        let help = "one group with arrivals = \"subscribe\" and one without";
        return Err(source.error_at("workload.mix", message, Some(help.into())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use load::DialectRow;
    use load::kv::{Role, Rules};

    use super::super::toy;
    use super::super::types::{Plan, Registry};
    use super::*;

    static SERVICE: Service = Service {
        name: "toy",
        doc: "",
        read: |part| toy::read(part, &RULES),
        dialects: &[DialectRow::new("plain", "", Reach::Stream)],
    };

    static RULES: Rules = Rules {
        operations: &[
            ("get", Role::Read, ""),
            ("set", Role::Write, ""),
            ("delete", Role::Remove, ""),
            ("watch", Role::Watch, ""),
        ],
        longest_key_bytes: 250,
        longest_value_bytes: 1024,
    };

    /// A plan whose workload and two groups of clients say so.
    fn plan(workload: &str, one: &str, two: &str) -> std::result::Result<Plan, String> {
        let text = format!(
            "title = 't'\n[[target]]\nname = 'a'\nserve = 'toy'\n[workload]\nservice = 'toy'\n\
             {workload}\nkeys = {{ count = 10 }}\nvalue = {{ bytes = 16 }}\n\
             [[clients]]\nname = 'one'\n{one}\n[[clients]]\nname = 'two'\n{two}\n"
        );
        let registry = Registry {
            services: &[&SERVICE],
            check_arguments: &|_, _| Ok(()),
            default_of: toy::NO_DEFAULT,
            page: toy::NO_PAGE,
            may_miss: |_| true,
        };
        Plan::parse(Path::new("t.toml"), text, &[], registry).map_err(|error| error.to_string())
    }

    #[test]
    fn groups_do_their_own_operations_and_share_what_is_right() {
        let plan = plan("operation = 'get'", "", "mix = { set = 3, delete = 1 }").unwrap();
        let point = &plan.points[0];
        let mixes: Vec<_> =
            point.clients.iter().map(|group| group.scenario(&point.workload).mix).collect();
        assert_eq!(mixes, [vec![(0, 1)], vec![(2, 1), (1, 3)]]);
        assert_eq!(
            point.label,
            "toy/get+delete+set  one get 1 conns · depth 1 · closed + \
             two delete:1 set:3 1 conns · depth 1 · closed"
        );
        assert_eq!(point.keys["workload.operation"], "get+delete+set");
    }

    #[test]
    fn groups_with_the_same_operations_are_as_if_the_workload_had_said_them() {
        let plan = plan("", "operation = 'get'", "operation = 'get'").unwrap();
        let point = &plan.points[0];
        assert!(point.clients.iter().all(|group| group.mix.is_none()));
        assert!(point.label.starts_with("toy/get  one 1 conns"), "{}", point.label);
    }

    #[test]
    fn one_group_may_watch_what_another_writes() {
        let watch = "operation = 'watch'\narrivals = 'subscribe'";
        assert!(plan("operation = 'set'", "", watch).is_ok());
        let said = plan("operation = 'set'", "", "operation = 'watch'").unwrap_err();
        assert!(said.contains("every operation of the mix subscribes"), "{said}");
    }

    #[test]
    fn operations_that_nobody_does_are_refused() {
        let own = "operation = 'get'";
        for (workload, one, two, expected) in [
            ("operation = 'set'", own, own, "workload.operation: every group of clients"),
            ("mix = { set = 1 }", own, own, "workload.mix: every group of clients"),
            ("steps = ['set']", own, own, "workload.steps: every group of clients"),
            ("", own, "", "workload.mix: say either operation"),
            (own, "", "operation = 'gte'", "clients.two.operation: toy has no operation"),
            (own, "", "mix = { set = 0 }", "clients.two.mix: say either operation"),
            ("steps = ['set']", "arrivals = 'steps'\noperation = 'get'", "", "leave this out"),
        ] {
            let said = plan(workload, one, two).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
