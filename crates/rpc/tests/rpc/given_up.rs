//! Calls that a client of gRPC gives up: their functions learn of it while they wait.

use std::time::{Duration, Instant};

use rpc::server::{BoundRpc, Settings};
use wire::Address;

use crate::limits::{begun, settle};
use crate::native::{SLEEP, pause};
use crate::raw::*;

/// How long the functions would wait.
const MINUTE: Duration = Duration::from_secs(60);

/// A counter of a page of metrics.
fn counted(page: &str, name: &str) -> u64 {
    let line = page.lines().find(|line| !line.starts_with('#') && line.contains(name));
    let number = line.and_then(|line| line.rsplit(' ').next()).expect("a counter");
    number.parse().expect("a number")
}

#[test]
fn a_function_that_waits_ends_once_its_call_is_reset_and_its_neighbours_go_on() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let settings = Settings { keepalive_min: Duration::ZERO, ..Settings::default() };
    let bound = BoundRpc::bind(&[Address::Internet(any)], settings).expect("a port");
    let server = bound.start().expect("threads");
    let Address::Internet(at) = server.addresses()[0] else { panic!("no address") };
    let metrics = server.metrics();
    let failed = || counted(&metrics(), "rpc_calls_failed_total");
    let mut raw = begun(at, &[]);
    let start = Instant::now();
    // One sleeps, with its whole request; one waits for a request that has not ended; and one is
    // left alone.
    raw.call(1, SLEEP, &pause(MINUTE));
    raw.head(3, 0, &headers("/grpc.testing.TestService/FullDuplexCall", &[]));
    raw.head(5, 0, &headers("/grpc.testing.TestService/FullDuplexCall", &[]));
    settle(&mut raw);
    assert_eq!((counted(&metrics(), "rpc_calls_total"), failed()), (3, 0));
    for stream in [1, 3] {
        raw.send(&frame(RESET, 0, stream, &8_u32.to_be_bytes()));
    }
    // A function that didn't learn of it would end well, in a minute.
    while failed() < 2 {
        assert!(start.elapsed() < MINUTE, "{}", metrics());
        std::thread::yield_now();
    }
    raw.send(&frame(DATA, END_STREAM, 5, &[]));
    assert_eq!(raw.ended(5).status, "0");
    assert_eq!(failed(), 2);
    server.stop(Duration::ZERO);
}
