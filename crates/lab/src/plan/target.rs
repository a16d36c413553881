//! What a written target means: how it comes to be, how it is spoken to, and over what.

use std::collections::BTreeMap;
use std::path::Path;

use base::units::Span;
use load::{DialectRow, Kind, Reach, Scenario, Service, Speaks, SpecError};
use regex_lite::Regex;
use rustix::process::Signal;

use super::address;
use super::check::{Result, check_cpus};
use super::error::{Source, printable};
use super::event;
use super::fill;
use super::near::{nearest, nearest_first};
use super::suite::{DataSpec, TargetSpec, TransportSpec};
use super::types::{KeptData, Medium, Registry, Target, TargetKind};
use crate::deploy;
use crate::drive::program;
use crate::placeholders;

/// A target's name has at most so many bytes.
const LONGEST_NAME_BYTES: usize = 100;

pub(super) fn resolve(
    source: &Source,
    spec: &TargetSpec,
    table: &toml::Table,
    workload: &Scenario,
    registry: Registry<'_>,
) -> Result<Target> {
    let key = format!("target.{}.name", spec.name);
    check_name(&spec.name).map_err(|problem| source.error_at(&key, problem, None))?;
    let target = resolve_in(source, spec, workload.service, registry)?;
    let kept_data = kept_data(source, spec, &target, workload)?;
    let is_here =
        is_here(spec, table).map_err(|(key, problem)| source.error_at(&key, problem, None))?;
    Ok(Target { kept_data, is_here, ..target })
}

/// Whether the point with this table is one of those at which the target is measured.
fn is_here(spec: &TargetSpec, table: &toml::Table) -> std::result::Result<bool, (String, String)> {
    let mut is_here = true;
    for (key, values) in &spec.only {
        let Some(value) = fill::value_at(table, key) else {
            let message = format!("the suite says nothing at `{key}`");
            return Err((format!("target.{}.only", spec.name), message));
        };
        is_here &= values.contains(value);
    }
    Ok(is_here)
}

/// Refuses options that name files which can't be read, unless a setup may make them.
fn check_files(
    source: &Source,
    spec: &TargetSpec,
    spoken: &Speaks,
) -> std::result::Result<(), SpecError> {
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    match spec.setup {
        Some(_) => Ok(()),
        None => (spoken.dialect.check_files)(spoken, folder),
    }
}

fn resolve_in(
    source: &Source,
    spec: &TargetSpec,
    service: &'static Service,
    registry: Registry<'_>,
) -> Result<Target> {
    let key = format!("target.{}", spec.name);
    let wrong = |part: &str, message: String, help: Option<String>| {
        source.error_at(&format!("{key}.{part}"), message, help)
    };
    check_cpus(source, &format!("{key}.cpus"), &spec.cpus)?;
    let kind =
        resolve_kind(spec, registry).map_err(|(part, problem)| wrong(part, problem, None))?;
    check_served(&kind, spec, service)
        .map_err(|(problem, help)| wrong("serve", problem, Some(help)))?;
    let dialect = resolve_dialect(spec, service, &kind)
        .map_err(|(problem, help)| wrong("speaks", problem, help))?;
    let options = spec.speaks.as_ref().map(|speaks| speaks.options.clone()).unwrap_or_default();
    let spoken = Speaks { dialect, options };
    (dialect.check_options)(&spoken).map_err(|error| wrong(&error.key, error.message, None))?;
    if (dialect.reach == Reach::InProcess) != (kind == TargetKind::InProcess) {
        return Err(wrong("name", misplaced(service, dialect), None));
    }
    let medium = resolve_medium(dialect, spec.transport)
        .map_err(|problem| wrong("transport", problem, None))?;
    let commands = [&spec.build, &spec.setup, &spec.wrap, &spec.client];
    if commands.into_iter().flatten().any(Vec::is_empty) {
        return Err(wrong("name", "build, setup, wrap and client need a program".into(), None));
    }
    let skipped = dialect.missing.map(str::to_owned).or_else(|| missing(spec, &kind));
    if let (Some(reason), false) = (&skipped, spec.optional) {
        let help = "install it, or say `optional = true` to leave it out where it is missing";
        return Err(wrong("command", reason.clone(), Some(help.into())));
    }
    if skipped.is_none() {
        check_place(spec, &kind, medium)
            .map_err(|(problem, help)| wrong("command", problem, Some(help)))?;
        check_files(source, spec, &spoken)
            .map_err(|error| wrong(&error.key, error.message, None))?;
    }
    let stop_signal = resolve_stop_signal(spec.stop_signal.as_deref(), &kind)
        .map_err(|problem| wrong("stop_signal", problem, None))?;
    Ok(Target {
        rung: None,
        name: spec.name.clone(),
        kind,
        counters: address::counters(spec.counters.as_deref(), spec.allow_remote, registry)
            .map_err(|problem| wrong("counters", problem, None))?,
        speaks: spoken,
        medium,
        cpus: spec.cpus.clone(),
        client: spec.client.clone(),
        env: spec.env.clone(),
        figures: resolve_figures(&spec.figures)
            .map_err(|problem| wrong("figures", problem, None))?,
        kept_data: None,
        build: spec.build.clone(),
        setup: spec.setup.clone(),
        wrap: spec.wrap.clone(),
        ready_within: spec.ready_within.unwrap_or(Span::from_ms(10_000)),
        stop_signal,
        skipped,
        is_here: true,
        facts: Vec::new(),
    })
}

/// The dialect that it speaks; the error is the problem, and help.
fn resolve_dialect(
    spec: &TargetSpec,
    service: &'static Service,
    kind: &TargetKind,
) -> std::result::Result<&'static DialectRow, (String, Option<String>)> {
    let own = || service.dialects.first().map(|row| row.name);
    let said = spec.speaks.as_ref().map(|speaks| &speaks.dialect[..]);
    let speaks = said.or(spec.in_process.as_deref()).or(match kind {
        TargetKind::Service(..) | TargetKind::Batch(_) => own(),
        _ if service.name == program::SERVICE.name => own(),
        TargetKind::Command(_) | TargetKind::Address(_) | TargetKind::InProcess => None,
    });
    let known: Vec<_> = service.dialects.iter().map(|row| row.name).collect();
    let Some(speaks) = speaks else {
        let message = format!("say which dialect it speaks, one of: {}", known.join(", "));
        return Err((message, Some(format!("speaks = \"{}\"", known[0]))));
    };
    service.dialect(speaks).ok_or_else(|| {
        let help = nearest(speaks, known.iter().copied());
        let message =
            format!("{} has no dialect \"{speaks}\", only {}", service.name, known.join(", "));
        (message, help.map(|name| format!("did you mean \"{name}\"?")))
    })
}

/// The signal that ends it; SIGTERM unless said otherwise.
fn resolve_stop_signal(
    name: Option<&str>,
    kind: &TargetKind,
) -> std::result::Result<Signal, String> {
    let Some(name) = name else { return Ok(Signal::TERM) };
    if matches!(kind, TargetKind::Address(_) | TargetKind::InProcess) {
        return Err("stop_signal ends what the lab has started, which this target isn't".into());
    }
    let signal = event::signal_number(name).and_then(Signal::from_named_raw);
    signal.ok_or_else(|| format!("\"{name}\" is none of {}", event::signal_names()))
}

/// Why a dialect without a socket, or with one, does not fit its target.
fn misplaced(service: &Service, DialectRow { name, reach, .. }: &DialectRow) -> String {
    match *reach == Reach::InProcess {
        true => format!("{} needs no socket: say in_process = \"{name}\"", service.name),
        false => format!("{name} of {} needs a service", service.name),
    }
}

/// Its logs lie in a folder of this name.
fn check_name(name: &str) -> std::result::Result<(), String> {
    let is_unfit = |c: char| c == '/' || c.is_control();
    if name.is_empty() || name.len() > LONGEST_NAME_BYTES || name.contains(is_unfit) {
        return Err(format!(
            "a name has 1 to {LONGEST_NAME_BYTES} bytes, and no / or control character"
        ));
    }
    Ok(())
}

/// Which of its programs is not installed, if any.
fn missing(spec: &TargetSpec, kind: &TargetKind) -> Option<String> {
    let own = match (kind, &spec.build) {
        // What is yet to be built can't be looked for.
        (TargetKind::Command(command) | TargetKind::Batch(command), None) => Some(command),
        _ => None,
    };
    let all = [own, spec.wrap.as_ref(), spec.client.as_ref()];
    let programs = all.into_iter().flatten().map(|command| &command[0]).chain(&spec.needs);
    // Nor can what comes from a commit's worktree, which isn't there yet.
    let mut wanted = programs.filter(|program| !program.contains("{worktree}"));
    wanted.find_map(|program| Some(printable(&deploy::missing_program(program)?)))
}

/// A service of this program serves its own operations.
fn check_served(
    kind: &TargetKind,
    spec: &TargetSpec,
    service: &Service,
) -> std::result::Result<(), (String, String)> {
    let TargetKind::Service(serves, _) = kind else { return Ok(()) };
    let is_other = *serves != service.name && service.name != program::SERVICE.name;
    let is_served = service.dialects.iter().any(|row| row.reach != Reach::InProcess);
    if !is_other || !is_served || spec.speaks.is_some() {
        return Ok(());
    }
    let asked = service.name;
    let message =
        format!("{serves} doesn't serve the operations of workload.service = \"{asked}\"");
    let help = format!(
        "serve = \"{asked}\", or workload.service = \"{serves}\"; or say what it speaks in common \
         with {asked}: speaks = \"DIALECT\""
    );
    Err((message, help))
}

/// The lab chooses where a command listens, and waits for it there.
fn check_place(
    spec: &TargetSpec,
    kind: &TargetKind,
    medium: Medium,
) -> std::result::Result<(), (String, String)> {
    let TargetKind::Command(command) = kind else { return Ok(()) };
    let place = if medium == Medium::Unix { "socket" } else { "port" };
    let others = [&spec.wrap, &spec.setup].into_iter().flatten().flatten();
    let mut texts = command.iter().chain(others).chain(spec.env.values());
    let says = |text: &String| {
        placeholders::names(text).iter().any(|name| *name == place || *name == "address")
    };
    if texts.any(says) {
        return Ok(());
    }
    let message = format!(
        "it says nowhere where to listen: the lab chooses a free {place} for each start, and \
         waits for the target there"
    );
    let help = format!(
        "put {{{place}}} where the program takes its {place}, in command, env or setup; what \
         runs already is address = \"127.0.0.1:8080\""
    );
    Err((message, help))
}

fn resolve_kind(
    spec: &TargetSpec,
    registry: Registry<'_>,
) -> std::result::Result<TargetKind, (&'static str, String)> {
    if spec.in_process.is_some() {
        let others = [spec.serve.is_some(), spec.command.is_some(), spec.address.is_some()];
        let others = others.contains(&true) || spec.batch.is_some();
        return match others || spec.speaks.is_some() {
            false => Ok(TargetKind::InProcess),
            true => Err(("in_process", "such a target says no more than its client".into())),
        };
    }
    match (&spec.serve, &spec.command, &spec.address, &spec.batch) {
        (Some(name), None, None, None) => {
            let service = registry.services.iter().find(|service| service.name == name);
            let service = service.ok_or_else(|| ("serve", no_service(name, registry)))?;
            let arguments = long_flags(&spec.options).map_err(|problem| ("options", problem))?;
            (registry.check_arguments)(service.name, &arguments)
                .map_err(|problem| ("options", problem))?;
            Ok(TargetKind::Service(service.name, arguments))
        }
        _ if !spec.options.is_empty() => {
            Err(("options", "only a target with `serve` has options".into()))
        }
        (None, Some(command), None, None) if !command.is_empty() => {
            Ok(TargetKind::Command(command.clone()))
        }
        (None, None, None, Some(command)) if !command.is_empty() => {
            Ok(TargetKind::Batch(command.clone()))
        }
        (None, None, Some(address), None) => address::resolve(address, spec.allow_remote)
            .map(TargetKind::Address)
            .map_err(|problem| ("address", problem)),
        _ => {
            let message = "say exactly one of serve = \"SERVICE\", command = [\"…\"], \
                           address = \"…\", batch = [\"…\"], in_process = \"…\"";
            Err(("name", message.into()))
        }
    }
}

/// The name of the data set that a target with `data = "keep"` prepares: it follows from all that
/// the data depend on. Another program file is another data set, as its format may be.
fn kept_data(
    source: &Source,
    spec: &TargetSpec,
    target: &Target,
    workload: &Scenario,
) -> Result<Option<KeptData>> {
    let Some(data) = spec.data else { return Ok(None) };
    let wrong =
        |message: &str| Err(source.error_at(&format!("target.{}.data", spec.name), message, None));
    let command = match &target.kind {
        TargetKind::Command(command) => command,
        TargetKind::Service(_, arguments) => arguments,
        _ => return wrong("only what the lab starts, with serve or command, has data to keep"),
    };
    if !command.iter().any(|argument| argument.contains("{data}")) {
        return wrong("say in its command where {data} goes, the folder that is kept");
    }
    let mut done = workload.mix.iter().chain(&workload.steps).map(|(index, _)| *index);
    let writes = done.find(|index| workload.operations()[*index].kind == Kind::Write);
    if let Some(index) = writes.filter(|_| data == DataSpec::Reuse) {
        let name = &workload.operations()[index].name;
        let message = format!(
            "what {name} writes would be there in the next round: say \"keep\", and each start has \
             a copy"
        );
        return wrong(&message);
    }
    let preparation = workload.workload.preparation();
    if preparation.parts == 0 {
        return wrong("this workload prepares nothing that could be kept");
    }
    let program = match target.kind {
        TargetKind::Service(..) => std::env::current_exe().ok(),
        _ => deploy::program_file(&command[0]),
    };
    let program = program.and_then(|path| path.metadata().ok());
    let program = program.map(|program| (program.len(), program.modified().ok()));
    let Speaks { dialect, options } = &target.speaks;
    let of = (&target.kind, &target.setup, &target.env, dialect.name, options, program);
    let about = format!("{of:?} {} {}", workload.service.name, preparation.about);
    let name = crate::observe::sha256(about.as_bytes())[..16].to_owned();
    Ok(Some(KeptData { name, is_copied: data == DataSpec::Keep }))
}

/// Why there is no service of this name, with those that there are.
fn no_service(name: &str, registry: Registry<'_>) -> String {
    let speaks = registry.services.iter().find(|service| service.dialect(name).is_some());
    if let Some(service) = speaks {
        let service = service.name;
        return format!(
            "\"{name}\" is a dialect of {service}: serve = \"{service}\" serves it, or \
             command = [\"…\"] with speaks = \"{name}\" starts another program"
        );
    }
    let known = nearest_first(name, registry.services.iter().map(|service| service.name));
    format!("there is no service \"{name}\"; there are: {}", known.join(", "))
}

/// Patterns with one group each.
fn resolve_figures(
    figures: &BTreeMap<String, String>,
) -> std::result::Result<Vec<(String, Regex)>, String> {
    let read = |(name, pattern): (&String, &String)| {
        let pattern = Regex::new(pattern).map_err(|error| format!("{name}: {error}"))?;
        match pattern.captures_len() {
            2 => Ok((name.clone(), pattern)),
            _ => Err(format!("{name}: the pattern needs one group, such as \"took ([0-9.]+) s\"")),
        }
    };
    figures.iter().map(read).collect()
}

/// A service's options as its long flags; `true` is a flag without a value, `false` none at all.
fn long_flags(options: &toml::Table) -> std::result::Result<Vec<String>, String> {
    let mut flags = Vec::new();
    for (name, value) in options {
        let flag = format!("--{}", name.replace('_', "-"));
        match value {
            toml::Value::Boolean(false) => {}
            toml::Value::Boolean(true) => flags.push(flag),
            toml::Value::String(text) => flags.push(format!("{flag}={text}")),
            toml::Value::Integer(number) => flags.push(format!("{flag}={number}")),
            toml::Value::Float(number) => flags.push(format!("{flag}={number}")),
            _ => return Err(format!("{name} takes a plain value")),
        }
    }
    Ok(flags)
}

/// What the target's bytes travel in.
fn resolve_medium(
    dialect: &DialectRow,
    transport: Option<TransportSpec>,
) -> std::result::Result<Medium, String> {
    match (dialect.reach, transport) {
        (Reach::Datagrams, None) => Ok(Medium::Udp),
        (Reach::Datagrams, Some(_)) => {
            Err(format!("{} travels in datagrams, so there is nothing to choose", dialect.name))
        }
        (_, None | Some(TransportSpec::Tcp)) => Ok(Medium::Tcp),
        (_, Some(TransportSpec::Tcp6)) => Ok(Medium::Tcp6),
        (_, Some(TransportSpec::Unix)) => Ok(Medium::Unix),
    }
}
