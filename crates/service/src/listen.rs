//! Where a service listens: as typed, and as meant.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wire::Address;

use crate::Failure;

/// `--listen`, for services without a command line of another program to keep to.
#[derive(Clone, Debug, clap::Args)]
pub struct ListenArgs {
    /// Where to listen: ADDRESS, ADDRESS:PORT (port 0 takes any that is free) or, with services
    /// that take it, unix:PATH; may be given several times
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_delimiter = ',')]
    listen: Vec<ListenAddress>,
}

impl ListenArgs {
    /// The addresses, at `port` where none is typed.
    pub fn addresses(&self, port: u16) -> Vec<Address> {
        self.listen.iter().map(|one| one.with_port(port)).collect()
    }
}

/// `--threads`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ThreadArgs {
    /// Threads that serve
    #[arg(
        long,
        short,
        value_name = "NUMBER",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub threads: u16,
}

/// An address as typed: with its port or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address with its port, or a Unix socket.
    Whole(Address),
    /// An address whose port another option, or the service, says.
    Host(IpAddr),
}

impl ListenAddress {
    /// The address, at `port` where none is typed.
    pub fn with_port(&self, port: u16) -> Address {
        match self {
            Self::Whole(address) => address.clone(),
            Self::Host(host) => Address::Internet((*host, port).into()),
        }
    }
}

impl std::str::FromStr for ListenAddress {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let bare = written.trim_start_matches('[').trim_end_matches(']');
        if written == "localhost" {
            return Ok(Self::Host(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        }
        if let Ok(host) = bare.parse() {
            return Ok(Self::Host(host));
        }
        let whole = match written.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}").parse(),
            None => written.parse(),
        };
        whole.map(Self::Whole).map_err(|_| {
            "write an address such as 127.0.0.1, 127.0.0.1:11211, [::1]:11211 or unix:/run/it.sock"
                .to_owned()
        })
    }
}

/// The address that `written` names, at `port` where it names none.
///
/// # Errors
/// When it is no address; the error shows some.
pub fn parse_address(written: &str, port: u16) -> Result<Address, String> {
    written.parse().map(|address: ListenAddress| address.with_port(port))
}

/// Whether an address can be reached by this machine only.
pub fn is_local(address: &Address) -> bool {
    match address {
        Address::Internet(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    }
}

/// Refuses addresses that other machines can reach, unless that is meant.
pub(crate) fn check_exposure(
    option: &str,
    addresses: &[Address],
    is_public: bool,
) -> Result<(), Failure> {
    match addresses.iter().find(|address| !is_local(address)) {
        Some(address) if !is_public => Err(Failure::Usage(format!(
            "{option} {address} can be reached from other machines: listen at a loopback address \
             such as {}, or add --public if that is meant",
            Address::Internet(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port_of(address)))
        ))),
        _ => Ok(()),
    }
}

fn port_of(address: &Address) -> u16 {
    match address {
        Address::Internet(address) => address.port(),
        Address::Unix(_) => 0,
    }
}

/// What to do where an address can't be bound; `otherwise` unless another server has it.
pub fn listen_advice(error: &io::Error, otherwise: &'static str) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        return "another server has it: stop that one, or choose another with --listen (port 0 \
                takes any that is free)";
    }
    otherwise
}

/// The error of an address that can't be bound, with what to do about it.
pub fn unbound(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    let otherwise = "choose another address with --listen";
    let advice = cause.map_or(otherwise, |cause| listen_advice(cause, otherwise));
    anyhow::anyhow!("{error:#}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_its_port_out() {
        for (written, meant) in [
            ("127.0.0.1", "127.0.0.1:11211"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost", "127.0.0.1:11211"),
            ("localhost:5", "127.0.0.1:5"),
            ("::1", "[::1]:11211"),
            ("[::1]", "[::1]:11211"),
            ("[::1]:7", "[::1]:7"),
            ("unix:/tmp/a", "unix:/tmp/a"),
        ] {
            assert_eq!(parse_address(written, 11211).expect(written).to_string(), meant);
        }
        for wrong in ["", "cache.example", "127.0.0.1:", "127.0.0.1:99999", "unix:"] {
            assert!(parse_address(wrong, 1).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_that_another_server_has_is_explained() {
        use anyhow::Context as _;

        let error = |kind: io::ErrorKind| Err::<(), _>(io::Error::from(kind));
        let named = error(io::ErrorKind::AddrInUse).context("cannot listen at 127.0.0.1:7");
        let said = unbound(named.expect_err("in use")).to_string();
        assert!(
            said.starts_with("cannot listen at 127.0.0.1:7: address in use; another"),
            "{said}"
        );
        let said = unbound(error(io::ErrorKind::PermissionDenied).expect_err("refused"));
        assert_eq!(said.to_string(), "permission denied; choose another address with --listen");
    }

    #[test]
    fn what_other_machines_can_reach_has_to_be_meant() {
        let check = |written: &str, is_public| {
            let address = parse_address(written, 7).expect(written);
            check_exposure("--listen", &[address], is_public).is_ok()
        };
        for local in ["127.0.0.1", "127.1.2.3:4", "::1", "unix:/tmp/a", "[::ffff:127.0.0.1]:5"] {
            assert!(check(local, false), "{local}");
        }
        for public in ["0.0.0.0", "[::]:0", "10.0.0.1:5"] {
            assert!(!check(public, false) && check(public, true), "{public}");
        }
    }
}
