//! The server over real sockets, spoken to by the service's own client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use cache::client::{Client, ClientError};
use cache::model::Sharing;
use cache::server::{CacheServer, Options};
use wire::{Address, Backend};

fn start(options: Options) -> CacheServer {
    let listen = vec!["127.0.0.1:0".parse().expect("an address")];
    CacheServer::start(Options { listen, ..options }).expect("a server")
}

fn connect(server: &CacheServer) -> Client {
    Client::connect(&server.addresses()[0]).expect("a connection")
}

#[test]
fn what_is_stored_is_read_back_over_a_socket() {
    let server = start(Options { threads: 2, ..Options::default() });
    let (mut one, mut other) = (connect(&server), connect(&server));
    let large: Vec<u8> = (0..1_000_000_u32).map(|number| (number / 7) as u8).collect();
    one.set(b"small", b"hello", 5, 0).unwrap();
    one.set(b"large", &large, 0, 60).unwrap();
    let found = other.get(&[b"small", b"missing", b"large"], true).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((&found[0].value[..], found[0].flags), (&b"hello"[..], 5));
    assert!(found[1].value == large && found[1].cas.is_some());
    assert!(other.delete(b"small").unwrap());
    assert!(!one.delete(b"small").unwrap());
    assert_eq!(one.version().unwrap(), cache::VERSION);
    server.stop(Duration::from_secs(5));
}

#[test]
fn an_http_client_cannot_write() {
    let server = start(Options::default());
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut socket = TcpStream::connect(address).expect("a connection");
    let body = "set written 0 0 3\r\nyes\r\n";
    let head = "POST /x HTTP/1.1\r\nHost: cache\r\nContent-Length: 26\r\n\r\n";
    socket.write_all([head, body].concat().as_bytes()).expect("sent");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an end");
    assert_eq!(String::from_utf8_lossy(&answer), "");
    assert_eq!(connect(&server).get(&[b"written"], false).unwrap().len(), 0);
}

#[test]
fn a_client_is_told_what_the_server_refused() {
    let server = start(Options::default());
    let mut client = connect(&server);
    let refused = client.set(b"key", &vec![0; 1 << 20], 0, 0).unwrap_err();
    assert_eq!(refused.to_string(), "the server says: SERVER_ERROR object too large for cache");
    assert!(matches!(client.get(&[b"two words"], false), Err(ClientError::BadKey)));
    assert!(matches!(client.stats("bogus"), Err(ClientError::Refused(_))));
    client.set(b"key", b"still works", 0, 0).unwrap();
}

#[test]
fn statistics_know_the_connections_and_the_bytes() {
    let server = start(Options { threads: 2, ..Options::default() });
    let mut client = connect(&server);
    client.set(b"key", b"value", 0, 0).unwrap();
    let stats = client.stats("").unwrap();
    let stat = |name: &str| -> &str {
        let found = stats.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    };
    assert_eq!((stat("curr_connections"), stat("total_connections")), ("1", "1"));
    assert_eq!((stat("threads"), stat("curr_items")), ("2", "1"));
    assert_eq!(stat("pid"), std::process::id().to_string());
    assert_ne!(stat("bytes_read"), "0");
    assert!(stat("rusage_user").parse::<f64>().is_ok());
}

#[test]
fn one_connection_too_many_is_told_so() {
    let server = start(Options { most_connections: 1, ..Options::default() });
    let mut first = connect(&server);
    first.version().unwrap();
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut second = TcpStream::connect(address).unwrap();
    let mut said = String::new();
    second.read_to_string(&mut said).unwrap();
    assert_eq!(said, "ERROR Too many open connections\r\n");
}

#[test]
fn one_connection_too_many_may_be_let_wait() {
    let options = Options { most_connections: 1, wait_when_full: true, ..Options::default() };
    let server = start(options);
    let mut first = connect(&server);
    first.version().unwrap();
    let mut second = connect(&server);
    drop(first);
    assert_eq!(second.version().unwrap(), cache::VERSION);
}

#[test]
fn a_connection_that_says_nothing_is_closed_and_its_place_is_free() {
    let idle_timeout = Some(Duration::from_millis(300));
    let server = start(Options { idle_timeout, ..Options::default() });
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut silent = TcpStream::connect(address).unwrap();
    // One that has begun a command and does not go on is silent, too.
    let mut begun = TcpStream::connect(address).unwrap();
    begun.write_all(b"set key 0 0 100000\r\nxxx").unwrap();
    for socket in [&mut silent, &mut begun] {
        let mut said = Vec::new();
        socket.read_to_end(&mut said).unwrap();
        assert!(said.is_empty());
    }
    // Each place is counted off after its socket is closed.
    let (counters, started) = (server.prometheus(), std::time::Instant::now());
    while !counters().contains("\ncache_curr_connections 0\n") {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", counters());
        std::thread::yield_now();
    }
}

#[test]
fn clients_that_announce_much_and_send_nothing_are_bounded_together() {
    let options = Options { memory_bytes: 16 << 20, ..Options::default() };
    let server = start(options);
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let begin = |_| {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(b"set key 0 0 1000000\r\n").unwrap();
        socket
    };
    let begun: Vec<_> = (0..40).map(begin).collect();
    let mut client = connect(&server);
    let mut stat = |name: &str| -> u64 {
        let stats = client.stats("").unwrap();
        let found = stats.iter().find(|(known, _)| known == name).expect(name);
        found.1.parse().unwrap()
    };
    let started = std::time::Instant::now();
    let mut until = |name: &str, value: u64| {
        while stat(name) != value {
            assert!(started.elapsed() < Duration::from_secs(60), "{name} is never {value}");
            std::thread::yield_now();
        }
    };
    until("read_buf_oom", 36);
    until("read_buf_bytes_free", (4 << 20) - 4 * 1_000_002);
    drop(begun);
    until("read_buf_bytes_free", 4 << 20);
    client.set(b"key", &[b'v'; 1_000_000], 0, 0).unwrap();
}

#[test]
fn a_pipeline_larger_than_every_buffer_is_answered_in_order() {
    let server = start(Options { output_limit_bytes: 10_000, ..Options::default() });
    let mut client = connect(&server);
    client.set(b"key", &[b'v'; 5000], 0, 0).unwrap();
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut socket = TcpStream::connect(address).unwrap();
    let mut reader = socket.try_clone().unwrap();
    let count = 5000;
    let writer = std::thread::spawn(move || {
        socket.write_all("get key nothing\r\n".repeat(count).as_bytes()).unwrap();
        socket.write_all(b"quit\r\n").unwrap();
    });
    let mut answers = Vec::new();
    reader.read_to_end(&mut answers).unwrap();
    writer.join().unwrap();
    let answer = [b"VALUE key 0 5000\r\n", &[b'v'; 5000][..], b"\r\nEND\r\n"].concat();
    assert_eq!(answers.len(), count * answer.len());
    assert!(answers.chunks(answer.len()).all(|chunk| chunk == answer));
}

#[test]
fn an_address_in_use_is_named() {
    let server = start(Options::default());
    let listen = server.addresses().to_vec();
    let error = CacheServer::start(Options { listen, ..Options::default() }).unwrap_err();
    assert!(error.to_string().contains(&server.addresses()[0].to_string()), "{error}");
}

/// What one of several clients does: some keys are its own, some are everybody's.
fn use_it(mut client: Client, who: usize) {
    let own = format!("own-{who}");
    for turn in 0..EACH {
        let value = vec![who as u8; 1 + (turn * 977) % 20_000];
        client.set(own.as_bytes(), &value, turn as u32, 0).unwrap();
        client.set(b"shared", &value, who as u32, 0).unwrap();
        client.count(b"count", 1, true).unwrap().unwrap();
        let found = client.get(&[own.as_bytes(), b"shared", b"nothing"], true).unwrap();
        let seen: Vec<_> =
            found.iter().map(|one| (String::from_utf8_lossy(&one.key), one.flags)).collect();
        assert_eq!(seen.len(), 2, "{who} in turn {turn}: {seen:?}");
        assert!(found[0].value == value && found[0].flags == turn as u32, "{who}: {seen:?}");
        let shared = &found[1];
        assert!(shared.value.iter().all(|byte| u32::from(*byte) == shared.flags), "in pieces");
        if turn % 20 == who % 20 {
            client.stats(["", "items", "cpu", "hotkeys", "conns"][turn % 5]).unwrap();
            assert!(client.delete(own.as_bytes()).unwrap());
        }
    }
}

/// Turns of each client.
const EACH: usize = 200;

#[test]
fn clients_on_several_threads_get_right_answers_however_the_store_is_shared() {
    const CLIENTS: usize = 6;
    let ways = [Sharing::GlobalLock, Sharing::Sharded];
    for (sharing, backend) in ways.map(|way| (way, Backend::Epoll)).into_iter().chain([
        // Where the kernel gives no io_uring, there is nothing to see of it.
        (Sharing::Sharded, Backend::Uring),
    ]) {
        let listen = vec!["127.0.0.1:0".parse().expect("an address")];
        let options = Options { listen, threads: 3, sharing, backend, ..Options::default() };
        let server = match CacheServer::start(options) {
            Ok(server) => server,
            Err(error) if backend == Backend::Uring => {
                testing::skip(format!("io_uring: {error}"));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let mut first = connect(&server);
        first.set(b"count", b"0", 0, 0).unwrap();
        let counters = server.prometheus();
        std::thread::scope(|scope| {
            for who in 0..CLIENTS {
                let client = connect(&server);
                scope.spawn(move || use_it(client, who));
            }
            (0..20).for_each(|_| assert!(counters().contains("cache_cmd_set_total")));
        });
        let count = first.get(&[b"count"], false).unwrap().remove(0).value;
        assert_eq!(String::from_utf8_lossy(&count), (CLIENTS * EACH).to_string(), "{sharing:?}");
        server.stop(Duration::from_secs(5));
    }
}

/// Reads nothing of the answers to many requests for one large value.
fn reader_that_does_not_read(address: std::net::SocketAddr, key: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.write_all(format!("get {key}\r\n").repeat(50).as_bytes()).expect("sent");
    socket
}

/// The statistics once `holds` is true of the one named `name`.
fn await_stat(client: &mut Client, name: &str, holds: impl Fn(u64) -> bool) -> u64 {
    let started = std::time::Instant::now();
    loop {
        let stats = client.stats("").unwrap();
        let value = &stats.iter().find(|(known, _)| known == name).expect(name).1;
        let value = value.parse().expect("a number");
        if holds(value) || started.elapsed() > Duration::from_secs(60) {
            return value;
        }
        std::thread::yield_now();
    }
}

#[test]
fn readers_of_one_large_value_that_do_not_read_share_it_and_stay() {
    let send_bytes = Some(4 << 20);
    let server = start(Options { threads: 2, send_bytes, ..Options::default() });
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut client = connect(&server);
    client.set(b"large", &vec![7; 1_000_000], 0, 0).unwrap();
    let mut readers: Vec<_> =
        (0..100).map(|_| reader_that_does_not_read(address, "large")).collect();
    await_stat(&mut client, "cmd_get", |gets| gets >= 100);
    await_stat(&mut client, "response_obj_bytes", |bytes| bytes >= 1_000_000);
    let held = await_stat(&mut client, "response_obj_bytes", |_| true);
    assert!(held < 2_500_000, "{held} bytes for one value of 1 MB");
    let all = await_stat(&mut client, "curr_connections", |_| true);
    assert_eq!(all, 101);
    // Each still gets all its answers, and then nothing is held any more.
    for reader in readers.iter_mut().take(5) {
        let mut answers = vec![0; 50 * ("VALUE large 0 1000000\r\n\r\nEND\r\n".len() + 1_000_000)];
        reader.read_exact(&mut answers).expect("all answers");
        assert!(answers.ends_with(b"\r\nEND\r\n") && answers[1_000_000] == 7);
    }
    drop(readers);
    assert_eq!(await_stat(&mut client, "response_obj_bytes", |bytes| bytes == 0), 0);
    assert_eq!(await_stat(&mut client, "response_obj_oom", |_| true), 0);
}

#[test]
fn unsent_answers_of_all_connections_are_bounded_and_the_slowest_readers_closed() {
    let (limit, send_bytes) = (4 << 20, Some(4 << 20));
    let server = start(Options { threads: 2, send_bytes, ..Options::default() });
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut client = connect(&server);
    for number in 0..30 {
        client.set(format!("large-{number}").as_bytes(), &vec![7; 1_000_000], 0, 0).unwrap();
    }
    let read = |number| reader_that_does_not_read(address, &format!("large-{number}"));
    let readers: Vec<_> = (0..30).map(read).collect();
    let closed = await_stat(&mut client, "response_obj_oom", |closed| closed >= 20);
    assert!((20..30).contains(&closed), "{closed} closed");
    // Each thread closes its own until the limit holds; the last one may still be closing.
    let held = await_stat(&mut client, "response_obj_bytes", |held| held <= limit);
    assert!(held <= limit, "{held} bytes");
    drop(readers);
    assert_eq!(await_stat(&mut client, "response_obj_bytes", |bytes| bytes == 0), 0);
    assert_eq!(client.get(&[b"large-29"], false).unwrap().len(), 1);
}

#[test]
fn the_largest_item_is_read_back_beside_little_memory_for_answers() {
    for (memory_bytes, item_bytes, send_bytes) in
        [(100 << 20, 50 << 20, None), (16 << 20, 1 << 20, Some(1 << 20))]
    {
        let server = start(Options { memory_bytes, item_bytes, send_bytes, ..Options::default() });
        let mut client = connect(&server);
        // What the store adds to a value is less than this.
        let value = vec![b'v'; item_bytes - 64];
        client.set(b"largest", &value, u32::MAX, 0).expect("stored");
        let found = client.get(&[b"largest"], true).expect("an answer");
        assert!(found[0].value == value, "{} bytes", found[0].value.len());
        server.stop(Duration::from_secs(5));
    }
}

#[test]
fn a_watcher_sees_the_look_ups_of_changes_too() {
    let server = start(Options::default());
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    let mut watcher = TcpStream::connect(address).expect("a connection");
    watcher.write_all(b"watch fetchers\r\n").expect("sent");
    let mut ok = [0; 4];
    watcher.read_exact(&mut ok).expect("an answer");
    let mut client = TcpStream::connect(address).expect("a connection");
    let commands = b"set a 0 0 1\r\n5\r\nincr a 1\r\ndecr b 1\r\ndelete a\r\nquit\r\n";
    client.write_all(commands).expect("sent");
    client.read_to_end(&mut Vec::new()).expect("an end");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watcher));
    for expected in ["key=a status=found clsid=1", "key=b status=not_found", "key=a status=found"] {
        let line = lines.next().expect("a line").expect("text");
        assert!(line.contains("type=item_get") && line.contains(expected), "{line}");
    }
}
