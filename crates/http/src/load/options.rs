//! How a target is spoken to: plainly or over TLS, in which version of HTTP. Control plane.

use std::path::PathBuf;

use ::load::tls::TlsOptions;
use serde::Deserialize;

/// The options of `speaks = { http = { … } }`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub(super) struct Options {
    /// Whether HTTP/2 is spoken, not HTTP/1.1.
    pub(super) is_http2: bool,
    /// None speaks without encryption.
    pub(super) tls: Option<TlsOptions>,
    /// The `host` of requests that don't state one; `localhost` unless stated.
    pub(super) host: Option<String>,
}

/// The options as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    tls: bool,
    /// A PEM file with the authorities that are trusted instead of the system's.
    ca: Option<PathBuf>,
    /// Whether any certificate is taken.
    #[serde(default)]
    insecure: bool,
    name: Option<String>,
    /// 1 or 2: HTTP/1.1 unless stated.
    version: Option<u8>,
    host: Option<String>,
}

/// Whether it can be a URI's host, with or without a port (RFC 3986, 3.2.2): every character of
/// names and of addresses.
fn is_host(text: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_right)
}

impl TryFrom<Written> for Options {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { tls, ca, insecure, name, version, host } = written;
        let is_http2 = match version {
            None | Some(1) => false,
            Some(2) => true,
            Some(other) => return Err(format!("version {other} is not spoken: write 1 or 2")),
        };
        let tls = TlsOptions::of(tls, ca, insecure, name)?;
        if let Some(host) = host.as_ref().filter(|host| !is_host(host)) {
            return Err(format!("host {host:?} is none: write HOST or HOST:PORT"));
        }
        Ok(Self { is_http2, tls, host })
    }
}

#[cfg(test)]
mod tests {
    use ::load::tls::Trust;

    use super::*;

    fn read(text: &str) -> Result<Options, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    fn plain(is_http2: bool, tls: Option<TlsOptions>) -> Options {
        Options { is_http2, tls, host: None }
    }

    #[test]
    fn what_is_left_out_is_plain_http_1_and_contradictions_are_named() {
        assert_eq!(read(""), Ok(plain(false, None)));
        assert_eq!(read("version = 2"), Ok(plain(true, None)));
        let tls = |trust, name: Option<&str>| {
            let tls = Some(TlsOptions { trust, name: name.map(str::to_owned) });
            Ok(plain(false, tls))
        };
        assert_eq!(read("tls = true"), tls(Trust::System, None));
        assert_eq!(read("tls = true\ninsecure = true"), tls(Trust::Any, None));
        let authorities = Trust::Authorities("a.pem".into());
        assert_eq!(read("tls = true\nca = 'a.pem'\nname = 'b'"), tls(authorities, Some("b")));
        for host in ["my.test:8080", "127.0.0.1:80", "[::1]"] {
            let options = read(&format!("host = '{host}'")).expect(host);
            assert_eq!(options.host.as_deref(), Some(host));
        }
        for (text, said) in [
            ("host = ''", "write HOST or HOST:PORT"),
            ("host = '{key}'", "write HOST or HOST:PORT"),
            ("host = \"a\\r\\nx: y\"", "write HOST or HOST:PORT"),
            ("insecure = true", "add tls = true"),
            ("tls = true\ninsecure = true\nca = 'a'", "say one of them"),
            ("version = 3", "write 1 or 2"),
            ("alpn = 'h2'", "unknown field"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
