//! Several threads: connections go to them in turn, and stay.

use crate::common::{HANG_GUARD, Lines, client, serve};
use std::io::{Read, Write};
use std::rc::Rc;
use wire::{Config, Flow, Output};

#[test]
fn connections_go_to_the_threads_in_turn_and_stay_there() {
    const THREADS: usize = 4;
    let config = Config { threads: THREADS, thread_name: "turns", ..Config::default() };
    let (server, address) = serve(config, |thread: wire::Loop<_>| {
        // A connection lives on one thread, so it may hold what no other thread could.
        let thread = Rc::new(thread.thread());
        Lines(move |_: &[u8], out: &mut Output| {
            let name = std::thread::current().name().map(str::to_owned).unwrap_or_default();
            assert_eq!(name, format!("turns-{thread}"));
            out.put(&[b'0' + *thread as u8]);
            Flow::Continue
        })
    });
    let ask = |client: &mut std::net::TcpStream| {
        client.write_all(b"where?\n").expect("write");
        let mut got = [0];
        client.read_exact(&mut got).expect("an answer");
        usize::from(got[0] - b'0')
    };
    let mut clients: Vec<_> = (0..3 * THREADS)
        .map(|number| {
            let mut client = client(address);
            assert_eq!(ask(&mut client), number % THREADS);
            client
        })
        .collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(ask(client), number % THREADS);
    }
    assert_eq!(server.stop(HANG_GUARD).total_connections, 3 * THREADS as u64);
}
