//! The connection of a client: a task that lives as long as its runtime.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use rustls::CertificateError as Bad;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::ServerAddress;
use super::metered::{Metered, Shared, locked};
use super::native::{Step, Traffic};
use super::opening::{CLOSED, Opening};
use crate::carriers::{start_at, start_at_file, unconnected};

/// What a server may send before it is asked for more: of a call, and of all.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// The most bytes of an answer's head.
const MOST_HEAD_BYTES: u32 = 64 << 10;

/// What is wrong where the server does not answer in TLS.
const NO_TLS: &str = "it speaks no TLS: call a server in cleartext by grpc://HOST:PORT, without \
                      --tls-ca";

/// Whether a handshake has failed for want of TLS, and not for a certificate.
fn is_no_tls(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
        || matches!(cause, Some(rustls::Error::InvalidMessage(_)))
}

/// What is wrong with a server's certificate, and what would be right, where that is known. rustls
/// has no error of its own for an authority's, which `openssl req -x509` makes.
fn bad_certificate(error: &io::Error) -> Option<String> {
    let cause = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(bad) = cause else { return None };
    Some(match bad {
        Bad::UnknownIssuer | Bad::BadSignature => {
            "no authority of --tls-ca has signed the server's certificate".to_owned()
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            format!("{bad}: --tls-name NAME says which one it is for")
        }
        Bad::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the server's certificate is that of an authority (CA:TRUE), and no server's: make one \
             with CA:FALSE, as openssl req -addext basicConstraints=critical,CA:FALSE does, or one \
             that an authority signs"
                .to_owned()
        }
        _ => return None,
    })
}

/// Who is trusted on an encrypted connection.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// What rustls takes.
    pub config: rustls::ClientConfig,
    /// The name that the server's certificate is for, if it is not the address.
    pub name: Option<String>,
}

/// A connection to a server.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) authority: String,
    pub(super) scheme: &'static str,
    pub(super) meter: Shared,
}

impl Client {
    /// Connects within a time, on the runtime that this is called on.
    ///
    /// # Errors
    /// When no server of HTTP/2 answers there; the error names it.
    pub async fn connect(
        address: &ServerAddress,
        encryption: Option<Encryption>,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let connected = timeout(limit, Self::try_connect(address, encryption)).await;
        let seconds = limit.as_secs_f64();
        let late = || {
            anyhow::anyhow!(
                "no server of HTTP/2 has answered in {seconds} s (--connect-timeout): is this the \
                 right port?"
            )
        };
        connected
            .unwrap_or_else(|_| Err(late()))
            .with_context(|| format!("cannot connect to {address}"))
    }

    async fn try_connect(
        address: &ServerAddress,
        encryption: Option<Encryption>,
    ) -> anyhow::Result<Self> {
        let (authority, meter) = (address.authority(), Shared::default());
        match address {
            ServerAddress::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                let advice = start_at_file("--unix", path);
                let stream = stream.map_err(|error| unconnected(error, &advice))?;
                let stream = Metered::new(stream, Arc::clone(&meter));
                Self::begin(stream, authority, "http", meter).await
            }
            ServerAddress::Tcp { host, port, is_encrypted } => {
                if *is_encrypted && encryption.is_none() {
                    bail!("say who vouches for the server: --tls-ca FILE");
                }
                let stream = TcpStream::connect((&host[..], *port)).await;
                let advice = start_at(&authority, *is_encrypted);
                let stream = stream.map_err(|error| unconnected(error, &advice))?;
                stream.set_nodelay(true)?;
                let stream = Metered::new(stream, Arc::clone(&meter));
                let Some(Encryption { mut config, name }) = encryption else {
                    return Self::begin(stream, authority, "http", meter).await;
                };
                config.alpn_protocols = vec![b"h2".to_vec()];
                let name = ServerName::try_from(name.unwrap_or_else(|| host.clone()))?;
                let connector = TlsConnector::from(Arc::new(config));
                let stream = connector.connect(name, stream).await;
                let stream = stream.map_err(|error| {
                    if let Some(words) = bad_certificate(&error) {
                        return anyhow::anyhow!("TLS: {words}");
                    }
                    let words = if is_no_tls(&error) { NO_TLS } else { "TLS" };
                    anyhow::Error::from(error).context(words)
                })?;
                Self::begin(stream, authority, "https", meter).await
            }
        }
    }

    /// What has passed over its socket until now; its waits are not counted.
    pub fn traffic(&self) -> Traffic {
        locked(&self.meter).traffic
    }

    /// Notes each write and read from now on.
    pub fn note_steps(&self) {
        locked(&self.meter).note_steps();
    }

    /// Those since, in order.
    pub fn take_steps(&self) -> Vec<Step> {
        locked(&self.meter).take_steps()
    }

    pub(super) async fn begin<S>(
        stream: S,
        authority: String,
        scheme: &'static str,
        meter: Shared,
    ) -> anyhow::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(MOST_HEAD_BYTES);
        let (stream, first) = Opening::new(stream);
        let (sender, connection) = builder.handshake(stream).await?;
        // A broken connection shows in its calls.
        tokio::spawn(connection);
        match first.await {
            Ok(first) => first.map_err(anyhow::Error::msg)?,
            Err(_) => bail!(CLOSED),
        }
        Ok(Self { sender: sender.ready().await?, authority, scheme, meter })
    }
}
