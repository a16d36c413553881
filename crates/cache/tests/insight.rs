//! What a service tells of itself beyond memcached's statistics.

use crate::common::Session;
use cache::model::Clock;
use cache::server::{CacheServer, Options, Service};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wire::Address;

/// The value of a statistic.
fn stat(answer: &str, name: &str) -> Option<String> {
    let line = answer.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")))?;
    Some(line.to_owned())
}

fn number(answer: &str, name: &str) -> f64 {
    stat(answer, name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn evictions_are_told_by_policy_age_and_size() {
    let mut session = Session::with(Options {
        memory_bytes: 1 << 20,
        item_bytes: 64 << 10,
        ..Options::default()
    });
    session.now_ns = 5 * crate::common::SECOND_NS;
    for number in 0..4000 {
        if number == 3000 {
            session.now_ns = 45 * crate::common::SECOND_NS;
        }
        session.say(format!("set key-{number} 0 0 1000 noreply\r\n{}\r\n", "v".repeat(1000)));
    }
    let answer = session.say("stats evictions\r\n");
    let evicted = number(&answer, "evictions");
    assert!(evicted > 2000.0 && number(&answer, "evicted_unfetched") == evicted, "{answer}");
    // All were of one size: 16 bytes of a head, the key and the value, in steps of 4.
    assert_eq!(number(&answer, "bytes:1024-2047"), evicted);
    let bytes = number(&answer, "evicted_bytes");
    assert!(bytes > 1016.0 * evicted && bytes < 1032.0 * evicted);
    // Most had been stored in the second in which they went, the last 40 seconds before.
    assert!(number(&answer, "idle_s:0") > 100.0 && number(&answer, "idle_s:32-63") > 100.0);
    assert!(stat(&answer, "policy").is_some());
    session.say("stats reset\r\n");
    assert_eq!(number(&session.say("stats evictions\r\n"), "evictions"), 0.0);
}

#[test]
fn a_sample_tells_the_hot_keys_and_what_commands_cost() {
    let mut session = Session::new();
    session.say("set hot 0 0 1\r\nx\r\n");
    for round in 0..20_000 {
        session.say(format!("get hot\r\nmg rare-{round} v\r\n"));
    }
    let keys = session.say("stats hotkeys\r\n");
    assert_eq!(stat(&keys, "hot:1:key").as_deref(), Some("hot"), "{keys}");
    let share = number(&keys, "hot:1:share");
    assert!((0.45..0.55).contains(&share), "half of all are for one key, not {share}");
    assert!(number(&keys, "hot:1:sampled_at_least") > 50.0);
    let cpu = session.say("stats cpu\r\n");
    for command in ["get", "mg"] {
        assert!(number(&cpu, &format!("{command}:sampled")) > 50.0, "{cpu}");
        assert!(number(&cpu, &format!("{command}:ns")) >= 0.0);
        assert!(number(&cpu, &format!("{command}:ns_error")) >= 0.0);
    }
    session.say("stats reset\r\n");
    assert!(!session.say("stats hotkeys\r\n").contains("hot:1:key"));
    let mut shy = Session::with(Options { list_keys: false, ..Options::default() });
    assert!(shy.say("stats hotkeys\r\n").starts_with("CLIENT_ERROR"));
}

#[test]
fn the_clock_is_moved_only_where_that_is_allowed() {
    assert_eq!(Session::new().say("debugtime 5\r\n"), "ERROR\r\n");
    let mut session = Session::with(Options { debug_time: true, ..Options::default() });
    assert_eq!(session.say("set key 0 100 1\r\nx\r\n"), "STORED\r\n");
    assert_eq!(session.say("debugtime 99\r\nmg key t\r\n"), "OK\r\nHD t1\r\n");
    assert_eq!(session.say("debugtime p\r\n"), "OK\r\n");
    session.now_ns += 50 * crate::common::SECOND_NS;
    assert_eq!(session.say("mg key t\r\n"), "HD t1\r\n", "the clock stands still");
    assert_eq!(session.say("debugtime 1\r\nmg key\r\n"), "OK\r\nEN\r\n");
    assert_eq!(session.say("debugtime r\r\nset new 0 1 1\r\nx\r\n"), "OK\r\nSTORED\r\n");
    assert_eq!(session.say("debugtime -9999999999999\r\nmg new t\r\n"), "OK\r\nHD t151\r\n");
    for wrong in ["debugtime\r\n", "debugtime x\r\n", "debugtime 1 2\r\n"] {
        assert!(session.say(wrong).contains("ERROR"), "{wrong}");
    }
}

#[test]
fn prometheus_reads_the_same_counters() {
    let clock = Clock { start_ns: 0, start_unix_s: 1_700_000_000 };
    let service = std::sync::Arc::new(Service::new(Options::default(), clock).expect("a service"));
    let mut session = Session::of(&service);
    session.say("set a 0 0 1\r\nx\r\nget a\r\nget b\r\n");
    let text = service.prometheus(0);
    for line in ["cache_get_hits_total 1", "cache_get_misses_total 1", "cache_curr_items 1"] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    let mut types = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(types.insert(rest.split(' ').next().expect("a name")), "{line} comes twice");
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(name.starts_with("cache_"), "{line}");
        }
    }
}

fn start(options: Options) -> (CacheServer, std::net::SocketAddr) {
    let listen = vec!["127.0.0.1:0".parse().expect("an address")];
    let server = CacheServer::start(Options { listen, ..options }).expect("a server");
    let Address::Internet(address) = server.addresses()[0] else { unreachable!("TCP") };
    (server, address)
}

fn connect(address: std::net::SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    socket
}

#[test]
fn a_watcher_who_does_not_read_misses_lines_and_is_told_how_many() {
    let (_server, address) = start(Options { watch_queue_bytes: 4096, ..Options::default() });
    let mut watcher = connect(address);
    watcher.write_all(b"watch mutations\r\n").expect("sent");
    let mut lines = BufReader::new(watcher).lines().map(|line| line.expect("a line"));
    assert_eq!(lines.next().as_deref(), Some("OK"));
    let mut client = connect(address);
    // In one batch, so that the watcher's queue is full before anybody can empty it.
    let batch = format!("set {} 0 0 1 noreply\r\nx\r\n", "k".repeat(250)).repeat(200);
    client.write_all(batch.as_bytes()).expect("sent");
    client.write_all(b"version\r\n").expect("sent");
    let mut answer = [0; 7];
    client.read_exact(&mut answer).expect("an answer");
    client.write_all(b"set last 0 0 1\r\nx\r\n").expect("sent");
    let mut told = 0;
    let mut skipped = 0;
    for line in lines.by_ref() {
        match line.strip_prefix("skipped=") {
            Some(count) => skipped += count.parse::<u32>().expect("a number"),
            None => told += 1,
        }
        if line.contains("key=last ") {
            break;
        }
    }
    assert_eq!(told + skipped, 201);
    assert!(skipped > 0, "200 lines of 300 bytes do not fit into 4096");
}

#[test]
fn watching_ends_with_the_connection_and_may_be_forbidden() {
    let (server, address) = start(Options::default());
    let mut watchers: Vec<_> = (0..21).map(|_| connect(address)).collect();
    for (index, watcher) in watchers.iter_mut().enumerate() {
        watcher.write_all(b"watch\r\n").expect("sent");
        let mut answer = [0; 4];
        watcher.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, if index < 20 { b"OK\r\n" } else { b"WATC" });
    }
    drop(watchers);
    let text = server.prometheus();
    let started = std::time::Instant::now();
    while !text().contains("cache_log_watchers 0\n") {
        assert!(started.elapsed() < Duration::from_secs(60), "watchers are never forgotten");
        std::thread::yield_now();
    }
    let mut session = Session::with(Options { watch: false, ..Options::default() });
    assert_eq!(session.say("watch\r\n"), "CLIENT_ERROR watch commands not allowed\r\n");
}

#[test]
fn connections_are_listed_with_memcacheds_states() {
    let (_server, address) = start(Options::default());
    let mut others: Vec<_> = (0..4).map(|_| connect(address)).collect();
    let long = "k".repeat(251);
    let begun = ["", "set key 0 0 10\r\nab", &format!("set {long} 0 0 10\r\nab"), "watch\r\n"];
    for (other, begun) in others.iter_mut().zip(begun) {
        other.write_all(begun.as_bytes()).expect("sent");
    }
    let mut asker = connect(address);
    let started = std::time::Instant::now();
    loop {
        asker.write_all(b"stats conns\r\nmn\r\n").expect("sent");
        let mut answer = String::new();
        let mut lines = BufReader::new(&asker).lines().map(|line| line.expect("a line"));
        while !answer.ends_with("MN\n") {
            answer.push_str(&lines.next().expect("a line"));
            answer.push('\n');
        }
        let mut states: Vec<_> = answer
            .lines()
            .filter_map(|line| line.split_once(":state conn_").map(|(_, state)| state))
            .collect();
        states.sort_unstable();
        if states == ["listening", "nread", "parse_cmd", "read", "swallow", "watch"] {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{states:?}");
    }
}

#[test]
fn the_age_of_the_oldest_item_is_that_of_the_next_to_be_judged() {
    let mut session = Session::new();
    session.say("set old 0 0 1\r\nx\r\nset gone 0 0 1\r\nx\r\n");
    session.now_ns = 10 * crate::common::SECOND_NS;
    session.say("set new 0 0 1\r\nx\r\n");
    let age = |session: &mut Session| number(&session.say("stats items\r\n"), "items:1:age");
    assert_eq!(age(&mut session), 10.0);
    session.say("delete old\r\ndelete gone\r\n");
    session.now_ns = 13 * crate::common::SECOND_NS;
    assert_eq!(age(&mut session), 3.0);
}

#[test]
fn memcached_tools_display_shows_chunks_of_the_mean_size() {
    let mut session = Session::new();
    session.say(format!("set a 0 0 1000\r\n{}\r\n", "x".repeat(1000)));
    let slabs = session.say("stats slabs\r\n");
    let of = |name: &str| -> u64 {
        let line = slabs.lines().find(|line| line.starts_with(&format!("STAT 1:{name} ")));
        line.expect(name).rsplit(' ').next().expect("a value").parse().expect("a number")
    };
    assert!((1000..1100).contains(&of("chunk_size")), "{slabs}");
    assert_eq!(of("used_chunks"), 1);
    assert_eq!(of("total_chunks"), of("used_chunks") + of("free_chunks"));
}
