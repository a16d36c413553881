//! What all handlers share.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use axum::http::{StatusCode, Uri};
use axum::response::Response;
use journal::SyncPolicy;
use service::metrics::{Kind, Metrics};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fault::{Fault, Unread};
use super::known::NOW;
use super::ready::Slices;
use super::segments::{Pins, Segments};
use super::shared::{Reading, Shared};
use super::size::Size;
use super::store::Writer;
use super::unsent::Unsent;
use crate::model::{Leads, State, segment_name};
use crate::nopayload::server::storage::Storage;
use crate::protocol::Params;

/// The most bytes of the bodies of all changes together, until these are made, in KiB.
const BODIES_KIB: usize = 256 << 10;

/// The most bytes of all questions' parameters in bodies together, until they are answered, in KiB.
/// Large questions may wait long for their turn: what they hold is none of the changes' room, nor
/// of the room for answers, which the one whose turn it is needs.
const FORMS_KIB: usize = 64 << 10;

/// What a service has counted since its start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) reads: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) slices: AtomicU64,
    pub(crate) slices_ready: AtomicU64,
    pub(crate) not_modified: AtomicU64,
    pub(super) places_known: AtomicU64,
}

/// What all handlers share.
pub(crate) struct App {
    pub(crate) state: Shared,
    pub(crate) writer: Writer,
    pub(super) slices: Slices,
    /// Locked after the state, and never while a place is looked up.
    pub(super) leads: Mutex<Leads>,
    pub(crate) bodies: Arc<Semaphore>,
    pub(super) forms: Arc<Semaphore>,
    pub(crate) storage: Storage,
    pub(crate) unsent: Unsent,
    /// The turn of large questions.
    large: Arc<Semaphore>,
    pub(crate) counts: Counts,
    /// Whether a crash of the machine may undo what was answered, and others get its revisions.
    forgets: bool,
    /// What fetches segments that are elsewhere.
    segments: Option<Segments>,
}

impl App {
    pub(super) fn new(state: Shared, writer: Writer, storage: Storage) -> Self {
        let (slices, leads, counts) = (Slices::default(), Mutex::default(), Counts::default());
        let [bodies, forms] = [BODIES_KIB, FORMS_KIB].map(|kib| Arc::new(Semaphore::new(kib)));
        let unsent = Unsent::default();
        let (large, forgets, segments) = (Arc::new(Semaphore::new(1)), false, None);
        Self {
            state,
            writer,
            slices,
            leads,
            bodies,
            forms,
            storage,
            unsent,
            large,
            counts,
            forgets,
            segments,
        }
    }

    /// The same where the payload of segments may be elsewhere.
    #[cfg(feature = "tier")]
    pub(super) fn over(self, segments: Segments) -> Self {
        Self { segments: Some(segments), ..self }
    }

    /// The same where changes are on the disk as this policy has it.
    pub(super) fn synced(self, sync: SyncPolicy) -> Self {
        Self { forgets: sync != SyncPolicy::Always, ..self }
    }

    /// How long caches keep what is of a revision: for this long, where that is never another's.
    pub(super) fn kept(&self, long: &'static str) -> &'static str {
        if self.forgets { NOW } else { long }
    }

    /// The counters, for Prometheus.
    pub(super) fn metrics(&self) -> String {
        let mut page = Metrics::of("conditions");
        let state = self.state.read();
        let revision = state.revision();
        let folders = state.under("/").count() as u64;
        let objects = state.under("/").map(|folder| folder.size().0).sum();
        let iovs = state.nopayload().iov_count() as u64;
        let (segments, segment_bytes) = state.sealed_size();
        drop(state);
        page.add(Kind::Gauge, "payload_iovs", "Payload IOVs.", iovs);
        page.add(Kind::Gauge, "revision", "The last change.", revision);
        page.add(Kind::Gauge, "folders", "Folders.", folders);
        page.add(Kind::Gauge, "objects", "Objects that were inserted.", objects);
        page.add(Kind::Gauge, "segments", "Segments.", segments as u64);
        page.add(Kind::Gauge, "segment_bytes", "Bytes of segments.", segment_bytes);
        for (name, help, count) in [
            ("reads", "Questions answered, slices left out.", &self.counts.reads),
            ("changes", "Changes made.", &self.counts.changes),
            ("refused", "Requests refused.", &self.counts.refused),
            ("slices", "Slices sent.", &self.counts.slices),
            ("slices_ready", "Slices sent that had been made before.", &self.counts.slices_ready),
            ("not_modified", "Answers that a client had already.", &self.counts.not_modified),
            ("places_known", "Times whose place was remembered.", &self.counts.places_known),
        ] {
            page.add(Kind::Counter, name, help, count.load(Relaxed));
        }
        page.text()
    }

    /// Reads the state: on the thread of connections where that is little, and otherwise beside it:
    /// what is large in its turn, and once there is room for the answer. How large it is is found
    /// beside it, too: that may mean to look at each of many folders.
    ///
    /// To pass work on to another thread and its answer back takes longer than little work does.
    pub(crate) async fn read<Q: Send + 'static, T: Send + 'static>(
        self: &Arc<Self>,
        question: Q,
        is_little: impl FnOnce(&Self, &State, &Q) -> bool,
        size: impl FnOnce(&Self, &State, &Q) -> Size + Send + 'static,
        work: impl FnOnce(&Self, Reading<'_>, Q) -> T + Send + 'static,
    ) -> Result<T, Unread> {
        {
            let state = self.state.free().await;
            if is_little(self, &state, &question) {
                return Ok(work(self, state, question));
            }
        }
        let app = Arc::clone(self);
        let answer_unless_large = move || {
            let state = app.state.read();
            match size(&app, &state, &question) {
                Size::Medium => Ok(work(&app, state, question)),
                Size::Large(bytes) => Err((bytes, question, work)),
            }
        };
        let answered = beside(answer_unless_large).await.ok_or(Unread::Panicked)?;
        let (bytes, question, work) = match answered {
            Ok(answer) => return Ok(answer),
            Err(large) => large,
        };
        let (app, turn) = (Arc::clone(self), self.turn(bytes).await?);
        let answer = move || {
            // It is over with the work, which goes on where its client has gone away.
            let _turn = turn;
            work(&app, app.state.read(), question)
        };
        beside(answer).await.ok_or(Unread::Panicked)
    }

    /// The turn of a large question, unless there is no room for its answer: what others do not
    /// read is waited for by their clients, not here.
    async fn turn(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Unread> {
        self.unsent.check(bytes)?;
        let turn = Arc::clone(&self.large).acquire_owned().await;
        // The room is taken once its bytes are known. Until then no other large one takes it.
        self.unsent.check(bytes)?;
        turn.map_err(|_| Unread::Panicked)
    }

    /// Does work that takes a while, or waits for the state, beside the thread of connections.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let app = Arc::clone(self);
        beside(move || work(&app)).await.unwrap_or_else(|| Err(Fault::own()))
    }

    /// Answers, and does it anew whenever a segment had to be fetched for that first. What was
    /// fetched stays here until all of it is.
    pub(super) async fn fetching<T, F: Future<Output = Result<T, Fault>>>(
        self: &Arc<Self>,
        mut answer: impl FnMut(Arc<Self>) -> F,
    ) -> Result<T, Fault> {
        let (mut pins, mut swept) = (Pins::new(), None);
        loop {
            let fault = match answer(Arc::clone(self)).await {
                Err(fault) => fault,
                answered => return answered,
            };
            let Some(id) = fault.elsewhere.as_deref().copied() else { return Err(fault) };
            match self.fetch(id).await {
                Ok(fetched) => pins.extend(fetched),
                // Another snapshot has been taken in since: its own segments are asked for.
                Err(why) if why.kind() == ErrorKind::NotFound && swept != Some(id) => {
                    swept = Some(id);
                }
                Err(why) => {
                    let error = format!("{} can't be fetched: {why}", segment_name(id));
                    tracing::error!("{error}");
                    let fix = "see to the object store, or to --cache-size, and ask again";
                    return Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, error, fix));
                }
            }
        }
    }

    /// Fetches a segment whose payload is elsewhere.
    async fn fetch(&self, id: u64) -> io::Result<Pins> {
        let fetched = self.segments.as_ref().and_then(|all| all.fetch_beside(id));
        let fetched = fetched.ok_or(ErrorKind::Unsupported)?.await;
        fetched.unwrap_or_else(|_| Err(io::Error::other("what fetched it has ended")))
    }

    /// Counts a refusal.
    pub(super) fn answered(&self, answer: Result<Response, Fault>) -> Result<Response, Fault> {
        if answer.is_err() {
            self.counts.refused.fetch_add(1, Relaxed);
        }
        answer
    }
}

/// Does work on one of the two threads beside that of connections. `None` where it panics.
///
/// Work that has not begun is left undone when this is dropped, because its client has gone away:
/// connections are limited, and so is what waits for these threads.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    struct Begun<T>(tokio::task::JoinHandle<T>);
    impl<T> Drop for Begun<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    (&mut Begun(tokio::task::spawn_blocking(work)).0).await.ok()
}

/// The parameters of a request.
pub(super) fn params(uri: &Uri, allowed: &[&str]) -> Result<Params, Fault> {
    query_params(uri.query().unwrap_or_default(), allowed)
}

/// The parameters of a query.
pub(super) fn query_params(query: &str, allowed: &[&str]) -> Result<Params, Fault> {
    Params::of_query(query, allowed)
        .map_err(|why| Fault::bad(why, "docs/conditions.md lists the parameters"))
}

/// A parameter that a request can't be without.
pub(super) fn needed<T>(value: Option<T>, name: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::bad(format!("{name} is missing"), &format!("add {name}=…")))
}

#[cfg(test)]
mod tests;
