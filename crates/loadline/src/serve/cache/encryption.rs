//! How the service's connections are encrypted: its own options and memcached's, made one. Control
//! plane.

use std::path::PathBuf;

use ::cache::server::{Encryption, Reload};
use anyhow::{Context as _, bail};
use wire::{ClientCertificates, Tls, TlsSettings};

use super::MOST_KEPT_BYTES;
use super::memcached::MemcachedArgs;

/// The service's own options for encrypted connections.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Encrypted connections (TLS 1.2 and 1.3)")]
pub(crate) struct TlsArgs {
    /// Encrypt connections with this certificate, followed by those that lead to an authority (PEM)
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM), if it is not in the same file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Send away clients without a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
}

/// What both say together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Meant {
    certificates: PathBuf,
    key: Option<PathBuf>,
    authorities: Option<PathBuf>,
    verify_mode: u64,
    least_version: u64,
}

/// What is to be used, if connections are to be encrypted at all.
pub(super) fn encryption(
    own: &TlsArgs,
    memcached: &MemcachedArgs,
) -> anyhow::Result<Option<Encryption>> {
    let Some(meant) = meant(own, memcached)? else { return Ok(None) };
    let tls = read(&meant)?;
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    Ok(Some(Encryption {
        certificates: meant.certificates.display().to_string(),
        key: shown(&meant.key),
        authorities: shown(&meant.authorities),
        verify_mode: meant.verify_mode,
        least_version: meant.least_version,
        reload: Reload::new({
            let tls = tls.clone();
            move || {
                let renewed = read(&meant).map_err(|error| format!("{error:#}"))?;
                tls.renew(&renewed);
                tracing::info!(certificates = %meant.certificates.display(), "read again");
                Ok(())
            }
        }),
        tls,
    }))
}

/// Reads the files.
fn read(meant: &Meant) -> anyhow::Result<Tls> {
    let read = |path: &PathBuf| load::read_bytes(path, MOST_KEPT_BYTES);
    let certificates = read(&meant.certificates)?;
    let key = meant.key.as_ref().map_or(Ok(certificates.clone()), read)?;
    let authorities = meant.authorities.as_ref().map(read).transpose()?.unwrap_or_default();
    let settings = TlsSettings {
        certificates: &certificates,
        key: &key,
        client_authorities: &authorities,
        clients: match meant.verify_mode {
            0 => ClientCertificates::Ignored,
            1 => ClientCertificates::Asked,
            _ => ClientCertificates::Required,
        },
        speaks_1_2: meant.least_version < 3,
    };
    Tls::new(&settings).with_context(|| {
        let key = meant.key.as_ref().unwrap_or(&meant.certificates);
        format!("{} and its key in {}", meant.certificates.display(), key.display())
    })
}

fn meant(own: &TlsArgs, memcached: &MemcachedArgs) -> anyhow::Result<Option<Meant>> {
    let path = |name: &str| memcached.value(name).map(PathBuf::from);
    if !memcached.tls {
        if let Some(name) = memcached.names().find(|name| name.starts_with("ssl_")) {
            bail!("-o {name} without -Z: connections would not be encrypted; add -Z");
        }
        let Some(certificates) = own.tls_cert.clone() else { return Ok(None) };
        let authorities = own.tls_client_ca.clone();
        let verify_mode = if authorities.is_some() { 2 } else { 0 };
        let key = own.tls_key.clone();
        return Ok(Some(Meant { certificates, key, authorities, verify_mode, least_version: 2 }));
    }
    if own.tls_cert.is_some() {
        bail!("-Z and --tls-cert say the same: use one of them");
    }
    let Some(certificates) = path("ssl_chain_cert") else {
        bail!("-Z needs a certificate: -o ssl_chain_cert=FILE, and ssl_key=FILE for its key");
    };
    if !matches!(memcached.value("ssl_keyformat"), None | Some("PEM" | "pem" | "1")) {
        bail!("-o ssl_keyformat: keys are read as PEM only");
    }
    let number = |name: &str, default, most| match memcached.number(name, "its own list")? {
        Some(number) if number > most => bail!("-o {name} is 0 to {most}"),
        number => Ok(number.unwrap_or(default)),
    };
    let meant = Meant {
        certificates,
        key: path("ssl_key"),
        authorities: path("ssl_ca_cert"),
        verify_mode: number("ssl_verify_mode", 0, 3)?,
        least_version: number("ssl_min_version", 2, 3)?,
    };
    if meant.verify_mode > 0 && meant.authorities.is_none() {
        bail!("-o ssl_verify_mode needs those who vouch for clients: -o ssl_ca_cert=FILE");
    }
    Ok(Some(meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(extended: &[&str], tls: bool) -> MemcachedArgs {
        let mut args = MemcachedArgs::default();
        args.extended = extended.iter().map(|one| (*one).to_owned()).collect();
        args.tls = tls;
        args
    }

    #[test]
    fn memcacheds_options_and_the_services_own_mean_the_same() {
        let own =
            TlsArgs { tls_cert: Some("c".into()), tls_key: Some("k".into()), ..TlsArgs::default() };
        let theirs = options(&["ssl_chain_cert=c", "ssl_key=k"], true);
        let both = [(&own, &options(&[], false)), (&TlsArgs::default(), &theirs)];
        let [one, other] = both.map(|(own, theirs)| meant(own, theirs).expect("meant"));
        assert_eq!(one, other);
        assert!(meant(&TlsArgs::default(), &options(&[], false)).expect("meant").is_none());
    }

    #[test]
    fn what_would_leave_connections_open_to_all_is_refused() {
        for (extended, tls, said) in [
            (&["ssl_chain_cert=c"][..], false, "without -Z"),
            (&[], true, "ssl_chain_cert=FILE"),
            (&["ssl_chain_cert=c", "ssl_verify_mode=2"], true, "ssl_ca_cert"),
            (&["ssl_chain_cert=c", "ssl_keyformat=DER"], true, "PEM only"),
            (&["ssl_chain_cert=c", "ssl_min_version=4"], true, "0 to 3"),
        ] {
            let refused = meant(&TlsArgs::default(), &options(extended, tls)).expect_err("refused");
            assert!(refused.to_string().contains(said), "{extended:?}: {refused}");
        }
    }
}
