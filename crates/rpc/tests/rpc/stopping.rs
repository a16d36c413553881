//! The end of a server: what is in flight finishes, and clients are sent elsewhere.

use std::time::{Duration, Instant};

use rpc::client::{CallOptions, Client};
use rpc::protocol::status::Code;

use crate::native::{ADD, SLEEP, pause};
use crate::raw::*;
use crate::served::{Served, rpc};

const OUTPUT: &str = "/grpc.testing.TestService/StreamingOutputCall";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Ten answers of one byte, this far apart.
fn ten(interval_us: u16) -> Vec<u8> {
    let interval = [(interval_us % 128 + 128) as u8, (interval_us / 128 % 128 + 128) as u8];
    let one = [8, 1, 16, interval[0], interval[1], (interval_us / 16_384) as u8];
    [&[0x12, 6][..], &one].concat().repeat(10)
}

#[test]
fn a_stream_in_flight_ends_well_after_goaway_twice_and_health_comes_first() {
    let mut server = Served::start(&[]);
    let mut watch = Raw::connect(server.socket(), &[]);
    watch.call(1, WATCH, &[]);
    let first = std::iter::from_fn(|| watch.next()).find(|frame| frame.kind == DATA);
    assert_eq!(first.expect("a state").payload, message(&[8, 1]), "SERVING");

    let mut raw = Raw::connect(server.socket(), &[]);
    raw.call(1, OUTPUT, &ten(50_000));
    let first = std::iter::from_fn(|| raw.next()).find(|frame| frame.kind == DATA);
    assert!(first.is_some());
    server.terminate();
    let (mut data, mut away, mut ended) = (1, Vec::new(), false);
    while let Some(one) = raw.next() {
        match one.kind {
            DATA => data += 1,
            GOAWAY => away.push((one.number(0), one.number(4))),
            PING if one.flags & ACK == 0 => raw.send(&frame(PING, ACK, 0, &one.payload)),
            HEADERS => ended = one.flags & END_STREAM != 0,
            _ => {}
        }
    }
    assert!(ended && data == 10, "{data} answers");
    assert_eq!(away, [(0x7fff_ffff, 0), (1, 0)], "the largest id first, then the last one");

    let (mut states, mut is_away) = (Vec::new(), false);
    while let Some(one) = watch.next() {
        match one.kind {
            DATA if is_away => panic!("GOAWAY came before the state"),
            DATA => states.push(one.payload),
            GOAWAY => is_away = true,
            PING if one.flags & ACK == 0 => watch.send(&frame(PING, ACK, 0, &one.payload)),
            _ => {}
        }
    }
    assert_eq!(states, [message(&[8, 2])], "NOT_SERVING");
    assert!(server.wait().success());
}

#[test]
fn what_takes_longer_than_five_seconds_is_unavailable() {
    let mut server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    // A minute of sleep.
    let minute = [8, 0x80, 0xb0, 0x9d, 0xc2, 0xdf, 0x01];
    raw.call(1, "/loadline.rpc.v1.Table/Sleep", &minute);
    raw.send(&frame(PING, 0, 0, &[1; 8]));
    while raw.next().is_none_or(|frame| frame.kind != PING) {}
    let start = Instant::now();
    server.terminate();
    let ended = raw.ended(1);
    assert_eq!(ended.status, "14", "{ended:?}");
    assert!(server.wait().success());
    let took = start.elapsed();
    // Five seconds, and what a busy host adds; the call would take sixty.
    assert!((Duration::from_secs(4)..Duration::from_secs(40)).contains(&took), "{took:?}");
}

#[test]
fn an_idle_connection_keeps_no_server_and_new_calls_find_none() {
    let mut server = Served::start(&["--threads", "3"]);
    let address = server.address();
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.call(1, "/loadline.rpc.v1.Table/Add", &[8, 1]);
    assert_eq!(raw.ended(1).status, "0");
    server.terminate();
    while let Some(one) = raw.next() {
        if one.kind == PING && one.flags & ACK == 0 {
            raw.send(&frame(PING, ACK, 0, &one.payload));
        }
    }
    assert!(server.wait().success());
    let out = rpc(&["health", &address]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn a_new_call_of_a_server_that_stops_is_unavailable_and_one_in_flight_ends_well() {
    let server = Served::start(&[]);
    let address = server.address().parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let options = CallOptions::default();
        let client = Client::connect(&address, None, Duration::from_secs(20)).await;
        let client = client.expect("a server");
        let (mut sender, mut receiver) = client.open(SLEEP, &options).await.expect("a call");
        sender.send(&pause(Duration::from_millis(1_500))).await.expect("sent");
        sender.end().expect("sent");
        // The server has begun the one before it, too.
        client.call(ADD, &[8, 1], &options).await.expect("a total");
        server.terminate();
        // Until GOAWAY has come, calls are served.
        let refused = loop {
            match client.call(ADD, &[8, 1], &options).await {
                Ok(_) => tokio::task::yield_now().await,
                Err(ended) => break ended.status,
            }
        };
        assert_eq!(refused.code, Code::Unavailable, "{refused}");
        assert!(receiver.next().await.is_some_and(|answer| answer.is_empty()), "it has slept");
        assert_eq!(receiver.next().await, None);
        assert_eq!(receiver.ended().status.code, Code::Ok);
    });
}
