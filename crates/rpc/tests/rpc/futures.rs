//! Calls as futures: answers that one thread reads and others wait for.

use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rpc::client::native::{CallFuture, FutureClient, FutureKind, NativeClient};
use rpc::protocol::status::Code;

use crate::native::{ADD, ECHO, SLEEP, connect, deaf, field, pause};
use crate::served::{PROGRAM, Served, lines, rpc, said};

const KINDS: [FutureKind; 3] = [FutureKind::Condvar, FutureKind::Channel, FutureKind::Spin];

/// Does something in every way, over a carrier of each sort.
fn in_every_way(mut check: impl FnMut(&str, FutureClient)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let server = Served::start(&["--unix", &path]);
    let pipe = format!("pipe:exec {PROGRAM} serve --pipe");
    for address in [&pipe, &format!("tcp:{}", server.address()), &format!("unix:{path}")] {
        for kind in KINDS {
            check(address, FutureClient::of(connect(address), kind).expect("a thread"));
        }
    }
}

/// Waits until nothing is outstanding.
fn is_idle(client: &FutureClient) {
    let until = Instant::now() + Duration::from_secs(50);
    while client.outstanding() != (0, 0) {
        assert!(Instant::now() < until, "{:?}", client.outstanding());
        std::thread::yield_now();
    }
}

#[test]
fn the_tables_are_empty_once_all_futures_have_their_answers_or_are_dropped() {
    in_every_way(|address, client| {
        let (add, sleep) = (client.method(ADD).expect("add"), client.method(SLEEP).expect("sleep"));
        let minute = pause(Duration::from_secs(60));
        let given_up = client.start(sleep, &minute, None).expect("a call");
        let soon = client.start(sleep, &pause(Duration::from_millis(5)), None).expect("a call");
        let nothing = field(8, 0);
        let futures: Vec<_> =
            (0..50).map(|_| client.start(add, &nothing, None).expect("a call")).collect();
        assert!(client.outstanding().1 <= 52, "{address}");
        for future in futures {
            assert!(future.wait().is_ok(), "{address}");
        }
        assert!(!given_up.is_done());
        drop(given_up);
        assert_eq!(soon.wait(), Ok(Bytes::new()), "{address}");
        let late = client.start(sleep, &minute, Some(Duration::from_millis(5))).expect("a call");
        assert_eq!(late.wait().expect_err("late").code, Code::DeadlineExceeded, "{address}");
        is_idle(&client);
        let unknown = client.call(9_999, &minute, None).expect_err("no such method");
        assert_eq!(unknown.code, Code::Unimplemented);
        is_idle(&client);
    });
}

#[test]
fn large_calls_of_several_threads_get_their_answers_while_requests_wait_for_room() {
    in_every_way(|_, client| {
        let echo = client.method("/loadline.rpc.v1.Table/Echo").expect("echo");
        let client = Arc::new(client);
        // 3 MiB in the field `blob`, which is sent back: neither side has room for it at once.
        let head = [0x2a, 0x80, 0x80, 0xc0, 0x01];
        let large = Bytes::from([&head[..], &vec![7; 3 << 20]].concat());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (client, large) = (Arc::clone(&client), large.clone());
                std::thread::spawn(move || {
                    for _ in 0..3 {
                        let time = Some(Duration::from_secs(60));
                        let answer = client.call(echo, &large, time).expect("an answer");
                        assert_eq!(answer, large);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        is_idle(&client);
    });
}

#[test]
fn many_threads_call_by_one_connection_and_totals_are_exact() {
    let server = Served::start(&[]);
    for kind in KINDS {
        let client = connect(&format!("tcp:{}", server.address()));
        let client = Arc::new(FutureClient::of(client, kind).expect("a thread"));
        let add = client.method(ADD).expect("add");
        let total = || client.call(add, &field(8, 0), None).expect("a total");
        let before = total();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let client = Arc::clone(&client);
                std::thread::spawn(move || {
                    (0..100).for_each(|_| drop(client.call(add, &field(8, 1), None).expect("it")));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        let value = |total: Bytes| {
            let digits = total.iter().skip(1).enumerate();
            digits.map(|(at, byte)| u64::from(byte & 127) << (7 * at)).sum::<u64>()
        };
        assert_eq!(value(total()) - value(before), 400, "{kind:?}");
        is_idle(&client);
    }
}

#[test]
fn a_server_that_ends_ends_all_futures() {
    for kind in KINDS {
        let mut server = Served::start(&[]);
        let client = connect(&format!("tcp:{}", server.address()));
        let client = FutureClient::of(client, kind).expect("a thread");
        let sleep = client.method(SLEEP).expect("sleep");
        let minute = pause(Duration::from_secs(60));
        let futures: Vec<_> =
            (0..3).map(|_| client.start(sleep, &minute, None).expect("a call")).collect();
        server.child.kill().expect("killed");
        server.wait();
        for future in futures {
            assert_eq!(future.wait().expect_err("no server").code, Code::Unavailable);
        }
        assert_eq!(client.outstanding(), (0, 0));
        let refused = client.start(sleep, &minute, None).expect_err("no server");
        assert_eq!(refused.code, Code::Unavailable);
    }
}

#[test]
fn a_future_that_outlives_its_client_ends_even_where_the_server_does_not() {
    // Its output stays open once the server has ended.
    let client = connect(&format!("pipe:{PROGRAM} serve --pipe; sleep 600"));
    let client = FutureClient::of(client, FutureKind::Channel).expect("a thread");
    let sleep = client.method(SLEEP).expect("sleep");
    let future = client.start(sleep, &pause(Duration::from_secs(60)), None).expect("a call");
    drop(client);
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(future.wait()));
    let ended = ended.recv_timeout(Duration::from_secs(30)).expect("it ends");
    assert_eq!(ended.expect_err("no answer").code, Code::Unavailable);
}

#[test]
fn calls_are_awaited_side_by_side_and_give_up_at_their_deadlines() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    in_every_way(|address, client| {
        let (add, sleep) = (client.method(ADD).expect("add"), client.method(SLEEP).expect("sleep"));
        let minute = pause(Duration::from_secs(60));
        runtime.block_on(async {
            let start = |method, request: &Bytes| client.start(method, request, None).expect("it");
            let slow = start(sleep, &pause(Duration::from_millis(5)));
            let futures: Vec<_> = (0..20).map(|_| start(add, &field(8, 0))).collect();
            let given_up = start(sleep, &minute);
            for future in futures {
                assert!(future.await.is_ok(), "{address}");
            }
            assert_eq!(slow.await, Ok(Bytes::new()), "{address}");
            drop(given_up);
            let soon = Some(Duration::from_millis(5));
            let late = client.start(sleep, &minute, soon).expect("a call").await;
            assert_eq!(late.expect_err("late").code, Code::DeadlineExceeded, "{address}");
        });
        is_idle(&client);
    });
}

#[test]
fn an_awaited_call_of_a_server_that_hangs_ends_at_its_deadline() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let server = deaf(&path);
    let client = connect(&format!("unix:{path}"));
    let client = FutureClient::of(client, FutureKind::Condvar).expect("a thread");
    let echo = client.method(ECHO).expect("echo");
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let time = Some(Duration::from_millis(20));
        let call = client.start(echo, &field(8, 0), time).expect("a call");
        sender.send(runtime.block_on(call))
    });
    let ended = ended.recv_timeout(Duration::from_secs(30)).expect("it ends");
    assert_eq!(ended.expect_err("no answer").code, Code::DeadlineExceeded);
    drop(server);
}

/// An executor of one future, which does all that it does within `wake`.
struct Within {
    future: Mutex<Option<CallFuture>>,
    /// It drops the future, and doesn't poll it.
    drops: bool,
    ended: Sender<Option<Bytes>>,
}

impl Within {
    fn poll(self: &Arc<Self>) -> Poll<()> {
        let mut place = self.future.lock().expect("whole");
        let waker = Waker::from(Arc::clone(self));
        let future = place.as_mut().expect("it is polled until it has its answer");
        let answer = Pin::new(future).poll(&mut Context::from_waker(&waker));
        answer.map(|answer| {
            *place = None;
            self.ended.send(answer.ok()).expect("it is waited for");
        })
    }
}

impl Wake for Within {
    fn wake(self: Arc<Self>) {
        match self.drops {
            true => {
                drop(self.future.lock().expect("whole").take());
                self.ended.send(None).expect("it is waited for");
            }
            false => assert!(self.poll().is_ready(), "it is woken for its answer"),
        }
    }
}

#[test]
fn an_executor_may_poll_a_call_within_wake_and_drop_it_there() {
    for drops in [false, true] {
        let server = Served::start(&[]);
        let client = connect(&format!("tcp:{}", server.address()));
        let client = FutureClient::of(client, FutureKind::Channel).expect("a thread");
        let sleep = client.method(SLEEP).expect("sleep");
        // The reader waits for the server while the future is polled first.
        let future = client.start(sleep, &pause(Duration::from_millis(300)), None).expect("a call");
        let (ended, answers) = std::sync::mpsc::channel();
        let within = Arc::new(Within { future: Mutex::new(Some(future)), drops, ended });
        let is_pending = within.poll().is_pending();
        let answer = answers.recv_timeout(Duration::from_secs(30)).expect("it ends");
        // On a busy host the answer may have come before.
        assert!(answer.is_some() != drops || !is_pending, "{answer:?}");
        is_idle(&client);
    }
}

/// A task that owns its client and a call of it, and drops both once it is woken.
struct Owner {
    owned: Mutex<Option<(CallFuture, FutureClient)>>,
    ended: Sender<()>,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        drop(self.owned.lock().expect("whole").take());
        self.ended.send(()).expect("it is waited for");
    }
}

#[test]
fn a_client_may_be_dropped_within_wake_and_what_is_left_ends() {
    let server = Served::start(&[]);
    let client = connect(&format!("tcp:{}", server.address()));
    let client = FutureClient::of(client, FutureKind::Condvar).expect("a thread");
    let sleep = client.method(SLEEP).expect("sleep");
    let start = |pause: Bytes| client.start(sleep, &pause, None).expect("a call");
    let left = start(pause(Duration::from_secs(60)));
    // The reader waits for the server while the future is polled.
    let mut future = start(pause(Duration::from_millis(300)));
    let (ended, answers) = std::sync::mpsc::channel();
    let owner = Arc::new(Owner { owned: Mutex::new(None), ended });
    let waker = Waker::from(Arc::clone(&owner));
    let mut owned = owner.owned.lock().expect("whole");
    let is_ready = Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_ready();
    *owned = Some((future, client));
    drop(owned);
    drop(owner);
    // On a busy host the answer may have come before.
    if is_ready {
        waker.wake();
    }
    answers.recv_timeout(Duration::from_secs(30)).expect("both are dropped");
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(left.wait()));
    let ended = ended.recv_timeout(Duration::from_secs(30)).expect("it ends");
    assert_eq!(ended.expect_err("no answer").code, Code::Unavailable);
}

#[test]
fn what_one_thread_sends_and_receives_has_no_futures() {
    let client: NativeClient = connect("here:");
    assert!(FutureClient::of(client, FutureKind::Condvar).is_err());
}

#[test]
fn every_way_to_wait_and_to_hand_over_has_exact_totals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let memory = folder.path().join("memory").display().to_string();
    let server = Served::start(&["--unix", &path, "--shm", &memory, "--wait", "park"]);
    let tcp = format!("tcp:{}", server.address());
    let (unix, shm) = (format!("unix:{path}"), format!("shm:{memory}"));
    let pipe = format!("pipe:exec {PROGRAM} serve --pipe");
    let ping = |address: &str, more: &[&str]| {
        let args = ["ping", address, "--count", "40", "--time", "60s", "--json"];
        let out = rpc(&[&args, more].concat());
        assert!(out.status.success(), "{address} {more:?}: {}", said(&out));
        let trial = &lines(&out)[0];
        let total = |at: usize| trial["totals"][at].as_i64().expect("a total");
        assert_eq!(total(1) - total(0), trial["calls"].as_i64().expect("calls"), "{trial}");
    };
    for address in [&tcp, &unix, &pipe, &shm] {
        for wait in ["spin", "hybrid", "park"] {
            ping(address, &["--wait", wait]);
        }
    }
    for address in [&tcp, &unix, &pipe] {
        for future in ["caller", "condvar", "channel", "spin"] {
            ping(address, &["--future", future]);
        }
    }
    for (address, flag) in [("here:", "--wait"), ("grpc://127.0.0.1:1", "--wait")] {
        let out = rpc(&["ping", address, flag, "spin"]);
        assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        assert!(
            said(&out).contains("for tcp:, unix:, pipe:, shm:, mpi: addresses"),
            "{}",
            said(&out)
        );
    }
    let out = rpc(&["ping", &shm, "--future", "spin"]);
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
}
