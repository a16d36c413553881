//! Idle connections hold no buffers. In a process of its own, as it measures memory.

use crate::common::{alone, client, echo, memory_bytes, serve};
use std::io::{Read, Write};
use wire::Config;

#[test]
fn an_idle_connection_holds_less_than_a_page() {
    alone("idle::an_idle_connection_holds_less_than_a_page", idle_connections_hold_no_buffers);
}

fn idle_connections_hold_no_buffers() {
    const CONNECTIONS: usize = 400;
    const MESSAGE_BYTES: usize = 100_000;
    let (server, address) = serve(Config::default(), |_| echo());
    let mut message = vec![b'x'; MESSAGE_BYTES];
    message[MESSAGE_BYTES - 1] = b'\n';
    let mut got = vec![0; MESSAGE_BYTES];
    let mut used_once = || {
        let mut client = client(address);
        // In two pieces, so that the first has to wait somewhere.
        let before = server.counters().bytes_read;
        client.write_all(&message[..MESSAGE_BYTES / 2]).expect("write");
        crate::common::until("the first half is read", || {
            server.counters().bytes_read == before + MESSAGE_BYTES as u64 / 2
        });
        client.write_all(&message[MESSAGE_BYTES / 2..]).expect("write");
        client.read_exact(&mut got).expect("an echo");
        assert!(got == message);
        client
    };
    // The lent buffers and the allocator's own have their size after a few.
    let mut clients: Vec<_> = (0..20).map(|_| used_once()).collect();
    let before_bytes = memory_bytes("VmRSS");
    clients.extend((0..CONNECTIONS).map(|_| used_once()));
    let each_bytes = memory_bytes("VmRSS").saturating_sub(before_bytes) / CONNECTIONS;
    println!("{each_bytes} bytes for each connection");
    assert!(each_bytes < 4096, "{each_bytes} bytes for an idle connection");
}
