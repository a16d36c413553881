//! TLS below HTTP, where an address has it.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What an address's connections are encrypted with.
#[derive(Clone, Debug)]
pub(super) struct Encryption {
    pub(super) tls: wire::Tls,
    /// How long a handshake may take.
    pub(super) limit: Duration,
}

impl Encryption {
    /// The connection after its handshake; `None` where that fails or takes too long, of which a
    /// client learns by TLS itself.
    pub(super) async fn begin(self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        // Of certificates that were read again the newest count.
        let acceptor = TlsAcceptor::from(self.tls.config());
        timeout(self.limit, acceptor.accept(stream)).await.ok()?.ok()
    }
}
