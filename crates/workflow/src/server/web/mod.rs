//! The tree over HTTP: `ecflow_http`'s interface v1, answered from snapshots, and changed as
//! clients change it. Control plane.

mod app;
mod attributes;
mod fault;
mod filter;
mod follow;
mod json;
mod kinds;
mod live;
mod page;
mod reads;
mod replaced;
mod rows;
mod runs;
mod tree;
mod writes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State as Extract};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use service::{BoundHttp, HttpServer, Tokens};
use tokio::time::timeout;

use super::environment::Environment;
use super::shared::Shared;
pub(super) use kinds::KINDS;

use app::{App, BODY_WITHIN, MOST_BODY};
use fault::Fault;
use follow::Follow;
use reads::Query;
use writes::Members;

/// What describes all requests to programs.
const OPENAPI: &str = include_str!("openapi.json");

/// Serves the tree at an address that is bound. Where other machines reach it, what only reads
/// needs a token, too.
///
/// # Errors
/// When the system has no thread for it.
pub(super) fn start(
    bound: BoundHttp,
    shared: Arc<Shared>,
    environment: Arc<Environment>,
    tokens: Option<Tokens>,
    is_public: bool,
) -> anyhow::Result<HttpServer> {
    let app = Arc::new(App::new(shared, environment, tokens, is_public));
    bound.start(move |_: SocketAddr| router(&app))
}

/// The methods of `/v1/suites/{path}/{what}`.
const OF_NODES: [(&str, &str); 7] = [
    ("tree", "GET, HEAD"),
    ("definition", "GET, HEAD, PUT, DELETE"),
    ("status", "GET, HEAD, PUT"),
    ("attributes", "GET, HEAD, POST, PUT, DELETE"),
    ("script", "GET, HEAD, PUT"),
    ("output", "GET, HEAD"),
    ("", "DELETE"),
];

fn router(app: &Arc<App>) -> Router {
    let follow = Arc::new(Follow::new());
    let live = async move |Extract(app): Extract<Arc<App>>, Path(what): Path<String>, request| {
        live::live(Arc::clone(&follow), app, what, request).await
    };
    let json = [(header::CONTENT_TYPE, "application/json")];
    Router::new()
        .route("/v1/suites", any(suites))
        .route("/v1/suites/{*path}", any(node))
        .route("/v1/server/ping", read(|app, query| async move { reads::ping(&app, &query).await }))
        .route("/v1/server/status", any(server))
        .route("/v1/server/attributes", any(server_attributes))
        .route(
            "/v1/statistics",
            read(|app, query| async move { reads::statistics(&app, &query).await }),
        )
        .route("/v1/openapi.json", get(async move || (json, OPENAPI)))
        .route("/live/{what}", get(live))
        .merge(page::router())
        .fallback(async || {
            let fix = "GET /v1/openapi.json lists all requests";
            Fault::new(StatusCode::NOT_FOUND, "there is no such request", fix)
        })
        .method_not_allowed_fallback(async || refused("GET, HEAD"))
        .layer(from_fn_with_state(Arc::clone(app), checked))
        .with_state(Arc::clone(app))
}

/// A handler of what is only read.
fn read<F, R>(make: F) -> MethodRouter<Arc<App>>
where
    F: Fn(Arc<App>, Query) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Response, Fault>> + Send,
{
    get(async move |Extract(app): Extract<Arc<App>>, request: Request| {
        make(app, Query::of(request.uri())).await
    })
}

/// A method that a path doesn't have.
fn refused(allowed: &'static str) -> Response {
    let fault = Fault::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method", allowed);
    ([(header::ALLOW, allowed)], fault).into_response()
}

/// Counts requests, and lets those through that may be asked.
async fn checked(Extract(app): Extract<Arc<App>>, request: Request, next: Next) -> Response {
    app.requests.fetch_add(1, Relaxed);
    let answer = match allowed(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.into_response(),
    };
    if answer.status().is_client_error() || answer.status().is_server_error() {
        app.errors.fetch_add(1, Relaxed);
    }
    answer
}

/// Whether a request may be asked: one that changes something needs a token, and at an address that
/// other machines reach so does one that reads.
fn allowed(app: &App, request: &Request) -> Result<(), Fault> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let path = request.uri().path();
    let is_free = path == "/v1/openapi.json" || page::PATHS.contains(&path);
    if is_read && (!app.is_public || is_free) {
        return Ok(());
    }
    let Some(tokens) = &app.tokens else {
        let fix = "start the server with --token-file FILE, and send one of its tokens";
        let message = "changes need a token, and this server has none";
        return Err(Fault::new(StatusCode::FORBIDDEN, message, fix));
    };
    let query = Query::of(request.uri());
    let known = token(request.headers()).or_else(|| query.get("key"));
    match known {
        Some(token) if tokens.has(token.as_bytes()) => Ok(()),
        _ => Err(Fault::unauthorized()),
    }
}

/// The token of a request's headers.
fn token(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then_some(token.trim());
    }
    headers.get("x-api-key")?.to_str().ok().map(str::trim)
}

/// The members of a request's body, of at most [`MOST_BODY`] bytes.
async fn bytes(app: &App, request: Request) -> Result<axum::body::Bytes, Fault> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let too_large = || {
        let message =
            format!("the body has more than {} MiB, or didn't come whole", MOST_BODY >> 20);
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message, "load it with ecflow_client")
    };
    let length = length.unwrap_or(MOST_BODY);
    if length > MOST_BODY {
        return Err(too_large());
    }
    let kib = u32::try_from(length >> 10).unwrap_or(u32::MAX);
    let room = app.bodies.try_acquire_many(kib + 1);
    let room = room.map_err(|_| Fault::busy("other requests' bodies take all the room"))?;
    let whole = timeout(BODY_WITHIN, to_bytes(request.into_body(), MOST_BODY)).await;
    drop(room);
    let late = |_| {
        let message = format!("the body didn't come within {} s", BODY_WITHIN.as_secs());
        Fault::new(StatusCode::REQUEST_TIMEOUT, message, "send it faster, or in parts")
    };
    whole.map_err(late)?.map_err(|_| too_large())
}

async fn members(app: &App, request: Request) -> Result<Members, Fault> {
    Members::read(&bytes(app, request).await?)
}

async fn suites(Extract(app): Extract<Arc<App>>, request: Request) -> Result<Response, Fault> {
    match *request.method() {
        Method::GET | Method::HEAD => reads::suites(&app, &Query::of(request.uri())).await,
        Method::POST => writes::load(&app, members(&app, request).await?).await,
        _ => Ok(refused("GET, HEAD, POST")),
    }
}

async fn server(Extract(app): Extract<Arc<App>>, request: Request) -> Result<Response, Fault> {
    match *request.method() {
        Method::GET | Method::HEAD => reads::server_status(&app, &Query::of(request.uri())).await,
        Method::PUT => writes::set_server(&app, members(&app, request).await?).await,
        _ => Ok(refused("GET, HEAD, PUT")),
    }
}

async fn server_attributes(
    Extract(app): Extract<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    match *request.method() {
        Method::GET | Method::HEAD => {
            reads::server_attributes(&app, &Query::of(request.uri())).await
        }
        Method::POST => writes::add_to_server(&app, members(&app, request).await?).await,
        Method::PUT => writes::change_server(&app, members(&app, request).await?).await,
        Method::DELETE => writes::remove_from_server(&app, members(&app, request).await?).await,
        _ => Ok(refused("GET, HEAD, POST, PUT, DELETE")),
    }
}

/// The rest of a request below `/v1/suites/`: the path of a node, and what of it.
async fn node(
    Extract(app): Extract<Arc<App>>,
    Path(rest): Path<String>,
    request: Request,
) -> Result<Response, Fault> {
    let (path, what) = rest.rsplit_once('/').unwrap_or(("", &rest));
    let known = OF_NODES.iter().find(|(word, _)| *word == what && !word.is_empty());
    let (path, (what, methods)) = match known {
        Some(known) => (format!("/{path}"), *known),
        None => (format!("/{rest}"), ("", "DELETE")),
    };
    if path == "/" && what != "tree" {
        return Err(Fault::no_node("/"));
    }
    let method = match *request.method() {
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let query = Query::of(request.uri());
    match (what, method) {
        ("tree", Method::GET) => reads::tree(&app, path, &query).await,
        ("definition", Method::GET) => reads::definition(&app, path, &query).await,
        ("status", Method::GET) => reads::status(&app, path, &query).await,
        ("attributes", Method::GET) => reads::attributes(&app, path, &query).await,
        ("script", Method::GET) => reads::script(&app, path, &query).await,
        ("output", Method::GET) => reads::output(&app, path, &query).await,
        ("definition" | "", Method::DELETE) => {
            let body = bytes(&app, request).await?;
            writes::delete(&app, path, &body).await
        }
        ("definition", Method::PUT) => {
            writes::define(&app, path, members(&app, request).await?).await
        }
        ("status", Method::PUT) => {
            writes::set_status(&app, path, members(&app, request).await?).await
        }
        ("attributes", Method::POST) => {
            writes::add(&app, path, members(&app, request).await?).await
        }
        ("attributes", Method::PUT) => {
            writes::change(&app, path, members(&app, request).await?).await
        }
        ("attributes", Method::DELETE) => {
            writes::remove(&app, path, members(&app, request).await?).await
        }
        ("script", Method::PUT) => {
            writes::set_script(&app, path, members(&app, request).await?).await
        }
        _ => Ok(refused(methods)),
    }
}
