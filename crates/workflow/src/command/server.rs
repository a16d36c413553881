//! Which server a command asks, as whom. Control plane.

use std::path::PathBuf;
use std::time::Duration;

use base::units::Span;
use service::{Failure, read_secret};

use crate::client::{Client, ClientError};
use crate::protocol::{User, hash_password};

/// The port of ecFlow's servers.
const PORT: u16 = 3141;

/// A server, and who asks it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// The server, ours or ecFlow's own: HOST or HOST:PORT; without a port at ECF_PORT, or 3141
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Ask as this user, with the server's custom passwords; without it as the login's
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The user's password, alone in this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// How long each step of a request may take
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: Span,
}

impl ServerArgs {
    /// A client of it.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let name = self.user.clone().or_else(|| said("USER")).or_else(|| said("LOGNAME"));
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        let password = match &self.password_file {
            None => String::new(),
            Some(file) => {
                let secret = read_secret(file).map_err(Failure::usage)?;
                let secret = String::from_utf8_lossy(&secret);
                hash_password(&name, secret.trim()).ok_or_else(|| {
                    let why = "ecFlow's passwords are for names of two letters and more";
                    Failure::Usage(format!("the user {name:?} can't have a password: {why}"))
                })?
            }
        };
        let user = User { name, password, is_custom: self.user.is_some() };
        let port = match said("ECF_PORT") {
            None => PORT,
            Some(port) => port.parse().map_err(|_| {
                Failure::Usage(format!("ECF_PORT is {port:?}: write a number up to 65535"))
            })?,
        };
        let within = self.timeout.duration().max(Duration::from_millis(1));
        Client::new(&with_port(&self.address, port)?, user, within).map_err(failure)
    }
}

/// `HOST:PORT` of what was typed.
fn with_port(written: &str, port: u16) -> Result<String, Failure> {
    let wrong = || Failure::Usage(format!("{written:?} is no address: write HOST or HOST:PORT"));
    // An IPv6 address stands in brackets where a port follows.
    let is_bare = written.matches(':').count() > 1 && !written.starts_with('[');
    match written.rsplit_once(':') {
        _ if is_bare => Ok(format!("[{written}]:{port}")),
        Some(("", _)) => Err(wrong()),
        Some((_, port)) if !port.ends_with(']') => {
            port.parse::<u16>().map(|_| written.to_owned()).map_err(|_| wrong())
        }
        _ if written.is_empty() => Err(wrong()),
        _ => Ok(format!("{written}:{port}")),
    }
}

/// Why a command failed, as it is shown.
pub(super) fn failure(why: ClientError) -> Failure {
    Failure::Other(why.into())
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
            ("localhost:70000", None),
        ] {
            assert_eq!(with_port(written, 3141).ok().as_deref(), meant, "{written}");
        }
    }
}
