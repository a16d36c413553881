//! How much memory a server takes for what it was told it may.

use std::io::Write;

use super::client::Client;
use crate::served::Served;

/// What the process holds, as the kernel counts it.
pub(crate) fn resident_bytes(process: u32) -> u64 {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(path).expect("a process that runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

/// The idle connections that are measured.
const IDLE: u64 = 10_000;

/// What all of them may take.
const MAX_IDLE_BYTES: u64 = 64 << 20;

/// Fills servers of several sizes with items of several sizes, from small to large: the resident
/// bytes, less those of the empty server, stay within 1.05 of what was asked for all the time, and
/// reach 0.95 of it.
pub(crate) fn run() {
    for megabytes in [64, 256] {
        for (value_bytes, expected) in [(16, "small"), (100, "middling"), (1000, "large")] {
            let memory = format!("{megabytes}MiB");
            let served = Served::start(&["--listen", "127.0.0.1:0", "--memory", &memory]);
            let process = served.child.id();
            let mut client = Client::tcp(served.address()).expect("a connection");
            let empty = resident_bytes(process);
            let (most, last) = fill(&mut client, process, empty, value_bytes);
            let asked = (megabytes << 20) as f64;
            let (most, last) = (most as f64 / asked, last as f64 / asked);
            println!("{memory}, {expected} items: at most {most:.3} of it, {last:.3} when full");
            assert!(most <= 1.05, "{memory}, {expected} items: {most:.3} of it");
            assert!(last >= 0.95, "{memory}, {expected} items: only {last:.3} of it");
        }
    }
}

/// Stores items until one and a half times the memory has been offered. Gives the most that was
/// resident and what is at the end, without what the empty server had.
fn fill(client: &mut Client, process: u32, empty: u64, value_bytes: usize) -> (u64, u64) {
    let value = "v".repeat(value_bytes);
    let limit = client.stat("limit_maxbytes").expect("statistics");
    let (mut most, mut offered, mut number) = (0, 0_u64, 0_u64);
    while offered < limit * 3 / 2 {
        let mut batch = Vec::new();
        for _ in 0..2000 {
            let _ = write!(batch, "set {number:08x} 0 0 {value_bytes} noreply\r\n{value}\r\n");
            number += 1;
            offered += 8 + value_bytes as u64;
        }
        batch.extend_from_slice(b"version\r\n");
        client.send(&batch).expect("sent");
        let answer = client.line().expect("an answer");
        assert!(answer.starts_with("VERSION "), "{answer}");
        most = most.max(resident_bytes(process).saturating_sub(empty));
    }
    assert!(client.stat("evictions").expect("statistics") > 0);
    (most, resident_bytes(process).saturating_sub(empty))
}

/// Readers who ask for large values and do not read.
const READERS: usize = 1000;

/// What they may take beside the items, while they are there and after.
const MAX_UNSENT_BYTES: u64 = 64 << 20;
const MAX_LEFT_BYTES: u64 = 16 << 20;

/// A thousand readers ask for values of 1 MB, 50 times each, and read nothing: first all for one
/// value, then for 50.
pub(crate) fn readers() {
    let served =
        Served::start(&["--listen", "127.0.0.1:0", "-m", "64", "--max-connections", "4000"]);
    let process = served.child.id();
    let mut client = Client::tcp(served.address()).expect("a connection");
    for number in 0..50 {
        client.set(&format!("large-{number}"), &[b'v'; 1_000_000]).expect("stored");
    }
    let full = resident_bytes(process);
    for values in [1, 50] {
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let mut reader = Client::tcp(served.address()).expect("a connection");
                let request = format!("get large-{}\r\n", number % values);
                reader.send(request.repeat(50).as_bytes()).expect("sent");
                reader
            })
            .collect();
        let (most, _) = settled_bytes(process);
        drop(readers);
        let left = settled_bytes(process).1.saturating_sub(full);
        let [most_mib, left_mib] = [most, left].map(|bytes| bytes >> 20);
        println!("{READERS} readers of {values}: {most_mib} MiB, and {left_mib} MiB more after");
        assert!(most <= (64 << 20) + MAX_UNSENT_BYTES, "{most} bytes while they are there");
        assert!(left <= MAX_LEFT_BYTES, "{left} bytes more after they have gone");
    }
}

/// The most that is resident until it has stayed the same for a second, and what is then.
fn settled_bytes(process: u32) -> (u64, u64) {
    let (mut most, mut last, mut same) = (0, 0, 0);
    while same < 10 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = resident_bytes(process);
        same = if now == last { same + 1 } else { 0 };
        (most, last) = (most.max(now), now);
    }
    (most, last)
}

/// What connections take that have read a megabyte with one command, and are idle now.
pub(crate) fn idle() {
    wire::allow_descriptors(IDLE + 1000);
    let served = Served::start(&["--listen", "127.0.0.1:0", "--max-connections", "12000"]);
    let process = served.child.id();
    let mut client = Client::tcp(served.address()).expect("a connection");
    let keys: Vec<_> = (0..100).map(|number| format!("key-{number}")).collect();
    keys.iter().for_each(|key| client.set(key, &[b'v'; 10_000]).expect("stored"));
    let request = format!("get {}\r\n", keys.join(" "));
    let before = resident_bytes(process);
    let mut open = Vec::new();
    for _ in 0..IDLE {
        let mut one = Client::tcp(served.address()).expect("a connection");
        one.send(request.as_bytes()).expect("sent");
        // The last value, and the end after it.
        while one.line().expect("an answer") != "END" {}
        open.push(one);
    }
    let all = resident_bytes(process).saturating_sub(before);
    println!("{IDLE} idle connections take {} MiB", all >> 20);
    assert!(all <= MAX_IDLE_BYTES, "{IDLE} idle connections take {all} bytes");
}
