//! Clients that behave badly, beside some that check every byte.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::client::{Client, Random, tcp};
use super::memory::resident_bytes;
use crate::served::Served;

const MEMORY_BYTES: u64 = 32 << 20;
const MAX_CONNECTIONS: usize = 128;

/// What is said where announced values take all the memory that they may, and how long one is at
/// least that counts.
const NO_ROOM: &str = "SERVER_ERROR out of memory storing object";
const MIN_CLAIMED: u64 = 4000;

/// Nothing here takes so long; this only ends a run that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// What may be left unfinished, of each protocol and at each place.
fn unfinished() -> Vec<Vec<u8>> {
    let set = |length: usize, given: usize| {
        [format!("set half 0 0 {length}\r\n").into_bytes(), vec![b'x'; given]].concat()
    };
    let mut packet = vec![0x80, 0x01, 0, 4, 8, 0, 0, 0, 0, 0, 0x10, 0];
    packet.extend([0; 12]);
    let mut body = packet.clone();
    body.extend([0; 20]);
    vec![
        b"g".to_vec(),
        b"get half".to_vec(),
        b"get one two three ".to_vec(),
        b"set half 0 0 10".to_vec(),
        set(10, 0),
        set(10, 5),
        set(10, 11),
        set(50_000, 10),
        set(1_000_000, 300_000),
        b"ms half 100 T0".to_vec(),
        b"ms half 100\r\nabc".to_vec(),
        vec![b'a'; 2000],
        packet[..1].to_vec(),
        packet[..23].to_vec(),
        packet,
        body,
    ]
}

/// Waits until only the asking connection is left, and says so.
fn settle(client: &mut Client) {
    let began = Instant::now();
    loop {
        let left = client.stat("curr_connections").expect("statistics");
        if left == 1 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{left} connections are never closed");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every unfinished request, several times, and then every place for a connection once.
pub(crate) fn half_written() {
    let most = MAX_CONNECTIONS.to_string();
    let served =
        Served::start(&["--listen", "127.0.0.1:0", "--max-connections", &most, "--threads", "2"]);
    let mut client = Client::tcp(served.address()).expect("a connection");
    client.set("half", b"whole").expect("stored");
    for _ in 0..4 {
        let all = unfinished();
        let mut open: Vec<_> =
            all.iter().map(|_| tcp(served.address()).expect("a connection")).collect();
        for (socket, bytes) in open.iter_mut().zip(&all) {
            socket.write_all(bytes).expect("sent");
        }
        drop(open);
        settle(&mut client);
    }
    assert_eq!(client.get("half").expect("an answer").as_deref(), Some(&b"whole"[..]));
    assert_eq!(client.stat("curr_items").expect("statistics"), 1);
    every_place(served.address(), MAX_CONNECTIONS - 1);
    drop(client);
    assert!(served.stop(), "it ends in order");
}

/// Connections up to the limit are all served, and one more is told that it is too many.
fn every_place(address: &str, places: usize) {
    let mut open: Vec<_> =
        (0..places).map(|_| Client::tcp(address).expect("a connection")).collect();
    for client in &mut open {
        client.send(b"version\r\n").expect("sent");
        let line = client.line().expect("an answer");
        assert!(line.starts_with("VERSION "), "{line}");
    }
    let mut more = Client::tcp(address).expect("a connection");
    assert_eq!(more.line().expect("a word"), "ERROR Too many open connections");
}

/// What everybody shares.
struct Scene<'a> {
    address: &'a str,
    over: AtomicBool,
    answers: AtomicU64,
    refusals: AtomicU64,
    abuses: AtomicU64,
}

/// Abuses a server for so long.
pub(crate) fn run(length: Duration) {
    let (most, memory) = (MAX_CONNECTIONS.to_string(), MEMORY_BYTES.to_string());
    let served = Served::start(&[
        "--listen",
        "127.0.0.1:0",
        "--threads",
        "2",
        "--max-connections",
        &most,
        "--memory",
        &memory,
    ]);
    let address = served.address().to_owned();
    let mut watcher = Client::tcp(&address).expect("a connection");
    fill(&mut watcher);
    watcher.set("large", &[b'l'; 500_000]).expect("stored");
    // Before there are too many: who behaves well keeps a place.
    let connect = |_| Client::tcp(&address).expect("a connection");
    let good_ones: Vec<_> = (0..2).map(connect).collect();
    let scene = Scene {
        address: &address,
        over: AtomicBool::new(false),
        answers: AtomicU64::new(0),
        refusals: AtomicU64::new(0),
        abuses: AtomicU64::new(0),
    };
    let mut resident = Vec::new();
    std::thread::scope(|scope| {
        let scene = &scene;
        for (number, client) in (0..).zip(good_ones) {
            scope.spawn(move || good(scene, number, client));
        }
        scope.spawn(move || half_writers(scene));
        scope.spawn(move || slow_readers(scene));
        scope.spawn(move || crowds(scene));
        scope.spawn(move || killed_programs(scene));
        let began = Instant::now();
        while began.elapsed() < length {
            std::thread::sleep(Duration::from_millis(500));
            resident.push(resident_bytes(served.child.id()));
        }
        scene.over.store(true, Relaxed);
    });
    settle(&mut watcher);
    every_place(&address, MAX_CONNECTIONS - 1);
    let free = watcher.stat("read_buf_bytes_free").expect("statistics");
    assert_eq!(free, MEMORY_BYTES / 4, "what was announced by those who have gone takes no room");
    let (answers, abuses) = (scene.answers.load(Relaxed), scene.abuses.load(Relaxed));
    let refusals = scene.refusals.load(Relaxed);
    // The first half is for everything to have been as large as it gets.
    let quarter = resident.len() / 4;
    let before = median(&resident[quarter..2 * quarter]);
    let after = median(&resident[3 * quarter..]);
    println!(
        "{answers} answers, none of them wrong, {refusals} for want of room, beside {abuses} \
         abuses in {} s; resident {:.1} MiB in the second quarter, {:.1} MiB in the last; \
         evictions {}",
        length.as_secs(),
        before as f64 / f64::from(1 << 20),
        after as f64 / f64::from(1 << 20),
        watcher.stat("evictions").expect("statistics"),
    );
    assert!(after <= before + before / 20 + (1 << 20), "memory grows: {before} to {after} bytes");
    drop(watcher);
    assert!(served.stop(), "it ends in order");
}

fn median(part: &[u64]) -> u64 {
    let mut sorted = part.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Stores until items have to go.
fn fill(client: &mut Client) {
    let value = vec![b'v'; 10_000];
    for number in 0.. {
        client.set(&format!("fill-{number}"), &value).expect("stored");
        if number % 100 == 0 && client.stat("evictions").expect("statistics") > 0 {
            return;
        }
    }
}

/// A value that says which key and version it is, all along.
fn value_of(key: &str, version: u64, length: usize) -> Vec<u8> {
    format!("{key} {version} ").bytes().cycle().take(length).collect()
}

/// Stores and reads its own keys: what is there is what was stored last, whatever else happens.
fn good(scene: &Scene<'_>, number: u64, mut client: Client) {
    let seed = 0x5eed + number;
    let mut random = Random(seed);
    let mut known = vec![None; 200];
    for version in 0_u64.. {
        if scene.over.load(Relaxed) {
            return;
        }
        let index = random.below(known.len() as u64) as usize;
        let key = format!("good-{number}-{index}");
        if random.below(3) == 0 {
            let most = if random.below(20) == 0 { 200_000 } else { 2000 };
            let length = 1 + random.below(most);
            let value = value_of(&key, version, length as usize);
            known[index] = match client.set(&key, &value) {
                Ok(()) => Some(value),
                // Those who never send what they announce leave no room for it. Then nothing is
                // stored, nor what was before.
                Err(error) if error.to_string().ends_with(NO_ROOM) && length > MIN_CLAIMED => {
                    scene.refusals.fetch_add(1, Relaxed);
                    None
                }
                Err(error) => panic!("seed {seed}: {error}"),
            };
        } else {
            let found = client.get(&key).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            // It may have been let go; it can't be another one.
            assert!(found.is_none() || found == known[index], "seed {seed}: {key} is wrong");
        }
        scene.answers.fetch_add(1, Relaxed);
    }
}

/// Dies in the middle of a word.
fn half_writers(scene: &Scene<'_>) {
    let all = unfinished();
    for bytes in all.iter().cycle() {
        if scene.over.load(Relaxed) {
            return;
        }
        if let Ok(mut socket) = tcp(scene.address) {
            // It may be one too many, and be sent away.
            let _ = socket.write_all(bytes);
            scene.abuses.fetch_add(1, Relaxed);
        }
    }
}

/// Asks for much and reads little.
fn slow_readers(scene: &Scene<'_>) {
    while !scene.over.load(Relaxed) {
        let mut open: Vec<_> = (0..16).filter_map(|_| tcp(scene.address).ok()).collect();
        for socket in &mut open {
            let _ = socket.write_all("get large\r\n".repeat(200).as_bytes());
            // It may have been let go: then there is little to read, and nothing to wait for.
            socket.set_nonblocking(true).expect("non-blocking");
        }
        for _ in 0..20 {
            for socket in &mut open {
                let _ = socket.read(&mut [0; 512]);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        scene.abuses.fetch_add(open.len() as u64, Relaxed);
    }
}

/// More at once than there are places.
fn crowds(scene: &Scene<'_>) {
    while !scene.over.load(Relaxed) {
        let open: Vec<_> =
            (0..MAX_CONNECTIONS * 3 / 2).filter_map(|_| tcp(scene.address).ok()).collect();
        scene.abuses.fetch_add(open.len() as u64, Relaxed);
        drop(open);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Programs that are killed while they use it.
fn killed_programs(scene: &Scene<'_>) {
    while !scene.over.load(Relaxed) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["cache", "--server", scene.address, "watch", "mutations", "fetchers"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("loadline runs");
        // It does not read its own output either: nobody empties the pipe.
        std::thread::sleep(Duration::from_millis(300));
        program.kill().expect("killed");
        program.wait().expect("an end");
        scene.abuses.fetch_add(1, Relaxed);
    }
}
