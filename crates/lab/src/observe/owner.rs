//! Whose an address is: the processes that hold the socket which listens there.
//!
//! The kernel lists listening sockets with their inodes (`/proc/net/tcp`, `tcp6`, `udp`, `udp6`,
//! `unix`; proc_pid_net(5)) and a process's descriptors as links to `socket:[INODE]`. Another
//! user's descriptors are shown to root only, and another network namespace's sockets not at all.
//! A socket that was inherited has several holders: all that may be seen are the target's, but for
//! those from which the lab descends, such as a manager of services that keeps sockets for others.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use wire::Address;

use super::roots::Roots;
use super::route::Route;
use crate::plan::Medium;

/// The most lines that are read of a list of sockets. A list of TCP has those that listen first; in
/// the others a socket behind that many is unseen.
const LINES_LIMIT: usize = 1 << 20;

/// Programs, by the name of their processes, that pass on what comes to their sockets: the target
/// is behind them.
pub(super) const FORWARDERS: &[&str] = &[
    "docker-proxy",
    "rootlesskit",
    "rootlessport",
    "slirp4netns",
    "passt",
    "passt.avx2",
    "pasta",
    "pasta.avx2",
    "ssh",
    "sshd",
    "sshd-session",
    "kubectl",
];

/// The state of a socket that listens (`TCP_LISTEN`), and of a datagram socket that is bound
/// (`TCP_CLOSE`), in include/net/tcp_states.h.
const LISTENS: &str = "0A";
const BOUND: &str = "07";

/// The flag of a Unix socket that listens (`__SO_ACCEPTCON`, include/uapi/linux/net.h).
const ACCEPTS: u32 = 0x0001_0000;

/// Whose an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// These processes', of those that may be seen.
    Processes(Roots),
    /// Not known: its processes are hidden, it may be in another network namespace or virtual
    /// machine of this host, or nothing listens there.
    Unseen,
    /// Another machine's: the way there leads through hardware.
    Elsewhere,
}

impl Owner {
    /// Where the owner's processes begin; `None` where that isn't known, or not on this host.
    pub fn roots(&self) -> Option<&Roots> {
        match self {
            Self::Processes(roots) => Some(roots),
            Self::Unseen | Self::Elsewhere => None,
        }
    }

    /// The owner of an address that is reached by this medium.
    pub fn of(address: &Address, medium: Medium) -> Self {
        if let Address::Internet(address) = address {
            match route(*address) {
                Ok(Route::Local) => {}
                Ok(way) if way.leaves_the_machine(Path::new("/sys/class/net")) => {
                    return Self::Elsewhere;
                }
                // What listens at this port here isn't what is reached.
                Ok(Route::Through(_)) | Err(_) => return Self::Unseen,
            }
        }
        Self::seen_in(Path::new("/proc"), address, medium, std::process::id())
    }

    /// By the files below `proc`, for a lab of this number.
    fn seen_in(proc: &Path, address: &Address, medium: Medium, lab: u32) -> Self {
        let inodes = match address {
            Address::Internet(address) => listening(proc, *address, medium),
            Address::Unix(path) => listening_at(proc, path),
        };
        let inodes = inodes.unwrap_or_default();
        if inodes.is_empty() {
            return Self::Unseen;
        }
        let not_target = with_ancestors(proc, lab);
        let (mut pids, mut found) = (Vec::new(), vec![false; inodes.len()]);
        for pid in processes(proc) {
            let folder = proc.join(pid.to_string());
            let held = held(&folder, &inodes);
            let holds = held.iter().any(|held| *held);
            if !holds || not_target.contains(&pid) || forwards(&folder) {
                continue;
            }
            found.iter_mut().zip(held).for_each(|(found, held)| *found |= held);
            pids.push(pid);
        }
        // A socket without a holder is another process's share of the work, which isn't seen.
        match !pids.is_empty() && found.iter().all(|found| *found) {
            true => Self::Processes(Roots::Processes(pids)),
            false => Self::Unseen,
        }
    }
}

/// The way to an address. That to loopback is known where the kernel can't be asked, too.
fn route(address: SocketAddr) -> std::io::Result<Route> {
    let ip = address.ip().to_canonical();
    match ip.is_loopback() || ip.is_unspecified() {
        true => Ok(Route::Local),
        false => Route::to(address),
    }
}

/// The inodes of the sockets that get what is sent to an address: those of the address itself, or
/// else of all addresses, of IPv4 or else of both families.
fn listening(proc: &Path, address: SocketAddr, medium: Medium) -> std::io::Result<Vec<u64>> {
    let (state, files) = match medium {
        Medium::Udp => (BOUND, ["net/udp", "net/udp6"]),
        Medium::Tcp | Medium::Tcp6 | Medium::Unix => (LISTENS, ["net/tcp", "net/tcp6"]),
    };
    let wanted = match address.ip().to_canonical() {
        // Nothing listens there: the kernel takes it for loopback.
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let rank = |ip: IpAddr| match ip.to_canonical() {
        ip if ip == wanted => Some(0),
        ip if ip.is_unspecified() && ip.is_ipv4() == wanted.is_ipv4() => Some(1),
        ip if ip.is_unspecified() && ip.is_ipv6() => Some(2),
        _ => None,
    };
    let mut found: Vec<(u32, u64)> = Vec::new();
    for file in files {
        let file = match File::open(proc.join(file)) {
            // A kernel without IPv6 has no list of it.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file?,
        };
        for line in BufReader::new(file).lines().take(LINES_LIMIT) {
            let line = line?;
            let row = socket(&line).filter(|row| row.state == state && row.port == address.port());
            found.extend(row.and_then(|row| Some((rank(row.ip)?, row.inode))));
        }
    }
    let least = found.iter().map(|(rank, _)| *rank).min();
    found.retain(|(rank, _)| Some(*rank) == least);
    Ok(found.into_iter().map(|(_, inode)| inode).collect())
}

/// A row of a list of sockets.
struct Socket<'a> {
    ip: IpAddr,
    port: u16,
    state: &'a str,
    inode: u64,
}

fn socket(line: &str) -> Option<Socket<'_>> {
    let mut words = line.split_ascii_whitespace();
    let (ip, port) = words.nth(1)?.split_once(':')?;
    let (port, ip) = (u16::from_str_radix(port, 16).ok()?, ip_of(ip)?);
    let state = words.nth(1)?;
    let inode = words.nth(5)?.parse().ok()?;
    Some(Socket { ip, port, state, inode })
}

/// An address as the kernel prints it: words of 32 bits, of which the bytes are in the address's
/// order in memory.
fn ip_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok();
    match text.len() {
        8 => Some(IpAddr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            Some(IpAddr::from(bytes))
        }
        _ => None,
    }
}

/// The inode of the Unix socket that listens at a path, by whatever name of the same file it was
/// bound; none where several have it: of a server that ends and the one that has taken its place,
/// the list doesn't say which gets the connections.
fn listening_at(proc: &Path, path: &Path) -> std::io::Result<Vec<u64>> {
    let mut inodes = Vec::new();
    let list = BufReader::new(File::open(proc.join("net/unix"))?);
    for line in list.split(b'\n').take(LINES_LIMIT) {
        let line = line?;
        let same = listener(&line).filter(|(_, bound)| is_same(bound, path));
        inodes.extend(same.map(|(inode, _)| inode));
    }
    if inodes.len() > 1 {
        inodes.clear();
    }
    Ok(inodes)
}

/// The inode and the path of a Unix socket that listens at one. That of an abstract socket begins
/// with `@`, and what a relative one is relative to isn't known.
fn listener(line: &[u8]) -> Option<(u64, &Path)> {
    let mut rest = line;
    let mut words = [&line[..0]; 7];
    for word in &mut words {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        (*word, rest) = rest.split_at(end);
    }
    let [_, _, _, flags, _, _, inode] = words.map(|word| std::str::from_utf8(word).ok());
    let path = rest.strip_prefix(b" ").filter(|path| path.starts_with(b"/"))?;
    let listens = u32::from_str_radix(flags?, 16).ok()? & ACCEPTS != 0;
    listens.then_some((inode?.parse().ok()?, Path::new(OsStr::from_bytes(path))))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().map(|seen| (seen.dev(), seen.ino())).ok();
    one == other || (file(one).is_some() && file(one) == file(other))
}

/// The numbers of all processes, in ascending order.
fn processes(proc: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// Which of these sockets a process has open.
pub(super) fn held(folder: &Path, inodes: &[u64]) -> Vec<bool> {
    let entries = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let mut held = vec![false; inodes.len()];
    for link in entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()) {
        let inode = inode_of(&link);
        inodes.iter().zip(&mut held).for_each(|(one, held)| *held |= Some(*one) == inode);
    }
    held
}

/// `socket:[12345]`.
fn inode_of(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn forwards(folder: &Path) -> bool {
    let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
    FORWARDERS.contains(&name.trim_end())
}

/// A process and those from which it descends.
fn with_ancestors(proc: &Path, pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    while let Some(parent) = parent_of(&proc.join(all[all.len() - 1].to_string()))
        && parent > 0
        && !all.contains(&parent)
    {
        all.push(parent);
    }
    all
}

fn parent_of(folder: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A `/proc` of a host with nginx (10, with its worker 11 and an unrelated 12), whose sockets a
    /// manager of services (1) holds, too, a forwarder (20), and the lab (31) in its shell (30).
    struct Planted(tempfile::TempDir);

    const LAB: u32 = 31;

    impl Planted {
        fn new() -> Self {
            let planted = Self(tempfile::tempdir().unwrap());
            for (pid, name, parent) in [
                (1, "systemd", 0),
                (10, "nginx: (a) b", 1),
                (11, "nginx", 10),
                (12, "rustc", 1),
                (20, "docker-proxy", 1),
                (30, "bash", 1),
                (LAB, "loadline", 30),
            ] {
                planted.file(&format!("{pid}/comm"), &format!("{name}\n"));
                planted.file(&format!("{pid}/stat"), &format!("{pid} ({name}) S {parent} 0 0"));
                std::fs::create_dir(planted.path().join(format!("{pid}/fd"))).unwrap();
            }
            planted.file("net/unix", "Num RefCount Protocol Flags Type St Inode Path\n");
            planted
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn file(&self, name: &str, text: &str) {
            let path = self.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
        }

        /// Rows as the kernel prints them, of local addresses, states and inodes.
        fn sockets(&self, file: &str, rows: &[(&str, &str, u64)]) {
            let mut text = "  sl  local_address rem_address   st\n".to_owned();
            for (at, (local, state, inode)) in rows.iter().enumerate() {
                text += &format!(
                    "{at:4}: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 \
                     1000 0 {inode} 1 00000000f2ebf5fb 100 0 0 10 0\n"
                );
            }
            self.file(&format!("net/{file}"), &text);
        }

        fn holds(&self, pid: u32, inode: u64) {
            let name = self.path().join(format!("{pid}/fd/{inode}"));
            symlink(format!("socket:[{inode}]"), name).unwrap();
        }

        fn owner(&self, address: &str, medium: Medium) -> Owner {
            let address = Address::Internet(address.parse().unwrap());
            Owner::seen_in(self.path(), &address, medium, LAB)
        }

        /// The kernel's rows of Unix sockets: whether they listen, inodes and names.
        fn unix(&self, rows: &[(bool, u64, &[u8])]) {
            let mut list = b"Num       RefCount Protocol Flags    Type St Inode Path\n".to_vec();
            for (listens, inode, name) in rows {
                let (flags, state) = if *listens { (ACCEPTS, 1) } else { (0, 3) };
                let row = format!(
                    "0000000093f76684: 00000003 00000000 {flags:08X} 0001 {state:02X} {inode:5}"
                );
                list.extend(
                    [row.as_bytes(), if name.is_empty() { b"" } else { b" " }, name].concat(),
                );
                list.push(b'\n');
            }
            std::fs::write(self.path().join("net/unix"), list).unwrap();
        }

        fn owner_at(&self, path: &Path) -> Owner {
            Owner::seen_in(self.path(), &Address::Unix(path.to_owned()), Medium::Unix, LAB)
        }
    }

    fn of(pids: &[u32]) -> Owner {
        Owner::Processes(Roots::Processes(pids.to_vec()))
    }

    #[test]
    fn all_that_hold_the_listening_socket_are_the_target_but_what_the_lab_descends_from() {
        let planted = Planted::new();
        let rows =
            [("0100007F:46A0", "0A", 77), ("00000000:0050", "0A", 78), ("0100007F:46A0", "01", 79)];
        planted.sockets("tcp", &rows);
        for (pid, inode) in [(1, 77), (10, 77), (11, 77), (12, 78), (11, 79), (12, 79), (LAB, 79)] {
            planted.holds(pid, inode);
        }
        assert_eq!(planted.owner("127.0.0.1:18080", Medium::Tcp), of(&[10, 11]));
        assert_eq!(
            planted.owner("127.0.0.1:80", Medium::Tcp),
            of(&[12]),
            "it listens at all addresses"
        );
        assert_eq!(
            planted.owner("127.0.0.1:81", Medium::Tcp),
            Owner::Unseen,
            "nothing listens there"
        );
        assert_eq!(
            planted.owner("127.0.0.1:18080", Medium::Udp),
            Owner::Unseen,
            "not for datagrams"
        );
    }

    #[test]
    fn the_socket_that_is_bound_most_exactly_gets_the_connections() {
        let planted = Planted::new();
        planted.sockets("tcp", &[("00000000:0050", "0A", 1), ("0100007F:0050", "0A", 2)]);
        let all = "00000000000000000000000000000000:0050";
        let mapped = "0000000000000000FFFF00000200007F:0051";
        let loopback = "00000000000000000000000001000000:0052";
        let rows = [(all, "0A", 3), (mapped, "0A", 4), (loopback, "0A", 5)];
        planted.sockets("tcp6", &rows);
        planted.sockets("udp", &[("0100007F:0050", "07", 6)]);
        for (pid, inode) in [(10, 1), (11, 2), (12, 3), (10, 4), (11, 5), (12, 6)] {
            planted.holds(pid, inode);
        }
        for (address, pid) in [
            ("127.0.0.1:80", 11),
            ("0.0.0.0:80", 11),
            ("10.0.0.1:80", 10),
            ("[::1]:80", 12),
            ("127.0.0.2:81", 10),
            ("[::1]:82", 11),
        ] {
            assert_eq!(planted.owner(address, Medium::Tcp), of(&[pid]), "{address}");
        }
        assert_eq!(planted.owner("127.0.0.1:80", Medium::Udp), of(&[12]));
    }

    #[test]
    fn an_owner_that_is_seen_in_part_passes_on_or_is_the_lab_itself_is_unseen() {
        let planted = Planted::new();
        let rows = [("0100007F:0001", "0A", 1), ("0100007F:0001", "0A", 2)];
        let others = [("0100007F:0002", "0A", 3), ("0100007F:0003", "0A", 4)];
        planted.sockets("tcp", &[rows, others].concat());
        for (pid, inode) in [(10, 1), (20, 3), (LAB, 4)] {
            planted.holds(pid, inode);
        }
        for port in 1..=3 {
            assert_eq!(
                planted.owner(&format!("127.0.0.1:{port}"), Medium::Tcp),
                Owner::Unseen,
                "{port}"
            );
        }
        planted.holds(11, 2);
        assert_eq!(
            planted.owner("127.0.0.1:1", Medium::Tcp),
            of(&[10, 11]),
            "each has its own socket"
        );
    }

    #[test]
    fn a_unix_socket_is_found_by_any_name_of_its_file() {
        let planted = Planted::new();
        let (bound, linked) = (planted.path().join("a socket"), planted.path().join("link"));
        std::fs::File::create(&bound).unwrap();
        symlink(&bound, &linked).unwrap();
        let name = bound.as_os_str().as_bytes();
        planted.unix(&[(false, 1057, b""), (false, 1058, name), (true, 59, name)]);
        planted.holds(11, 1058);
        planted.holds(10, 59);
        for path in [bound, linked] {
            assert_eq!(planted.owner_at(&path), of(&[10]));
        }
    }

    #[test]
    fn names_that_are_no_path_are_passed_over() {
        let planted = Planted::new();
        let path = Path::new("/run/app.sock");
        let others: [(bool, u64, &[u8]); 4] = [
            (true, 1, b"@/run/app.sock"),
            (true, 2, b"./run/app.sock"),
            (true, 3, b"@\xff\xfe"),
            (true, 4, b"/run/app.sock 2"),
        ];
        planted.unix(&others);
        for inode in 1..=4 {
            planted.holds(12, inode);
        }
        planted.holds(10, 5);
        assert_eq!(planted.owner_at(path), Owner::Unseen);
        planted.unix(&[&others[..], &[(true, 5, b"/run/app.sock")]].concat());
        assert_eq!(planted.owner_at(path), of(&[10]));
        assert_eq!(planted.owner_at(Path::new("/run/app.sock 2")), of(&[12]));
    }

    #[test]
    fn of_two_sockets_at_one_path_it_is_not_known_which_is_reached() {
        let planted = Planted::new();
        let path = Path::new("/run/app.sock");
        planted.unix(&[(true, 1, b"/run/app.sock"), (true, 2, b"/run/app.sock")]);
        planted.holds(10, 1);
        planted.holds(12, 2);
        assert_eq!(planted.owner_at(path), Owner::Unseen);
    }

    /// A process that inherits a socket which listens, and does nothing until it is dropped.
    struct Holder(Child);

    impl Holder {
        fn of(listener: impl Into<std::os::fd::OwnedFd>) -> Self {
            let mut cat = Command::new("cat");
            // Its output is the socket, to which nothing is written.
            cat.stdin(Stdio::piped()).stdout(Stdio::from(listener.into()));
            Self(cat.spawn().expect("cat is there"))
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_listener_in_another_process_is_found_by_its_address() {
        // A child that another test forks at this moment holds the socket, too, until it is another
        // program.
        let becomes = |address: &Address, medium, expected: Owner| {
            let begun = std::time::Instant::now();
            while Owner::of(address, medium) != expected {
                let found = Owner::of(address, medium);
                assert!(begun.elapsed().as_secs() < 60, "{found:?}, not {expected:?}");
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Internet(listener.local_addr().unwrap());
        // It is the lab's own.
        becomes(&address, Medium::Tcp, Owner::Unseen);
        let holder = Holder::of(listener);
        becomes(&address, Medium::Tcp, of(&[holder.0.id()]));
        drop(holder);
        // Nothing listens any more.
        becomes(&address, Medium::Tcp, Owner::Unseen);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let holder = Holder::of(UnixListener::bind(&path).unwrap());
        becomes(&Address::Unix(path), Medium::Unix, of(&[holder.0.id()]));
    }

    #[test]
    fn an_address_of_another_network_is_not_looked_for_here() {
        // It is bound at this port of all addresses of this host, not at that one.
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _holder = Holder::of(listener);
        // Reserved for documentation (RFC 5737).
        let address = Address::Internet(SocketAddr::from(([192, 0, 2, 1], port)));
        assert_eq!(Owner::of(&address, Medium::Tcp).roots(), None);
    }
}
