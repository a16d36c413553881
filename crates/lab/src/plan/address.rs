//! Addresses of what runs already, and of pages of counters.

use std::net::{SocketAddr, ToSocketAddrs as _};

use wire::Address;

use super::types::{CountersOf, Registry};
use crate::placeholders;

/// `HOST:PORT` or `unix:PATH`. Loading a host that is not this one takes a word of its own.
pub(super) fn resolve(text: &str, allow_remote: bool) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Address::Unix(path.into()));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        return Err(format!(
            "\"{text}\" is a URL, and an address is HOST:PORT: write \"{host}\"; paths stand in \
             the workload's requests"
        ));
    }
    let wrong = |why: &str| format!("\"{text}\" is neither HOST:PORT nor unix:PATH{why}");
    if !text.contains(':') {
        return Err(wrong("; it has no port"));
    }
    let all: Vec<SocketAddr> = match text.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => return Err(wrong(&format!(": {error}"))),
    };
    // `localhost` is both families; most servers listen on IPv4.
    let here = all.iter().filter(|address| address.ip().is_loopback());
    let found = here.min_by_key(|address| address.is_ipv6());
    match found.or_else(|| all.first().filter(|_| allow_remote)) {
        Some(address) => Ok(Address::Internet(*address)),
        None => Err("only loopback addresses are loaded, unless allow_remote = true".to_owned()),
    }
}

/// `http://HOST:PORT/PATH`, or `none`.
pub(super) fn counters(
    written: Option<&str>,
    allow_remote: bool,
    registry: Registry<'_>,
) -> Result<CountersOf, String> {
    let Some(written) = written else { return Ok(CountersOf::Dialect) };
    if written == "none" {
        return Ok(CountersOf::Nowhere);
    }
    let help =
        "write \"http://127.0.0.1:{port}/metrics\" for a page of Prometheus text, or \"none\"";
    let rest = written.strip_prefix("http://").ok_or_else(|| help.to_owned())?;
    let (host, path) = rest.split_once('/').ok_or_else(|| help.to_owned())?;
    // With any port in place of the placeholder, mistakes are found before anything starts.
    let stand_in = |name: &str| match name {
        "port" => Some("1".to_owned()),
        "host" => Some("127.0.0.1".to_owned()),
        "address" => Some("127.0.0.1:1".to_owned()),
        _ => None,
    };
    let address = placeholders::complete(host, &stand_in);
    let resolved = resolve(&address, allow_remote)?;
    let path = format!("/{path}");
    (registry.page)(&address, &path).map_err(|fault| fault.to_string())?;
    let is_fixed = placeholders::names(host).is_empty();
    let host = if is_fixed { resolved.to_string() } else { host.to_owned() };
    Ok(CountersOf::Page(host, path, registry.page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_resolved_and_what_is_no_address_is_said() {
        let said = |text| resolve(text, false).map(|address| address.to_string());
        assert_eq!(said("localhost:80").as_deref(), Ok("127.0.0.1:80"));
        assert_eq!(said("[::1]:80").as_deref(), Ok("[::1]:80"));
        assert_eq!(said("unix:/a").as_deref(), Ok("unix:/a"));
        assert!(said("http://localhost/x").unwrap_err().contains("write \"localhost:80\""));
        assert!(said("localhost").unwrap_err().contains("it has no port"));
        assert!(said("192.0.2.1:80").unwrap_err().contains("only loopback"));
        assert!(resolve("192.0.2.1:80", true).is_ok());
    }
}
