//! The files of encrypted connections. The bytes are `wire`'s.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use base::units::Span;
use wire::{ClientCertificates, Config, Tls, TlsSettings};

use crate::{MAX_SECRET_BYTES, read_secret};

/// `--tls-cert`, `--tls-key`, `--tls-client-ca` and `--handshake-timeout`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Encrypted connections (TLS 1.2 and 1.3)")]
pub struct TlsArgs {
    /// Encrypt connections with this certificate, followed by those that lead to an authority (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM), if it is not in the same file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Refuse clients without a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,

    /// End a handshake that takes longer than this [default: 10s]
    #[arg(long, value_name = "TIME", requires = "tls_cert", value_parser = positive)]
    pub handshake_timeout: Option<Span>,
}

/// `--tls-ca`, `--tls-name`, `--tls-cert` and `--tls-key` of a command that asks a server; it is
/// encrypted when the first of these is given.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Encrypted connections")]
pub struct TrustArgs {
    /// Encrypt, and trust servers for whom one of these authorities vouches (PEM)
    #[arg(long, global = true, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// The name that the server's certificate is for, if it is not the address
    #[arg(long, global = true, value_name = "NAME", requires = "tls_ca")]
    pub tls_name: Option<String>,

    /// Your own certificate, where the server asks for one (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "tls_ca")]
    pub tls_cert: Option<PathBuf>,

    /// Its private key, if it is not in the same file (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// What the files of [`TrustArgs`] hold, as PEM.
#[derive(Debug)]
pub struct Trusted {
    /// The authorities.
    pub authorities: Vec<u8>,
    /// The client's own certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Trusted {
    /// The client's own certificate and its key.
    pub fn identity(&self) -> Option<(&[u8], &[u8])> {
        self.identity.as_ref().map(|(chain, key)| (&chain[..], &key[..]))
    }
}

impl TrustArgs {
    /// What the files hold, if connections are to be encrypted.
    ///
    /// # Errors
    /// When one can't be read; the error names it.
    pub fn read(&self) -> anyhow::Result<Option<Trusted>> {
        let Some(authorities) = &self.tls_ca else { return Ok(None) };
        // A pipe, too: `--tls-key <(decrypt key)`.
        let read = |path: &PathBuf| base::read_bytes(path, MAX_SECRET_BYTES);
        let authorities = read(authorities)?;
        let chain = self.tls_cert.as_ref().map(read).transpose()?;
        let key = self.tls_key.as_ref().map(read).transpose()?;
        let identity = chain.map(|chain| {
            let key = key.unwrap_or_else(|| chain.clone());
            (chain, key)
        });
        Ok(Some(Trusted { authorities, identity }))
    }
}

/// A time that is not zero.
fn positive(written: &str) -> Result<Span, String> {
    let time: Span = written.parse().map_err(|error| format!("{error}"))?;
    match time.duration().is_zero() {
        true => Err("no handshake takes no time: write a time such as 10s".to_owned()),
        false => Ok(time),
    }
}

impl TlsArgs {
    /// The files, if connections are to be encrypted.
    pub fn files(&self) -> Option<TlsFiles> {
        let certificates = self.tls_cert.clone()?;
        let authorities = self.tls_client_ca.clone();
        let clients = match authorities {
            Some(_) => ClientCertificates::Required,
            None => ClientCertificates::Ignored,
        };
        let key = self.tls_key.clone();
        let (speaks_1_2, protocols) = (true, &[][..]);
        Some(TlsFiles { certificates, key, authorities, clients, speaks_1_2, protocols })
    }

    /// How long a handshake may take.
    pub fn handshake_timeout(&self) -> Duration {
        match self.handshake_timeout {
            Some(time) => time.duration(),
            None => Config::default().handshake_timeout,
        }
    }
}

/// What a listener's connections are encrypted with, as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that lead from it to an authority.
    pub certificates: PathBuf,
    /// The key, if it is in another file.
    pub key: Option<PathBuf>,
    /// The authorities that sign client certificates.
    pub authorities: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub clients: ClientCertificates,
    /// Whether TLS 1.2 is spoken beside 1.3.
    pub speaks_1_2: bool,
    /// The application protocols that are offered (ALPN), the preferred one first.
    pub protocols: &'static [&'static str],
}

impl TlsFiles {
    /// Offers these application protocols, such as `h2` and `http/1.1`, the preferred one first.
    /// A client that offers others only is refused; one that offers none is not.
    #[must_use]
    pub fn offering(self, protocols: &'static [&'static str]) -> Self {
        Self { protocols, ..self }
    }

    /// The same files from whatever working directory they are read again.
    ///
    /// # Errors
    /// When there is no working directory, or a path is empty.
    pub fn absolute(self) -> std::io::Result<Self> {
        Ok(Self {
            certificates: std::path::absolute(self.certificates)?,
            key: self.key.map(std::path::absolute).transpose()?,
            authorities: self.authorities.map(std::path::absolute).transpose()?,
            ..self
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// When one can't be read or is of no use; the error names it, or those that it may be.
    pub fn read(&self) -> anyhow::Result<Tls> {
        let read = |path: &PathBuf| read_secret(path);
        let certificates = read(&self.certificates)?;
        let key = self.key.as_ref().map(read).transpose()?;
        let authorities = self.authorities.as_ref().map(read).transpose()?.unwrap_or_default();
        let settings = TlsSettings {
            certificates: &certificates,
            key: key.as_ref().unwrap_or(&certificates),
            client_authorities: &authorities,
            clients: self.clients,
            speaks_1_2: self.speaks_1_2,
            protocols: self.protocols,
        };
        Tls::new(&settings).with_context(|| {
            let key = self.key.as_ref().unwrap_or(&self.certificates);
            let pair = format!("{} and its key in {}", self.certificates.display(), key.display());
            match &self.authorities {
                Some(signers) => format!("{pair}, clients' authorities in {}", signers.display()),
                None => pair,
            }
        })
    }

    /// Reads the files again for the connections that come from then on; on an error `tls` stays
    /// as it is.
    ///
    /// # Errors
    /// As [`TlsFiles::read`].
    pub fn renew(&self, tls: &Tls) -> anyhow::Result<()> {
        tls.renew(&self.read()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        tls: TlsArgs,
    }

    #[test]
    fn a_handshake_has_ten_seconds_unless_another_time_is_typed() {
        let read = |words: &[&str]| {
            let words = ["it", "--tls-cert", "c"].iter().chain(words);
            Line::try_parse_from(words).map(|line| line.tls.handshake_timeout())
        };
        assert_eq!(read(&[]).expect("read"), Duration::from_secs(10));
        let typed = read(&["--handshake-timeout", "250ms"]);
        assert_eq!(typed.expect("read"), Duration::from_millis(250));
        let said = read(&["--handshake-timeout", "0s"]).expect_err("refused").to_string();
        assert!(said.contains("no handshake takes no time"), "{said}");
        let alone = Line::try_parse_from(["it", "--handshake-timeout", "1s"]);
        assert!(alone.err().expect("refused").to_string().contains("--tls-cert"));
    }
}
