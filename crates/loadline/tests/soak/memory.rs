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

/// So many idle connections are measured.
const IDLE: u64 = 1000;

/// An idle connection takes at most so much.
const MAX_IDLE_BYTES: u64 = 16 << 10;

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
    idle();
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

/// What connections take that have said something once, and now say nothing.
fn idle() {
    let served = Served::start(&["--listen", "127.0.0.1:0", "--max-connections", "4000"]);
    let process = served.child.id();
    let mut client = Client::tcp(served.address()).expect("a connection");
    client.set("key", &[b'v'; 100_000]).expect("stored");
    let before = resident_bytes(process);
    let mut open = Vec::new();
    for _ in 0..IDLE {
        let mut one = Client::tcp(served.address()).expect("a connection");
        one.get("key").expect("an answer");
        open.push(one);
    }
    let each = resident_bytes(process).saturating_sub(before) / IDLE;
    println!("an idle connection takes {each} bytes");
    assert!(each <= MAX_IDLE_BYTES, "an idle connection takes {each} bytes");
}
