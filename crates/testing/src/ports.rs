//! Ports for programs that have to be told one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// The lowest port that is tried.
const FIRST: u16 = 10_000;

/// A loopback port that nothing uses, for TCP and UDP. It lies below the ports that the kernel
/// gives to those who bind any: another test's server can't get it before a program has it, nor
/// while one is started anew.
///
/// # Panics
/// When no port is free.
pub fn free_port() -> u16 {
    let limit = first_ephemeral().max(FIRST + 1_000);
    for _ in 0..10_000 {
        // Each of these has keys of its own.
        let random = RandomState::new().build_hasher().finish();
        let port = FIRST + (random % u64::from(limit - FIRST)) as u16;
        let at = (Ipv4Addr::LOCALHOST, port);
        if TcpListener::bind(at).is_ok() && UdpSocket::bind(at).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} to {limit} is free");
}

/// Where the kernel's own choice begins.
fn first_ephemeral() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|range| range.split_whitespace().next()?.parse().ok());
    first.unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_bound_at_once_and_is_seldom_the_same() {
        let ports: Vec<u16> = (0..20).map(|_| free_port()).collect();
        let bound = ports.iter().filter(|port| TcpListener::bind(("127.0.0.1", **port)).is_ok());
        assert!(bound.count() > 10, "{ports:?}");
        assert!(ports.iter().any(|port| *port != ports[0]), "{ports:?}");
    }
}
