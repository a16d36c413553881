//! Which server a command asks, as whom. Control plane.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base::units::Span;
use service::{Failure, read_secret};
use wire::PinnedTls;

use crate::client::{Client, ClientError};
use crate::protocol::{User, hash_password};

/// The port of ecFlow's servers.
const PORT: u16 = 3141;

/// The largest file of certificates.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// A user's password, by the name.
pub(super) type Passwords = Box<dyn Fn(&str) -> String + Send + Sync>;

/// A server, and who asks it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// The server, ours or ecFlow's own: HOST or HOST:PORT; without a port at ECF_PORT, or 3141
    #[arg(value_name = "ADDRESS")]
    address: String,
    #[command(flatten)]
    user: UserArgs,
}

impl ServerArgs {
    /// A client of it.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        self.user.client(&self.address)
    }

    /// The one password as users of these names send it; none where no file is named.
    pub(super) fn passwords(&self) -> Result<Passwords, Failure> {
        let secret = self.user.secret()?;
        Ok(Box::new(move |name| {
            secret.as_deref().and_then(|secret| hash_password(name, secret)).unwrap_or_default()
        }))
    }
}

/// Who asks a server, and how.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct UserArgs {
    /// Ask as this user, with the server's custom passwords; without it as the login's
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The user's password, alone in this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// How long each step of a request may take
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: Span,
    /// Encrypt, and trust the certificate in $HOME/.ecflowrc/ssl, as ECF_SSL does: server.crt, or
    /// else HOST.PORT.crt
    #[arg(long, conflicts_with = "tls_ca")]
    ssl: bool,
    /// Encrypt, and trust the certificates of this file (PEM): the server's own, or an authority's
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

impl UserArgs {
    /// A client of the server at `HOST` or `HOST:PORT`.
    pub(super) fn client(&self, address: &str) -> Result<Client, Failure> {
        let name = self.user.clone().or_else(|| said("USER")).or_else(|| said("LOGNAME"));
        // Without a login, as under cron.
        let of_system = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
        let name = name.or_else(|| of_system().map(|user| user.name));
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        let secret = self.secret()?;
        let password = secret.as_deref().map_or(Ok(String::new()), |secret| {
            hash_password(&name, secret).ok_or_else(|| {
                let why = "ecFlow's passwords are for names of two letters and more";
                Failure::Usage(format!("the user {name:?} can't have a password: {why}"))
            })
        })?;
        let user = User { name, password, is_custom: self.user.is_some() };
        let address = whole_address(address)?;
        let within = self.timeout.duration().max(Duration::from_millis(1));
        let tls = self.tls(&address)?;
        Client::new(&address, user, within, tls).map_err(failure)
    }

    /// The contents of the password file, if one is named.
    fn secret(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.password_file else { return Ok(None) };
        let secret = read_secret(file).map_err(Failure::usage)?;
        Ok(Some(String::from_utf8_lossy(&secret).trim().to_owned()))
    }

    /// What is trusted, if connections are encrypted.
    pub(super) fn tls(&self, address: &str) -> Result<Option<PinnedTls>, Failure> {
        let (file, whence) = match (&self.tls_ca, said("ECF_SSL")) {
            (Some(file), _) => (file.clone(), "--tls-ca"),
            (None, Some(_)) => (own_certificate(address)?, "ECF_SSL"),
            (None, None) if self.ssl => (own_certificate(address)?, "--ssl"),
            (None, None) => return Ok(None),
        };
        let wrong = |why: String| Failure::Usage(format!("{whence}: {}: {why}", file.display()));
        let pem = base::read_bytes(&file, MAX_PEM_BYTES).map_err(|why| wrong(why.to_string()))?;
        PinnedTls::new(&pem).map(Some).map_err(|why| wrong(why.to_string()))
    }
}

/// A variable that isn't empty.
fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The file that ecFlow's clients trust of a server at `HOST:PORT`.
fn own_certificate(address: &str) -> Result<PathBuf, Failure> {
    let home = said("HOME").ok_or_else(|| {
        Failure::Usage("HOME is not set, below which .ecflowrc/ssl lies: name --tls-ca".to_owned())
    })?;
    let folder = Path::new(&home).join(".ecflowrc/ssl");
    let (shared, own) =
        (folder.join("server.crt"), folder.join(format!("{}.crt", address.replace(':', "."))));
    Ok(if shared.exists() { shared } else { own })
}

/// `HOST:PORT` of what was typed; the port is ECF_PORT or ecFlow's where none was.
pub(super) fn whole_address(written: &str) -> Result<String, Failure> {
    with_port(written, || match said("ECF_PORT") {
        None => Ok(PORT),
        Some(port) => port.parse().map_err(|_| {
            Failure::Usage(format!("ECF_PORT is {port:?}: write a number up to 65535"))
        }),
    })
}
/// `HOST:PORT` of what was typed.
fn with_port(
    written: &str,
    port: impl FnOnce() -> Result<u16, Failure>,
) -> Result<String, Failure> {
    let wrong = || Failure::Usage(format!("{written:?} is no address: write HOST or HOST:PORT"));
    // An IPv6 address stands in brackets where a port follows.
    let is_bare = written.matches(':').count() > 1 && !written.starts_with('[');
    match written.rsplit_once(':') {
        _ if written.contains('/') => Err(wrong()),
        _ if is_bare => Ok(format!("[{written}]:{}", port()?)),
        Some(("", _)) => Err(wrong()),
        Some((_, port)) if !port.ends_with(']') => {
            port.parse::<u16>().map(|_| written.to_owned()).map_err(|_| wrong())
        }
        _ if written.is_empty() => Err(wrong()),
        _ => Ok(format!("{written}:{}", port()?)),
    }
}

/// Why a command failed, as it is shown.
pub(super) fn failure(why: ClientError) -> Failure {
    match why {
        ClientError::Refused(text) => Failure::Other(anyhow::anyhow!(super::input::plain(&text))),
        ClientError::Connection { ref why, ref address }
            if why.kind() == std::io::ErrorKind::ConnectionRefused =>
        {
            let port = address.rsplit(':').next().unwrap_or_default();
            let start = format!("there `loadline serve workflow --data HOME --port {port}`");
            Failure::Other(anyhow::anyhow!(
                "{address}: no server is there ({why}): {start} starts one"
            ))
        }
        why => Failure::Other(why.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn an_address_may_have_a_port() {
        for (written, meant) in [
            ("localhost", Some("localhost:3141")),
            ("localhost:4000", Some("localhost:4000")),
            ("::1", Some("[::1]:3141")),
            ("[::1]", Some("[::1]:3141")),
            ("[::1]:4000", Some("[::1]:4000")),
            ("", None),
            (":4000", None),
            ("localhost:x", None),
            ("http://localhost:3141", None),
            ("localhost:70000", None),
        ] {
            assert_eq!(with_port(written, || Ok(3141)).ok().as_deref(), meant, "{written}");
        }
    }
}
