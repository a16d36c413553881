//! Serves conditions over HTTP from a data directory. Control plane.

pub(crate) mod app;
mod asked;
mod backup;
mod check;
mod compact;
#[cfg(test)]
mod crash;
mod export;
pub(crate) mod fault;
mod full;
#[cfg(test)]
mod held;
pub(crate) mod known;
mod little;
mod log;
mod map;
mod page;
pub(crate) mod quick;
mod reads;
mod ready;
pub(crate) mod receive;
mod sealing;
mod segments;
mod shared;
pub(crate) mod size;
mod slices;
pub(crate) mod store;
#[cfg(feature = "tier")]
mod tier;
mod tier_args;
mod unsent;
mod watch;
pub(crate) mod write_error;
mod writes;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State as Extract;
use axum::http::{StatusCode, header};
use axum::routing::{MethodRouter, get, post};
use journal::SyncPolicy;
use service::{BoundHttp, HttpLimits, HttpServer, HttpSettings, metrics};

use crate::nopayload::server::{router as nopayload, storage::Storage};
use crate::protocol::{ASKED_BY_POST, BASE};
use app::App;
use fault::Fault;
use store::Store;
use watch::Watch;

pub use backup::{BackedUp, Copied, backup};
pub use check::{BadDirectory, Checked, check};
#[cfg(feature = "tier")]
pub use tier::{CheckedShared, check_shared};
pub use tier_args::TierSettings;

/// The service's name, which its data directories have in FORMAT.
pub const NAME: &str = "conditions";

/// The version of a data directory's files.
pub const DATA_VERSION: u32 = 4;

/// Where a directory has copies of what several servers share.
const COPIES: &str = "copies";

/// The default of how much is kept in memory until it is sealed: what a start has to read again.
/// The more a seal brings, the less often what it brings is put together with what was there.
pub const SEAL_AFTER_BYTES: u64 = 64 << 20;

/// A server whose addresses are bound, and that accepts no connection yet.
#[derive(Debug)]
pub struct BoundConditions {
    bound: Vec<BoundHttp>,
    seal_after: u64,
    sync: SyncPolicy,
}

/// A running server.
pub struct ConditionsServer {
    addresses: Vec<SocketAddr>,
    /// First: what they are asked for is still made while they stop.
    servers: Vec<HttpServer>,
    app: Arc<App>,
    store: Store,
    _watch: Option<Watch>,
}

impl BoundConditions {
    /// Binds.
    ///
    /// # Errors
    /// When an address can't be had; the error names it.
    pub fn bind(addresses: Vec<HttpSettings>) -> anyhow::Result<Self> {
        let bind = |settings| Ok(BoundHttp::bind(settings)?.asked_by_post(is_question));
        let bound = addresses.into_iter().map(bind).collect::<anyhow::Result<_>>()?;
        Ok(Self { bound, seal_after: SEAL_AFTER_BYTES, sync: SyncPolicy::Always })
    }

    /// Seals what is in memory once it has this many bytes.
    #[must_use]
    pub fn seal_after(self, bytes: u64) -> Self {
        Self { seal_after: bytes, ..self }
    }

    /// Has changes on the disk when this says, unless several servers share the data.
    #[must_use]
    pub fn synced(self, sync: SyncPolicy) -> Self {
        Self { sync, ..self }
    }

    /// Has these limits of connections at each address.
    #[must_use]
    pub fn limited(self, limits: HttpLimits) -> Self {
        let limit = |bound: BoundHttp| bound.limited(limits);
        Self { bound: self.bound.into_iter().map(limit).collect(), ..self }
    }

    /// Encrypts all connections; a handshake may take `limit`.
    #[must_use]
    pub fn encrypted(self, tls: &wire::Tls, limit: Duration) -> Self {
        let encrypt = |bound: BoundHttp| bound.encrypted(tls.clone(), limit);
        Self { bound: self.bound.into_iter().map(encrypt).collect(), ..self }
    }

    /// Reads a data directory, which the caller has locked, and serves it.
    ///
    /// # Errors
    /// When it can't be read, or the system has no threads.
    pub fn start(self, data: &Path) -> anyhow::Result<ConditionsServer> {
        anyhow::ensure!(
            !data.join(COPIES).exists(),
            "{} has copies of what servers share, and no data of its own: choose another \
             directory, or say --metadata and --segments",
            data.display()
        );
        let store = Store::open(data, self.seal_after, self.sync)?;
        let app = App::new(store.shared(), store.writer(), Storage::open(data)?);
        let app = Arc::new(app.synced(self.sync));
        let router = router(app.clone());
        let quick = Arc::new(quick::Little(app.clone()));
        let quickly = |bound: BoundHttp| bound.quickly(quick.clone());
        let bound = self.bound.into_iter().map(quickly).collect();
        let [_, segments] = store::folders(data);
        Self { bound, ..self }.start_with(app, store, &segments, &router)
    }

    /// Serves what several servers share, with copies in a directory, which the caller has locked
    /// and which may be lost.
    ///
    /// # Errors
    /// When it can't be reached or read, or the system has no threads.
    #[cfg(feature = "tier")]
    pub fn start_shared(
        self,
        settings: &TierSettings,
        data: &Path,
    ) -> anyhow::Result<ConditionsServer> {
        anyhow::ensure!(
            !data.join("journal").exists(),
            "{} has data of its own: choose another directory for copies",
            data.display()
        );
        let copies = data.join(COPIES);
        std::fs::create_dir_all(&copies)?;
        let tier = tier::open(settings, &copies, self.seal_after)?;
        let tier::Tier { store, contact, files, segments } = tier;
        let storage = Storage::open_copies(&copies, files)?;
        let app = Arc::new(App::new(store.shared(), store.writer(), storage).over(segments));
        let router = tier::layer(router(app.clone()), &app, &contact);
        self.start_with(app, store, &tier::copies_of_segments(&copies), &router)
    }

    fn start_with(
        self,
        app: Arc<App>,
        store: Store,
        segments: &Path,
        router: &Router,
    ) -> anyhow::Result<ConditionsServer> {
        let _watch = Watch::of(segments, store.shared());
        let start = |bound: BoundHttp| bound.start(|_| router.clone());
        let servers = self.bound.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let addresses = servers.iter().map(HttpServer::address).collect();
        Ok(ConditionsServer { addresses, servers, app, store, _watch })
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

    /// Seals what is in memory, and waits for that.
    ///
    /// # Errors
    /// When it can't be written; all is as it was before.
    pub fn seal(&self) -> anyhow::Result<()> {
        self.store.seal().map_err(anyhow::Error::msg)
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

/// Whether a `POST` to a path is a question with its parameters in a body.
fn is_question(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|path| ASKED_BY_POST.contains(&path))
}

/// What describes all requests to programs.
const OPENAPI: &str = include_str!("openapi.json");

/// Every request, a line each.
#[rustfmt::skip]
fn requests() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    use reads::{lasting, question};
    use writes::change;
    const WHY: &[&str] = &["folder", "t", "channels", "names", "tag", "revision", "as_of"];
    const COUNT: &[&str] =
        &["folder", "since", "until", "channels", "names", "where", "tag", "revision", "as_of"];
    const RANGE: &[&str] = &[
        "folder", "since", "until", "channels", "names", "where", "tag", "revision", "as_of",
        "order",
    ];
    const DIFF: &[&str] = &[
        "under", "since", "until", "channels", "tag", "revision", "as_of", "to_tag", "to_revision",
        "to_as_of",
    ];
    let folders = question(&["under"], reads::folders, size::FOLDERS);
    let channels = question(&["folder"], reads::channels, size::CHANNELS);
    vec![
        ("/folders", folders.merge(change(writes::folder))),
        ("/channels", channels.merge(change(writes::channel))),
        ("/tags", question(&[], reads::tags, size::TAGS).merge(change(writes::tag))),
        ("/find", lasting(reads::FIND, reads::find, size::FIND)),
        ("/browse", lasting(RANGE, reads::browse, size::BROWSE)),
        ("/count", lasting(COUNT, reads::count, size::COUNT)),
        ("/diff", question(DIFF, reads::diff, size::DIFF)),
        ("/explain", question(WHY, reads::explain, size::EXPLAIN)),
        ("/export", get(export::export).post(export::by_form)),
        ("/slice", get(slices::resolve)),
        ("/slice/{revision}/{since}", get(slices::slice)),
        ("/openapi.json", get(async || ([(header::CONTENT_TYPE, "application/json")], OPENAPI))),
        ("/sets", change(writes::set)),
        ("/columns", change(writes::column)),
        ("/columns/rename", change(writes::rename)),
        ("/objects", writes::insertion()),
        ("/truncate", change(writes::truncate)),
        ("/tags/pick", change(writes::pick)),
        ("/tags/clone", change(writes::clone)),
        ("/tags/lock", change(writes::lock)),
        ("/tags/delete", change(writes::delete)),
        ("/compact", post(compact::compact)),
    ]
}

fn router(app: Arc<App>) -> Router {
    // A router that is nested below a path makes a new address for each request.
    let add = |router: Router<_>, (path, handler)| router.route(&format!("{BASE}{path}"), handler);
    let requests = requests().into_iter().fold(Router::new(), add);
    let page = async |Extract(app): Extract<Arc<App>>| {
        let text = app.blocking(|app| Ok(app.metrics())).await;
        text.map(|text| ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
    };
    let none = async || {
        let fix = "docs/conditions.md lists all requests";
        Fault::new(StatusCode::NOT_FOUND, "there is no such request", fix)
    };
    let other = async || {
        let fix = "questions are GET, changes are POST";
        Fault::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method", fix)
    };
    requests
        .merge(nopayload())
        .merge(page::router())
        .route("/metrics", get(page))
        .fallback(none)
        .method_not_allowed_fallback(other)
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_by_post_is_asked_by_get_too_and_its_description_names_no_token() {
        let described: serde_json::Value = serde_json::from_str(OPENAPI).expect("JSON");
        for path in ASKED_BY_POST {
            let methods = &described["paths"][path];
            assert!(methods["get"].is_object() && methods["post"].is_object(), "{path}");
            assert!(methods["post"]["security"].is_null(), "{path}");
            assert!(is_question(&format!("{BASE}{path}")), "{path}");
        }
        for path in ["/find", "/api/v1/objects", "/api/v1/find/", "/upload/find"] {
            assert!(!is_question(path), "{path}");
        }
    }

    #[test]
    fn every_request_is_described_and_no_other() {
        let described: serde_json::Value = serde_json::from_str(OPENAPI).expect("JSON");
        let paths = described["paths"].as_object().expect("an object").keys();
        let own = requests();
        let mut own: Vec<_> = own.iter().map(|(path, _)| *path).collect();
        own.sort_unstable();
        assert_eq!(paths.map(String::as_str).collect::<Vec<_>>(), own);
    }
}
