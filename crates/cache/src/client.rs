//! A small blocking client, for people and scripts. Control plane: one request at a time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use memchr::memchr;
use wire::Address;

use crate::protocol::MOST_KEY_BYTES;
use crate::protocol::text::{Answer, read_answer};

/// An item as the server gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The client's own 32 bits.
    pub flags: u32,
    /// The unique number of the store, when it was asked for.
    pub cas: Option<u64>,
}

/// A request that was not answered as it should be.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server can't be reached, or the connection broke.
    #[error("{0}")]
    Socket(#[from] io::Error),
    /// The server refused, in its own words.
    #[error("the server says: {0}")]
    Refused(String),
    /// The answer is not what the protocol allows.
    #[error("the server answered something else than expected: {0}")]
    Unexpected(String),
    /// The key can't be said in the protocol.
    #[error("a key has 1 to {MOST_KEY_BYTES} bytes and no spaces or control characters")]
    BadKey,
}

trait Socket: Read + Write + Send {}
impl<S: Read + Write + Send> Socket for S {}

/// A connection to a cache.
pub struct Client {
    socket: Box<dyn Socket>,
    received: Vec<u8>,
    used: usize,
}

/// A server that says nothing for so long has failed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An answer's value may be at most this long.
const MOST_VALUE_BYTES: usize = 1 << 30;

/// An answer's line may be at most this long.
const MOST_ANSWER_LINE_BYTES: usize = 64 << 10;

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// When nobody answers at `address`.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let socket: Box<dyn Socket> = match address {
            Address::Internet(address) => {
                let socket = TcpStream::connect_timeout(address, TIMEOUT)?;
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(TIMEOUT))?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Box::new(socket)
            }
            Address::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(TIMEOUT))?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Box::new(socket)
            }
        };
        Ok(Self { socket, received: Vec::new(), used: 0 })
    }

    /// Reads keys; with their unique numbers when `with_cas`. What isn't there is left out.
    ///
    /// # Errors
    /// When a key can't be said, the server refuses, or the connection breaks.
    pub fn get(&mut self, keys: &[&[u8]], with_cas: bool) -> Result<Vec<Found>, ClientError> {
        let mut request = if with_cas { b"gets".to_vec() } else { b"get".to_vec() };
        for key in keys {
            request.push(b' ');
            request.extend_from_slice(checked(key)?);
        }
        self.send(request, b"")?;
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            match read_answer(&line) {
                Answer::End => return Ok(all),
                Answer::Value { key, flags, value_bytes, cas }
                    if value_bytes <= MOST_VALUE_BYTES =>
                {
                    let key = key.to_vec();
                    all.push(Found { key, value: self.block(value_bytes)?, flags, cas });
                }
                _ => return Err(unexpected(&line)),
            }
        }
    }

    /// Stores a value. `expire_s` is what the protocol calls exptime: 0 is never.
    ///
    /// # Errors
    /// When the key can't be said, the server refuses, or the connection breaks.
    pub fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expire_s: i64,
    ) -> Result<(), ClientError> {
        let mut request = b"set ".to_vec();
        request.extend_from_slice(checked(key)?);
        request.extend_from_slice(format!(" {flags} {expire_s} {}", value.len()).as_bytes());
        self.send(request, &[value, b"\r\n"].concat())?;
        let line = self.line()?;
        if read_answer(&line) == Answer::Stored { Ok(()) } else { Err(unexpected(&line)) }
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// When the key can't be said, the server refuses, or the connection breaks.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, ClientError> {
        self.send([b"delete ", checked(key)?].concat(), b"")?;
        let line = self.line()?;
        match read_answer(&line) {
            Answer::Deleted => Ok(true),
            Answer::NotFound => Ok(false),
            _ => Err(unexpected(&line)),
        }
    }

    /// The server's statistics, in its order; `group` may be empty.
    ///
    /// # Errors
    /// When the server knows no such group, or the connection breaks.
    pub fn stats(&mut self, group: &str) -> Result<Vec<(String, String)>, ClientError> {
        if group.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(ClientError::BadKey);
        }
        self.send(format!("stats {group}").trim_end().as_bytes().to_vec(), b"")?;
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            match read_answer(&line) {
                Answer::Stat(name, value) => all.push((text(name), text(value))),
                Answer::End => return Ok(all),
                Answer::Other(b"RESET") => return Ok(all),
                _ => return Err(unexpected(&line)),
            }
        }
    }

    /// The server's version.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn version(&mut self) -> Result<String, ClientError> {
        self.send(b"version".to_vec(), b"")?;
        let line = self.line()?;
        match read_answer(&line) {
            Answer::Version(version) => Ok(text(version)),
            _ => Err(unexpected(&line)),
        }
    }

    fn send(&mut self, mut request: Vec<u8>, data: &[u8]) -> io::Result<()> {
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(data);
        self.socket.write_all(&request)
    }

    /// Receives until `enough` finds what it looks for in the bytes not yet used.
    fn receive<R>(&mut self, enough: impl Fn(&[u8]) -> Option<R>) -> io::Result<R> {
        loop {
            if let Some(found) = enough(&self.received[self.used..]) {
                return Ok(found);
            }
            self.received.drain(..self.used);
            self.used = 0;
            let start = self.received.len();
            self.received.resize(start + (64 << 10), 0);
            let count = self.socket.read(&mut self.received[start..]);
            self.received.truncate(start + *count.as_ref().unwrap_or(&0));
            if count? == 0 {
                let what = "the server closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
        }
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let end = self.receive(|bytes| match memchr(b'\n', bytes) {
            None if bytes.len() > MOST_ANSWER_LINE_BYTES => Some(None),
            None => None,
            Some(end) => Some(Some(end)),
        })?;
        let Some(end) = end else {
            let what = "the server sent a line without an end";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let line = &self.received[self.used..self.used + end];
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        self.used += end + 1;
        Ok(line)
    }

    fn block(&mut self, count: usize) -> Result<Vec<u8>, ClientError> {
        self.receive(|bytes| (bytes.len() >= count + 2).then_some(()))?;
        let (value, rest) = self.received[self.used..].split_at(count);
        if !rest.starts_with(b"\r\n") {
            return Err(ClientError::Unexpected("a value of another length".to_owned()));
        }
        let value = value.to_vec();
        self.used += count + 2;
        Ok(value)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

fn checked(key: &[u8]) -> Result<&[u8], ClientError> {
    let is_plain = key.iter().all(|byte| *byte > b' ' && *byte != 127);
    let fits = (1..=MOST_KEY_BYTES).contains(&key.len());
    if fits && is_plain { Ok(key) } else { Err(ClientError::BadKey) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn unexpected(line: &[u8]) -> ClientError {
    let line = text(line);
    if line.starts_with("ERROR")
        || line.starts_with("CLIENT_ERROR ")
        || line.starts_with("SERVER_ERROR ")
    {
        ClientError::Refused(line)
    } else {
        ClientError::Unexpected(line)
    }
}
