//! Who waits for whom, and how much room what waits takes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

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

/// Where work says that it is begun, and waits until it may go on.
type Channels = Arc<Mutex<(Sender<()>, Receiver<()>)>>;

fn wait(channels: &Channels) {
    let channels = channels.lock().expect("whole");
    let (begun, may_go_on) = &*channels;
    begun.send(()).expect("the test goes on");
    may_go_on.recv().expect("the test goes on");
}

/// A server that has one object, and is asked a question of medium size at `/medium`, or a large
/// one at `/large`: it says that it is begun, and goes on when it may. So does one at `/sized`
/// while it is found how large it is.
fn serve(begun: Sender<()>, may_go_on: Receiver<()>) -> Served {
    let data = tempfile::tempdir().expect("a folder");
    let store = Store::open(data.path(), u64::MAX, SyncPolicy::Always).expect("a store");
    let storage = Storage::open(data.path()).expect("a storage");
    let app = Arc::new(App::new(store.shared(), store.writer(), storage));
    let channels = Arc::new(Mutex::new((begun, may_go_on)));
    let is_little = |_: &App, _: &State, _: &Channels| false;
    let ask = |size: Size| {
        let channels = Arc::clone(&channels);
        get(async move |Extract(app): Extract<Arc<App>>| {
            let work = |_: &App, state: Reading<'_>, channels: Channels| {
                wait(&channels);
                state.revision().to_string()
            };
            let read = app.read(channels, is_little, move |_, _, _| size, work);
            read.await.map_err(Fault::from)
        })
    };
    let sized = Arc::clone(&channels);
    let sized = get(async move |Extract(app): Extract<Arc<App>>| {
        let size = |_: &App, _: &State, channels: &Channels| {
            wait(channels);
            Size::Medium
        };
        let work = |_: &App, state: Reading<'_>, _| state.revision().to_string();
        app.read(sized, is_little, size, work).await.map_err(Fault::from)
    });
    let big = axum::Router::new()
        .route("/api/v1/medium", ask(Size::Medium))
        .route("/api/v1/large", ask(Size::Large(LARGE)))
        .route("/api/v1/sized", sized)
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
    let ((begun, begins), (go_on, may_go_on)) = (channel(), channel());
    let served = serve(begun, may_go_on);
    let at = served.at;
    std::thread::scope(|scope| {
        let ask = || client(at).get("/medium", &[]).expect("an answer").body;
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
        big.iter().for_each(|_| go_on.send(()).expect("they wait"));
        for one in big {
            assert_eq!(one.join().expect("no panic"), b"2");
        }
    });
}

#[test]
fn to_find_how_large_a_question_is_holds_up_no_little_one() {
    let ((begun, begins), (go_on, may_go_on)) = (channel(), channel());
    let served = serve(begun, may_go_on);
    let at = served.at;
    let sized = std::thread::spawn(move || client(at).get("/sized", &[]));
    begins.recv_timeout(WAIT).expect("begun");
    let answered = std::thread::spawn(move || little(at)).join();
    go_on.send(()).expect("it waits");
    assert_eq!(answered.expect("it does not wait"), json!(1.5));
    assert_eq!(sized.join().expect("no panic").expect("an answer").body, b"2");
}

#[test]
fn parameters_that_wait_for_their_turn_take_no_room_of_changes_nor_of_answers() {
    let ((begun, _begins), (_go_on, may_go_on)) = (channel(), channel());
    let Served { app, at, .. } = &serve(begun, may_go_on);
    let at = *at;
    let room = || [&app.forms, &app.bodies].map(|room| room.available_permits());
    let [forms, bodies] = [FORMS_KIB, BODIES_KIB];
    // A change's room is free again a little after it is answered.
    let wait_until = |is_so: &dyn Fn([usize; 2]) -> bool| {
        let end = Instant::now() + WAIT;
        while !is_so(room()) {
            assert!(Instant::now() < end, "{:?}", room());
            std::thread::yield_now();
        }
    };
    // A question that reads it counts as large.
    let columns = json!([{ "name": "v", "kind": "string" }]);
    let folder = json!({ "path": "/s", "versioning": "single", "columns": columns });
    client(at).post("/folders", &folder).expect("made");
    let insert = |channel: u32, value: &str| {
        let object = json!({ "channel": channel, "since": 0, "values": [value] });
        let batches = json!({ "batches": [{ "folder": "/s", "objects": [object] }] });
        client(at).post("/objects", &batches)
    };
    insert(1, &"x".repeat(5 << 20)).expect("made");
    wait_until(&|[_, left]| left == bodies);
    let turn = Arc::clone(&app.large).try_acquire_owned().expect("its turn");
    let ask = |channels: &str| {
        let form = format!("folder=/s&channels={channels}");
        let head = format!(
            "POST /api/v1/count HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n",
            form.len()
        );
        let mut socket = TcpStream::connect(at).expect("a connection");
        socket.set_read_timeout(Some(WAIT)).expect("set");
        socket.write_all(format!("{head}{form}").as_bytes()).expect("sent");
        socket
    };
    let answered = |mut socket: TcpStream| {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    };
    // Long numbers, as more than 512 KiB of them are asked.
    let many: Vec<_> = (0..50_000_u32).map(|n| (4_000_000_001 + 2 * n).to_string()).collect();
    let waiting = ask(&format!("1,{}", many.join(",")));
    wait_until(&|left| left.iter().sum::<usize>() + 512 < forms + bodies);
    assert_eq!(room()[1], bodies);
    // Others wait, too, and have all of the room that is left.
    let left = app.forms.available_permits() as u32;
    let others = Arc::clone(&app.forms).try_acquire_many_owned(left);
    let refused = answered(ask("1"));
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    insert(2, "y").expect("a change is made");
    drop(turn);
    let count = answered(waiting);
    assert!(count.starts_with("HTTP/1.1 200") && count.contains(r#"{"objects":1}"#), "{count}");
    drop(others);
    wait_until(&|left| left == [forms, bodies]);
}

#[test]
fn large_questions_leave_a_thread_for_others_and_are_not_begun_without_room() {
    let ((begun, begins), (go_on, may_go_on)) = (channel(), channel());
    let served = serve(begun, may_go_on);
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
        go_on.send(()).expect("it waits");
        let mut statuses: Vec<_> =
            large.into_iter().map(|one| one.join().expect("no panic")).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 503, 503, 503]);
        assert_eq!(ask(), 503, "at once");
        assert!(begins.try_recv().is_err(), "no other was begun");
        assert_eq!(count().expect("an answer")["objects"], 1);
        drop(unread);
        go_on.send(()).expect("it waits");
        assert_eq!(ask(), 200);
    });
}

#[test]
fn what_clients_have_asked_who_have_gone_away_is_not_worked_on() {
    let ((begun, begins), (go_on, may_go_on)) = (channel(), channel());
    let served = serve(begun, may_go_on);
    let at = served.at;
    let head = format!("GET /api/v1/medium HTTP/1.1\r\nhost: {at}\r\n\r\n");
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
    (0..20).for_each(|_| go_on.send(()).expect("they wait"));
    assert_eq!(client(at).get("/medium", &[]).expect("an answer").body, b"2");
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

    fn fetch_beside(self: Arc<Self>, id: u64) -> tokio::sync::oneshot::Receiver<io::Result<Pins>> {
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
    may_go_on: Mutex<Receiver<()>>,
}

impl Origin for Slow {
    fn put(&self, _: &str, _: &mut std::fs::File) -> std::io::Result<()> {
        Ok(())
    }

    fn get(&self, _: &str, _: &mut dyn std::io::Write) -> std::io::Result<()> {
        // Those that begin later may find that the test is over.
        let _ = self.begun.send(());
        let _ = self.may_go_on.lock().map(|may_go_on| may_go_on.recv());
        Err(std::io::ErrorKind::NotFound.into())
    }
}

#[test]
fn files_that_are_fetched_hold_up_no_question() {
    let data = tempfile::tempdir().expect("a folder");
    let store = Store::open(data.path(), u64::MAX, SyncPolicy::Always).expect("a store");
    let ((begun, begins), (go_on, may_go_on)) = (channel(), channel());
    let origin = Arc::new(Slow { begun, may_go_on: Mutex::new(may_go_on) });
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
    names.iter().for_each(|_| go_on.send(()).expect("they wait"));
}

#[test]
fn a_question_waits_for_a_change_that_is_applied_and_others_do_not_wait_for_it() {
    let ((begun, _begins), (_go_on, may_go_on)) = (channel(), channel());
    let Served { app, at, .. } = &serve(begun, may_go_on);
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
