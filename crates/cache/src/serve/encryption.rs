//! How the service's connections are encrypted: its own options and memcached's, made one. Control
//! plane.

use std::path::PathBuf;

use anyhow::bail;
use service::{TlsArgs, TlsFiles};
use wire::ClientCertificates;

use super::memcached::MemcachedArgs;
use crate::server::{Encryption, Reload};

/// What both kinds of options mean, with memcached's numbers for `stats settings`.
#[derive(Debug, PartialEq, Eq)]
struct Meant {
    files: TlsFiles,
    verify_mode: u64,
    least_version: u64,
}

/// How connections are encrypted, if they are.
pub(super) fn encryption(
    own: &TlsArgs,
    memcached: &MemcachedArgs,
) -> anyhow::Result<Option<Encryption>> {
    let Some(Meant { files, verify_mode, least_version }) = meant(own, memcached)? else {
        return Ok(None);
    };
    let tls = files.read()?;
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    Ok(Some(Encryption {
        certificates: files.certificates.display().to_string(),
        key: shown(&files.key),
        authorities: shown(&files.authorities),
        verify_mode,
        least_version,
        handshake_timeout: own.handshake_timeout(),
        reload: Reload::new({
            let tls = tls.clone();
            move || files.renew(&tls).map_err(|error| format!("{error:#}"))
        }),
        tls,
    }))
}

fn meant(own: &TlsArgs, memcached: &MemcachedArgs) -> anyhow::Result<Option<Meant>> {
    let path = |name: &str| memcached.value(name).map(PathBuf::from);
    if !memcached.tls {
        if let Some(name) = memcached.names().find(|name| name.starts_with("ssl_")) {
            bail!("-o {name} without -Z: connections would not be encrypted; add -Z");
        }
        let meant = |files: TlsFiles| {
            let verify_mode = if files.authorities.is_some() { 2 } else { 0 };
            Meant { files, verify_mode, least_version: 2 }
        };
        return Ok(own.files().map(meant));
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
    let (verify_mode, least_version) =
        (number("ssl_verify_mode", 0, 3)?, number("ssl_min_version", 2, 3)?);
    let files = TlsFiles {
        certificates,
        key: path("ssl_key"),
        authorities: path("ssl_ca_cert"),
        clients: match verify_mode {
            0 => ClientCertificates::Ignored,
            1 => ClientCertificates::Asked,
            _ => ClientCertificates::Required,
        },
        speaks_1_2: least_version < 3,
        protocols: &[],
    };
    if verify_mode > 0 && files.authorities.is_none() {
        bail!("-o ssl_verify_mode needs those who vouch for clients: -o ssl_ca_cert=FILE");
    }
    Ok(Some(Meant { files, verify_mode, least_version }))
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
