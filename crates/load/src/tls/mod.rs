//! TLS under another dialect (RFC 8446, RFC 5246), by rustls: bytes in and out, as any dialect, so
//! that encrypted connections are loaded by the same event loop. rustls keeps buffers of its own,
//! so an encrypted connection allocates where a plain one does not.

mod trust;

use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use wire::{Input, Ns, Output, ProtocolError};

use crate::{Dialect, Events, Op, Tag};
use trust::{ENDED, OTHER_VERSION, fault, server_name};
pub use trust::{HTTP_1, HTTP_2, Trust, fault_of, secured};

/// What the dialect above may leave unread, decrypted: the head of an answer, by far.
const MAX_DECRYPTED_BYTES: usize = 1 << 20;

/// The most pieces of a request that are encrypted at once.
const MAX_PIECES: usize = 16;

/// A dialect that may be encrypted: what it says leaves its own output at once.
pub trait Spoken: Dialect {
    /// Checks the bytes that wait to be sent, encrypted or not.
    ///
    /// # Errors
    /// When there are more than this dialect's requests come to: the server doesn't read.
    fn check_unsent(&self, bytes: usize) -> Result<(), ProtocolError>;
}

/// What a suite says of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Which certificates are taken.
    pub trust: Trust,
    /// Whom the server's certificate has to be for; the host that is asked unless stated.
    pub name: Option<String>,
}

impl TlsOptions {
    /// Of the keys `tls`, `ca`, `insecure` and `name`; none where TLS is not spoken.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn of(
        tls: bool,
        ca: Option<PathBuf>,
        insecure: bool,
        name: Option<String>,
    ) -> Result<Option<Self>, String> {
        if !tls && (ca.is_some() || insecure || name.is_some()) {
            return Err("`ca`, `insecure` and `name` are of TLS: add tls = true".to_owned());
        }
        let trust = match (ca, insecure) {
            (Some(_), true) => {
                let message = "`ca` says whom to trust, `insecure` that anyone is: say one of them";
                return Err(message.to_owned());
            }
            (Some(file), false) => Trust::Authorities(file),
            (None, true) => Trust::Any,
            (None, false) => Trust::System,
        };
        Ok(tls.then_some(Self { trust, name }))
    }

    /// How connections are encrypted that offer `protocol` (ALPN) to the server called `host`. The
    /// file of authorities is relative to `folder`. It is made once for all connections: reading
    /// authorities takes milliseconds.
    ///
    /// # Errors
    /// When there are no authorities that can be read, or the name can't be one.
    pub fn secure(
        &self,
        folder: &Path,
        protocol: &[u8],
        host: &str,
    ) -> Result<Secure, ProtocolError> {
        let config = Arc::new(self.trust.config(folder, protocol)?);
        Ok(Secure { config, name: server_name(self.name.as_deref().unwrap_or(host))? })
    }
}

/// How connections to a server are encrypted.
#[derive(Clone, Debug)]
pub struct Secure {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Secure {
    /// Encrypts what a connection says.
    pub fn encrypt(&self, inner: Box<dyn Spoken>) -> Box<dyn Dialect> {
        Box::new(Tls::new(self.clone(), inner))
    }
}

/// The host of an authority, `HOST:PORT`, as certificates have it.
pub fn host_of(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Encrypts what `inner` says.
struct Tls {
    secure: Secure,
    inner: Box<dyn Spoken>,
    /// None until the connection is made.
    connection: Option<ClientConnection>,
    /// Whether the handshake is over.
    is_open: bool,
    decrypted: Input,
    /// What waits for the handshake; nothing after it.
    to_encrypt: Output,
}

impl Tls {
    fn new(secure: Secure, inner: Box<dyn Spoken>) -> Self {
        Self {
            secure,
            inner,
            connection: None,
            is_open: false,
            decrypted: Input::new(),
            to_encrypt: Output::new(usize::MAX),
        }
    }

    /// Puts everything that can be sent into `out`.
    fn send(&mut self, out: &mut Output) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while self.is_open && !self.to_encrypt.is_empty() {
            let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
            let count = self.to_encrypt.pieces(usize::MAX, &mut pieces);
            let taken = connection.writer().write_vectored(&pieces[..count])?;
            self.to_encrypt.advance(taken);
        }
        while connection.wants_write() {
            connection.write_tls(out.tail())?;
        }
        Ok(())
    }

    /// Decrypts what came, and hands it to the dialect above.
    fn understand(
        &mut self,
        now: Ns,
        input: &mut Input,
        events: &mut Events,
    ) -> Result<(), ProtocolError> {
        while !input.is_empty() && !events.close {
            let Some(connection) = &mut self.connection else {
                return Err(ProtocolError::new("bytes came that no request asked for"));
            };
            // rustls takes a few KiB at a time, and nothing behind the server's last word.
            let taken = connection.read_tls(&mut input.bytes()).map_err(broken)?;
            input.consume(if taken == 0 { input.len() } else { taken });
            let state = connection.process_new_packets().map_err(|error| fault(&error))?;
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let space = self.decrypted.space(left, MAX_DECRYPTED_BYTES)?;
                let read = connection.reader().read(space).map_err(broken)?;
                self.decrypted.filled(read);
                left -= read;
            }
            if !self.is_open && !connection.is_handshaking() {
                let chosen = connection.alpn_protocol();
                if self.secure.config.alpn_protocols[..] == [HTTP_2] && chosen != Some(HTTP_2) {
                    return Err(ProtocolError::new(OTHER_VERSION));
                }
                self.is_open = true;
                self.inner.opened(now, events, &mut self.to_encrypt)?;
            }
            if !self.decrypted.is_empty() {
                self.inner.receive(now, &mut self.decrypted, events, &mut self.to_encrypt)?;
            }
            if state.peer_has_closed() && !events.close {
                self.closed(now, events)?;
                events.close = true;
            }
        }
        Ok(())
    }
}

fn broken(error: io::Error) -> ProtocolError {
    ProtocolError::new(format!("TLS: {error}"))
}

impl Dialect for Tls {
    fn opened(
        &mut self,
        _now: Ns,
        _events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let Secure { config, name } = self.secure.clone();
        let connection = ClientConnection::new(config, name);
        let mut connection = connection.map_err(|error| fault(&error))?;
        // The engine bounds what is under way.
        connection.set_buffer_limit(None);
        self.connection = Some(connection);
        self.send(out).map_err(broken)
    }

    fn request(&mut self, now: Ns, tag: Tag, op: Op, out: &mut Output) {
        self.inner.request(now, tag, op, &mut self.to_encrypt);
        // Nothing fails that writes to memory.
        let _ = self.send(out);
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let understood = self.understand(now, input, events);
        // What is not understood is answered by an alert that names it.
        self.send(out).map_err(broken)?;
        understood?;
        self.inner.check_unsent(out.len())
    }

    fn closed(&mut self, now: Ns, events: &mut Events) -> Result<(), ProtocolError> {
        if !self.is_open {
            return Err(ProtocolError::new(ENDED));
        }
        self.inner.closed(now, events)
    }

    fn may_repeat(&self, tag: Tag) -> bool {
        self.inner.may_repeat(tag)
    }

    fn repeat(&mut self, _out: &mut Output) {
        self.connection = None;
        self.is_open = false;
        self.decrypted.clear();
        self.to_encrypt.clear(0);
        self.inner.repeat(&mut self.to_encrypt);
    }

    fn expire(&mut self, tag: Tag) {
        self.inner.expire(tag);
    }
}
