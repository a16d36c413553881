//! `loadline ui`: the ledger in a browser, for reading only. Control plane: axum on tokio.
//!
//! Nothing can be changed here and nothing is asked of another server, so that nobody has to say
//! who they are. What is left to guard is reading: only this machine reaches it, and a request has
//! to name this machine. A page of some site whose name was made to lead here names that site.

mod guard;

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Path as InPath, Query, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ledger::{Ledger, LedgerError, RunId};
use report::{Sights, Summary};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::exit::Failure;
use crate::home::Home;

/// Where it listens unless told otherwise.
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

/// What every request needs.
#[derive(Debug)]
struct Site {
    ledger: PathBuf,
    address: SocketAddr,
    public: bool,
    requests: Arc<Semaphore>,
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
    drop(Ledger::open_read_only(&home.ledger)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(PAGES_AT_ONCE)
        .build()
        .context("cannot start")?;
    let outcome = runtime.block_on(serve(args, home.ledger));
    // A page that is still being made is not waited for.
    runtime.shutdown_background();
    outcome?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: &UiArgs, ledger: PathBuf) -> anyhow::Result<()> {
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
    let serving = axum::serve(listener, router(Arc::new(site)))
        .with_graceful_shutdown(async { drop(ended.await) });
    let serving = tokio::spawn(serving.into_future());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    drop(end);
    // Whoever holds a connection open any longer is cut off.
    let _ = tokio::time::timeout(DRAIN, serving).await;
    Ok(())
}

/// Says once where it is.
fn announce(args: &UiArgs, site: &Site) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let address = site.address;
    if args.json {
        let ready = json!({
            "ready": true,
            "service": "ui",
            "pid": std::process::id(),
            "address": address.to_string(),
            "addresses": { "ui": address.to_string() },
            "data": site.ledger,
        });
        writeln!(out, "{ready}")?;
    } else {
        writeln!(out, "http://{address}/")?;
        eprintln!("shows {}; Ctrl-C ends it", site.ledger.display());
    }
    out.flush()?;
    Ok(())
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/runs.json", get(list_as_json))
        .route("/runs/{run}", get(one_run))
        .route("/beside", get(two_runs))
        .fallback(async || Refused(StatusCode::NOT_FOUND, "There is no such page.".to_owned()))
        .layer(from_fn_with_state(site.clone(), guard::guard))
        .with_state(site)
}

/// A page or JSON, as text.
enum Made {
    Page(String),
    Json(String),
}

impl IntoResponse for Made {
    fn into_response(self) -> Response {
        let (kind, text) = match self {
            Self::Page(text) => ("text/html; charset=utf-8", text),
            Self::Json(text) => ("application/json", text),
        };
        ([(header::CONTENT_TYPE, kind)], text).into_response()
    }
}

/// Why there is no page, in words for who asked.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let title = self.0.canonical_reason().unwrap_or("Refused");
        (self.0, Made::Page(report::notice(title, &self.1))).into_response()
    }
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        let status = match error {
            LedgerError::NoSuchRun(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, format!("{:#}.", anyhow::Error::from(error)))
    }
}

/// Makes an answer on a thread that may block. The ledger is opened anew for each, so that it may
/// be replaced meanwhile.
async fn made(
    site: Arc<Site>,
    make: impl FnOnce(&Ledger, &Path) -> Result<Made, Refused> + Send + 'static,
) -> Result<Made, Refused> {
    let Ok(turn) = site.requests.clone().try_acquire_owned() else {
        let words = "Too many pages are being made; ask again.".to_owned();
        return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, words));
    };
    let making = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        make(&Ledger::open_read_only(&site.ledger)?, &site.ledger)
    });
    making.await.unwrap_or_else(|_| {
        let words = "This page could not be made; the terminal says why.".to_owned();
        Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, words))
    })
}

type Asked = Query<HashMap<String, String>>;

async fn list(State(site): State<Arc<Site>>, Query(asked): Asked) -> Result<Made, Refused> {
    let skipped = asked.get("skip").map_or(Ok(0), |text| text.parse());
    let skipped = skipped.map_err(|_| bad_request("skip is a number of runs."))?;
    made(site, move |ledger, path| {
        Ok(Made::Page(report::runs(&path.display().to_string(), &ledger.runs()?, skipped)))
    })
    .await
}

async fn list_as_json(State(site): State<Arc<Site>>) -> Result<Made, Refused> {
    made(site, |ledger, _| {
        Ok(Made::Json(format!("{:#}\n", crate::ledgers::list_as_json(&ledger.runs()?))))
    })
    .await
}

/// `12` is a page, `12.json` is JSON.
async fn one_run(
    State(site): State<Arc<Site>>,
    InPath(name): InPath<String>,
) -> Result<Made, Refused> {
    let number = name.strip_suffix(".json");
    let as_json = number.is_some();
    let run = run_of(number.unwrap_or(&name))?;
    made(site, move |ledger, _| {
        let view = ledger.run_view(run)?;
        if as_json {
            let json = report::json(&Summary::of(view)?);
            return json.map(|json| Made::Json(format!("{json:#}\n"))).map_err(|error| {
                Refused(StatusCode::INTERNAL_SERVER_ERROR, format!("No JSON: {error}."))
            });
        }
        let sights = Sights::read(ledger, &view)?;
        Ok(Made::Page(report::run_served(&Summary::of(view)?, &sights)))
    })
    .await
}

async fn two_runs(State(site): State<Arc<Site>>, Query(asked): Asked) -> Result<Made, Refused> {
    let picked = |name: &str| {
        let number = asked.get(name);
        run_of(number.ok_or_else(|| bad_request("Pick two runs, as in /beside?a=1&b=2"))?)
    };
    let (a, b) = (picked("a")?, picked("b")?);
    made(site, move |ledger, _| {
        let of = |run| -> Result<Summary, LedgerError> { Summary::of(ledger.run_view(run)?) };
        Ok(Made::Page(report::beside(&of(a)?, &of(b)?)))
    })
    .await
}

fn run_of(text: &str) -> Result<RunId, Refused> {
    let words = || format!("\"{text}\" is no number of a run.");
    text.parse::<i64>().map(RunId::from).map_err(|_| Refused(StatusCode::NOT_FOUND, words()))
}

fn bad_request(words: &str) -> Refused {
    Refused(StatusCode::BAD_REQUEST, words.to_owned())
}
