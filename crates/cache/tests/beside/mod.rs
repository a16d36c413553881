//! The service beside a real memcached: the same commands, and the same answers byte for byte; and
//! the tools and clients of others, which use it unchanged.
//!
//! What is meant to differ, and is therefore not asked for here:
//! - version, statistics, `me`, sizes and classes of items: they are the service's own;
//! - the data of a `set` with a key that is too long are swallowed;
//! - flags of more than 32 bits and numbers with a sign are refused;
//! - `watch` numbers lines and connections in its own way; `slabs reassign` knows no classes;
//! - a key in base64 that `N` makes, or that is appended to, is remembered as such;
//! - `T` of `ma` also holds where the number becomes longer (memcached 1.6.18 loses it then);
//! - `E`, `x` and `N` of `ms` are of newer versions; base64 with other letters in it is refused.
//! - numbers of 2^63 and more are not counted with: memcached 1.6.18 looks for a minus sign beyond
//!   the end of such a number, so that its answer depends on what the memory held before.
//!
//! memcached is told to keep one list of items: with several, a thread of its own holds items now
//! and then, and whether `decr` leaves blanks behind its number depends on that.

mod binary;
mod clients;
mod load;
pub(crate) mod peer;
mod script;
mod side;
mod stats;

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::Duration;

use self::peer::{Peer, program};
use cache::model::Sharing;
use cache::server::{CacheServer, Options};
use rand::{SeedableRng, rngs::SmallRng};
use side::Side;
use wire::{Address, Backend};

/// What is said to memcached is said to each kind of store and loop in turn.
fn options_by(seed: u64) -> Options {
    let kinds = [Sharing::Sharded, Sharing::GlobalLock];
    let sharing = kinds[seed as usize % kinds.len()];
    let backend = if seed % 2 == 1 { Backend::Uring } else { Backend::Epoll };
    Options { sharing, backend, ..Options::default() }
}

/// Ours, on a port of its own.
pub(crate) fn ours(options: Options) -> (CacheServer, std::net::SocketAddr) {
    let listen = vec!["127.0.0.1:0".parse().expect("an address")];
    let options = Options { listen, ..options };
    let server = CacheServer::start(options.clone()).or_else(|error| match options.backend {
        Backend::Uring => {
            testing::skip(&error);
            CacheServer::start(Options { backend: Backend::Epoll, ..options })
        }
        Backend::Epoll | Backend::Auto => Err(error),
    });
    let server = server.expect("a server");
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    (server, address)
}

/// A memcached as figures name it.
pub(crate) fn memcached() -> Option<Peer> {
    let program = program("memcached")?;
    let arguments = ["-u", "nobody", "-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-t", "1"];
    Some(Peer::start(&program, &arguments))
}

#[test]
fn random_text_and_meta_commands_are_answered_as_memcached_answers_them() {
    let Some(peer) = memcached() else { return };
    for seed in 0..12 {
        let (_server, address) = ours(options_by(seed));
        let (mut own, mut other) = (Side::new(address), Side::new(peer.address));
        other.say("flush_all\r\nlru mode flat\r\n");
        let mut random = SmallRng::seed_from_u64(seed);
        let mut said: Vec<String> = Vec::new();
        for step in 0..1500 {
            let command = script::command(&mut random);
            let (ours, theirs) = (own.say(&command), other.say(&command));
            let key = command.split(' ').nth(1).unwrap_or_default().to_owned();
            said.push(command);
            if ours != theirs {
                let about: Vec<_> = said.iter().filter(|one| one.contains(&key)).collect();
                let last = &about[about.len().saturating_sub(12)..];
                panic!("ours {ours:?}, memcached's {theirs:?} (seed {seed}, {step}): {last:#?}");
            }
        }
    }
}

#[test]
fn random_packets_are_answered_as_memcached_answers_them() {
    let Some(peer) = memcached() else { return };
    for seed in 0..12 {
        let (_server, address) = ours(options_by(seed));
        let (mut own, mut other) = (Side::new(address), Side::new(peer.address));
        Side::new(peer.address).say("lru mode flat\r\n");
        binary::empty(&mut other);
        let mut random = SmallRng::seed_from_u64(seed);
        for step in 0..1500 {
            let packet = binary::packet(&mut random);
            let (ours, theirs) = (packet.ask(&mut own), packet.ask(&mut other));
            assert_eq!(ours, theirs, "{packet:?} (seed {seed}, step {step})");
        }
    }
}

#[test]
fn requests_of_http_end_a_connection_as_memcached_ends_it() {
    let Some(peer) = memcached() else { return };
    let (_server, address) = ours(Options::default());
    let all = [
        ("POST / HTTP/1.1", true),
        (" GET  /x HTTP/1.0 ", true),
        ("PRI * HTTP/2.0", true),
        ("HTTP/1.1", true),
        ("OPTIONS * HTTP/", true),
        ("POST /", false),
        ("get HTTP/1.1", false),
        ("xx /x http/1.1", false),
    ];
    for (line, ends) in all {
        let answers = [address, peer.address].map(|address| {
            let mut socket = std::net::TcpStream::connect(address).expect("a connection");
            socket.write_all(format!("{line}\r\nmn\r\nquit\r\n").as_bytes()).expect("sent");
            let mut answer = Vec::new();
            socket.read_to_end(&mut answer).expect("an end");
            String::from_utf8_lossy(&answer).into_owned()
        });
        assert_eq!(answers[0], answers[1], "{line:?}");
        assert_eq!(answers[0].is_empty(), ends, "{line:?}");
    }
}

#[test]
fn memccapable_finds_all_of_both_protocols() {
    let Some(program) = program("memccapable") else { return };
    for seed in 0..2 {
        let (server, address) = ours(options_by(seed));
        let port = address.port().to_string();
        let output = Command::new(&program)
            .args(["-h", "127.0.0.1", "-p", &port])
            .output()
            .expect("memccapable runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let passed = said.matches("[pass]").count();
        assert!(output.status.success() && passed == 54, "{passed} of 54 pass\n{said}");
        server.stop(Duration::from_secs(1));
    }
}

#[test]
fn libmemcacheds_programs_ask_for_version_statistics_and_keys() {
    let (server, address) = ours(Options::default());
    let at = format!("--servers={address}");
    let mut client = std::net::TcpStream::connect(address).expect("a connection");
    client.write_all(b"set greeting 0 0 5 noreply\r\nhello\r\nquit\r\n").expect("sent");
    client.read_to_end(&mut Vec::new()).expect("an end");
    for (name, said) in
        [("memcping", ""), ("memcstat", "curr_items: 1"), ("memcdump", "greeting\n")]
    {
        let Some(program) = program(name) else { continue };
        let output = Command::new(&program).arg(&at).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(said), "{name}: {output:?}");
    }
    server.stop(Duration::from_secs(1));
}

#[test]
fn the_dialects_find_nothing_wrong_with_ours_in_streams_and_datagrams() {
    let datagrams = vec!["127.0.0.1:0".parse().expect("an address")];
    let (server, address) = ours(Options { datagrams, threads: 2, ..Options::default() });
    assert_eq!(server.datagram_addresses(), server.addresses());
    for value_bytes in [4, 40, 3000] {
        load::drive("memcached", address, value_bytes);
        load::drive("memcached-udp", address, value_bytes);
    }
}

#[test]
fn the_dialects_find_nothing_wrong_with_memcached() {
    let Some(program) = program("memcached") else { return };
    let port = ["-u", "nobody", "-l", "127.0.0.1", "-p", "{port}", "-U", "{port}", "-t", "1"];
    let peer = Peer::start(&program, &port);
    for value_bytes in [4, 40, 3000] {
        load::drive("memcached", peer.address, value_bytes);
        load::drive("memcached-udp", peer.address, value_bytes);
    }
}

#[test]
fn the_dialect_redis_finds_nothing_wrong_with_redis() {
    let Some(program) = program("redis-server") else { return };
    let arguments = ["--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    let peer = Peer::start(&program, &arguments);
    for value_bytes in [4, 40, 3000] {
        load::drive("redis", peer.address, value_bytes);
    }
}

#[test]
fn clients_of_others_use_the_service_unchanged() {
    let Some(python) = clients::python() else { return };
    let (_server, address) = ours(Options { threads: 2, ..Options::default() });
    clients::use_all(&python, address.port());
}
