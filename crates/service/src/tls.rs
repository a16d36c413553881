//! The files of encrypted connections. The bytes are `wire`'s.

use std::path::PathBuf;

use anyhow::Context as _;
use wire::{ClientCertificates, Tls, TlsSettings};

use crate::MAX_SECRET_BYTES;

/// `--tls-cert`, `--tls-key` and `--tls-client-ca`.
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
        Some(TlsFiles { certificates, key, authorities, clients, speaks_1_2: true })
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
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// When one can't be read or is of no use; the error names it.
    pub fn read(&self) -> anyhow::Result<Tls> {
        let read = |path: &PathBuf| base::read_bytes(path, MAX_SECRET_BYTES);
        let certificates = read(&self.certificates)?;
        let key = self.key.as_ref().map_or(Ok(certificates.clone()), read)?;
        let authorities = self.authorities.as_ref().map(read).transpose()?.unwrap_or_default();
        let settings = TlsSettings {
            certificates: &certificates,
            key: &key,
            client_authorities: &authorities,
            clients: self.clients,
            speaks_1_2: self.speaks_1_2,
        };
        Tls::new(&settings).with_context(|| {
            let key = self.key.as_ref().unwrap_or(&self.certificates);
            format!("{} and its key in {}", self.certificates.display(), key.display())
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
