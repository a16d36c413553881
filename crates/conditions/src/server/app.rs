//! What all handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::{StatusCode, Uri};
use axum::response::Response;
use service::metrics::{Kind, Metrics};
use tokio::sync::Semaphore;

use super::fault::Fault;
use super::ready::Slices;
use super::store::{Shared, Writer};
use crate::protocol::Params;

/// The most bytes of all requests' bodies together, until they are answered, in KiB.
const BODIES_KIB: usize = 256 << 10;

/// What a service has counted since its start.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) reads: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) slices: AtomicU64,
    pub(super) slices_ready: AtomicU64,
    pub(super) not_modified: AtomicU64,
}

/// What all handlers share.
pub(super) struct App {
    pub(super) state: Shared,
    pub(super) writer: Writer,
    pub(super) slices: Slices,
    pub(super) bodies: Semaphore,
    pub(super) counts: Counts,
}

impl App {
    pub(super) fn new(state: Shared, writer: Writer) -> Self {
        let (slices, counts) = (Slices::default(), Counts::default());
        Self { state, writer, slices, bodies: Semaphore::new(BODIES_KIB), counts }
    }

    /// The counters, for Prometheus.
    pub(super) fn metrics(&self) -> String {
        let mut page = Metrics::of("conditions");
        let state = self.state.read();
        let revision = state.revision();
        let folders = state.under("/").count() as u64;
        let objects = state.under("/").map(|folder| folder.size().0 as u64).sum();
        drop(state);
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
