//! What the page asks: nodes as rows, on demand; one node with all that is known of it; files,
//! limits and runs.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::app::App;
use super::fault::Fault;
use super::follow::{self, Follow};
use super::json::rendered;
use super::reads::{self, Query, find};
use super::rows::{Row, attributes};
use super::runs;
use crate::model::{Attribute, Displayed, NodeId, Snapshot};
use crate::protocol::FileKind;

/// The most rows of one answer.
const ROWS: usize = 5_000;

/// The most nodes that are found.
const FOUND: usize = 500;

/// Answers requests below `/live/`.
pub(super) async fn live(
    follow: Arc<Follow>,
    app: Arc<App>,
    what: String,
    request: Request,
) -> Result<Response, Fault> {
    let (headers, uri) = (request.headers(), request.uri());
    let query = Query::of(uri);
    let path = query.get("path").unwrap_or("/").to_owned();
    match what.as_str() {
        "changes" => return follow::changes(&follow, &app, headers, &query).await,
        "file" => return file(&app, &path, &query).await,
        "runs" => return runs(&app, path, &query).await,
        _ => {}
    }
    let from: usize = query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let name = query.get("name").unwrap_or_default().to_lowercase();
    let state = query.get("state").filter(|word| !word.is_empty()).map(str::to_owned);
    let (tree, of) = (app.look().await?.snapshot, Arc::clone(&app));
    app.json(None, move || match what.as_str() {
        "children" => rendered(&children(&tree, &path, from, of.taken_up())?),
        "find" => rendered(&found(&tree, &path, &name, state.as_deref())?),
        "node" => rendered(&node(&tree, find(&tree, &path)?, &of)),
        "limits" => rendered(&limits(&tree)),
        _ => {
            let message = "there is no such part of the page";
            Err(Fault::new(StatusCode::NOT_FOUND, message, "begin at /"))
        }
    })
    .await
}

fn root(tree: &Snapshot, path: &str) -> Result<NodeId, Fault> {
    if path == "/" { Ok(NodeId::ROOT) } else { find(tree, path) }
}

/// The rows below a node, from one on, and how many there are; and what is to be warned of.
fn children(
    tree: &Snapshot,
    path: &str,
    from: usize,
    warning: Option<String>,
) -> Result<Value, Fault> {
    let id = root(tree, path)?;
    let all: Vec<NodeId> = tree.children(id).collect();
    let shown = all.iter().skip(from).take(ROWS);
    let rows: Vec<Row<'_>> = shown.map(|id| Row::of(tree, *id)).collect();
    Ok(json!({
        "count": all.len(),
        "rows": rows,
        "server": tree.server().state.word(),
        "warning": warning,
        "nodes": tree.count(),
        "number": format!("{}.{}", tree.state_change_no(), tree.modify_change_no()),
    }))
}

/// The nodes below one whose name has these letters, and that are in a state; how many there are.
fn found(tree: &Snapshot, path: &str, name: &str, state: Option<&str>) -> Result<Value, Fault> {
    let state = match state {
        None => None,
        Some(word) => Some(Displayed::of_word(word).ok_or_else(|| {
            let fix = "write active, aborted, queued, submitted, complete, suspended or unknown";
            Fault::bad(format!("state: {word:?} is none"), fix)
        })?),
    };
    let from = root(tree, path)?;
    let is_it = |id: &NodeId| {
        let node = tree.node(*id);
        *id != NodeId::ROOT
            && state.is_none_or(|state| node.displayed() == state)
            && (name.is_empty() || has(&node.name, name))
    };
    let mut rows = Vec::new();
    let mut count = 0;
    for id in tree.walk(from).filter(is_it) {
        count += 1;
        if rows.len() < FOUND {
            rows.push(Row::with_path(tree, id));
        }
    }
    Ok(json!({ "count": count, "rows": rows }))
}

/// Whether a name has these letters, which are small.
fn has(name: &str, letters: &str) -> bool {
    let bytes = letters.as_bytes();
    name.as_bytes().windows(bytes.len()).any(|window| window.eq_ignore_ascii_case(bytes))
}

/// All that is known of a node.
fn node(tree: &Snapshot, id: NodeId, app: &App) -> Value {
    let node = tree.node(id);
    let path = tree.path(id);
    let history: Vec<&str> = tree.history(&path).map(|line| line.as_str()).collect();
    let job = node.job();
    json!({
        "row": Row::with_path(tree, id),
        "default": node.default.word(),
        "since": node.since.to_string(),
        "ran": node.ran.to_string(),
        "rid": job.rid.as_str(),
        "abort_reason": job.abort_reason.as_str(),
        "attributes": attributes(tree, id),
        "why": tree.why(id, &mut |path| app.why(tree, path)),
        "history": history,
    })
}

/// All limits with what is taken of them.
fn limits(tree: &Snapshot) -> Value {
    let mut all = Vec::new();
    for id in tree.walk(NodeId::ROOT) {
        for attribute in tree.node(id).attributes.iter() {
            if let Attribute::Limit(limit) = attribute
                && all.len() < ROWS
            {
                let holders = limit.holders.as_deref().into_iter().flatten();
                let holders: Vec<&str> = holders.take(20).map(|path| path.as_str()).collect();
                all.push(json!({
                    "path": tree.path(id),
                    "name": limit.name.as_str(),
                    "value": limit.value,
                    "max": limit.max,
                    "holders": holders,
                }));
            }
        }
    }
    json!({ "limits": all })
}

async fn file(app: &Arc<App>, path: &str, query: &Query) -> Result<Response, Fault> {
    let kind = match query.get("kind") {
        Some("script") => FileKind::Script,
        Some("job") => FileKind::Job,
        Some("output") => FileKind::Output,
        Some("manual") => FileKind::Manual,
        other => {
            let message = format!("kind: {other:?} is none");
            return Err(Fault::bad(message, "write script, job, output or manual"));
        }
    };
    let text = reads::file(app, path, kind).await?;
    app.json(None, move || rendered(&json!({ "text": text }))).await
}

async fn runs(app: &Arc<App>, path: String, query: &Query) -> Result<Response, Fault> {
    let most = query.get("most").and_then(|most| most.parse().ok()).unwrap_or(200);
    let log = app.environment.log.clone();
    let tree = app.look().await?.snapshot;
    app.json(None, move || {
        // Suites and families are said to be submitted and active, too; of what is gone only the
        // log knows.
        let is_job = |path: &str| tree.find(path).is_none_or(|id| tree.node(id).kind.is_job());
        rendered(&runs::of(&log, &path, most, is_job)?)
    })
    .await
}
