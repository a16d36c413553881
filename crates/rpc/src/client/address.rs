//! Where a server is, as it is typed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::serve::PORT;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A host, by name or number, and its port.
    Tcp {
        /// The host, without brackets.
        host: String,
        /// The port.
        port: u16,
        /// Whether `grpcs://` stands before it.
        is_encrypted: bool,
    },
    /// The file of a Unix socket.
    Unix(PathBuf),
}

/// What is typed is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is no address: write HOST, HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or \
             unix:PATH (tcp:, shm:, pipe: and here: are for call, ping and why)",
            self.0
        )
    }
}

impl std::error::Error for BadAddress {}

impl FromStr for ServerAddress {
    type Err = BadAddress;

    fn from_str(typed: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(typed.to_owned());
        if ["tcp:", "shm:", "pipe:", "here:", "frames:"]
            .iter()
            .any(|scheme| typed.starts_with(scheme))
        {
            return Err(bad());
        }
        if let Some(path) = typed.strip_prefix("unix:") {
            let path = path.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(path);
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Unix(path.into())) };
        }
        let (rest, is_encrypted) = match typed.strip_prefix("grpcs://") {
            Some(rest) => (rest, true),
            None => (typed.strip_prefix("grpc://").unwrap_or(typed), false),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let is_bare_v6 = rest.parse::<std::net::Ipv6Addr>().is_ok();
        let (host, port) = match rest.rsplit_once(':').filter(|_| !is_bare_v6) {
            Some((host, port)) if !host.is_empty() && !rest.ends_with(']') => {
                (host, port.parse().map_err(|_| bad())?)
            }
            _ => (rest, PORT),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        if bare.is_empty() || !bare.bytes().all(is_name) {
            return Err(bad());
        }
        Ok(Self::Tcp { host: bare.to_owned(), port, is_encrypted })
    }
}

impl ServerAddress {
    /// What requests name as their authority.
    pub(super) fn authority(&self) -> String {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp { host, port, .. } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { .. } => f.write_str(&self.authority()),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_or_without_a_port_or_a_socket() {
        for (typed, shown, is_tls) in [
            ("127.0.0.1", "127.0.0.1:50051", false),
            ("localhost:7", "localhost:7", false),
            ("grpc://a.example:7/", "a.example:7", false),
            ("grpcs://a.example", "a.example:50051", true),
            ("::1", "[::1]:50051", false),
            ("[::1]", "[::1]:50051", false),
            ("[::1]:7", "[::1]:7", false),
            ("unix:/run/a", "unix:/run/a", false),
            ("unix:///run/a", "unix:/run/a", false),
        ] {
            let address: ServerAddress = typed.parse().expect(typed);
            assert_eq!(address.to_string(), shown, "{typed}");
            let encrypted = matches!(address, ServerAddress::Tcp { is_encrypted: true, .. });
            assert_eq!(encrypted, is_tls, "{typed}");
        }
        for wrong in ["", "a b", "a:", "a:99999", "unix:", "http://a/b", "grpc://", "tcp:a:1"] {
            assert!(wrong.parse::<ServerAddress>().is_err(), "{wrong}");
        }
    }
}
