//! Starts under immediate load: clients connect as soon as there is anybody to connect to.

use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::client::Client;
use crate::served::{serve, terminate};

/// So many clients wait for each start.
const CLIENTS: u64 = 3;

/// Starts that never get ready fail the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server so often, and ends it in two ways in turn.
pub(crate) fn run(starts: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("cache.sock");
    let path = socket.to_str().expect("UTF-8");
    let began = Instant::now();
    let asked = AtomicU64::new(0);
    for start in 0..starts {
        let (enough, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (enough, done, asked) = (&enough, &done, &asked);
                scope.spawn(move || {
                    let count = ask(path, start, client, done, enough);
                    asked.fetch_add(count, SeqCst);
                });
            }
            let mut child = serve(&["--listen", &format!("unix:{path}"), "--threads", "2"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("loadline starts");
            let waited = Instant::now();
            while done.load(SeqCst) < CLIENTS {
                let ended = child.try_wait().expect("a child");
                assert!(ended.is_none(), "start {start}: it has ended by itself: {ended:?}");
                assert!(waited.elapsed() < PATIENCE, "start {start}: nobody is answered");
                std::thread::sleep(Duration::from_micros(200));
            }
            // Every other one is ended in the middle of its work.
            if start % 2 == 0 {
                terminate(&child);
                let status = child.wait().expect("an end");
                assert!(status.success(), "start {start}: {status}");
            } else {
                child.kill().expect("killed");
                child.wait().expect("an end");
            }
            enough.store(true, SeqCst);
        });
    }
    let (asked, seconds) = (asked.load(SeqCst), began.elapsed().as_secs_f64());
    println!("{starts} starts, {asked} answers, none of them wrong, in {seconds:.1} s");
}

/// Connects as soon as that is possible, and asks until the server ends.
fn ask(path: &str, start: u64, client: u64, done: &AtomicU64, enough: &AtomicBool) -> u64 {
    let began = Instant::now();
    let mut connection = loop {
        match Client::unix(path) {
            Ok(connection) => break connection,
            Err(error) => {
                assert!(began.elapsed() < PATIENCE, "start {start}: {error}");
                std::thread::yield_now();
            }
        }
    };
    let mut count = 0;
    let mut work = || -> io::Result<()> {
        loop {
            let key = format!("key-{client}-{}", count % 10);
            let value = format!("start {start} client {client} number {count} ").repeat(20);
            connection.set(&key, value.as_bytes())?;
            let found = connection.get(&key)?;
            assert!(found.as_deref() == Some(value.as_bytes()), "start {start}: {key} is wrong");
            count += 1;
            if count == 5 {
                done.fetch_add(1, SeqCst);
            }
        }
    };
    let error = work().expect_err("it goes on until the server ends");
    // Whatever ends it is the server's end, not a wrong answer. The server may need a moment.
    let is_end = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    assert!(is_end && count >= 5, "start {start}, after {count} answers: {error}");
    while !enough.load(SeqCst) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(200));
    }
    count
}
