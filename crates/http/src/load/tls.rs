//! TLS under another dialect (RFC 8446, RFC 5246), by rustls: bytes in and out, as any dialect, so
//! that encrypted connections are loaded by the same event loop. rustls keeps buffers of its own,
//! so an encrypted connection allocates where a plain one does not.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use ::load::{Dialect, Events, Op, Tag};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use wire::{Input, Ns, Output, ProtocolError};

use super::trust::{ENDED, HTTP_2, OTHER_VERSION, fault};

/// What the dialect above may leave unread, decrypted: the head of an answer, by far.
const MAX_DECRYPTED_BYTES: usize = 1 << 20;

/// The most pieces of a request that are encrypted at once.
const MAX_PIECES: usize = 16;

/// A dialect that may be encrypted: what it says leaves its own output at once.
pub(super) trait Spoken: Dialect {
    /// Checks the bytes that wait to be sent, encrypted or not.
    ///
    /// # Errors
    /// When there are more than this dialect's requests come to: the server doesn't read.
    fn check_unsent(&self, bytes: usize) -> Result<(), ProtocolError>;
}

/// Encrypts what `inner` says.
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
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
    pub(super) fn new(
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
        inner: Box<dyn Spoken>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            name: name.clone(),
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
                if self.config.alpn_protocols[..] == [HTTP_2] && chosen != Some(HTTP_2) {
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
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
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
