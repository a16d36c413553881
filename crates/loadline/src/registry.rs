//! The one table of services. The lab knows a service only through its row here.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use clap::{ArgMatches, Command};
use load::Reach;
use service::Outcome;

/// A service's commands, where it has any, its workloads and dialects for the lab, and what `try`
/// asks of the first of them.
struct Row(
    Option<&'static service::Service>,
    &'static [&'static load::Service],
    Option<&'static Sample>,
);

/// The workload of a first question about a service.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Its operations, as a line of `[workload]`.
    pub(crate) operations: &'static str,
    /// How many keys it has; `None` where there are none.
    pub(crate) keys: Option<u64>,
    /// The line of `[workload]` with the size of values: before and behind the number. And the
    /// size unless one is given.
    pub(crate) size: Option<(&'static str, &'static str, Option<u64>)>,
    /// What a reader has to know of the figures, beside how many keys are written.
    pub(crate) compromise: Option<&'static str>,
}

#[rustfmt::skip]
static CACHE: Sample = Sample {
    operations: "mix = { get = 9, set = 1 }",
    keys: Some(10_000),
    size: Some(("value = { bytes = ", " }", Some(100))),
    compromise: None,
};

#[rustfmt::skip]
static RECORDS: Sample = Sample {
    operations: "operation = \"get\"",
    keys: Some(10),
    size: Some(("size = ", "", None)),
    compromise: None,
};

#[rustfmt::skip]
static CONDITIONS: Sample = Sample {
    operations: "operation = \"slice\"\nwritten_by = \"target\"",
    keys: None,
    size: None,
    compromise: Some("each server is asked for what it has: what its values should be is unknown"),
};

#[rustfmt::skip]
static RPC: Sample = Sample {
    operations: "operation = \"unary\"",
    keys: None,
    size: Some(("bytes = ", "", None)),
    compromise: None,
};

#[rustfmt::skip]
static NULL: Sample = Sample {
    operations: "operation = \"ask\"",
    keys: None,
    size: None,
    compromise: None,
};

/// Every service of this program, a line each.
#[rustfmt::skip]
static ROWS: &[Row] = &[
    Row(Some(&cache::SERVICE), &[&cache::load::SERVICE, &cache::load::CODECS], Some(&CACHE)),
    Row(Some(&records::SERVICE), &[&records::load::SERVICE], Some(&RECORDS)),
    Row(Some(&conditions::SERVICE), &conditions::load::SERVICES, Some(&CONDITIONS)),
    Row(Some(&rpc::SERVICE), &[&rpc::load::SERVICE, &rpc::load::CODECS], Some(&RPC)),
    Row(Some(&workflow::SERVICE), &[&workflow::load::SERVICE, &workflow::load::TREE], None),
    Row(Some(&null::SERVICE), &[&load::null::SERVICE], Some(&NULL)),
    Row(None, &[&http::load::SERVICE, &http::load::CODECS], None),
];

/// What the lab has to know of this program.
pub(crate) fn registry() -> lab::plan::Registry<'static> {
    static LOADS: LazyLock<Vec<&'static load::Service>> =
        LazyLock::new(|| ROWS.iter().flat_map(|row| row.1).copied().collect());
    // Of a cache what was written may be gone; records are there, or the read has failed.
    let may_miss = |service: &str| service == cache::load::SERVICE.name;
    let check_arguments = &check_arguments;
    lab::plan::Registry { services: &LOADS, check_arguments, default_of, page, may_miss }
}

/// A dialect that `try` can ask a question in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoken {
    /// The dialect.
    pub(crate) dialect: &'static load::DialectRow,
    /// The service whose operations it has.
    pub(crate) service: &'static load::Service,
    /// What is asked.
    pub(crate) sample: &'static Sample,
    /// The service of this program that speaks it, where one does.
    pub(crate) server: Option<&'static str>,
    /// Whether lists leave it out.
    pub(crate) is_hidden: bool,
}

/// Every dialect that `try` can ask a question in.
pub(crate) fn spoken() -> impl Iterator<Item = Spoken> {
    ROWS.iter().flat_map(|Row(server, loads, sample)| {
        let service = loads.first().copied();
        service.zip(*sample).into_iter().flat_map(move |(service, sample)| {
            let dialects = service.dialects.iter().enumerate();
            // Of peers whose calls block, the tables are the lab's own.
            let is_spoken = |(place, dialect): &(usize, &load::DialectRow)| match dialect.reach {
                Reach::Stream | Reach::Datagrams => true,
                reach => reach == Reach::Calls && *place == 0,
            };
            dialects.filter(is_spoken).map(move |(place, dialect)| {
                let own = server.filter(|_| place == 0);
                let is_hidden = server.is_some_and(|server| server.is_hidden);
                let server = own.map(|server| server.name);
                Spoken { dialect, service, sample, server, is_hidden }
            })
        })
    })
}

/// What reads a page of Prometheus text.
fn page(host: &str, path: &str) -> Result<Arc<dyn load::Counters>, wire::ProtocolError> {
    Ok(Arc::new(http::load::Metrics::new(host, path)?))
}

fn services() -> impl Iterator<Item = &'static service::Service> {
    ROWS.iter().filter_map(|row| row.0)
}

const EXAMPLES: &str = "\
Examples:
  loadline serve cache --memory 256MiB
  loadline serve records --config records.toml
  loadline serve conditions --data data
  loadline serve rpc
  loadline serve workflow --data home

Each prints one line of JSON when it is ready. The first SIGTERM or Ctrl-C ends it in good order;
SIGHUP has it read accounts, tokens and certificates again.";

/// `serve NAME` of every service.
fn serve() -> Command {
    let serve = Command::new("serve").about("Serve a service").after_help(EXAMPLES);
    let serve = serve.subcommand_required(true).arg_required_else_help(true);
    serve.subcommands(services().map(service::Service::serve_command))
}

/// The commands of all services, to be added to those of the lab.
pub(crate) fn commands() -> impl Iterator<Item = Command> {
    let clients = services()
        .filter_map(|service| service.command.map(|(doc, face)| face.command(service.name, doc)));
    std::iter::once(serve()).chain(clients)
}

/// The words that were typed, for a command. By the name of ecFlow's server this program serves as
/// that does, at all addresses unless told otherwise.
pub(crate) fn typed(
    command: Command,
    words: impl Iterator<Item = OsString>,
) -> (Command, Vec<OsString>) {
    const ECFLOW_SERVER: &str = "ecflow_server";
    let mut words: Vec<_> = words.collect();
    let name = words.first().and_then(|name| Path::new(name).file_name());
    if name.is_none_or(|name| name != ECFLOW_SERVER) {
        return (command, words);
    }
    let meant = ["serve", workflow::SERVICE.name, "--ecflow-server"];
    words.splice(1..1, meant.map(OsString::from));
    let (who, version) = workflow::server::VERSION_LINE.split_once(' ').unwrap_or_default();
    let theirs = |serve: Command| {
        let serve = serve.override_usage(format!("{ECFLOW_SERVER} [OPTIONS]"));
        let serve = serve.display_name(who).version(version).long_version(version);
        serve.mut_arg("listen", |listen| listen.default_value("0.0.0.0"))
    };
    let command = command.mut_subcommand(meant[0], |all| all.mut_subcommand(meant[1], theirs));
    (command, words)
}

/// Runs the service's command that was typed, if it was one.
pub(crate) fn run(matches: &ArgMatches) -> Option<Outcome> {
    let (name, matches) = matches.subcommand()?;
    let named = |name: &str| services().find(|service| service.name == name);
    if name == "serve" {
        let (name, matches) = matches.subcommand()?;
        return Some(named(name)?.serve.run(matches));
    }
    let (_, face) = named(name)?.command?;
    Some(face.run(matches))
}

/// Whether `serve SERVICE ARGUMENTS` would be understood; nothing is started.
fn check_arguments(service: &str, arguments: &[String]) -> Result<(), String> {
    let fixed = ["serve", service].map(str::to_owned);
    let command = serve().bin_name("loadline serve");
    match command.try_get_matches_from(fixed.into_iter().chain(arguments.iter().cloned())) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.render().to_string();
            // The first lines name the mistake; the rest repeats the usage of the command line.
            let lines = text.lines().take_while(|line| !line.starts_with("Usage"));
            let lines: Vec<_> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
            Err(lines.join("; ").trim_start_matches("error: ").replace("--", ""))
        }
    }
}

/// The default of an option of `serve SERVICE`, by its long name.
fn default_of(service: &str, option: &str) -> Option<String> {
    let serve = services().find(|row| row.name == service)?.serve_command();
    let option = serve.get_arguments().find(|argument| argument.get_long() == Some(option))?;
    let [value] = option.get_default_values() else { return None };
    Some(value.to_string_lossy().into_owned())
}

/// What is known of how this program was built; `build.rs` asks while it is.
pub(crate) fn build() -> Vec<(&'static str, String)> {
    let known = [
        ("program_commit", option_env!("LOADLINE_COMMIT")),
        ("compiler", option_env!("LOADLINE_COMPILER")),
        ("compiler_flags", option_env!("LOADLINE_FLAGS")),
    ];
    known.into_iter().filter_map(|(name, fact)| Some((name, fact?.to_owned()))).collect()
}
