//! `loadline records`: a client for people and scripts, for any pvAccess server. Control plane.

mod again;
mod context;
mod from_json;
mod get;
mod monitor;
mod npy;
mod put;
pub(crate) mod report;
mod scalars;
mod show;
pub(crate) mod typed;
mod values;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::json;
use service::out::note;
use service::{Failure, Outcome, Run};

use crate::client::{OperationKind, Settings, find};
use crate::environment::ClientEnvironment;
use crate::model::normative;
use crate::protocol::{Item, Request, Selection, Value};
use context::{CommandContext, WAIT};
use typed::{pair, seconds, segment_bytes, server_address};

const EXAMPLES: &str = "\
Examples:
  loadline records get temperature                       the value, its alarm and time
  loadline records get temperature --request 'field(value)' --json
  loadline records put temperature 21.5
  loadline records put wave 1 2 3
  loadline records put mode value.index=1
  loadline records put rows 'value=[{\"a\": 1}, {\"a\": 2}]'   structures, unions, any
  loadline records put wave 7 8 --request 'field(value[array=2:3])'      a part of an array
  loadline records put temperature 21.5 --put-get        put and read in one step
  loadline records monitor temperature                   a line for each change, until Ctrl-C
  loadline records monitor arrayPerformance --queue-size 2 --wait 0.1    a report a second
  loadline records info temperature                      its type
  loadline records list                                  servers; with --server, its channels
  loadline records call server op=info --server 127.0.0.1:5075

Servers are found as EPICS programs find them: EPICS_PVA_ADDR_LIST, EPICS_PVA_AUTO_ADDR_LIST,
EPICS_PVA_BROADCAST_PORT, EPICS_PVA_NAME_SERVERS; where others search the local network, 127.0.0.1
is asked too. With --server no search is made.";

/// Arguments of `loadline records`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    /// The server: ADDRESS or ADDRESS:PORT; it is searched for unless it is given
    #[arg(long, global = true, value_name = "ADDRESS", value_parser = server_address)]
    server: Option<SocketAddr>,

    /// How many seconds an answer may take
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    timeout: Duration,

    /// Send messages in segments of at most this number of bytes
    #[arg(long, global = true, value_name = "BYTES", value_parser = segment_bytes)]
    segment: Option<usize>,

    /// Introduce yourself to servers anonymously
    #[arg(long, global = true)]
    anonymous: bool,

    /// Check that all elements of an array are alike, as array programs make them: reports count
    /// those that aren't, and the command fails at its end
    #[arg(long, global = true)]
    check: bool,

    /// Print JSON: an object a line
    #[arg(long, global = true)]
    json: bool,

    /// What to do
    #[command(subcommand)]
    command: RecordsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RecordsCommand {
    /// Print what channels hold
    Get(get::GetArgs),
    /// Change what a channel holds
    Put(put::PutArgs),
    /// Have records do what they do when they are asked to, and print what they hold then
    Process {
        /// The channels
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print what a channel holds each time that it changes
    Monitor(monitor::MonitorArgs),
    /// Print the types of channels
    Info {
        /// The channels
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print the servers that answer or, with --server, the channels of one
    List,
    /// Call a channel
    Call {
        /// The channel
        name: String,
        /// What to ask it
        #[arg(value_name = "NAME=VALUE", value_parser = pair)]
        query: Vec<(String, String)>,
    },
}

impl Run for RecordsArgs {
    fn run(self) -> Outcome {
        let environment = ClientEnvironment::read(&|name| std::env::var(name).ok());
        let environment = environment.map_err(Failure::usage)?;
        let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let user = said("USER").or_else(|| said("LOGNAME")).unwrap_or_else(|| "nobody".to_owned());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let identity = (!self.anonymous).then(|| (user, host.trim().to_owned()));
        let (timeout, segment_bytes) = (self.timeout, self.segment);
        let settings = Settings { timeout, identity, segment_bytes, ..Settings::default() };
        let context = CommandContext {
            server: self.server,
            settings,
            environment,
            json: self.json,
            check: self.check,
        };
        match self.command {
            RecordsCommand::Get(args) => get::run(&context, &args),
            RecordsCommand::Put(args) => put::run(&context, &args),
            RecordsCommand::Monitor(args) => Ok(monitor::run(&context, &args)?),
            RecordsCommand::Process { names } => Ok(process(&context, &names)?),
            RecordsCommand::Info { names } => Ok(info(&context, &names)?),
            RecordsCommand::List => Ok(list(&context)?),
            RecordsCommand::Call { name, query } => Ok(call(&context, &name, &query)?),
        }
    }
}

fn process(context: &CommandContext, names: &[String]) -> anyhow::Result<ExitCode> {
    for name in names {
        let mut client = context.connect(name)?;
        let channel = client.channel(name).with_context(|| name.clone())?;
        let operation = client.begin(&channel, OperationKind::Process, &Request::default());
        client.process(&operation.with_context(|| name.clone())?).with_context(|| name.clone())?;
        let all = Request { field: Some(Selection::default()), ..Request::default() };
        let mut get =
            client.begin(&channel, OperationKind::Get, &all).with_context(|| name.clone())?;
        client.get(&mut get).with_context(|| name.clone())?;
        let item = get.item().context("a channel's value")?;
        context.print_record(name, item)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn info(context: &CommandContext, names: &[String]) -> anyhow::Result<ExitCode> {
    for name in names {
        let mut client = context.connect(name)?;
        let channel = client.channel(name).with_context(|| name.clone())?;
        let kind = client.describe(&channel, "").with_context(|| name.clone())?;
        let server = client.address().to_string();
        let object = json!({
            "schema": 1, "name": name, "server": server, "type": show::type_json(&kind),
        });
        context.print(&object, &format!("{name}  {server}\n{kind}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &CommandContext) -> anyhow::Result<ExitCode> {
    if context.server.is_none() {
        let found = find::servers(&context.environment, context.settings.timeout.min(WAIT))?;
        for one in &found {
            let guid: String = one.guid.iter().map(|byte| format!("{byte:02x}")).collect();
            let object = json!({ "schema": 1, "guid": guid, "server": one.server.to_string() });
            context.print(&object, &format!("{guid}  {}", one.server))?;
        }
        if found.is_empty() {
            bail!(
                "no server answers: say where to search with EPICS_PVA_ADDR_LIST, or name one \
                   with --server"
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let query = [("op".to_owned(), "channels".to_owned())];
    let answer = ask(context, "server", &query)?;
    let names = match answer.as_ref().and_then(|item| item.get("value")) {
        Some(Value::Strings(names)) => names.clone(),
        _ => bail!("the server doesn't list its channels"),
    };
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    if names.is_empty() && !context.json {
        note("the server has no channels");
        return Ok(ExitCode::SUCCESS);
    }
    context.print(&json!({ "schema": 1, "channels": names }), &names.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The answer of a call as JSON.
#[derive(Serialize)]
struct AnswerJson<'a> {
    schema: u32,
    answer: Option<show::NodesJson<'a>>,
}

fn call(
    context: &CommandContext,
    name: &str,
    query: &[(String, String)],
) -> anyhow::Result<ExitCode> {
    let answer = ask(context, name, query)?;
    let text = answer.as_ref().map_or("nothing".to_owned(), show::item_text);
    let answer = answer.as_ref().map(show::item_json);
    context.print(&AnswerJson { schema: 1, answer }, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Calls a channel with an NTURI, which is what EPICS services take.
fn ask(
    context: &CommandContext,
    name: &str,
    query: &[(String, String)],
) -> anyhow::Result<Option<Item>> {
    let kind = normative::uri(query.iter().map(|(name, _)| name.as_str()));
    let mut argument = Item::new(kind).with("scheme", "pva").with("path", name);
    for (field, text) in query {
        argument.set(&format!("query.{field}"), text.as_str());
    }
    let mut client = context.connect(name)?;
    let channel = client.channel(name).with_context(|| name.to_owned())?;
    let operation = client.begin(&channel, OperationKind::Call, &Request::default())?;
    client.call(&operation, &argument).with_context(|| name.to_owned())
}
