//! Connections lost at each listening TCP socket of this network namespace. What
//! `/proc/net/netstat` counts of them is the sum over all programs; each socket's own count is
//! among its memory figures (sock_diag(7), `INET_DIAG_SKMEMINFO`: `SK_MEMINFO_DROPS`), where the
//! kernel counts the same losses (`tcp_listendrop`, include/net/tcp.h).

use std::collections::BTreeMap;
use std::path::Path;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::owner::held;
use super::route::{attribute, number};

/// Messages and their parts, of include/uapi/linux/netlink.h, sock_diag.h and inet_diag.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u32 = 2;
const NLMSG_DONE: u32 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_SKMEMINFO: u16 = 7;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u32 = 10;

/// The bytes of a message before its attributes: `nlmsghdr` and `inet_diag_msg`, in which a
/// socket's inode comes last.
const HEAD: usize = 16 + 72;

/// Which of a socket's memory figures is its losses (`SK_MEMINFO_DROPS`).
const DROPS: usize = 8;

/// At most this many sockets are looked at.
const SOCKETS_LIMIT: usize = 1 << 16;

/// The losses of listening sockets so far, by inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listeners(BTreeMap<u64, u32>);

impl Listeners {
    /// Asks the kernel; `None` where it doesn't answer, or there are too many.
    pub(crate) fn read() -> Option<Self> {
        let mut all = Self::default();
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            all.ask(family)?;
        }
        Some(all)
    }

    fn ask(&mut self, family: AddressFamily) -> Option<()> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol).ok()?;
        let to = SocketAddrNetlink::new(0, 0);
        sendto(&socket, &question(family), SendFlags::empty(), &to).ok()?;
        let mut answer = vec![0; 32 << 10];
        // The kernel has the next part ready as soon as one is taken.
        while self.0.len() <= SOCKETS_LIMIT {
            let (length, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
            if self.add(answer.get(..length)?)? {
                return Some(());
            }
        }
        None
    }

    /// Adds the sockets of these messages. Returns whether they were the last; `None` where they
    /// are no such answer.
    fn add(&mut self, mut rest: &[u8]) -> Option<bool> {
        while !rest.is_empty() {
            let length = number(rest.get(..4)?) as usize;
            let message = rest.get(..length).filter(|message| message.len() >= 16)?;
            match number(&message[4..6]) {
                NLMSG_DONE => return Some(true),
                NLMSG_ERROR => return None,
                kind if kind == u32::from(SOCK_DIAG_BY_FAMILY) => {
                    let inode = number(message.get(HEAD - 4..HEAD)?);
                    let memory = attribute(message.get(HEAD..)?, INET_DIAG_SKMEMINFO)?;
                    let drops = number(memory.get(4 * DROPS..4 * DROPS + 4)?);
                    self.0.insert(u64::from(inode), drops);
                }
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(false)
    }

    /// The connections lost since `earlier` at sockets that these processes have open; `None` where
    /// it isn't known whose a socket is at which some were lost.
    pub(crate) fn lost_by(&self, earlier: &Self, pids: &[u32]) -> Option<u64> {
        // A socket that is new began with none.
        let before = |inode: &u64| earlier.0.get(inode).copied().unwrap_or(0);
        let lost = self.0.iter().map(|(inode, now)| (*inode, now.wrapping_sub(before(inode))));
        let lost: Vec<(u64, u32)> = lost.filter(|(_, lost)| *lost > 0).collect();
        let inodes: Vec<u64> = lost.iter().map(|(inode, _)| *inode).collect();
        let (mut own, mut is_hidden) = (vec![false; inodes.len()], false);
        for pid in pids.iter().filter(|_| !inodes.is_empty()) {
            let folder = Path::new("/proc").join(pid.to_string());
            is_hidden |= folder.join("fd").read_dir().is_err() && folder.exists();
            own.iter_mut().zip(held(&folder, &inodes)).for_each(|(own, held)| *own |= held);
        }
        let all_own = own.iter().all(|own| *own);
        let sum = lost.iter().zip(own).filter(|(_, own)| *own).map(|((_, lost), _)| *lost);
        (all_own || !is_hidden).then(|| sum.map(u64::from).sum())
    }
}

/// Asks for all listening TCP sockets of a family (`inet_diag_req_v2`).
fn question(family: AddressFamily) -> Vec<u8> {
    const LENGTH: usize = 16 + 56;
    let mut bytes = Vec::with_capacity(LENGTH);
    bytes.extend((LENGTH as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, IPPROTO_TCP, 1 << (INET_DIAG_SKMEMINFO - 1), 0]);
    bytes.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
    // Any address, port and interface.
    bytes.resize(LENGTH, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, inode: u32, drops: Option<u32>) -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[HEAD - 4..].copy_from_slice(&inode.to_ne_bytes());
        if let Some(drops) = drops {
            bytes.extend(40_u16.to_ne_bytes());
            bytes.extend(INET_DIAG_SKMEMINFO.to_ne_bytes());
            bytes.extend([0; 32]);
            bytes.extend(drops.to_ne_bytes());
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    #[test]
    fn sockets_are_read_from_messages_until_the_last() {
        let of = |bytes: &[u8]| {
            let mut all = Listeners::default();
            all.add(bytes).map(|is_over| (is_over, all.0.into_iter().collect::<Vec<_>>()))
        };
        let socket = |inode, drops| message(SOCK_DIAG_BY_FAMILY, inode, Some(drops));
        let two = [socket(7, 3), socket(9, 0)].concat();
        assert_eq!(of(&two), Some((false, vec![(7, 3), (9, 0)])));
        let over = [two.clone(), message(NLMSG_DONE as u16, 0, None)].concat();
        assert_eq!(of(&over), Some((true, vec![(7, 3), (9, 0)])));
        assert_eq!(of(&message(NLMSG_ERROR as u16, 0, None)), None, "the kernel can't be asked");
        assert_eq!(of(&message(SOCK_DIAG_BY_FAMILY, 7, None)), None, "without its losses");
        for length in (1..two.len()).filter(|length| *length != two.len() / 2) {
            assert_eq!(of(&two[..length]), None, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_fail_otherwise(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Listeners::default().add(&bytes);
            let _ = Listeners::default().add(&[message(20, 1, Some(1)), bytes].concat());
        }
    }

    /// A queue of one place, of which nothing is accepted: the kernel keeps two connections, and
    /// loses each further one.
    #[test]
    fn what_is_lost_at_a_socket_is_its_holders() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let Some(before) = Listeners::read() else {
            testing::skip("this kernel has no sock_diag");
            return;
        };
        let address = listener.local_addr().unwrap();
        let connect = || {
            let socket = socket_with(
                AddressFamily::INET,
                SocketType::STREAM,
                SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
                None,
            );
            let socket = socket.unwrap();
            let _ = rustix::net::connect(&socket, &address);
            TcpStream::from(socket)
        };
        let _made: Vec<TcpStream> = (0..8).map(|_| connect()).collect();
        let after = Listeners::read().unwrap();
        let own = after.lost_by(&before, &[std::process::id()]).unwrap();
        assert!(own >= 4, "{own} of 8, on descriptor {}", listener.as_raw_fd());
        assert_eq!(after.lost_by(&before, &[]), Some(0), "another's");
        assert_eq!(before.lost_by(&before, &[std::process::id()]), Some(0));
    }
}
