//! What all handlers share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::to_bytes;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use service::metrics::{Kind, Metrics};
use tokio::sync::Semaphore;

use super::fault::Fault;
use super::ready::Slices;
use super::shared::Shared;
use super::store::Writer;
use super::unsent::Unsent;
use crate::model::Leads;
use crate::nopayload::server::storage::Storage;
use crate::protocol::Params;

/// The most bytes of all requests' bodies together, until their changes are made, in KiB.
const BODIES_KIB: usize = 256 << 10;

/// What a service has counted since its start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) reads: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) slices: AtomicU64,
    pub(crate) slices_ready: AtomicU64,
    pub(crate) not_modified: AtomicU64,
}

/// What all handlers share.
pub(crate) struct App {
    pub(crate) state: Shared,
    pub(crate) writer: Writer,
    pub(super) slices: Slices,
    /// Locked after the state, and for as long as a place is looked up.
    pub(super) leads: Mutex<Leads>,
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) storage: Storage,
    pub(crate) unsent: Unsent,
    pub(crate) counts: Counts,
}

impl App {
    pub(super) fn new(state: Shared, writer: Writer, storage: Storage) -> Self {
        let (slices, leads, counts) = (Slices::default(), Mutex::default(), Counts::default());
        let (bodies, unsent) = (Arc::new(Semaphore::new(BODIES_KIB)), Unsent::default());
        Self { state, writer, slices, leads, bodies, storage, unsent, counts }
    }

    /// The counters, for Prometheus.
    pub(super) fn metrics(&self) -> String {
        let mut page = Metrics::of("conditions");
        let state = self.state.read();
        let revision = state.revision();
        let folders = state.under("/").count() as u64;
        let objects = state.under("/").map(|folder| folder.size().0).sum();
        let iovs = state.nopayload().iov_count() as u64;
        drop(state);
        page.add(Kind::Gauge, "payload_iovs", "Payload IOVs.", iovs);
        page.add(Kind::Gauge, "revision", "The last change.", revision);
        page.add(Kind::Gauge, "folders", "Folders.", folders);
        page.add(Kind::Gauge, "objects", "Objects that were inserted.", objects);
        for (name, help, count) in [
            ("reads", "Questions answered, slices left out.", &self.counts.reads),
            ("changes", "Changes made.", &self.counts.changes),
            ("refused", "Requests refused.", &self.counts.refused),
            ("slices", "Slices sent.", &self.counts.slices),
            ("slices_ready", "Slices sent that had been made before.", &self.counts.slices_ready),
            ("not_modified", "Slices that a client had already.", &self.counts.not_modified),
        ] {
            page.add(Kind::Counter, name, help, count.load(Relaxed));
        }
        let known = self.leads.lock().unwrap_or_else(PoisonError::into_inner).hits;
        let help = "Times whose place had been looked up before.";
        page.add(Kind::Counter, "places_known", help, known);
        page.text()
    }

    /// Does work that takes a while, or waits for the state, beside the thread of connections.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        done.unwrap_or_else(|_| {
            let (error, fix) = ("the service made an error", "look into its log, and report it");
            Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error, fix))
        })
    }

    /// An answer that has its room until it is sent.
    pub(super) async fn held(&self, answer: Response) -> Result<Response, Fault> {
        let (head, body) = answer.into_parts();
        // Its bytes lie in memory as one piece.
        let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let bytes = self.unsent.hold(bytes.into()).map_err(Fault::from)?;
        Ok(Response::from_parts(head, bytes.into()))
    }

    /// Counts a refusal.
    pub(super) fn answered(&self, answer: Result<Response, Fault>) -> Result<Response, Fault> {
        if answer.is_err() {
            self.counts.refused.fetch_add(1, Relaxed);
        }
        answer
    }
}

/// The parameters of a request.
pub(super) fn params(uri: &Uri, allowed: &[&str]) -> Result<Params, Fault> {
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = pairs.map_err(|_| Fault::bad("the query can't be read", "write NAME=VALUE&…"))?;
    let read = Params::read(&pairs.0, allowed);
    read.map_err(|why| Fault::bad(why, "docs/conditions.md lists the parameters"))
}

/// A parameter that a request can't be without.
pub(super) fn needed<T>(value: Option<T>, name: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::bad(format!("{name} is missing"), &format!("add {name}=…")))
}
