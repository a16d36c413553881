//! `loadline records`: a client for people and scripts, for any pvAccess server.

mod again;
mod get;
mod monitor;
mod npy;
mod put;
pub(crate) mod report;
mod show;
mod values;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use ::records::client::{
    Channel, Client, ClientError, Event, Operation, OperationKind, Session, Settings, find,
};
use ::records::environment::{ClientEnvironment, SERVER_PORT, place};
use ::records::model::normative;
use ::records::protocol::{Item, LEAST_SEGMENT_BYTES, Request, RequestError, Selection, Value};
use anyhow::{Context as _, bail};
use load::units::{ByteCount, UnitError};
use serde_json::json;

use crate::exit::Failure;
use crate::out::{self, note};

const EXAMPLES: &str = "\
Examples:
  loadline records get temperature                       the value, its alarm and time
  loadline records get temperature --request 'field(value)' --json
  loadline records put temperature 21.5
  loadline records put wave 1 2 3
  loadline records put mode value.index=1
  loadline records put wave 7 8 --request 'field(value[array=2:3])'      a part of an array
  loadline records put temperature 21.5 --put-get        put and read in one step
  loadline records monitor temperature                   a line for each change, until Ctrl-C
  loadline records monitor arrayPerformance --queue-size 2 --wait 0.1    a report a second
  loadline records info temperature                      its type
  loadline records list                                  servers; with --server, its channels
  loadline records call server op=info --server 127.0.0.1:5075

Servers are found as EPICS programs find them: EPICS_PVA_ADDR_LIST, EPICS_PVA_AUTO_ADDR_LIST,
EPICS_PVA_BROADCAST_PORT, EPICS_PVA_NAME_SERVERS; where others search the local network, 127.0.0.1
is asked too. With --server nobody is searched.";

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

    /// Send messages in segments of at most so many bytes
    #[arg(long, global = true, value_name = "BYTES", value_parser = segment_bytes)]
    segment: Option<usize>,

    /// Introduce yourself to servers as nobody
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

/// Opens a channel, and begins an operation on it.
fn begin(
    client: &mut Client,
    name: &str,
    what: OperationKind,
    request: &Request,
) -> anyhow::Result<(Channel, Operation)> {
    let channel = client.channel(name).with_context(|| name.to_owned())?;
    let operation = client.begin(&channel, what, request).with_context(|| name.to_owned())?;
    Ok((channel, operation))
}

/// How a command finds servers and prints.
struct Setting {
    server: Option<SocketAddr>,
    settings: Settings,
    environment: ClientEnvironment,
    json: bool,
    check: bool,
}

/// Does what is asked.
pub(crate) fn run(args: RecordsArgs) -> Result<ExitCode, Failure> {
    let environment = ClientEnvironment::read(&|name| std::env::var(name).ok());
    let environment = environment.map_err(Failure::usage)?;
    let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let user = said("USER").or_else(|| said("LOGNAME")).unwrap_or_else(|| "nobody".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let identity = (!args.anonymous).then(|| (user, host.trim().to_owned()));
    let (timeout, segment_bytes) = (args.timeout, args.segment);
    let settings = Settings { timeout, identity, segment_bytes, ..Settings::default() };
    let setting =
        Setting { server: args.server, settings, environment, json: args.json, check: args.check };
    match args.command {
        RecordsCommand::Get(args) => get::run(&setting, &args),
        RecordsCommand::Put(args) => put::run(&setting, &args),
        RecordsCommand::Monitor(args) => Ok(monitor::run(&setting, &args)?),
        RecordsCommand::Process { names } => Ok(process(&setting, &names)?),
        RecordsCommand::Info { names } => Ok(info(&setting, &names)?),
        RecordsCommand::List => Ok(list(&setting)?),
        RecordsCommand::Call { name, query } => Ok(call(&setting, &name, &query)?),
    }
}

impl Setting {
    /// A connection to the server of a channel.
    fn connect(&self, name: &str) -> anyhow::Result<Client> {
        let server = match self.server {
            Some(server) => server,
            None => find::find(name, &self.environment, &self.settings)
                .map_err(|error| advised(name, error))?,
        };
        self.connect_to(server)
    }

    fn connect_to(&self, server: SocketAddr) -> anyhow::Result<Client> {
        let client = Client::connect(server, self.settings.clone());
        client.map_err(|error| advised("", error))
    }

    /// An operation on a channel. Unless it is to end with its connection, it connects again
    /// whenever that is lost, with a line on standard error.
    fn session(
        &self,
        name: &str,
        is_once: bool,
        begin: impl FnMut(&mut Client, &Channel) -> Result<Operation, ClientError> + Send + 'static,
    ) -> anyhow::Result<Session> {
        let (server, environment) = (self.server, self.environment.clone());
        let (settings, wanted) = (self.settings.clone(), name.to_owned());
        let locate = move || match server {
            Some(server) => Ok(server),
            None => find::find(&wanted, &environment, &settings),
        };
        let session = Session::open(name, self.settings.clone(), locate, begin);
        let session = session.map_err(|error| advised(name, error))?;
        let name = name.to_owned();
        Ok(match is_once {
            true => session,
            false => session.reconnecting(move |event| report(&name, event)),
        })
    }

    /// The servers of channels, where there are any.
    fn find_all(&self, names: &[&str]) -> anyhow::Result<Vec<Option<SocketAddr>>> {
        Ok(match self.server {
            Some(server) => vec![Some(server); names.len()],
            None => find::find_all(names, &self.environment, &self.settings)?,
        })
    }

    fn print_record(&self, name: &str, item: &Item) -> anyhow::Result<()> {
        let object = json!({ "schema": 1, "name": name, "value": show::item_json(item) });
        self.print(&object, &format!("{name}  {}", show::record_line(item)))
    }

    fn print(&self, object: &serde_json::Value, text: &str) -> anyhow::Result<()> {
        let mut out = out::stream();
        match self.json {
            true => writeln!(out, "{object}")?,
            false => writeln!(out, "{text}")?,
        }
        Ok(())
    }
}

/// Reports what happens to a channel's connection.
fn report(name: &str, event: &Event<'_>) {
    note(match event {
        Event::Disconnected(why) => format!("{name}: disconnected: {why}; connecting again"),
        Event::Unreachable(why) => format!("{name}: not connected yet: {why}"),
        Event::Connected(server) => format!("{name}: connected to {server}"),
    });
}

/// An error with advice where there is any, and the channel that it is about.
fn advised(name: &str, error: ClientError) -> anyhow::Error {
    let advice = match &error {
        ClientError::NotFound(_) => {
            "no server answers for it: name one with --server, or say where to search with \
             EPICS_PVA_ADDR_LIST"
                .to_owned()
        }
        ClientError::Io(server, _) => {
            format!("cannot reach {server}; start a server with `loadline serve records`")
        }
        _ if name.is_empty() => return error.into(),
        _ => name.to_owned(),
    };
    anyhow::Error::new(error).context(advice)
}

fn process(setting: &Setting, names: &[String]) -> anyhow::Result<ExitCode> {
    for name in names {
        let mut client = setting.connect(name)?;
        let channel = client.channel(name).with_context(|| name.clone())?;
        let operation = client.begin(&channel, OperationKind::Process, &Request::default());
        client.process(&operation.with_context(|| name.clone())?).with_context(|| name.clone())?;
        let all = Request { field: Some(Selection::default()), ..Request::default() };
        let mut get =
            client.begin(&channel, OperationKind::Get, &all).with_context(|| name.clone())?;
        client.get(&mut get).with_context(|| name.clone())?;
        let item = get.item().context("a channel's value")?;
        setting.print_record(name, item)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn info(setting: &Setting, names: &[String]) -> anyhow::Result<ExitCode> {
    for name in names {
        let mut client = setting.connect(name)?;
        let channel = client.channel(name).with_context(|| name.clone())?;
        let kind = client.describe(&channel, "").with_context(|| name.clone())?;
        let server = client.address().to_string();
        let object = json!({
            "schema": 1, "name": name, "server": server, "type": show::type_json(&kind),
        });
        setting.print(&object, &format!("{name}  {server}\n{kind}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(setting: &Setting) -> anyhow::Result<ExitCode> {
    if setting.server.is_none() {
        let found = find::servers(&setting.environment, setting.settings.timeout.min(WAIT))?;
        for one in &found {
            let guid: String = one.guid.iter().map(|byte| format!("{byte:02x}")).collect();
            let object = json!({ "schema": 1, "guid": guid, "server": one.server.to_string() });
            setting.print(&object, &format!("{guid}  {}", one.server))?;
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
    let answer = ask(setting, "server", &query)?;
    let names = match answer.as_ref().and_then(|item| item.get("value")) {
        Some(Value::Strings(names)) => names.clone(),
        _ => bail!("the server doesn't list its channels"),
    };
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    setting.print(&json!({ "schema": 1, "channels": names }), &names.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// How long servers are waited for that don't have to be there.
const WAIT: Duration = Duration::from_secs(1);

fn call(setting: &Setting, name: &str, query: &[(String, String)]) -> anyhow::Result<ExitCode> {
    let answer = ask(setting, name, query)?;
    let (object, text) = match &answer {
        Some(item) => (show::item_json(item), show::item_text(item)),
        None => (serde_json::Value::Null, "nothing".to_owned()),
    };
    setting.print(&json!({ "schema": 1, "answer": object }), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Calls a channel with an NTURI, which is what EPICS services take.
fn ask(setting: &Setting, name: &str, query: &[(String, String)]) -> anyhow::Result<Option<Item>> {
    let kind = normative::uri(query.iter().map(|(name, _)| name.as_str()));
    let mut argument = Item::new(kind).with("scheme", "pva").with("path", name);
    for (field, text) in query {
        argument.set(&format!("query.{field}"), text.as_str());
    }
    let mut client = setting.connect(name)?;
    let channel = client.channel(name).with_context(|| name.to_owned())?;
    let operation = client.begin(&channel, OperationKind::Call, &Request::default())?;
    client.call(&operation, &argument).with_context(|| name.to_owned())
}

/// A request as it is written.
fn request(written: &str) -> Result<Request, RequestError> {
    Request::parse(written)
}

/// A server's address as it is written, with the usual port where it names none.
fn server_address(written: &str) -> Result<SocketAddr, String> {
    place(written, SERVER_PORT).ok_or_else(|| {
        "write an address such as 127.0.0.1, 127.0.0.1:5075 or a host's name".to_owned()
    })
}

/// The size of a segment, with its unit.
pub(crate) fn segment_bytes(written: &str) -> Result<usize, String> {
    let bytes: ByteCount = written.parse().map_err(|error: UnitError| error.to_string())?;
    let fits = (LEAST_SEGMENT_BYTES as u64..=u32::MAX.into()).contains(&bytes.bytes);
    let advice = || format!("a segment has {LEAST_SEGMENT_BYTES} bytes to 4 GiB - 1");
    usize::try_from(bytes.bytes).ok().filter(|_| fits).ok_or_else(advice)
}

/// A number of seconds, such as `0.1`.
pub(crate) fn seconds(written: &str) -> Result<Duration, String> {
    let seconds = written.parse().ok().filter(|seconds: &f64| (0.0..1e6).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write seconds, such as 0.1".to_owned())
}

fn pair(written: &str) -> Result<(String, String), String> {
    let (name, value) = written.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
