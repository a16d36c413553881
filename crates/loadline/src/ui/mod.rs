//! `loadline ui`: the ledger in a browser, for reading only, on the HTTP control plane of services.
//!
//! Nothing can be changed here and nothing is asked of another server, so that no user
//! has to log in. What is left to guard is reading: only this machine reaches it, and a request has
//! to name this machine. A page of some site whose name was made to lead here names that site.

mod pages;
mod site;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use service::{Face, HttpServer, HttpSettings, TerminationSignals};
use tokio::sync::Semaphore;

use crate::exit::Failure;
use crate::out::{self, note};
use crate::storage::Storage;
use site::Site;

/// The default address.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4380);

/// How many requests may be answered or wait for their turn: each page takes a core and holds its
/// run in memory.
const MAX_REQUESTS: usize = 32;

/// How long answers may take to leave after the signal to end.
const DRAIN: Duration = Duration::from_secs(2);

/// Arguments of `loadline ui`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline ui
  loadline ui --listen 127.0.0.1:0          any free port; the line that is printed says which
  loadline ui --ledger nightly.sqlite

It reads only, and runs until Ctrl-C or SIGTERM. A run that is being measured may be looked at, but
each look takes CPU time from it: docs/reports.md.")]
pub(crate) struct UiArgs {
    /// Where to listen
    #[arg(long, short = 'l', value_name = "ADDRESS:PORT", default_value_t = LISTEN)]
    listen: SocketAddr,
    /// Allow --listen at an address that other machines reach: they read the whole ledger
    #[arg(long)]
    public: bool,
    /// Print the line that says where it is as JSON
    #[arg(long)]
    json: bool,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

pub(crate) fn run(args: &UiArgs) -> Result<ExitCode, Failure> {
    if !args.listen.ip().is_loopback() && !args.public {
        return Err(Failure::Usage(format!(
            "other machines may reach {} and read the whole ledger there: listen at {LISTEN}, \
             or say --public if that is meant",
            args.listen
        )));
    }
    let storage = Storage::find(args.ledger.as_deref())?;
    // What would go wrong with every page goes wrong now.
    storage.read()?;
    // Before anything is ready, so that no signal is missed.
    let end = TerminationSignals::catch()?;
    let (address, face) = (args.listen, Face::Pages);
    let settings = HttpSettings { address, takes_names: false, tokens: None, face };
    let site =
        Site { ledger: storage.ledger.clone(), requests: Arc::new(Semaphore::new(MAX_REQUESTS)) };
    let server = HttpServer::start(settings, |_| pages::router(Arc::new(site)));
    let server = server
        .map_err(|error| anyhow::anyhow!("{error:#}; --listen 127.0.0.1:0 takes any free port"))?;
    announce(args, &storage.ledger, server.address())?;
    end.wait_only();
    // Connections that are open any longer are cut off.
    server.stop(DRAIN);
    Ok(ExitCode::SUCCESS)
}

/// Prints once where it is.
fn announce(args: &UiArgs, ledger: &Path, address: SocketAddr) -> anyhow::Result<()> {
    if args.json {
        let ready = json!({
            "ready": true,
            "service": "ui",
            "pid": std::process::id(),
            "address": address.to_string(),
            "addresses": { "ui": address.to_string() },
            "data": ledger,
        });
        return Ok(out::print(format!("{ready}\n"))?);
    }
    out::print(format!("http://{address}/\n"))?;
    note(format!("shows {}; Ctrl-C ends it", ledger.display()));
    Ok(())
}
