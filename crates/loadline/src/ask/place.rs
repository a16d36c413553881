//! An address as it is typed, and whether something listens there.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use load::Reach;

use crate::exit::Failure;

/// How long something at an address may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a word is written like an address: `HOST:PORT` or `unix:PATH`.
pub(super) fn looks_like_address(word: &str) -> bool {
    let port = word.rsplit_once(':').map(|(_, port)| port);
    word.starts_with("unix:") || port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// The address as a suite writes it: with the host's number, of those that a name has the first at
/// which something listens.
///
/// # Errors
/// When it is no address, no address of this host (unless `allow_remote`), or nothing listens
/// there; `start` is the advice for that.
pub(super) fn resolve(
    typed: &str,
    reach: Reach,
    allow_remote: bool,
    start: impl Fn(&str) -> String,
) -> Result<String, Failure> {
    if let Some(path) = typed.strip_prefix("unix:") {
        return match UnixStream::connect(Path::new(path)) {
            Ok(_) => Ok(typed.to_owned()),
            Err(error) => Err(nothing_there(typed, &error.to_string(), &start(typed))),
        };
    }
    let help = "write HOST:PORT, such as 127.0.0.1:8080, or unix:/PATH";
    if !looks_like_address(typed) {
        return Err(Failure::Usage(format!("\"{typed}\" is no address: {help}")));
    }
    let found = typed.to_socket_addrs().map_err(|error| {
        let host = typed.rsplit_once(':').map_or(typed, |(host, _)| host);
        Failure::Usage(format!("\"{host}\" has no address: {error}"))
    })?;
    let found: Vec<SocketAddr> = found.collect();
    let (here, elsewhere): (Vec<SocketAddr>, Vec<SocketAddr>) =
        found.into_iter().partition(|address| allow_remote || address.ip().is_loopback());
    if here.is_empty() {
        let of = elsewhere.first().map(SocketAddr::to_string).unwrap_or_default();
        return Err(Failure::Usage(format!(
            "\"{typed}\" is {of}, another host: only this host's loopback is loaded, unless \
             --allow-remote says that you may load that one"
        )));
    }
    let mut why = String::new();
    for address in &here {
        match listens(*address, reach) {
            Ok(()) => return Ok(address.to_string()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(nothing_there(typed, &why, &start(&here[0].to_string())))
}

/// Datagrams show nothing before they are answered.
fn listens(address: SocketAddr, reach: Reach) -> std::io::Result<()> {
    match reach {
        Reach::Datagrams => {
            let any: SocketAddr = match address {
                SocketAddr::V4(_) => ([0; 4], 0).into(),
                SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
            };
            UdpSocket::bind(any)?.connect(address)
        }
        _ => TcpStream::connect_timeout(&address, PATIENCE).map(drop),
    }
}

fn nothing_there(typed: &str, why: &str, start: &str) -> Failure {
    Failure::Other(anyhow::anyhow!("nothing listens on {typed} ({why})\n  {start}"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_name_becomes_the_number_at_which_something_listens_and_another_host_is_refused() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let of = |typed: &str, remote| {
            resolve(typed, Reach::Stream, remote, |at| format!("start one at {at}"))
                .map_err(|failure| failure.to_string())
        };
        let found = of(&format!("localhost:{port}"), false).unwrap();
        assert_eq!(found, format!("127.0.0.1:{port}"));
        drop(server);
        let said = of(&format!("127.0.0.1:{port}"), false).unwrap_err();
        let advice = format!("start one at 127.0.0.1:{port}");
        assert!(said.contains("nothing listens") && said.contains(&advice), "{said}");
        let said = of("192.0.2.7:80", false).unwrap_err();
        assert!(said.contains("192.0.2.7:80, another host"), "{said}");
        assert!(of("nosuch", false).unwrap_err().contains("HOST:PORT"));
        assert!(of("unix:/nosuch/socket", false).unwrap_err().contains("nothing listens"));
    }
}
