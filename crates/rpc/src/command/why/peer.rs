//! Whether another process is the other end of this one's connection: what a server says of itself
//! is believed where the system says so, too.

use std::collections::HashSet;
use std::fs;

use crate::carriers::Peer;

/// Whether this process is at the other end.
pub(super) fn is_peer(pid: u32, peer: Peer) -> bool {
    match peer {
        Peer::Unknown | Peer::Here => false,
        Peer::Process(other) => other == pid,
        Peer::Within(ancestor) => descends(pid, ancestor),
        Peer::Tcp => has_other_end(pid),
    }
}

/// Whether a process is `ancestor`, or descends from it.
fn descends(pid: u32, ancestor: u32) -> bool {
    // A chain is short, and ends; one that changes meanwhile is not followed without end.
    let parents = std::iter::successors(Some(pid), |pid| parent(*pid)).take(64);
    parents.into_iter().any(|pid| pid == ancestor)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have blanks.
    let parent = stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(parent).filter(|parent| *parent > 1)
}

/// Whether a process has the other end of a TCP connection of this one.
fn has_other_end(pid: u32) -> bool {
    let (ours, theirs) = (sockets("self"), sockets(&pid.to_string()));
    if theirs.is_empty() {
        return false;
    }
    let all: Vec<_> = ["tcp", "tcp6"]
        .iter()
        .filter_map(|kind| fs::read_to_string(format!("/proc/self/net/{kind}")).ok())
        .flat_map(|table| table.lines().filter_map(row).collect::<Vec<_>>())
        .collect();
    are_joined(&all, &ours, &theirs)
}

/// Whether one of these connections has one of our sockets at one end, and one of theirs at the
/// other.
fn are_joined(all: &[Row], ours: &HashSet<u64>, theirs: &HashSet<u64>) -> bool {
    let mine = all.iter().filter(|row| ours.contains(&row.inode));
    let wanted: HashSet<_> = mine.map(|row| (&row.remote, &row.local)).collect();
    all.iter().any(|row| theirs.contains(&row.inode) && wanted.contains(&(&row.local, &row.remote)))
}

/// The numbers of a process's open sockets.
fn sockets(pid: &str) -> HashSet<u64> {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return HashSet::new() };
    let number = |file: fs::DirEntry| {
        let link = fs::read_link(file.path()).ok()?;
        let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        number.parse().ok()
    };
    files.filter_map(Result::ok).filter_map(number).collect()
}

/// A connection in the system's table.
#[derive(Debug, PartialEq)]
struct Row {
    local: String,
    remote: String,
    inode: u64,
}

/// What an address of IPv4 has before it in the table of IPv6 (::ffff:0:0/96), each word as this
/// host's memory has it.
const MAPPED: &str = match cfg!(target_endian = "little") {
    true => "0000000000000000FFFF0000",
    false => "00000000000000000000FFFF",
};

/// A line of /proc/net/tcp, or tcp6. The end of a listener for both kinds of addresses is in the
/// second, where its client's may be in the first: an address of IPv4 is the same in both here.
fn row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let mut end = || fields.next().map(|end| end.strip_prefix(MAPPED).unwrap_or(end).to_owned());
    let (local, remote) = (end()?, end()?);
    Some(Row { local, remote, inode: fields.nth(6)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process;

    use super::*;

    #[test]
    fn a_line_of_the_table_has_both_ends_and_a_number() {
        let line = "   3: 0100007F:C383 0100007F:A2B4 01 00000000:00000000 00:00000000 00000000 \
                    1000        0 41234 2 0000000000000000 20 4 30 10 -1";
        let (local, remote) = ("0100007F:C383".to_owned(), "0100007F:A2B4".to_owned());
        assert_eq!(row(line), Some(Row { local, remote, inode: 41_234 }));
        assert_eq!(row("  sl  local_address rem_address   st"), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_client_of_ipv4_is_joined_to_a_listener_for_both_kinds_of_addresses() {
        // Of /proc/net/tcp, and of /proc/net/tcp6: the listener, the connection, and one of IPv6
        // between the same ports.
        let table = "
   1: 0100007F:C51A 0100007F:C2E5 01 0:0 00:0 0  0 0 1512726 2 0000000060069f6d 20 0 0 10 -1
   0: 00000000000000000000000000000000:C2E5 00000000000000000000000000000000:0000 0A 0:0 00:0 0 \
         0 0 1512725 1 0000000042970b86 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:C2E5 0000000000000000FFFF00000100007F:C51A 01 0:0 00:0 0 \
         0 0 1512727 1 000000001186b427 20 0 0 10 -1
   2: 00000000000000000000000001000000:C2E5 00000000000000000000000001000000:C51A 01 0:0 00:0 0 \
         0 0 1512728 1 000000002186b427 20 0 0 10 -1";
        let rows: Vec<_> = table.lines().filter_map(row).collect();
        assert_eq!(rows.len(), 4);
        let is_joined = |ours, theirs| are_joined(&rows, &[ours].into(), &[theirs].into());
        assert!(is_joined(1_512_726, 1_512_727) && is_joined(1_512_727, 1_512_726));
        for other in [1_512_725, 1_512_726, 1_512_728] {
            assert!(!is_joined(1_512_726, other), "{other}");
        }
    }

    #[test]
    fn the_other_end_is_the_process_that_has_it_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        assert!(!is_peer(process::id(), Peer::Unknown));
        let far = listener.accept().expect("accepted");
        assert!(is_peer(process::id(), Peer::Tcp));
        assert!(!is_peer(1, Peer::Tcp), "another process");
        drop((near, far));
        assert!(is_peer(7, Peer::Process(7)) && !is_peer(7, Peer::Process(8)));
        let parent = parent(process::id()).expect("a parent");
        assert!(is_peer(process::id(), Peer::Within(parent)));
        assert!(is_peer(process::id(), Peer::Within(process::id())));
        assert!(!is_peer(parent, Peer::Within(process::id())), "it is older");
    }
}
