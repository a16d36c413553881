//! TLS under a connection (RFC 8446, RFC 5246), by rustls: versions 1.2 and 1.3, keys and
//! certificates as PEM. Configuration is control plane, moving bytes is data plane. rustls keeps
//! its own buffers, so an encrypted connection allocates where a plain one does not.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, RootCertStore, ServerConfig, ServerConnection};

use crate::handshake::Handshake;
use crate::stream::{FlushOutcome, ReadOutcome, Socket};
use crate::{Input, Output};

/// The largest record: the most bytes encrypted at once.
const RECORD_BYTES: usize = 16 << 10;

/// Room for the bytes of one record.
const ROOM_BYTES: usize = RECORD_BYTES;

/// rustls reads this much at a time when no record is unfinished, and then keeps no more memory.
const MAX_KEPT_BYTES: usize = 4 << 10;

/// The most pieces of the output in one record.
const MAX_PIECES: usize = 16;

/// Whether clients authenticate with a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// No certificate is requested.
    #[default]
    Ignored,
    /// A certificate is requested; one that is presented has to be valid.
    Asked,
    /// A handshake without a valid certificate fails.
    Required,
}

/// A listener's TLS configuration. Clones share it: [`Tls::renew`] changes it for all of them.
#[derive(Clone, Debug)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

/// What a [`Tls`] is made from.
#[derive(Clone, Copy, Debug)]
pub struct TlsSettings<'a> {
    /// The certificate and its intermediates, as PEM.
    pub certificates: &'a [u8],
    /// The certificate's private key, as PEM.
    pub key: &'a [u8],
    /// The authorities that sign client certificates, as PEM.
    pub client_authorities: &'a [u8],
    /// Whether clients authenticate with a certificate.
    pub clients: ClientCertificates,
    /// Whether TLS 1.2 is accepted beside 1.3.
    pub speaks_1_2: bool,
    /// The application protocols that are offered (ALPN, RFC 7301), the preferred one first. A
    /// client that offers others only is refused; one that offers none is not. What was chosen
    /// shows in the client's first bytes.
    pub protocols: &'a [&'a str],
}

/// Certificates or a key that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Bytes that are not PEM, or lack the wanted item.
    #[error("no {what} can be read from PEM: {why}")]
    Pem {
        /// The wanted item.
        what: &'static str,
        /// The parser's message.
        why: String,
    },
    /// A certificate and a key that don't work together.
    #[error("the certificate and its key can't be used: {0}")]
    Unusable(String),
}

pub(crate) fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match all {
        Ok(all) if all.is_empty() => Err(TlsError::Pem { what, why: "there is none".to_owned() }),
        Ok(all) => Ok(all),
        Err(error) => Err(TlsError::Pem { what, why: error.to_string() }),
    }
}

pub(crate) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| TlsError::Pem { what: "private key", why: error.to_string() })
}

/// The trusted authorities.
pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates("authority", pem)? {
        roots.add(authority).map_err(|error| TlsError::Unusable(error.to_string()))?;
    }
    Ok(roots)
}

/// Whether the certificate has the bytes of the public key.
fn names_its_key(certified: &CertifiedKey) -> bool {
    let (Some(key), Some(certificate)) = (certified.key.public_key(), certified.cert.first())
    else {
        return false;
    };
    certificate.windows(key.len().max(1)).any(|bytes| bytes == key.as_ref())
}

impl Tls {
    /// Parses certificates and key.
    ///
    /// # Errors
    /// When they are not PEM, don't belong together, or are of a kind that isn't supported.
    pub fn new(settings: &TlsSettings<'_>) -> Result<Self, TlsError> {
        let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable(error.to_string());
        let chain = certificates("certificate", settings.certificates)?;
        let key = private_key(settings.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions: &[_] = match settings.speaks_1_2 {
            true => &[&rustls::version::TLS13, &rustls::version::TLS12],
            false => &[&rustls::version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| unusable(&error))?;
        let builder = match settings.clients {
            ClientCertificates::Ignored => builder.with_no_client_auth(),
            demand => {
                let roots = roots(settings.client_authorities)?;
                let provider = Arc::clone(&provider);
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match demand {
                    ClientCertificates::Required => verifier,
                    _ => verifier.allow_unauthenticated(),
                };
                builder.with_client_cert_verifier(verifier.build().map_err(|e| unusable(&e))?)
            }
        };
        let key = provider.key_provider.load_private_key(key).map_err(|error| unusable(&error))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            // rustls reads no X.509 of version 1, which `openssl x509 -signkey` makes.
            Err(rustls::Error::InvalidCertificate(_)) if names_its_key(&certified) => {}
            Err(error) => return Err(unusable(&error)),
        }
        let resolver = Arc::new(SingleCertAndKey::from(certified));
        let mut config = builder.with_cert_resolver(resolver);
        config.alpn_protocols = settings.protocols.iter().map(|name| (*name).into()).collect();
        Ok(Self(Arc::new(RwLock::new(Arc::new(config)))))
    }

    /// Uses the configuration of `other` for new connections; open ones keep theirs.
    pub fn renew(&self, other: &Self) {
        let config = other.config();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// What rustls takes for a new connection, for servers that bring their own loop.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The server's side of a new connection.
    pub(crate) fn session(&self) -> io::Result<Session> {
        let mut connection = ServerConnection::new(self.config()).map_err(io::Error::other)?;
        // The loop writes one record at a time, and the next only after it is sent.
        connection.set_buffer_limit(None);
        Ok(Session { connection, plaintext_bytes: 0, end: None })
    }
}

/// The server's side of one encrypted connection.
#[derive(Debug)]
pub(crate) struct Session {
    connection: ServerConnection,
    /// Decrypted bytes that are not read yet.
    plaintext_bytes: usize,
    /// How the connection has ended; reported once all bytes before it are read.
    end: Option<ReadOutcome>,
}

/// Whether one read of the socket returned anything, be it the connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    Something,
    Nothing,
}

/// A socket behind the traits that rustls reads and writes with.
struct Wire<'a, K>(&'a K);

impl<K: Socket> Read for Wire<'_, K> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        Ok(self.0.receive(space)?)
    }
}

impl<K: Socket> Write for Wire<'_, K> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.send(bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Session {
    /// Whether a read returns something without reading from the socket.
    pub(crate) fn has_plaintext(&self) -> bool {
        self.plaintext_bytes > 0 || self.end.is_some()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Continues the handshake as far as the socket allows.
    pub(crate) fn handshake(&mut self, socket: &impl Socket) -> Handshake {
        loop {
            match self.send_encrypted(socket) {
                FlushOutcome::Done => {}
                FlushOutcome::Failed(kind) => return Handshake::Failed(kind),
                FlushOutcome::Blocked | FlushOutcome::More => return Handshake::Writes,
            }
            if !self.is_handshaking() {
                return Handshake::Done;
            }
            if self.receive(socket) == Received::Nothing {
                return Handshake::Reads;
            }
            match self.end {
                Some(ReadOutcome::Failed(kind)) => return Handshake::Failed(kind),
                Some(_) => return Handshake::Failed(ErrorKind::UnexpectedEof),
                None => {}
            }
        }
    }

    /// Receives and decrypts once. An end of the connection is kept until all bytes before it are
    /// read.
    fn receive(&mut self, socket: &impl Socket) -> Received {
        let end = match self.connection.read_tls(&mut Wire(socket)) {
            Ok(0) => ReadOutcome::Closed,
            Ok(_) => match self.connection.process_new_packets() {
                Ok(state) => {
                    self.plaintext_bytes = state.plaintext_bytes_to_read();
                    if !state.peer_has_closed() {
                        return Received::Something;
                    }
                    ReadOutcome::Closed
                }
                Err(_) => {
                    // The alert that names the error, if the socket takes it.
                    let _ = self.send_encrypted(socket);
                    ReadOutcome::Failed(ErrorKind::InvalidData)
                }
            },
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Received::Nothing,
                ErrorKind::Interrupted => return Received::Something,
                kind => ReadOutcome::Failed(kind),
            },
        };
        self.end = Some(end);
        Received::Something
    }

    /// Reads until there are decrypted bytes, or the socket has no more.
    pub(crate) fn read_into(
        &mut self,
        socket: &impl Socket,
        input: &mut Input,
        limit: usize,
    ) -> ReadOutcome {
        let mut total = 0;
        loop {
            while self.plaintext_bytes > 0 {
                let space = match input.space(ROOM_BYTES, limit) {
                    Ok(space) => space,
                    Err(_) if total > 0 => return ReadOutcome::Bytes(total),
                    Err(fault) => return ReadOutcome::Full(fault),
                };
                // rustls returns as many bytes as it announced; if not, waiting would be of no use.
                let count = self.connection.reader().read(space).unwrap_or(0);
                input.filled(count);
                total += count;
                self.plaintext_bytes =
                    if count == 0 { 0 } else { self.plaintext_bytes.saturating_sub(count) };
            }
            // After many bytes, one more read: it makes rustls shrink its buffer, so that an idle
            // connection does not keep one as large as a record.
            if 0 < total && total <= MAX_KEPT_BYTES {
                return ReadOutcome::Bytes(total);
            }
            if total == 0
                && let Some(end) = self.end.take()
            {
                return end;
            }
            let received = self.receive(socket);
            if total > 0 {
                return ReadOutcome::Bytes(total);
            }
            if received == Received::Nothing {
                return ReadOutcome::Blocked;
            }
        }
    }

    /// Encrypts and sends at most `most` bytes of `output`.
    pub(crate) fn flush(
        &mut self,
        socket: &impl Socket,
        output: &mut Output,
        most: usize,
    ) -> FlushOutcome {
        // rustls would buffer bytes during the handshake; the output holds them within its limit.
        if self.is_handshaking() {
            return FlushOutcome::Blocked;
        }
        let mut left = most;
        loop {
            match self.send_encrypted(socket) {
                FlushOutcome::Done => {}
                other => return other,
            }
            if output.is_empty() {
                return FlushOutcome::Done;
            }
            if left == 0 {
                return FlushOutcome::More;
            }
            let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
            let count = output.pieces(left.min(RECORD_BYTES), &mut pieces);
            match self.connection.writer().write_vectored(&pieces[..count]) {
                Ok(0) => return FlushOutcome::Failed(ErrorKind::WriteZero),
                Ok(taken) => {
                    output.advance(taken);
                    left -= taken;
                }
                Err(error) => return FlushOutcome::Failed(error.kind()),
            }
        }
    }

    /// Sends the bytes that are encrypted already.
    fn send_encrypted(&mut self, socket: &impl Socket) -> FlushOutcome {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Wire(socket)) {
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return FlushOutcome::Blocked,
                    ErrorKind::Interrupted => {}
                    kind => return FlushOutcome::Failed(kind),
                },
            }
        }
        FlushOutcome::Done
    }

    /// Sends close_notify, so that the peer can tell the end from a truncation.
    pub(crate) fn end(&mut self, socket: &impl Socket) {
        self.connection.send_close_notify();
        let _ = self.send_encrypted(socket);
    }
}
