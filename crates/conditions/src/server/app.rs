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
        let (bodies, unsent) = (Arc::new(Semaphore::new(BODIES_KIB)), Unsent::default());
        let (large, forgets, segments) = (Arc::new(Semaphore::new(1)), false, None);
        Self {
            state,
            writer,
            slices,
            leads,
            bodies,
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
    /// what is large in its turn, and once there is room for the answer.
    ///
    /// To pass work on to another thread and its answer back takes longer than little work does.
    pub(crate) async fn read<Q: Send + 'static, T: Send + 'static>(
        self: &Arc<Self>,
        question: Q,
        size: impl FnOnce(&Self, &State, &Q) -> Size,
        work: impl FnOnce(&Self, Reading<'_>, Q) -> T + Send + 'static,
    ) -> Result<T, Unread> {
        let size = {
            let state = self.state.free().await;
            match size(self, &state, &question) {
                Size::Little => return Ok(work(self, state, question)),
                size => size,
            }
        };
        let turn = match size {
            Size::Large(bytes) => Some(self.turn(bytes).await?),
            Size::Little | Size::Medium => None,
        };
        let app = Arc::clone(self);
        let work = move || {
            // It is over with the work, which goes on where its client has gone away.
            let _turn = turn;
            work(&app, app.state.read(), question)
        };
        beside(work).await.ok_or(Unread::Panicked)
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
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use axum::extract::State as Extract;
    use axum::routing::get;
    use journal::SyncPolicy;
    use serde_json::json;
    use service::{BoundHttp, Face, HttpServer, HttpSettings};

    use super::super::router;
    use super::super::store::Store;
    use super::*;
    use crate::client::{Client, ClientError};
    use crate::nopayload::server::storage::Origin;

    const WAIT: Duration = Duration::from_secs(60);

    /// A server, and what it holds.
    struct Served {
        _data: tempfile::TempDir,
        _store: Store,
        app: Arc<App>,
        at: SocketAddr,
        _server: HttpServer,
    }

    /// The bytes of the answer to a large question.
    const LARGE: usize = 1 << 20;

    /// A server that has one object, and is asked a big question at `/big`, or a large one at
    /// `/large`: it says that it is begun, and goes on when it may.
    fn serve(begun: Sender<()>, may_end: Receiver<()>) -> Served {
        let data = tempfile::tempdir().expect("a folder");
        let store = Store::open(data.path(), u64::MAX, SyncPolicy::Always).expect("a store");
        let storage = Storage::open(data.path()).expect("a storage");
        let app = Arc::new(App::new(store.shared(), store.writer(), storage));
        let channels = Arc::new(Mutex::new((begun, may_end)));
        let ask = |size: Size| {
            let channels = Arc::clone(&channels);
            get(async move |Extract(app): Extract<Arc<App>>| {
                let work =
                    |_: &App,
                     state: Reading<'_>,
                     channels: Arc<Mutex<(Sender<()>, Receiver<()>)>>| {
                        let channels = channels.lock().expect("whole");
                        let (begun, may_end) = &*channels;
                        begun.send(()).expect("the test goes on");
                        may_end.recv().expect("the test goes on");
                        state.revision().to_string()
                    };
                app.read(channels, move |_, _, _| size, work).await.map_err(Fault::from)
            })
        };
        let big = axum::Router::new()
            .route("/api/v1/big", ask(Size::Medium))
            .route("/api/v1/large", ask(Size::Large(LARGE)))
            .with_state(app.clone());
        let address = ([127, 0, 0, 1], 0).into();
        let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
        let bound = BoundHttp::bind(settings).expect("an address");
        let server = bound.start(|_| router(app.clone()).merge(big)).expect("a server");
        let at = server.address();
        let columns = json!([{ "name": "v", "kind": "float" }]);
        let folder = json!({ "path": "/a", "versioning": "single", "columns": columns });
        let object = json!({ "channel": 1, "since": 0, "values": [1.5] });
        let batches = json!({ "batches": [{ "folder": "/a", "objects": [object] }] });
        client(at).post("/folders", &folder).expect("made");
        client(at).post("/objects", &batches).expect("made");
        Served { _data: data, _store: store, app, at, _server: server }
    }

    fn client(at: SocketAddr) -> Client {
        Client::new(&at.to_string(), None, WAIT)
    }

    fn little(at: SocketAddr) -> serde_json::Value {
        let asked = [("folder", "/a".to_owned()), ("t", "5".to_owned())];
        let found = client(at).get_json("/find", &asked).expect("an answer");
        found["objects"][0]["records"][0][0].clone()
    }

    #[test]
    fn big_questions_that_take_all_threads_hold_up_no_little_one() {
        let ((begun, begins), (may_end, ends)) = (channel(), channel());
        let served = serve(begun, ends);
        let at = served.at;
        std::thread::scope(|scope| {
            let ask = || client(at).get("/big", &[]).expect("an answer").body;
            // One of them is at work, and others wait for it.
            let big: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            begins.recv_timeout(WAIT).expect("begun");
            assert_eq!(little(at), json!(1.5));
            let slice = client(at).slice(&[("t", "5".to_owned())]).expect("a slice");
            assert!(!slice.body.is_empty());
            let folder = ("folder", "/a".to_owned());
            let explained = [folder.clone(), ("t", "5".to_owned())];
            let short = [
                ("/folders", &[][..]),
                ("/tags", &[]),
                ("/channels", &[folder]),
                ("/explain", &explained),
            ];
            for (path, of) in short {
                client(at).get_json(path, of).expect(path);
            }
            big.iter().for_each(|_| may_end.send(()).expect("they wait"));
            for one in big {
                assert_eq!(one.join().expect("no panic"), b"2");
            }
        });
    }

    #[test]
    fn large_questions_leave_a_thread_for_others_and_are_not_begun_without_room() {
        let ((begun, begins), (may_end, ends)) = (channel(), channel());
        let served = serve(begun, ends);
        let at = served.at;
        std::thread::scope(|scope| {
            let ask = || match client(at).get("/large", &[]) {
                Ok(_) => 200,
                Err(ClientError::Refused { status, .. }) => status,
                Err(why) => panic!("{why}"),
            };
            let large: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            begins.recv_timeout(WAIT).expect("begun");
            let count = || client(at).get_json("/count", &[("folder", "/a".to_owned())]);
            for _ in 0..10 {
                assert_eq!(count().expect("an answer")["objects"], 1);
            }
            // Answers that their clients do not read leave less room than it needs.
            let left = served.app.unsent.left_kib() * 1024;
            let unread = served.app.unsent.room(left - LARGE / 2).expect("there is room");
            may_end.send(()).expect("it waits");
            let mut statuses: Vec<_> =
                large.into_iter().map(|one| one.join().expect("no panic")).collect();
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 503, 503, 503]);
            assert_eq!(ask(), 503, "at once");
            assert!(begins.try_recv().is_err(), "no other was begun");
            assert_eq!(count().expect("an answer")["objects"], 1);
            drop(unread);
            may_end.send(()).expect("it waits");
            assert_eq!(ask(), 200);
        });
    }

    #[test]
    fn what_clients_have_asked_who_have_gone_away_is_not_worked_on() {
        let ((begun, begins), (may_end, ends)) = (channel(), channel());
        let served = serve(begun, ends);
        let at = served.at;
        let head = format!("GET /api/v1/big HTTP/1.1\r\nhost: {at}\r\n\r\n");
        let ask = |_| {
            let mut socket = TcpStream::connect(at).expect("a connection");
            socket.write_all(head.as_bytes()).expect("sent");
            socket
        };
        // What has come by then is looked at before these.
        let looked_at = || (0..10).for_each(|_| assert_eq!(little(at), json!(1.5)));
        let gone: Vec<_> = (0..10).map(ask).collect();
        begins.recv_timeout(WAIT).expect("begun");
        looked_at();
        drop(gone);
        looked_at();
        (0..20).for_each(|_| may_end.send(()).expect("they wait"));
        assert_eq!(client(at).get("/big", &[]).expect("an answer").body, b"2");
        // Each of the two threads had begun with one at most.
        let more = begins.try_iter().count();
        assert!((1..=2).contains(&more), "{more}");
    }

    /// Where segments are kept: none can be fetched, for this reason.
    #[cfg(feature = "tier")]
    struct Without(ErrorKind, std::sync::atomic::AtomicU64);

    #[cfg(feature = "tier")]
    impl super::super::segments::Origin for Without {
        fn put(&self, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn check_room(&self) -> io::Result<()> {
            Ok(())
        }

        fn bring(&self, _: &[(u64, u64, u32)]) -> io::Result<()> {
            Ok(())
        }

        fn open(&self, _: u64) -> io::Result<crate::model::Source> {
            Err(self.0.into())
        }

        fn fetch(&self, _: u64) -> io::Result<Pins> {
            self.1.fetch_add(1, Relaxed);
            Err(self.0.into())
        }

        fn fetch_beside(
            self: Arc<Self>,
            id: u64,
        ) -> tokio::sync::oneshot::Receiver<io::Result<Pins>> {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            drop(sender.send(self.fetch(id)));
            receiver
        }

        fn sweep(&self, _: &std::collections::BTreeSet<u64>) -> io::Result<()> {
            Ok(())
        }
    }

    #[cfg(feature = "tier")]
    #[test]
    fn what_is_asked_of_a_segment_that_was_swept_meanwhile_is_asked_anew_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let data = tempfile::tempdir().expect("a folder");
        let store = Store::open(data.path(), u64::MAX, SyncPolicy::Always).expect("a store");
        // How often the answer needs the segment: the second time of another snapshot.
        for (why, needs, expected) in [
            (ErrorKind::NotFound, 1, (Ok(2), 1)),
            (ErrorKind::NotFound, 9, (Err(503), 2)),
            (ErrorKind::InvalidData, 1, (Err(503), 1)),
        ] {
            let origin = Arc::new(Without(why, AtomicU64::new(0)));
            let segments = Segments::of_origin(data.path(), origin.clone());
            let storage = Storage::open(data.path()).expect("a storage");
            let app = Arc::new(App::new(store.shared(), store.writer(), storage).over(segments));
            let mut asked = 0;
            let answer = app.fetching(|_| {
                asked += 1;
                std::future::ready(match asked > needs {
                    true => Ok(asked),
                    false => Err(Fault { elsewhere: Some(Box::new(7)), ..Fault::own() }),
                })
            });
            let answer = runtime.block_on(answer).map_err(|fault| fault.status.as_u16());
            assert_eq!((answer, origin.1.load(Relaxed)), expected, "{why}");
        }
    }

    /// Where files are kept: each that is fetched is waited for.
    struct Slow {
        begun: Sender<()>,
        may_end: Mutex<Receiver<()>>,
    }

    impl Origin for Slow {
        fn put(&self, _: &str, _: &mut std::fs::File) -> std::io::Result<()> {
            Ok(())
        }

        fn get(&self, _: &str, _: &mut dyn std::io::Write) -> std::io::Result<()> {
            // Those that begin later may find that the test is over.
            let _ = self.begun.send(());
            let _ = self.may_end.lock().map(|may_end| may_end.recv());
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn files_that_are_fetched_hold_up_no_question() {
        let data = tempfile::tempdir().expect("a folder");
        let store = Store::open(data.path(), u64::MAX, SyncPolicy::Always).expect("a store");
        let ((begun, begins), (ends, may_end)) = (channel(), channel());
        let origin = Arc::new(Slow { begun, may_end: Mutex::new(may_end) });
        let storage = Storage::open_copies(data.path(), origin).expect("a storage");
        let app = Arc::new(App::new(store.shared(), store.writer(), storage));
        let address = ([127, 0, 0, 1], 0).into();
        let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
        let bound = BoundHttp::bind(settings).expect("an address");
        let server = bound.start(|_| router(app.clone())).expect("a server");
        let at = server.address();
        let send = |head: &str, body: &str| {
            let mut socket = TcpStream::connect(at).expect("a connection");
            let length = body.len();
            let head = format!("{head} HTTP/1.1\r\nhost: {at}\r\ncontent-length: {length}\r\n\r\n");
            socket.write_all(format!("{head}{body}").as_bytes()).expect("sent");
            socket
        };
        let names = ["one", "two", "three"];
        for name in names {
            let mut answer = [0; 12];
            send(&format!("PUT /upload/{name}"), name).read_exact(&mut answer).expect("an answer");
            assert_eq!(&answer, b"HTTP/1.1 201");
        }
        // The copies that were made of them are lost.
        for folder in std::fs::read_dir(data.path().join("files")).expect("a folder") {
            let folder = folder.expect("a folder");
            if folder.file_name() != "incoming" {
                std::fs::remove_dir_all(folder.path()).expect("removed");
            }
        }
        let _fetching = names.map(|name| send(&format!("GET /dbstore/{name}"), ""));
        begins.recv_timeout(WAIT).expect("begun");
        // What has come by then is looked at before these, each by a thread beside.
        for _ in 0..10 {
            let mut page = send("GET /metrics", "");
            page.set_read_timeout(Some(WAIT)).expect("set");
            page.read_exact(&mut [0; 12]).expect("an answer");
        }
        names.iter().for_each(|_| ends.send(()).expect("they wait"));
    }

    #[test]
    fn a_question_waits_for_a_change_that_is_applied_and_others_do_not_wait_for_it() {
        let ((begun, _begins), (_may_end, ends)) = (channel(), channel());
        let Served { app, at, .. } = &serve(begun, ends);
        let applying = app.state.write();
        let waiting = std::thread::spawn({
            let at = *at;
            move || little(at)
        });
        let mut socket = TcpStream::connect(at).expect("a connection");
        let head = format!("GET /api/v1/find?folder=/a&t=5 HTTP/1.1\r\nhost: {at}\r\n\r\n");
        socket.write_all(head.as_bytes()).expect("sent");
        // What has come by then is looked at before these.
        for _ in 0..10 {
            client(*at).get("/openapi.json", &[]).expect("an answer");
        }
        assert_eq!(app.counts.reads.load(Relaxed), 0, "what is asked of the state waits");
        drop(applying);
        assert_eq!(waiting.join().expect("no panic"), json!(1.5));
    }
}
