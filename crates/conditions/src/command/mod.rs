//! `loadline conditions`: a client for people and scripts. Control plane.

mod beside;
mod change;
mod check;
mod context;
mod csv;
mod export;
mod input;
mod insert;
#[cfg(feature = "parquet")]
mod parquet;
mod parts;
mod show;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;
mod way;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value as Json, json};
use service::{Failure, Outcome, Run, TrustArgs, first_token, out, parse_address};
use wire::Address;

use crate::client::{Client, ClientError, Trust};
use crate::serve::PORT;
use crate::server::BadDirectory;
use change::{ColumnArgs, CreateArgs, NameArgs, RenameArgs, TagCommand, TruncateArgs};
use check::{BadShared, CheckArgs, Damaged};
use context::Context;
use export::ExportArgs;
use insert::InsertArgs;
use show::{BrowseArgs, DiffArgs, ExplainArgs, GetArgs, SliceArgs};

const EXAMPLES: &str = "\
Examples:
  loadline conditions create /det/temperature --column value=float --column ok=bool
  loadline conditions insert /det/temperature --channel 3 --since 100 value=20.5 ok=true
  loadline conditions insert /det/temperature --file temperatures.csv
  loadline conditions insert --file objects.jsonl         many folders
  loadline conditions insert --file objects.jsonl --dry-run      only checked
  loadline conditions get /det/temperature 150            what is shown at 150
  loadline conditions browse /det/temperature --since 0 --until 500 --order time
  loadline conditions slice 150 --under /det              all folders at a time
  loadline conditions tag create run-1 /det               what the head shows now
  loadline conditions explain /det/temperature 150 --tag run-1
  loadline conditions diff /det --tag run-1               what the head shows differently
  loadline conditions export /det --time 150 --out det.sqlite
  loadline conditions list --tls-ca authority.pem         encrypted
  loadline conditions check data                          is the directory whole?
  loadline conditions check --metadata postgres://loadline@db/conditions \
      --segments s3://bucket/conditions                   is what servers share whole?
  loadline conditions backup data /backups/monday         a copy, while it is served
  loadline conditions compact                             fewer and larger segments

A CSV has a header: channel,since,until,record and the folder's columns. An empty until is open, an
empty field has no value, and \"\" is empty text. record counts the records of an object from 0;
without it each line is an object. A line of JSON is an object, with a folder where none is named:
  {\"folder\": \"/det/temperature\", \"channel\": 3, \"since\": 100, \"values\": [20.5, true]}
A file goes in parts of 12 MiB, each inserted whole or not at all. One that broke off says how far
it got; --skip goes on from there. With --json a refusal is JSON, too: what the server says of it is
in \"refused\", with its \"status\". Every command has its own --help.";

/// Arguments of `loadline conditions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConditionsArgs {
    /// The server: HOST or HOST:PORT, at port 8350 unless that says another
    #[arg(long, global = true, value_name = "HOST", default_value = "127.0.0.1")]
    server: String,

    /// The first token of this file is sent with changes
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// How long an answer may take, such as 30s; of an export, which may take longer, a silence in
    /// it
    #[arg(long, global = true, value_name = "TIME", default_value = "60s", value_parser = timeout)]
    timeout: Duration,

    /// Print JSON, also of what is refused
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    encryption: TrustArgs,

    #[command(subcommand)]
    command: ConditionsCommand,
}

/// The longest time that an answer may be given.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// A time with its unit, or a whole number of seconds.
fn timeout(written: &str) -> Result<Duration, String> {
    let seconds = written.parse().map(Duration::from_secs).ok();
    let time = seconds.or_else(|| Some(written.parse::<base::units::Span>().ok()?.duration()));
    let time = time.filter(|time| !time.is_zero() && *time <= LONGEST_TIMEOUT);
    time.ok_or_else(|| "write a time of at most 24h, such as 30s".to_owned())
}

/// A client of this server.
fn client(
    server: &Server,
    encryption: &TrustArgs,
    token: Option<String>,
    timeout: Duration,
) -> anyhow::Result<Client> {
    let Some(trusted) = encryption.read()? else {
        return Ok(Client::new(&server.address.to_string(), token, timeout));
    };
    let name = encryption.tls_name.as_deref().or(server.name.as_deref());
    let trust = Trust { authorities: &trusted.authorities, identity: trusted.identity(), name };
    let client = Client::encrypted(server.address, &trust, token, timeout);
    client.context("--tls-ca, --tls-cert and --tls-key name files of PEM")
}

#[derive(Debug, clap::Subcommand)]
enum ConditionsCommand {
    /// Make a folder, or a folder set
    Create(CreateArgs),
    /// Insert objects: one that is typed, or those of a file
    Insert(InsertArgs),
    /// Print what channels show at a time
    Get(GetArgs),
    /// Print which object channels show at a time, and since which change: as `get --why`
    Explain(ExplainArgs),
    /// Print what channels show over a range of times
    Browse(BrowseArgs),
    /// Print what two tags, revisions or dates show differently
    Diff(DiffArgs),
    /// Print, or write to a file, what all folders of a set show at a time
    Slice(SliceArgs),
    /// End what the head shows, in a folder of one version
    Truncate(TruncateArgs),
    /// Tag, clone, lock and delete tags, and list them
    #[command(subcommand)]
    Tag(TagCommand),
    /// Add a column to a folder
    AddColumn(ColumnArgs),
    /// Rename a column of a folder
    RenameColumn(RenameArgs),
    /// Name a channel
    NameChannel(NameArgs),
    /// Write what is shown over a range of times, or at one, to a file
    Export(ExportArgs),
    /// Read all of a data directory, or of what several servers share, and say whether it is whole
    /// (exit code 0) or damaged (1); no server is asked
    Check(CheckArgs),
    /// Copy a data directory while its server goes on, and check the copy, which can be served
    ///
    /// It holds every change that was acknowledged when it began, and none without those before
    /// it. Neither readers nor writers wait for it. Segments and stored files, which never change,
    /// are linked where the copy is on the same file system, and copied elsewhere. A copy that
    /// did not come to its end has no file FORMAT, and is refused by `check` and `serve`.
    Backup {
        /// The directory, which a server may have open
        data: PathBuf,
        /// Where the copy is made; nothing may be there
        out: PathBuf,
    },
    /// Seal what came so far, and put together what is sealed in small pieces, while the server
    /// goes on
    ///
    /// Sealing does so in the background as far as it pays. This is for what it leaves: blocks that
    /// insertions far back have left half full, what is past in several segments, and the bytes of
    /// tags that were deleted. It takes as long as it takes to write the blocks concerned.
    Compact,
    /// Print folders and folder sets
    List {
        /// Those at and below this path
        #[arg(default_value = "/")]
        under: String,
    },
}

impl Run for ConditionsArgs {
    fn run(self) -> Outcome {
        let server = server(&self.server).map_err(Failure::Usage)?;
        let token = self.token_file.as_deref().map(first_token).transpose();
        let token = token.map_err(Failure::usage)?;
        let client = client(&server, &self.encryption, token, self.timeout);
        let client = client.map_err(Failure::usage)?;
        let json = self.json;
        let done = self.command.run(&Context { client, json });
        done.map(|()| ExitCode::SUCCESS).map_err(|error| {
            // Of a directory that is damaged the report says so already.
            if json && !error.is::<Damaged>() {
                // Where it can't be printed, standard error has it all the same.
                let _ = out::print(format!("{}\n", refused(&error)));
            }
            failure(error)
        })
    }
}

impl ConditionsCommand {
    fn run(self, context: &Context) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => change::create(context, args),
            Self::Insert(args) => insert::insert(context, args),
            Self::Get(args) => show::get(context, &args),
            Self::Explain(args) => show::explain(context, &args),
            Self::Browse(args) => show::browse(context, &args),
            Self::Diff(args) => show::diff(context, &args),
            Self::Slice(args) => show::slice(context, &args),
            Self::Truncate(args) => change::truncate(context, args),
            Self::Tag(command) => change::tag(context, command),
            Self::AddColumn(args) => change::add_column(context, args),
            Self::RenameColumn(args) => change::rename_column(context, args),
            Self::NameChannel(args) => change::name_channel(context, args),
            Self::Export(args) => export::export(context, &args),
            Self::Check(args) => check::check(context, args),
            Self::Backup { data, out } => check::backup(context, &data, &out),
            Self::Compact => change::compact(context),
            Self::List { under } => show::list(context, under),
        }
    }
}

/// Where the server is.
#[derive(Debug)]
struct Server {
    address: SocketAddr,
    /// The host's name, where that was typed: its certificate is for it, not for the address.
    name: Option<String>,
}

/// The server: at an address as it is typed, or at that of a host's name.
fn server(typed: &str) -> Result<Server, String> {
    let bare = typed.strip_prefix("http://").unwrap_or(typed).trim_end_matches('/');
    if let Ok(Address::Internet(address)) = parse_address(bare, PORT) {
        // `localhost` is read as an address, too.
        let is_name = bare == "localhost" || bare.starts_with("localhost:");
        return Ok(Server { address, name: is_name.then(|| "localhost".to_owned()) });
    }
    let (name, port) =
        bare.rsplit_once(':').map_or((bare, Ok(PORT)), |(name, port)| (name, port.parse::<u16>()));
    let unread = || {
        let encrypted = "; --tls-ca FILE encrypts";
        let more = if bare.starts_with("https://") { encrypted } else { "" };
        format!("--server {typed}: write HOST or HOST:PORT, such as 127.0.0.1:{PORT}{more}")
    };
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', ':', ' ']);
    let port = port.ok().filter(|_| is_name(name)).ok_or_else(unread)?;
    let unknown =
        |why: &dyn std::fmt::Display| format!("--server {typed}: no address of it: {why}");
    let mut found = (name, port).to_socket_addrs().map_err(|why| unknown(&why))?;
    let address = found.next().ok_or_else(|| unknown(&"it has none"))?;
    Ok(Server { address, name: Some(name.to_owned()) })
}

/// An error as a program reads it: with what the server says, where that refuses.
fn refused(error: &anyhow::Error) -> Json {
    let mut said = json!({ "schema": 1, "error": format!("{error:#}") });
    if let Some(ClientError::Refused { status, body }) = error.downcast_ref() {
        said["status"] = json!(status);
        said["refused"] = json!(body);
    }
    said
}

/// What the server finds wrong with a request was typed wrong, and so is a directory that can't be
/// checked: exit code 2.
fn failure(error: anyhow::Error) -> Failure {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Refused { status: 400 | 404 | 413, .. }) => Failure::usage(error),
        Some(ClientError::Refused { status: 401, body }) => {
            let fix = "--token-file FILE sends the first token of a file";
            Failure::Other(anyhow::anyhow!("{}: {fix}", body.error))
        }
        _ if error.is::<input::BadInput>() || error.is::<BadDirectory>() => Failure::usage(error),
        _ if error.is::<BadShared>() => Failure::usage(error),
        _ => Failure::Other(error),
    }
}
