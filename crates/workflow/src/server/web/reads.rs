//! What is only read: from a snapshot, or of the files of tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use serde_json::json;

use super::app::{App, Told};
use super::attributes::OfServer;
use super::fault::Fault;
use super::json::rendered;
use super::kinds::KINDS;
use super::tree::{Basic, ByKind, Full, With};
use crate::definition::{Style, print_node};
use crate::model::{NodeId, Snapshot};
use crate::protocol::{Command, FileKind, ServerCommand};

/// The most lines that say why nodes below one don't run.
const WHY_BELOW: usize = 1000;

/// The parameters of a request's query.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn filter(&self) -> Option<String> {
        self.get("filter").filter(|path| !path.is_empty()).map(str::to_owned)
    }

    /// `true` or `false`; false where it is missing.
    fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.get(name) {
            None | Some("false" | "") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let message = format!("{name}: {other:?} is neither true nor false");
                Err(Fault::bad(message, "write true or false"))
            }
        }
    }
}

/// The node of a path.
pub(super) fn find(tree: &Snapshot, path: &str) -> Result<NodeId, Fault> {
    tree.find(path).filter(|id| *id != NodeId::ROOT).ok_or_else(|| Fault::no_node(path))
}

pub(super) async fn suites(app: &Arc<App>, query: &Query) -> Result<Response, Fault> {
    let tree = app.look().await?.snapshot;
    app.json(query.filter(), move || {
        let names: Vec<&str> = tree.suites().map(|id| tree.node(id).name.as_str()).collect();
        rendered(&names)
    })
    .await
}

pub(super) async fn tree(app: &Arc<App>, path: String, query: &Query) -> Result<Response, Fault> {
    let with = With { id: query.flag("with_id")?, generated: query.flag("gen_vars")? };
    let is_full = match query.get("content") {
        None | Some("basic" | "") => false,
        Some("full") => true,
        Some(other) => {
            let message = format!("content: {other:?} is neither basic nor full");
            return Err(Fault::bad(message, "write basic or full"));
        }
    };
    let tree = app.look().await?.snapshot;
    let id = if path == "/" { NodeId::ROOT } else { find(&tree, &path)? };
    app.json_of(query.filter(), (tree, id), move |tree, id| {
        let ids = if id == NodeId::ROOT { tree.suites().collect() } else { vec![id] };
        if is_full { rendered(&Full { tree, ids, with }) } else { rendered(&Basic { tree, ids }) }
    })
    .await
}

#[derive(Serialize)]
struct Definition {
    definition: String,
    path: String,
}

pub(super) async fn definition(
    app: &Arc<App>,
    path: String,
    query: &Query,
) -> Result<Response, Fault> {
    let tree = app.look().await?.snapshot;
    let id = find(&tree, &path)?;
    app.json_of(query.filter(), (tree, id), move |tree, id| {
        let definition = print_node(tree, id, Style::Defs, true);
        rendered(&Definition { definition, path })
    })
    .await
}

pub(super) async fn status(app: &Arc<App>, path: String, query: &Query) -> Result<Response, Fault> {
    let (tree, of) = (app.look().await?.snapshot, Arc::clone(app));
    app.json(query.filter(), move || {
        let id = find(&tree, &path)?;
        let node = tree.node(id);
        let mut of_commands = |path: &str| of.why(&tree, path);
        rendered(&json!({
            "status": node.displayed().word(),
            "path": path,
            "default_status": node.default.word(),
            "why": {
                "bottom_up_why": tree.why(id, &mut of_commands),
                "top_down_why": tree.why_below(id, &mut of_commands, WHY_BELOW),
            },
        }))
    })
    .await
}

pub(super) async fn attributes(
    app: &Arc<App>,
    path: String,
    query: &Query,
) -> Result<Response, Fault> {
    let tree = app.look().await?.snapshot;
    app.json(query.filter(), move || {
        let id = find(&tree, &path)?;
        rendered(&ByKind { tree: &tree, id })
    })
    .await
}

/// The text of a task's file.
pub(super) async fn file(app: &App, path: &str, kind: FileKind) -> Result<String, Fault> {
    let (path, max_lines) = (path.to_owned(), 1_000_000);
    app.user(Command::File { kind, path, max_lines }).await.map(Told::text)
}

/// The text of a task's file, or nothing where there is none.
async fn file_if_any(app: &App, path: &str, kind: FileKind) -> String {
    file(app, path, kind).await.unwrap_or_default()
}

pub(super) async fn script(app: &Arc<App>, path: String, query: &Query) -> Result<Response, Fault> {
    find(&app.look().await?.snapshot, &path)?;
    let script = file(app, &path, FileKind::Script).await?;
    let job = file_if_any(app, &path, FileKind::Job).await;
    let both = json!({ "script": script, "job": job });
    app.json(query.filter(), move || rendered(&both)).await
}

pub(super) async fn output(app: &Arc<App>, path: String, query: &Query) -> Result<Response, Fault> {
    find(&app.look().await?.snapshot, &path)?;
    let output = file(app, &path, FileKind::Output).await?;
    let killed = file_if_any(app, &path, FileKind::Kill).await;
    let status = file_if_any(app, &path, FileKind::Status).await;
    let all = json!({ "job_output": output, "kill_output": killed, "status_output": status });
    app.json(query.filter(), move || rendered(&all)).await
}

pub(super) async fn ping(app: &Arc<App>, query: &Query) -> Result<Response, Fault> {
    let begun = std::time::Instant::now();
    app.user(Command::Server(ServerCommand::Ping)).await?;
    let took = begun.elapsed().as_micros();
    let (seconds, rest) = (took / 1_000_000, took % 1_000_000);
    let environment = &app.environment;
    let both = json!({
        "host": format!("{}:{}", environment.host, environment.port),
        "round_trip_time": format!("00:{:02}:{:02}.{rest:06}", seconds / 60 % 60, seconds % 60),
    });
    app.json(query.filter(), move || rendered(&both)).await
}

pub(super) async fn server_status(app: &Arc<App>, query: &Query) -> Result<Response, Fault> {
    let told = app.user(Command::Server(ServerCommand::Stats)).await?;
    let Told::Stats(stats) = told else { return Err(Fault::stopping()) };
    let mode = ["CHECK_NEVER", "CHECK_ON_TIME", "CHECK_ALWAYS"];
    let mode = usize::try_from(stats.check_mode).ok().and_then(|at| mode.get(at));
    let status = ["HALTED", "SHUTDOWN", "RUNNING"];
    let status = usize::try_from(stats.state).ok().and_then(|at| status.get(at));
    let mut all = json!({
        "version": stats.version,
        "status": status,
        "host": stats.host,
        "port": stats.port,
        "up_since": stats.up_since,
        "job_sub_interval": stats.job_interval,
        "ECF_HOME": stats.home,
        "ECF_LOG": stats.log_file,
        "ECF_CHECK": stats.check_file,
        "ECF_SSL": stats.encryption,
        "checkpt_interval": stats.check_interval,
        "checkpt_mode": mode,
        "checkpt_save_time_alarm": stats.check_alarm,
        "no_of_suites": stats.suites,
        "request_stats": stats.rates,
    });
    if let Some(members) = all.as_object_mut() {
        for (name, count) in KINDS.iter().zip(&stats.counters) {
            members.insert((*name).to_owned(), json!(count));
        }
    }
    app.json(query.filter(), move || rendered(&all)).await
}

pub(super) async fn server_attributes(app: &Arc<App>, query: &Query) -> Result<Response, Fault> {
    #[derive(Serialize)]
    struct All<'a> {
        variables: OfServer<'a>,
    }
    let tree = app.look().await?.snapshot;
    app.json(query.filter(), move || rendered(&All { variables: OfServer(&tree) })).await
}

pub(super) async fn statistics(app: &Arc<App>, query: &Query) -> Result<Response, Fault> {
    let second = app.started_us.div_euclid(1_000_000);
    let since = jiff::Timestamp::from_second(second).map(|at| at.to_string()).unwrap_or_default();
    let all = json!({
        "num_requests": app.requests.load(Relaxed),
        "num_errors": app.errors.load(Relaxed),
        "num_cached_requests": app.snapshots.load(Relaxed),
        "since": since,
    });
    app.json(query.filter(), move || rendered(&all)).await
}
