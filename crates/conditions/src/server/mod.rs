//! Serves conditions over HTTP from a data directory. Control plane.

mod app;
mod fault;
mod reads;
mod ready;
mod slices;
mod store;
mod writes;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State as Extract;
use axum::http::{StatusCode, header};
use axum::routing::get;
use service::{BoundHttp, HttpServer, HttpSettings, metrics};

use crate::protocol::BASE;
use app::App;
use fault::Fault;
use store::Store;

/// The version of a data directory's files.
pub const DATA_VERSION: u32 = 1;

/// Reads the journal of a data directory, which a server may have open, and changes nothing.
///
/// # Errors
/// When a file can't be read. Damage is no error; the report names it.
pub fn check(data: &Path) -> Result<journal::Report, journal::Error> {
    store::check(data)
}

/// A server whose addresses are bound, and that accepts no connection yet.
#[derive(Debug)]
pub struct BoundConditions(Vec<BoundHttp>);

/// A running server.
pub struct ConditionsServer {
    addresses: Vec<SocketAddr>,
    /// First: what they are asked for is still made while they stop.
    servers: Vec<HttpServer>,
    app: Arc<App>,
    store: Store,
}

impl BoundConditions {
    /// Binds.
    ///
    /// # Errors
    /// When an address can't be had; the error names it.
    pub fn bind(addresses: Vec<HttpSettings>) -> anyhow::Result<Self> {
        Ok(Self(addresses.into_iter().map(BoundHttp::bind).collect::<Result<_, _>>()?))
    }

    /// Reads a data directory, which the caller has locked, and serves it.
    ///
    /// # Errors
    /// When it can't be read, or the system has no threads.
    pub fn start(self, data: &Path) -> anyhow::Result<ConditionsServer> {
        let store = Store::open(data)?;
        let app = Arc::new(App::new(store.shared(), store.writer()));
        let start = |bound: BoundHttp| bound.start(|_| router(app.clone()));
        let servers = self.0.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let addresses = servers.iter().map(HttpServer::address).collect();
        Ok(ConditionsServer { addresses, servers, app, store })
    }
}

impl ConditionsServer {
    /// Where it is, with the ports that it was given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its counters, as `/metrics` has them.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + use<> {
        let app = Arc::clone(&self.app);
        move || app.metrics()
    }

    /// Stops accepting, lets answers finish until `drain` has passed, and closes the journal.
    pub fn stop(mut self, drain: Duration) {
        self.servers.drain(..).for_each(|server| server.stop(drain));
        drop(self.store);
    }
}

impl fmt::Debug for ConditionsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConditionsServer").field("addresses", &self.addresses).finish()
    }
}

/// Every request, a line each.
#[rustfmt::skip]
fn router(app: Arc<App>) -> Router {
    use reads::question;
    use writes::change;
    const AT: &[&str] = &["folder", "t", "channels", "names", "tag", "revision", "as_of"];
    const RANGE: &[&str] =
        &["folder", "since", "until", "channels", "names", "tag", "revision", "as_of", "order"];
    let requests = Router::new()
        .route("/folders", question(&["under"], reads::folders).merge(change(writes::folder)))
        .route("/channels", question(&["folder"], reads::channels).merge(change(writes::channel)))
        .route("/tags", question(&[], reads::tags).merge(change(writes::tag)))
        .route("/find", question(AT, reads::find))
        .route("/browse", question(RANGE, reads::browse))
        .route("/count", question(RANGE, reads::count))
        .route("/explain", question(AT, reads::explain))
        .route("/slice", get(slices::resolve))
        .route("/slice/{revision}/{since}", get(slices::slice))
        .route("/sets", change(writes::set))
        .route("/columns", change(writes::column))
        .route("/columns/rename", change(writes::rename))
        .route("/objects", change(writes::insert))
        .route("/truncate", change(writes::truncate))
        .route("/tags/clone", change(writes::clone))
        .route("/tags/lock", change(writes::lock))
        .route("/tags/delete", change(writes::delete));
    let page = async |Extract(app): Extract<Arc<App>>| {
        ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], app.metrics())
    };
    let none = async || {
        let fix = "docs/conditions.md lists all requests";
        Fault::new(StatusCode::NOT_FOUND, "there is no such request", fix)
    };
    let other = async || {
        let fix = "questions are GET, changes are POST";
        Fault::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method", fix)
    };
    Router::new()
        .nest(BASE, requests)
        .route("/metrics", get(page))
        .fallback(none)
        .method_not_allowed_fallback(other)
        .with_state(app)
}
