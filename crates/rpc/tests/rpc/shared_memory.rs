//! Calls over shared memory: what an end of one side is for the other, and what waiting takes.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rpc::client::native::NativeClient;
use rpc::protocol::status::Code;

use crate::native::{ADD, SLEEP, connect, pause};
use crate::served::{Served, rpc, said};

/// A server with a client of it.
fn served() -> (tempfile::TempDir, Served, NativeClient) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory").display().to_string();
    let server = Served::start(&["--shm", &path]);
    let client = connect(&format!("shm:{path}"));
    (folder, server, client)
}

/// The ns that threads have been on a CPU: all of a process, or one.
fn on_cpu(threads: &Path) -> u64 {
    let of = |thread: &Path| {
        // It may have ended.
        let stat = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        stat.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or_default()
    };
    match fs::read_dir(threads.join("task")) {
        Ok(all) => all.map(|thread| of(&thread.expect("a thread").path())).sum(),
        Err(_) => of(threads),
    }
}

#[test]
fn a_server_that_is_killed_is_an_error_and_so_is_one_that_stops() {
    let (_folder, mut server, mut client) = served();
    let sleep = client.method(SLEEP).expect("sleep");
    let id = client.start(sleep, &pause(Duration::from_secs(60)), None).expect("a call");
    client.flush().expect("sent");
    server.child.kill().expect("killed");
    let status = client.next_reply().expect_err("it is gone");
    assert_eq!(status.code, Code::Unavailable, "call {id}: {status}");
    let (_folder, mut server, mut client) = served();
    let add = client.method(ADD).expect("add");
    server.terminate();
    assert!(server.wait().success());
    let status = client.call(add, &Bytes::from_static(&[8, 1]), None).expect_err("it is gone");
    assert!(status.message.contains("the server stops"), "{status}");
}

#[test]
fn an_idle_connection_takes_no_cpu_time_of_either_side() {
    let (_folder, server, mut client) = served();
    let (add, sleep) = (client.method(ADD).expect("add"), client.method(SLEEP).expect("sleep"));
    for _ in 0..1_000 {
        client.call(add, &Bytes::from_static(&[8, 1]), None).expect("a total");
    }
    // Both wait: the client for its answer, the server for its next call. Who waits on the CPU
    // takes all of it each time; another program may disturb one of three.
    let window = Duration::from_secs(2);
    let process = PathBuf::from(format!("/proc/{}", server.child.id()));
    let mut measured = || {
        let thread = Path::new("/proc").join(fs::read_link("/proc/thread-self").expect("a thread"));
        let before = [on_cpu(&thread), on_cpu(&process)];
        assert!(before.iter().all(|ns| *ns > 0), "the system doesn't count it: {before:?}");
        client.call(sleep, &pause(window), None).expect("an answer");
        let [client, server] = [on_cpu(&thread), on_cpu(&process)];
        // That of a thread that has ended is gone: then it isn't known what was used.
        [client.checked_sub(before[0]), server.checked_sub(before[1])]
    };
    // Twice the hundredth of a core that is promised.
    let is_idle = |took: &[Option<u64>; 2]| {
        took.iter().all(|ns| ns.is_some_and(|ns| ns < window.as_nanos() as u64 / 50))
    };
    let mut trials = Vec::new();
    while trials.len() < 3 && !trials.last().is_some_and(is_idle) {
        trials.push(measured());
    }
    assert!(trials.last().is_some_and(is_idle), "{trials:?} ns of {window:?}, client and server");
}

#[test]
fn the_65th_connection_is_refused_in_words_and_the_address_is_in_the_ready_line() {
    let (_folder, server, _client) = served();
    let address = server.ready["addresses"]["shm"].as_str().expect("an address").to_owned();
    let _others: Vec<_> = (1..64).map(|_| connect(&address)).collect();
    let out = rpc(&["ping", &address]);
    assert_eq!(out.status.code(), Some(1));
    let words = "as many connections over shared memory as it takes (64";
    assert!(said(&out).contains(words), "{}", said(&out));
    assert!(said(&out).contains("end one, or call by unix:"), "{}", said(&out));
}

#[test]
fn the_places_of_clients_that_died_are_free_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory").display().to_string();
    let _server = Served::start(&["--shm", &path]);
    // The system closes the socket of a process that dies, and no one wakes the server's thread.
    let offered = || {
        let mut socket = UnixStream::connect(&path).expect("a connection");
        (socket.read(&mut [0; 8]).expect("memory, or the end") == 8).then_some(socket)
    };
    let all: Vec<_> = (0..64).map(|_| offered().expect("there is room")).collect();
    assert!(offered().is_none(), "all places are taken");
    drop(all);
    let died = Instant::now();
    let mut again = Vec::new();
    while again.len() < 64 {
        // A client that hasn't said anything would be closed after 10 s.
        assert!(died.elapsed() < Duration::from_secs(8), "{} places are free", again.len());
        again.extend(offered());
    }
}

#[test]
fn a_trial_over_shared_memory_has_exact_totals_and_a_path_without_server_is_named() {
    let (folder, _server, _client) = served();
    let path = folder.path().join("memory").display().to_string();
    let out = rpc(&["ping", &format!("shm:{path}"), "--count", "500"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && text.contains("totals are exact"), "{text} {}", said(&out));
    let out = rpc(&["ping", "shm:/no/such/socket"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(said(&out).contains("cannot connect to shm:/no/such/socket"), "{}", said(&out));
}
