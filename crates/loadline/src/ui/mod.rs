//! `loadline ui`: the ledger in a browser, for reading only. Control plane: axum on tokio.
//!
//! Nothing can be changed here and nothing is asked of another server, so that no user
//! has to log in. What is left to guard is reading: only this machine reaches it, and a request has
//! to name this machine. A page of some site whose name was made to lead here names that site.

mod guard;
mod pages;
mod reading;
mod site;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::exit::Failure;
use crate::home::Home;
use crate::out::{self, note};
use reading::Reading;
use site::Site;

/// The default address.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4380);

/// How many pages are made at a time, and how many requests may be answered or wait for their turn.
/// Each page takes a core and holds its run in memory.
const PAGES_AT_ONCE: usize = 2;
const REQUESTS_MOST: usize = 32;

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
    let home = Home::find(args.ledger.as_deref())?;
    // What would go wrong with every page goes wrong now.
    let ledger = Reading::of(home.ledger.clone());
    ledger.look(|_| ()).map_err(|error| home.failure(error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(PAGES_AT_ONCE)
        .build()
        .context("cannot start")?;
    let outcome = runtime.block_on(serve(args, ledger));
    // A page that is still being made is not waited for.
    runtime.shutdown_background();
    outcome?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: &UiArgs, ledger: Reading) -> anyhow::Result<()> {
    // Before anything is ready, so that no signal is missed.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let listener = tokio::net::TcpListener::bind(args.listen).await.with_context(|| {
        format!("cannot listen at {}; --listen 127.0.0.1:0 takes any free port", args.listen)
    })?;
    let address = listener.local_addr()?;
    let requests = Arc::new(Semaphore::new(REQUESTS_MOST));
    let site = Site { ledger, address, public: args.public, requests };
    announce(args, &site)?;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, pages::router(Arc::new(site)))
        .with_graceful_shutdown(async { drop(ended.await) });
    let serving = tokio::spawn(serving.into_future());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    drop(end);
    // Connections that are still open after that are closed.
    let _ = tokio::time::timeout(DRAIN, serving).await;
    Ok(())
}

/// Prints the address once.
fn announce(args: &UiArgs, site: &Site) -> anyhow::Result<()> {
    let address = site.address;
    if args.json {
        let ready = json!({
            "ready": true,
            "service": "ui",
            "pid": std::process::id(),
            "address": address.to_string(),
            "addresses": { "ui": address.to_string() },
            "data": site.ledger.path(),
        });
        return Ok(out::print(format!("{ready}\n"))?);
    }
    out::print(format!("http://{address}/\n"))?;
    note(format!("shows {}; Ctrl-C ends it", site.ledger.path().display()));
    Ok(())
}
