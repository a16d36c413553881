//! The client's side of TLS over a blocking socket, for small clients. Control plane.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::tls::{TlsError, certificates, private_key, roots};

/// The authorities that a client trusts, and its own identity, as PEM.
#[derive(Clone, Copy, Debug)]
pub struct TlsTrust<'a> {
    /// The authorities that sign server certificates.
    pub authorities: &'a [u8],
    /// The client's own certificate and its private key, for servers that request one.
    pub identity: Option<(&'a [u8], &'a [u8])>,
}

impl TlsTrust<'_> {
    /// What rustls takes for new connections, for clients that bring their own loop.
    ///
    /// # Errors
    /// When the PEM can't be used.
    pub fn config(&self) -> Result<ClientConfig, TlsError> {
        let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots(self.authorities)?);
        match self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((chain, key)) => builder
                .with_client_auth_cert(certificates("certificate", chain)?, private_key(key)?)
                .map_err(unusable),
        }
    }
}

/// An encrypted connection to an authenticated server.
#[derive(Debug)]
pub struct TlsStream(StreamOwned<ClientConnection, TcpStream>);

impl TlsStream {
    /// Performs the handshake over a connected socket. The server's certificate has to be valid
    /// for `name`, a host name or an IP address.
    ///
    /// # Errors
    /// `InvalidInput` when the PEM or the name can't be used, `InvalidData` when the server's
    /// certificate is not trusted, and any error of the socket.
    pub fn connect(socket: TcpStream, name: &str, trust: &TlsTrust<'_>) -> io::Result<Self> {
        let config = trust.config().map_err(|error| unusable(&error))?;
        Self::begin(socket, name, Arc::new(config))
    }

    /// The same by what is trusted already.
    pub(crate) fn begin(
        mut socket: TcpStream,
        name: &str,
        config: Arc<ClientConfig>,
    ) -> io::Result<Self> {
        let server = ServerName::try_from(name.to_owned()).map_err(|error| unusable(&error))?;
        let mut connection =
            ClientConnection::new(config, server).map_err(|error| unusable(&error))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(Self(StreamOwned::new(connection, socket)))
    }

    /// The socket below, for its time-outs.
    pub fn socket(&self) -> &TcpStream {
        &self.0.sock
    }
}

fn unusable(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, error.to_string())
}

impl Read for TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
