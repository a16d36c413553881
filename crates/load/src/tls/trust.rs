//! Whom a client of TLS trusts, and what a failed handshake means. Control plane.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    Error, RootCertStore, SignatureScheme, StreamOwned,
};
use wire::ProtocolError;

/// The name of HTTP/1.1 in a handshake (ALPN, RFC 7301).
pub const HTTP_1: &[u8] = b"http/1.1";
/// The same of HTTP/2.
pub const HTTP_2: &[u8] = b"h2";

/// The largest file of authorities; a system's own has 200 KiB.
const MAX_PEM_BYTES: u64 = 16 << 20;

/// How to take a certificate that is not trusted.
const TAKE_ANY: &str = "or take any with insecure = true (`loadline try`: --insecure)";

/// Which servers' certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those that an authority of this system has signed.
    System,
    /// Those that an authority in this PEM file has signed, and those that are in it themselves.
    Authorities(PathBuf),
    /// Any.
    Any,
}

impl Trust {
    /// The configuration of connections that offer `protocol`. A file is relative to `folder`.
    /// Sessions are not resumed: every connection makes a whole handshake.
    ///
    /// # Errors
    /// When there are no authorities that can be read.
    pub(super) fn config(
        &self,
        folder: &Path,
        protocol: &[u8],
    ) -> Result<ClientConfig, ProtocolError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = self.verifier(folder, &provider)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| fault(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// Whether the file of authorities, if there is one, can be read; relative to `folder`.
    ///
    /// # Errors
    /// Names the file, and why it can't.
    pub(crate) fn check(&self, folder: &Path) -> Result<(), String> {
        let Self::Authorities(file) = self else { return Ok(()) };
        of_file(&folder.join(file)).map(drop).map_err(|error| error.to_string())
    }

    fn verifier(
        &self,
        folder: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, ProtocolError> {
        let (certificates, own) = match self {
            Self::Any => (None, Vec::new()),
            Self::System => (Some(of_system()?), Vec::new()),
            Self::Authorities(file) => {
                let certificates = of_file(&folder.join(file))?;
                (Some(certificates.clone()), certificates)
            }
        };
        let authorities = certificates.map(|certificates| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates);
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|error| ProtocolError::new(format!("TLS: {error}")))
        });
        let algorithms = provider.signature_verification_algorithms;
        Ok(Verifier { authorities: authorities.transpose()?, own, algorithms })
    }
}

fn of_system() -> Result<Vec<CertificateDer<'static>>, ProtocolError> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(ProtocolError::new(format!(
        "TLS: this system has no certificates of authorities{why}: install ca-certificates, name \
         a file with ca = \"…\" (`loadline try`: --ca), {TAKE_ANY}"
    )))
}

fn of_file(file: &Path) -> Result<Vec<CertificateDer<'static>>, ProtocolError> {
    let wrong = |why: String| ProtocolError::new(format!("TLS: ca = {file:?}: {why}"));
    let pem = base::read_bytes(file, MAX_PEM_BYTES).map_err(|error| wrong(error.to_string()))?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    match all.map_err(|error| wrong(error.to_string()))? {
        none if none.is_empty() => Err(wrong("there is no certificate in it".to_owned())),
        all => Ok(all),
    }
}

/// The name of a server, as certificates have it.
///
/// # Errors
/// When it is neither a host's name nor an IP address.
pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, ProtocolError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        ProtocolError::new(format!(
            "TLS: {name:?} is no name of a host that a certificate could be for: say it with \
             name = \"…\""
        ))
    })
}

/// Decides on a server's certificate.
#[derive(Debug)]
struct Verifier {
    /// None accepts any certificate.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are accepted of whoever has their key, though they are authorities' own:
    /// those that `openssl req -x509` makes are.
    own: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        let found = authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match found {
            Err(Error::InvalidCertificate(bad))
                if is_an_authoritys(&bad) && self.own.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether no trusted authority has signed a certificate. A bad signature is of another authority
/// of the same name.
fn is_unsigned(bad: &CertificateError) -> bool {
    match bad {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => true,
        bad => is_an_authoritys(bad),
    }
}

/// Whether a server shows the certificate of an authority, which `openssl req -x509` makes: rustls
/// has no error of its own for that and hands on webpki's.
fn is_an_authoritys(bad: &CertificateError) -> bool {
    let CertificateError::Other(other) = bad else { return false };
    let cause = other.0.downcast_ref::<webpki::Error>();
    matches!(cause, Some(webpki::Error::CaUsedAsEndEntity))
}

/// What a failure means, and what would be right.
pub(super) fn fault(error: &Error) -> ProtocolError {
    use CertificateError as Bad;
    ProtocolError::new(match error {
        Error::InvalidCertificate(bad) if is_unsigned(bad) => format!(
            "TLS: no authority that is trusted has signed the server's certificate: name the file \
             of one that has with ca = \"…\" (`loadline try`: --ca), {TAKE_ANY}"
        ),
        Error::InvalidCertificate(
            bad @ (Bad::NotValidForName | Bad::NotValidForNameContext { .. }),
        ) => format!(
            "TLS: {bad}: say the name that it has with name = \"…\" (`loadline try`: in the URL), \
             {TAKE_ANY}"
        ),
        Error::InvalidCertificate(bad) => {
            format!("TLS: the server's certificate is not valid: {bad}: renew it, {TAKE_ANY}")
        }
        Error::InvalidMessage(_) => {
            "no TLS is spoken at this port: name another one, or leave tls out (in a URL: http://)"
                .to_owned()
        }
        Error::NoApplicationProtocol
        | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => OTHER_VERSION.to_owned(),
        Error::PeerIncompatible(_) | Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            format!("TLS: {error}: versions 1.2 and 1.3 are spoken")
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "TLS: the server wants a certificate of its client, and this client has none".to_owned()
        }
        other => format!("TLS: {other}"),
    })
}

/// That the server doesn't speak the version of HTTP that it was offered.
pub(super) const OTHER_VERSION: &str = "TLS: the server does not speak this version of HTTP \
    (ALPN); where any web service is loaded: leave `version` out for HTTP/1.1, or say version = 2";

/// A connection for a first question in HTTP/1.1, with the handshake done. It is as patient as its
/// socket.
///
/// # Errors
/// What the handshake has failed of, and what would be right.
pub fn secured<S: Read + Write>(
    mut socket: S,
    trust: &Trust,
    name: &str,
) -> Result<impl Read + Write + use<S>, ProtocolError> {
    let config = trust.config(Path::new(""), HTTP_1)?;
    let connection = ClientConnection::new(Arc::new(config), server_name(name)?);
    let mut connection = connection.map_err(|error| fault(&error))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                ProtocolError::new("TLS: the server does not end the handshake in time")
            }
            ErrorKind::UnexpectedEof => ProtocolError::new(ENDED),
            _ => fault_of(&error).unwrap_or_else(|| ProtocolError::new(format!("TLS: {error}"))),
        })?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// What an error of a secured connection means, where it is one of TLS. A server that wants a
/// certificate says so after the handshake.
pub fn fault_of(error: &io::Error) -> Option<ProtocolError> {
    error.get_ref()?.downcast_ref::<Error>().map(fault)
}

/// That a handshake was cut off.
pub(super) const ENDED: &str = "TLS: the server closed the connection during the handshake: is TLS \
    spoken at this port?";

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    /// The error of a server whose own certificate this is, where these are trusted.
    fn refused(shown: &CertificateDer<'_>, trusted: &[CertificateDer<'static>]) -> Option<Error> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.to_vec());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = server_name("my.test").unwrap();
        let verifier = verifier.build().unwrap();
        verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::now()).err()
    }

    fn certificate(is_ca: IsCa) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["my.test".to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().into()
    }

    /// As rustls and webpki report it, in these versions.
    #[test]
    fn an_authoritys_certificate_in_a_servers_place_is_known_by_its_error() {
        let authority = certificate(IsCa::Ca(BasicConstraints::Unconstrained));
        let Some(Error::InvalidCertificate(bad)) =
            refused(&authority, std::slice::from_ref(&authority))
        else {
            panic!("it is accepted")
        };
        assert!(is_an_authoritys(&bad) && is_unsigned(&bad), "{bad:?}");
        let Some(Error::InvalidCertificate(bad)) = refused(&certificate(IsCa::NoCa), &[authority])
        else {
            panic!("it is accepted")
        };
        assert!(!is_an_authoritys(&bad) && is_unsigned(&bad), "{bad:?}");
    }
}
