//! System calls that are made together: what each connection says and hears is what it would be
//! without.

mod common;

use common::{HANG_GUARD, Lines, Random, client, internet, listener};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use wire::{Calls, Config, Connection, Flow, Output, Server};

/// A server that makes its calls together, unless the kernel does not let it.
fn serve<C: Connection + 'static>(
    config: Config,
    make: impl Fn(usize) -> C + Send + Sync + 'static,
) -> Option<(Server, SocketAddr)> {
    let config = Config { calls: Calls::Together, ..config };
    match Server::start(config, vec![listener()], make) {
        Ok(server) => {
            let address = internet(&server.addresses()[0]);
            Some((server, address))
        }
        Err(error) => {
            assert!(error.to_string().contains("io_uring"), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

/// Says each line back, and closes after `quit`.
fn echo_until_quit() -> Lines<impl FnMut(&[u8], &mut Output) -> Flow> {
    Lines(|line: &[u8], out: &mut Output| {
        out.put(line);
        if line == b"quit\n" { Flow::Close } else { Flow::Continue }
    })
}

/// Some lines of random lengths, now and then longer than what is received at once.
fn lines(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..=random.below(20) {
        let most = if random.below(20) == 0 { 100_000 } else { 200 };
        let byte = b'a' + random.below(26) as u8;
        text.resize(text.len() + random.below(most) as usize, byte);
        text.push(b'\n');
    }
    text
}

fn hear(client: &mut TcpStream, said: &[u8]) {
    let mut heard = vec![0; said.len()];
    client.read_exact(&mut heard).expect("an answer");
    assert!(heard == said, "{} bytes", said.len());
}

#[test]
fn more_clients_than_are_served_together_hear_what_they_say() {
    for threads in [1, 2] {
        let config = Config { threads, ..Config::default() };
        let Some((server, address)) = serve(config, |_| echo_until_quit()) else { return };
        let mut random = Random(7);
        let mut clients: Vec<_> = (0..100).map(|_| client(address)).collect();
        let mut total = 0;
        for _ in 0..10 {
            let said: Vec<_> = clients.iter().map(|_| lines(&mut random)).collect();
            for (client, said) in clients.iter_mut().zip(&said) {
                client.write_all(said).expect("write");
                total += said.len() as u64;
            }
            for (client, said) in clients.iter_mut().zip(&said) {
                hear(client, said);
            }
        }
        for client in &mut clients {
            client.write_all(b"last\nquit\nnever").expect("write");
            hear(client, b"last\nquit\n");
            assert_eq!(client.read(&mut [0; 9]).expect("the end"), 0);
            total += 10;
        }
        let counters = server.stop(HANG_GUARD);
        assert_eq!((counters.bytes_written, counters.total_connections), (total, 100));
    }
}

#[test]
fn who_does_not_read_is_not_read_from_and_holds_up_nobody() {
    let config = Config { output_limit_bytes: 30_000, ..Config::default() };
    let Some((_server, address)) = serve(config, |_| echo_until_quit()) else { return };
    let line = [vec![b'x'; 9_999], vec![b'\n']].concat();
    let (mut silent, mut other) = (client(address), client(address));
    let mut writer = silent.try_clone().expect("a copy");
    let count = 2_000;
    let writing = std::thread::spawn({
        let line = line.clone();
        move || (0..count).for_each(|_| writer.write_all(&line).expect("write"))
    });
    for _ in 0..200 {
        other.write_all(b"hello\n").expect("write");
        hear(&mut other, b"hello\n");
    }
    (0..count).for_each(|_| hear(&mut silent, &line));
    writing.join().expect("all is said");
}

#[test]
fn a_client_that_goes_takes_nobody_with_it() {
    let Some((server, address)) = serve(Config::default(), |_| echo_until_quit()) else { return };
    let mut stays = client(address);
    for round in 0..50 {
        let mut goes: Vec<_> = (0..5).map(|_| client(address)).collect();
        for client in &mut goes {
            client.write_all(&vec![b'\n'; 1 + round * 500]).expect("write");
        }
        stays.write_all(b"here\n").expect("write");
        // With bytes unread, so that the connection is reset.
        drop(goes);
        hear(&mut stays, b"here\n");
    }
    common::until("they are gone", || server.counters().current_connections == 1);
}

#[test]
fn where_they_may_be_made_together_the_server_says_what_has_come_of_it() {
    for threads in [1, 3] {
        let config = Config { threads, calls: Calls::Auto, ..Config::default() };
        let server = Server::start(config, vec![listener()], |_| echo_until_quit());
        let server = server.expect("a server, whatever the kernel gives");
        let is_given = serve(Config::default(), |_| echo_until_quit()).is_some();
        assert_eq!(server.calls() == Calls::Together, is_given);
        let mut clients: Vec<_> =
            (0..4).map(|_| client(internet(&server.addresses()[0]))).collect();
        for client in &mut clients {
            client.write_all(b"line\n").expect("said");
        }
        clients.iter_mut().for_each(|client| hear(client, b"line\n"));
    }
}
