//! System calls that are made together: what each connection says and hears is what it would be
//! without.

use crate::common::{HANG_GUARD, Lines, Random, client, internet, listener, until};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use wire::{Backend, Config, Connection, Flow, Loop, Output, Server};

/// A server that makes its calls together, unless the kernel does not let it.
fn serve<C: Connection + 'static>(
    config: Config,
    make: impl Fn(Loop<C>) -> C + Send + Sync + 'static,
) -> Option<(Server, SocketAddr)> {
    let config = Config { backend: Backend::Uring, ..config };
    match Server::start(config, vec![listener()], make) {
        Ok(server) => {
            let address = internet(&server.addresses()[0]);
            Some((server, address))
        }
        Err(error) => {
            assert!(error.to_string().contains("io_uring"), "{error}");
            testing::skip(&error);
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
    until("they are gone", || server.counters().current_connections == 1);
}

#[test]
fn where_they_may_be_made_together_the_server_says_what_has_come_of_it() {
    for threads in [1, 3] {
        let config = Config { threads, backend: Backend::Auto, ..Config::default() };
        let server = Server::start(config, vec![listener()], |_| echo_until_quit());
        let server = server.expect("a server, whatever the kernel gives");
        let is_given = serve(Config::default(), |_| echo_until_quit()).is_some();
        assert_eq!(server.backend() == Backend::Uring, is_given);
        let mut clients: Vec<_> =
            (0..4).map(|_| client(internet(&server.addresses()[0]))).collect();
        for client in &mut clients {
            client.write_all(b"line\n").expect("said");
        }
        clients.iter_mut().for_each(|client| hear(client, b"line\n"));
    }
}

/// What `give` is answered with: less than is sent together at most.
const GIVEN_BYTES: usize = 60_000;

/// Has a server's first thread stand still, so that all that is said meanwhile is ready at once.
struct Holder {
    client: TcpStream,
    is_held: Receiver<()>,
    go: Sender<()>,
}

impl Holder {
    fn hold(&mut self) {
        self.client.write_all(b"hold\n").expect("write");
        self.is_held.recv_timeout(HANG_GUARD).expect("it is held");
    }

    fn release(&mut self) {
        self.go.send(()).expect("it waits");
        hear(&mut self.client, b"hold\n");
    }
}

/// A server of those who stand still at `hold`, give much at `give`, say nothing to what begins
/// with a minus, go at `quit`, and say back everything else.
fn held(config: Config) -> Option<(Server, SocketAddr, Holder)> {
    let ((tell, is_held), (go, wait)) = (channel(), channel());
    let wait = Arc::new(Mutex::new(wait));
    let (server, address) = serve(config, move |_| {
        let (tell, wait) = (tell.clone(), Arc::clone(&wait));
        Lines(move |line: &[u8], out: &mut Output| {
            if line == b"hold\n" {
                tell.send(()).expect("a holder");
                wait.lock().expect("one holds").recv_timeout(HANG_GUARD).expect("a release");
            }
            match line {
                b"give\n" => out.put(&[b'x'; GIVEN_BYTES]),
                [b'-', ..] => {}
                _ => out.put(line),
            }
            if line == b"quit\n" { Flow::Close } else { Flow::Continue }
        })
    })?;
    // The first connection is the first thread's.
    let mut holder = Holder { client: client(address), is_held, go };
    holder.client.write_all(b"first\n").expect("write");
    hear(&mut holder.client, b"first\n");
    Some((server, address, holder))
}

fn say(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).expect("write");
}

#[test]
fn who_comes_and_who_goes_in_a_turn_leaves_the_others_what_is_theirs() {
    let Some((server, address, mut holder)) = held(Config::default()) else { return };
    let mut staying: Vec<_> = (0..100).map(|_| client(address)).collect();
    for round in 0..10 {
        let mut going: Vec<_> = (0..40).map(|_| client(address)).collect();
        for client in &mut going {
            say(client, "here\n");
            client.peek(&mut [0]).expect("an answer");
        }
        holder.hold();
        for (number, client) in staying.iter_mut().enumerate() {
            say(client, &format!("-\nround {round} client {number}\n-"));
        }
        let mut ends = Vec::new();
        for (number, mut client) in going.into_iter().enumerate() {
            match number % 4 {
                0 => {
                    say(&mut client, "last\nquit\nnever");
                    ends.push((client, "here\nlast\nquit\n"));
                }
                1 => {
                    say(&mut client, "half\n");
                    client.shutdown(Shutdown::Write).expect("shut down");
                    ends.push((client, "here\nhalf\n"));
                }
                2 => say(&mut client, "resets, as it has not read its answer\n"),
                _ => {}
            }
        }
        let mut coming: Vec<_> = (0..20).map(|_| client(address)).collect();
        for (number, client) in coming.iter_mut().enumerate() {
            say(client, &format!("new {number}\n"));
        }
        holder.release();
        for (number, client) in staying.iter_mut().enumerate() {
            hear(client, format!("round {round} client {number}\n").as_bytes());
            say(client, "\n");
        }
        for (mut client, heard) in ends {
            let mut got = String::new();
            client.read_to_string(&mut got).expect("the end");
            assert_eq!(got, heard);
        }
        for (number, client) in coming.iter_mut().enumerate() {
            hear(client, format!("new {number}\n").as_bytes());
        }
    }
    until("only those who stay are there", || server.counters().current_connections == 101);
}

#[test]
fn what_a_peer_takes_only_in_part_is_sent_when_it_takes_more() {
    let Some((_server, address, mut holder)) = held(Config::default()) else { return };
    let mut clients: Vec<_> = (0..6).map(|_| client(address)).collect();
    let rounds = 120;
    for _ in 0..rounds {
        holder.hold();
        clients.iter_mut().for_each(|client| say(client, "give\n"));
        holder.release();
    }
    for client in &mut clients {
        hear(client, &vec![b'x'; rounds * GIVEN_BYTES]);
        say(client, "more\n");
        hear(client, b"more\n");
    }
}

#[test]
fn what_was_said_before_a_stop_is_answered() {
    let config = Config { threads: 2, ..Config::default() };
    let Some((server, address, mut holder)) = held(config) else { return };
    // The other thread's, which is told to stop after the one that is held.
    let mut idle = client(address);
    let mut clients: Vec<_> = (0..150).map(|_| client(address)).collect();
    for client in &mut clients {
        say(client, "early\n");
        hear(client, b"early\n");
    }
    holder.hold();
    clients.iter_mut().for_each(|client| say(client, "late\n"));
    let stopping = std::thread::spawn(move || server.stop(HANG_GUARD));
    assert_eq!(idle.read(&mut [0]).expect("its end"), 0);
    holder.release();
    for client in &mut clients {
        hear(client, b"late\n");
        assert_eq!(client.read(&mut [0]).expect("the end"), 0);
    }
    assert_eq!(stopping.join().expect("stopped").current_connections, 0);
}

#[test]
fn a_limit_on_input_that_is_less_than_what_is_received_at_once_holds() {
    let config = Config { input_limit_bytes: 1000, ..Config::default() };
    let Some((server, address, mut holder)) = held(config) else { return };
    let mut clients: Vec<_> = (0..10).map(|_| client(address)).collect();
    holder.hold();
    clients.iter_mut().for_each(|client| say(client, &format!("{}\n", "x".repeat(5000))));
    holder.release();
    for client in &mut clients {
        assert_eq!(client.read(&mut [0]).expect("the end"), 0);
    }
    assert_eq!(server.counters().protocol_errors, 10);
}
