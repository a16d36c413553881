//! The client's side of TLS where a server is known by its own certificate, not by its name:
//! ecFlow's clients have a copy of what the server shows. Control plane.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::tls::{TlsError, certificates};
use crate::tls_client::TlsStream;

/// Servers that have the key of one of these certificates, whatever their names are, or one that
/// these have signed for the name.
#[derive(Clone, Debug)]
pub struct PinnedTls(Arc<ClientConfig>);

impl PinnedTls {
    /// Trusts the certificates of a PEM file.
    ///
    /// # Errors
    /// When the PEM can't be used.
    pub fn new(pem: &[u8]) -> Result<Self, TlsError> {
        let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable(error.to_string());
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let (mut own, mut roots) = (Vec::new(), RootCertStore::empty());
        for certificate in certificates("certificate", pem)? {
            roots.add(certificate.clone()).map_err(|error| unusable(&error))?;
            let key = roots.roots.last().map(|root| root.subject_public_key_info.to_vec());
            own.push((certificate, sequence(&key.unwrap_or_default())));
        }
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| unusable(&error))?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { own, authorities, algorithms }))
            .with_no_client_auth();
        // A server of OpenSSL without a session context (ecFlow's) refuses each session that is
        // taken up again.
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake over a connected socket with the server of this name, a host name or
    /// an IP address.
    ///
    /// # Errors
    /// As of [`TlsStream::connect`].
    pub fn connect(&self, socket: TcpStream, name: &str) -> io::Result<TlsStream> {
        TlsStream::begin(socket, name, Arc::clone(&self.0))
    }
}

/// The ASN.1 SEQUENCE of these contents, in DER: webpki keeps a key's without its head.
fn sequence(contents: &[u8]) -> SubjectPublicKeyInfoDer<'static> {
    let length = contents.len();
    let bytes = length.to_be_bytes();
    let used = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let mut der = vec![0x30];
    match u8::try_from(length) {
        Ok(short @ ..0x80) => der.push(short),
        _ => {
            der.push(0x80 | used.len() as u8);
            der.extend_from_slice(used);
        }
    }
    der.extend_from_slice(contents);
    SubjectPublicKeyInfoDer::from(der)
}

#[derive(Debug)]
struct Verifier {
    /// The certificates with their keys: those that `openssl x509 -signkey` makes have version 1,
    /// of which rustls takes no key.
    own: Vec<(CertificateDer<'static>, SubjectPublicKeyInfoDer<'static>)>,
    authorities: Arc<WebPkiServerVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn own(&self, shown: &CertificateDer<'_>) -> Option<&SubjectPublicKeyInfoDer<'static>> {
        self.own.iter().find(|(one, _)| one == shown).map(|(_, key)| key)
    }
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
        if self.own(end_entity).is_some() {
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map_err(|error| match error {
                // Of a certificate of version 1, too, which webpki doesn't look into.
                Error::InvalidCertificate(CertificateError::Other(_)) => {
                    Error::InvalidCertificate(CertificateError::UnknownIssuer)
                }
                error => error,
            })
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
        match self.own(certificate) {
            Some(key) => {
                verify_tls13_signature_with_raw_key(message, key, signed, &self.algorithms)
            }
            None => verify_tls13_signature(message, certificate, signed, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::sequence;

    #[test]
    fn a_sequence_has_its_length_before_it() {
        assert_eq!(sequence(b"ab").as_ref(), b"\x30\x02ab");
        assert_eq!(&sequence(&[7; 0x80]).as_ref()[..4], b"\x30\x81\x80\x07");
        assert_eq!(&sequence(&[7; 0x126]).as_ref()[..5], b"\x30\x82\x01\x26\x07");
    }
}
