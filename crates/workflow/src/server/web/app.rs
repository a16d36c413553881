//! What all handlers share: the way to the owner of the tree, and the limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::body::{Body as HttpBody, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use service::Tokens;
use tokio::sync::{Semaphore, oneshot};
use wire::Waker;

use super::fault::Fault;
use super::filter::filtered;
use crate::model::{NodeId, Snapshot};
use crate::protocol::frame::HEAD_BYTES;
use crate::protocol::{
    Answer as Read, Body, Child, Command, Reply, Report, Request, Standard, User, read_answer,
    write,
};
use crate::server::environment::Environment;
use crate::server::message::{Asked, Look, Message};
use crate::server::shared::Shared;
use crate::server::slot::{Answer, Held, Rendered, Slot};

/// The largest body of a request.
pub(super) const MOST_BODY: usize = 64 << 20;

/// A body has come whole within this time.
pub(super) const BODY_WITHIN: Duration = Duration::from_secs(60);

/// The most bytes of all requests' bodies together, in KiB.
const BODIES_KIB: usize = 256 << 10;

/// An answer about more nodes than these is a large one.
const LARGE: usize = 1_000;

/// Who asks, where a token stands for the user.
const USER: &str = "http";

/// What all handlers share.
pub(in crate::server) struct App {
    shared: Arc<Shared>,
    pub(super) environment: Arc<Environment>,
    pub(super) tokens: Option<Tokens>,
    /// Whether what only reads needs a token, too.
    pub(super) is_public: bool,
    pub(super) bodies: Arc<Semaphore>,
    /// One large answer is made at a time, so that small ones don't wait for many.
    large: Arc<Semaphore>,
    pub(super) requests: AtomicU64,
    pub(super) errors: AtomicU64,
    /// Requests that needed nothing but a snapshot.
    pub(super) snapshots: AtomicU64,
    pub(super) started_us: i64,
}

impl App {
    pub(in crate::server) fn new(
        shared: Arc<Shared>,
        environment: Arc<Environment>,
        tokens: Option<Tokens>,
        is_public: bool,
    ) -> Self {
        Self {
            shared,
            environment,
            tokens,
            is_public,
            bodies: Arc::new(Semaphore::new(BODIES_KIB)),
            large: Arc::new(Semaphore::new(1)),
            requests: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            snapshots: AtomicU64::new(0),
            started_us: crate::server::log::unix_us(),
        }
    }

    /// The tree as it is now, and what has changed since a number.
    pub(super) async fn look_since(&self, since: Option<u32>) -> Result<Look, Fault> {
        let (send, receive) = oneshot::channel();
        let answer = move |look| {
            // Whoever asked may have gone away.
            let _ = send.send(look);
        };
        let _ = self.shared.owner.send(Message::Look(since, Box::new(answer)));
        receive.await.map_err(|_| Fault::stopping())
    }

    /// The tree as it is now.
    pub(super) async fn look(&self) -> Result<Look, Fault> {
        self.snapshots.fetch_add(1, Relaxed);
        self.look_since(None).await
    }

    /// What becomes of the commands of a task whose job runs.
    pub(super) fn why(&self, tree: &Snapshot, path: &str) -> Option<String> {
        self.shared.why(tree, path)
    }

    /// That commands have taken all places for long.
    pub(super) fn taken_up(&self) -> Option<String> {
        self.shared.spawner.taken_up()
    }

    /// Has the owner carry a user's command out.
    pub(super) async fn user(&self, command: Command) -> Result<Told, Fault> {
        let user = User { name: USER.to_owned(), ..User::default() };
        self.ask(Body::User(user, command)).await
    }

    /// Has the owner take a job's report.
    pub(super) async fn child(&self, child: Child, report: Report) -> Result<Told, Fault> {
        self.ask(Body::Child(child, report)).await
    }

    async fn ask(&self, body: Body) -> Result<Told, Fault> {
        let request = Request { host: self.environment.host.clone(), body };
        let document = Bytes::from(write(&request));
        let (send, receive) = oneshot::channel();
        let send = std::sync::Mutex::new(Some(send));
        let slot = Slot::new(Waker::new(move || {
            let send = send.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            let _ = send.map(|send| send.send(()));
        }));
        let mut held = Held::none(&self.shared.memory);
        if !held.grow(document.len()) {
            return Err(Fault::busy("requests that are carried out take all memory"));
        }
        let (slot_of_answer, definition, header) = (slot.clone(), None, None);
        let is_trusted = true;
        let asked = Asked { document, slot: slot_of_answer, held, is_trusted, definition, header };
        asked.send(request, &self.shared.owner);
        receive.await.map_err(|_| Fault::stopping())?;
        match slot.take() {
            Some(Answer::Reply(reply)) => Told::of_reply(reply),
            Some(Answer::Bytes(bytes)) => Told::of_bytes(&bytes),
            Some(Answer::Around(text, [before, behind])) => {
                Told::of_bytes(&[&before[..], &text, &behind].concat())
            }
            Some(Answer::Changes(..)) | None => Err(Fault::stopping()),
        }
    }

    /// Does work that takes a while on a thread beside that of connections; what has not begun is
    /// left undone when its client has gone away.
    pub(super) async fn beside<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        struct Begun<T>(tokio::task::JoinHandle<T>);
        impl<T> Drop for Begun<T> {
            fn drop(&mut self) {
                self.0.abort();
            }
        }
        let failed = |_| {
            let fix = "look into the server's log, and report it";
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the server made an error", fix)
        };
        (&mut Begun(tokio::task::spawn_blocking(work)).0).await.map_err(failed)?
    }

    /// An answer in JSON that `make` writes beside the thread of connections, or the part of it
    /// that a filter names.
    pub(super) async fn json(
        self: &Arc<Self>,
        filter: Option<String>,
        make: impl FnOnce() -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Response, Fault> {
        let bytes = Self::beside(move || {
            let bytes = make()?;
            match filter {
                Some(path) => filtered(&bytes, &path),
                None => Ok(bytes),
            }
        });
        self.sent(StatusCode::OK, bytes.await?)
    }

    /// The same of a node and all below it, which waits for its turn where those are many.
    pub(super) async fn json_of(
        self: &Arc<Self>,
        filter: Option<String>,
        (tree, id): (Snapshot, NodeId),
        make: impl FnOnce(&Snapshot, NodeId) -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Response, Fault> {
        let is_large = tree.walk(id).nth(LARGE).is_some();
        let turn =
            if is_large { Some(Arc::clone(&self.large).acquire_owned().await) } else { None };
        self.json(filter, move || {
            let _turn = turn;
            make(&tree, id)
        })
        .await
    }

    /// An answer whose memory is counted until it is sent.
    pub(super) fn sent(&self, status: StatusCode, bytes: Vec<u8>) -> Result<Response, Fault> {
        let mut held = Held::none(&self.shared.answers);
        if !held.grow(bytes.len()) {
            return Err(Fault::busy("answers that are being sent take all memory"));
        }
        let body = Bytes::from_owner(Rendered::held(bytes, held));
        let kind = [(header::CONTENT_TYPE, "application/json")];
        Ok((status, kind, HttpBody::from(body)).into_response())
    }
}

/// What the owner has answered.
#[derive(Debug)]
pub(super) enum Told {
    /// It is done.
    Done,
    /// What a job waits for is not true yet.
    Wait,
    /// A text.
    Text(String),
    /// Lines.
    Lines(Vec<String>),
    /// What the server counts.
    Stats(Box<crate::protocol::Stats>),
}

impl Told {
    fn of_reply(reply: Reply) -> Result<Self, Fault> {
        Ok(match reply {
            Reply::Standard(Standard::Wait) => Self::Wait,
            Reply::Standard(Standard::Halted) => {
                return Err(Fault::busy("the server is halted"));
            }
            Reply::Error(why) => return Err(Fault::of_owner(&why)),
            Reply::Blocked(_) => {
                let fix = "have a user decide on the zombie: fob, fail, adopt, remove or kill";
                return Err(Fault::new(StatusCode::CONFLICT, "the job is a zombie", fix));
            }
            Reply::Text(text) => Self::Text(text),
            Reply::Texts(lines) => Self::Lines(lines),
            Reply::Stats(stats) => Self::Stats(stats),
            _ => Self::Done,
        })
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self, Fault> {
        let document = bytes.get(HEAD_BYTES..).unwrap_or_default();
        match read_answer(document) {
            Ok(Read::Error(why)) => Err(Fault::of_owner(&why)),
            Ok(Read::Text(text)) => Ok(Self::Text(text.into_owned())),
            Ok(_) => Ok(Self::Done),
            Err(why) => Err(Fault::of_owner(&why.to_string())),
        }
    }

    /// The text, or none.
    pub(super) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Lines(lines) => lines.join("\n"),
            _ => String::new(),
        }
    }
}
