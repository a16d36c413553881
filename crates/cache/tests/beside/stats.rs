//! Statistics beside memcached's: every name that it knows, and lines of `watch` of the same form.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use cache::client::Client;
use cache::server::Options;
use wire::Address;

/// What memcached has for a storage outside of memory, which does not exist here, and what is not
/// counted here: a flush removes items at once, so no read meets a flushed one.
const NOT_HERE: &[&str] = &["ext_", "get_flushed", "time_in_listen_disabled_us"];

fn names(address: SocketAddr, group: &str) -> BTreeSet<String> {
    let mut client = Client::connect(&Address::Internet(address)).expect("a connection");
    client.set(b"key", b"value", 0, 0).expect("stored");
    let all = client.stats(group).expect("statistics");
    // Numbers of connections and classes are each server's own.
    let name = |name: String| match name.split_once(':') {
        Some((number, rest)) if number.parse::<u32>().is_ok() => format!("N:{rest}"),
        _ => name,
    };
    all.into_iter().map(|(known, _)| name(known)).collect()
}

#[test]
fn every_statistic_that_memcached_has_is_there_under_its_name() {
    let Some(peer) = super::memcached() else { return };
    let (_server, address) = super::ours(Options::default());
    for group in ["", "settings", "items", "slabs", "sizes", "conns"] {
        let (ours, theirs) = (names(address, group), names(peer.address, group));
        let is_here = |name: &&String| !NOT_HERE.iter().any(|start| name.starts_with(start));
        let missing: Vec<_> = theirs.difference(&ours).filter(is_here).collect();
        assert!(missing.is_empty(), "stats {group}: {missing:?} are missing");
    }
}

/// The lines of a watcher after some commands, without what is each server's own: time, numbers.
fn watched(address: SocketAddr) -> Vec<String> {
    let mut watcher = TcpStream::connect(address).expect("a connection");
    watcher.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    watcher.write_all(b"watch fetchers mutations connevents\r\n").expect("sent");
    let mut lines = BufReader::new(watcher).lines().map(|line| line.expect("a line"));
    assert_eq!(lines.next().as_deref(), Some("OK"));
    let mut side = super::Side::new(address);
    for command in [
        "mg one v\r\n",
        "set one 0 100 3\r\nabc\r\n",
        "add one 0 0 1\r\nx\r\n",
        "cas two 0 0 1 7\r\nx\r\n",
        "get one two\r\n",
        "touch one 0\r\n",
        "ms b25l 2 b\r\nhi\r\n",
    ] {
        side.say(command);
    }
    drop(side);
    let own = ["ts=", "gid=", "cfd=", "rport="];
    let is_own = |word: &&str| !own.iter().any(|start| word.starts_with(start));
    let plain = |line: String| line.split(' ').filter(is_own).collect::<Vec<_>>().join(" ");
    let mut all = Vec::new();
    while !all.last().is_some_and(|line: &String| line.starts_with("type=conn_close")) {
        all.push(plain(lines.next().expect("a line")));
    }
    all
}

#[test]
fn watchers_are_told_in_memcacheds_words() {
    let Some(peer) = super::memcached() else { return };
    let (_server, address) = super::ours(Options::default());
    let ours = watched(address);
    // memcached also tells of the look-up that each store begins with.
    let theirs = watched(peer.address);
    let mut rest = theirs.iter();
    for line in &ours {
        assert!(rest.any(|other| other == line), "{line:?} is not among {theirs:#?}");
    }
    assert!(ours.len() > 12, "{ours:#?}");
}
