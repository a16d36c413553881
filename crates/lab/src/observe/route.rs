//! The way that packets to an address take, as the kernel decides it (rtnetlink(7)), and whether it
//! leaves this machine.

use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use rustix::net::netdevice::index_to_name;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// Messages and their parts, of include/uapi/linux/netlink.h and rtnetlink.h.
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;

/// The bytes of a message before its attributes: `nlmsghdr` and `rtmsg`.
const HEAD: usize = 16 + 12;

/// Where packets to an address go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To this network namespace.
    Local,
    /// Out of the device of this number.
    Through(u32),
}

impl Route {
    /// The route to an address, with its scope. Where several routes or sources are possible, that
    /// of a new socket.
    ///
    /// # Errors
    ///
    /// There is none, it isn't to a single host, or the kernel can't be asked.
    pub(super) fn to(address: SocketAddr) -> Result<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        sendto(&socket, &question(address), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 4096];
        // The kernel has answered when it has taken the question.
        let (length, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
        Self::parse(&answer[..length])
    }

    fn parse(answer: &[u8]) -> Result<Self> {
        let cut = || Error::new(ErrorKind::InvalidData, "the kernel's answer is cut short");
        match number(answer.get(4..6).ok_or_else(cut)?) {
            kind if kind == u32::from(RTM_NEWROUTE) => {}
            kind if kind == u32::from(NLMSG_ERROR) => {
                let code = number(answer.get(16..20).ok_or_else(cut)?).cast_signed();
                return Err(Error::from_raw_os_error(code.saturating_neg()));
            }
            _ => return Err(Error::new(ErrorKind::InvalidData, "the kernel answers otherwise")),
        }
        match answer.get(16 + 7).copied().ok_or_else(cut)? {
            RTN_LOCAL => Ok(Self::Local),
            RTN_UNICAST => {
                let device = attribute(answer.get(HEAD..).ok_or_else(cut)?, RTA_OIF);
                device.filter(|data| data.len() == 4).map(number).map(Self::Through).ok_or_else(cut)
            }
            _ => Err(Error::new(ErrorKind::Unsupported, "it isn't one host's address")),
        }
    }

    /// Whether what takes this way arrives at another machine. `devices` is `/sys/class/net`.
    pub(super) fn leaves_the_machine(&self, devices: &Path) -> bool {
        let Self::Through(device) = self else { return false };
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
        let name = socket.and_then(|socket| index_to_name(socket, *device));
        name.is_ok_and(|name| is_hardware(devices, &name))
    }
}

/// Whether a network device is hardware, or stands for nothing but hardware, as a bond or a VLAN
/// does. Bridges to containers and virtual machines, veth and tunnels may lead to this machine.
fn is_hardware(devices: &Path, name: &str) -> bool {
    let folder = devices.join(name);
    if folder.join("device").exists() {
        return true;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let below: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix("lower_")?.to_owned())).collect();
    // The kernel stacks devices at most eight high, never in a circle.
    !below.is_empty() && below.iter().all(|name| is_hardware(devices, name))
}

fn question(address: SocketAddr) -> Vec<u8> {
    let (family, host) = match address.ip().to_canonical() {
        IpAddr::V4(ip) => (AddressFamily::INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AddressFamily::INET6, ip.octets().to_vec()),
    };
    let scope = match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    let mut attributes = vec![(RTA_DST, host.clone())];
    if scope > 0 {
        attributes.push((RTA_OIF, scope.to_ne_bytes().to_vec()));
    }
    let length = HEAD + attributes.iter().map(|(_, data)| 4 + data.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(RTM_GETROUTE.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, 8 * host.len() as u8]);
    bytes.extend([0; 10]);
    for (kind, data) in attributes {
        bytes.extend((4 + data.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
    }
    bytes
}

/// The data of the first attribute of a kind.
pub(super) fn attribute(mut rest: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = number(rest.get(..2)?) as usize;
        let data = rest.get(4..length)?;
        if number(rest.get(2..4)?) == u32::from(kind) {
            return Some(data);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// Two or four bytes in the machine's order.
pub(super) fn number(bytes: &[u8]) -> u32 {
    match *bytes {
        [a, b] => u32::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    /// An answer with this type of route and these attributes.
    fn answer(kind: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        bytes[4..6].copy_from_slice(&RTM_NEWROUTE.to_ne_bytes());
        bytes[16 + 7] = kind;
        for (kind, data) in attributes {
            bytes.extend((4 + data.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*data);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn an_answer_is_local_a_device_or_an_error() {
        let device = 7_u32.to_ne_bytes();
        let attributes = [(RTA_DST, &[10, 0, 0][..]), (RTA_OIF, &device)];
        let parse = |bytes: &[u8]| Route::parse(bytes).ok();
        assert_eq!(parse(&answer(RTN_LOCAL, &attributes)), Some(Route::Local));
        let whole = answer(RTN_UNICAST, &attributes);
        assert_eq!(parse(&whole), Some(Route::Through(7)));
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(parse(&answer(RTN_UNICAST, &attributes[..1])), None, "without a device");
        assert_eq!(parse(&answer(3, &attributes)), None, "broadcast");
        let mut refused = answer(0, &[]);
        refused[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        refused[16..20].copy_from_slice(&(-101_i32).to_ne_bytes());
        assert_eq!(Route::parse(&refused).unwrap_err().kind(), ErrorKind::NetworkUnreachable);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_fail_otherwise(
            kind in 0..5_u8,
            rest in proptest::collection::vec(any::<u8>(), 0..200),
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Route::parse(&bytes);
            let _ = Route::parse(&[answer(kind, &[]), rest].concat());
        }
    }

    #[test]
    fn the_kernel_tells_its_own_addresses() {
        let local = |address: &str| Route::to(address.parse().unwrap()).unwrap() == Route::Local;
        assert!(local("127.0.0.1:80") && local("127.1.2.3:1") && local("[::ffff:127.0.0.1]:1"));
        // Each of its IPv6 addresses, those of a link with the link that they are of.
        let own = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        for line in own.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let ip = Ipv6Addr::from(u128::from_str_radix(words[0], 16).unwrap());
            let scope = u32::from_str_radix(words[1], 16).unwrap();
            let link = if ip.is_unicast_link_local() { scope } else { 0 };
            let address = std::net::SocketAddrV6::new(ip, 80, 0, link);
            assert_eq!(Route::to(address.into()).unwrap(), Route::Local, "{address}");
        }
    }

    #[test]
    fn only_what_leads_to_hardware_alone_leaves_the_machine() {
        let devices = tempfile::tempdir().unwrap();
        for device in [
            "eth0/device",
            "eth1/device",
            "bond0/lower_eth0",
            "bond0/lower_eth1",
            "bond0.5/lower_bond0",
            "docker0/lower_veth1",
            "veth1/statistics",
            "br0/lower_eth0",
            "br0/lower_tap0",
            "tap0/statistics",
            "wg0/statistics",
        ] {
            create_dir_all(devices.path().join(device)).unwrap();
        }
        write(devices.path().join("bonding_masters"), "bond0\n").unwrap();
        for (name, leaves) in [
            ("eth0", true),
            ("bond0", true),
            ("bond0.5", true),
            ("docker0", false),
            ("veth1", false),
            ("br0", false),
            ("wg0", false),
            ("gone", false),
        ] {
            assert_eq!(is_hardware(devices.path(), name), leaves, "{name}");
        }
        assert!(!Route::Local.leaves_the_machine(devices.path()));
    }
}
