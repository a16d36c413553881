//! A small blocking client, for people and scripts. Control plane: one request at a time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use memchr::memchr;
use wire::{Address, TlsStream, TlsTrust};

use crate::protocol::MAX_KEY_BYTES;
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
    /// The protocol can't express the key.
    #[error("a key has 1 to {MAX_KEY_BYTES} bytes and no spaces or control characters")]
    BadKey,
}

trait Socket: Read + Write + Send {
    /// How long a read may take.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Socket for UnixStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Socket for TlsStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().set_read_timeout(timeout)
    }
}

/// When a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In any case.
    Always,
    /// Where there is none.
    Absent,
    /// Where there is one.
    Present,
    /// Behind the one that is there; its flags and expiry stay.
    Behind,
    /// Before the one that is there; its flags and expiry stay.
    Before,
    /// Where the one that is there has this unique number.
    Unchanged(u64),
}

/// The outcome of a storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is stored.
    Stored,
    /// The condition does not hold.
    NotStored,
    /// Another client has stored a value in the meantime.
    Changed,
    /// There is none.
    NotFound,
}

/// An item of a dump, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The key.
    pub key: Vec<u8>,
    /// Its metadata, such as `exp` and `size`, in the server's order.
    pub facts: Vec<(String, String)>,
}

/// A connection to a cache.
pub struct Client {
    socket: Box<dyn Socket>,
    received: Vec<u8>,
    used: usize,
}

/// The time without an answer after which a server has failed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An answer's value may be at most this long.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// An answer's line may be at most this long.
const MAX_ANSWER_LINE_BYTES: usize = 64 << 10;

fn connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(address, TIMEOUT)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// When no server answers at `address`.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let socket: Box<dyn Socket> = match address {
            Address::Internet(address) => Box::new(connect(address)?),
            Address::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(TIMEOUT))?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Box::new(socket)
            }
        };
        Ok(Self::over(socket))
    }

    /// Connects over TLS to a server whose certificate is for `name`; by default for its address.
    ///
    /// # Errors
    /// When no server answers at `address`, which has to be the internet's, the server is not
    /// trusted, or the files are of no use.
    pub fn connect_encrypted(
        address: &Address,
        name: Option<&str>,
        trust: &TlsTrust<'_>,
    ) -> io::Result<Self> {
        let Address::Internet(address) = address else {
            let what = "a Unix socket is not encrypted";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        };
        let host = address.ip().to_string();
        let socket = TlsStream::connect(connect(address)?, name.unwrap_or(&host), trust)?;
        Ok(Self::over(Box::new(socket)))
    }

    fn over(socket: Box<dyn Socket>) -> Self {
        Self { socket, received: Vec::new(), used: 0 }
    }

    /// Reads keys, with their unique numbers if `with_cas`. Absent keys are left out.
    ///
    /// # Errors
    /// When a key is invalid, the server refuses, or the connection breaks.
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
                    if value_bytes <= MAX_VALUE_BYTES =>
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
    /// When the key is invalid, the server refuses, or the connection breaks.
    pub fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expire_s: i64,
    ) -> Result<(), ClientError> {
        match self.store(When::Always, key, value, flags, expire_s)? {
            Stored::Stored => Ok(()),
            other => Err(ClientError::Unexpected(format!("{other:?} to a plain set"))),
        }
    }

    /// Stores a value under a condition. `flags` and `expire_s` don't count where a value is
    /// continued.
    ///
    /// # Errors
    /// When the key is invalid, the server refuses, or the connection breaks.
    pub fn store(
        &mut self,
        when: When,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expire_s: i64,
    ) -> Result<Stored, ClientError> {
        let (name, cas) = match when {
            When::Always => ("set", None),
            When::Absent => ("add", None),
            When::Present => ("replace", None),
            When::Behind => ("append", None),
            When::Before => ("prepend", None),
            When::Unchanged(cas) => ("cas", Some(cas)),
        };
        let mut request = format!("{name} ").into_bytes();
        request.extend_from_slice(checked(key)?);
        request.extend_from_slice(format!(" {flags} {expire_s} {}", value.len()).as_bytes());
        if let Some(cas) = cas {
            request.extend_from_slice(format!(" {cas}").as_bytes());
        }
        self.send(request, &[value, b"\r\n"].concat())?;
        let line = self.line()?;
        match read_answer(&line) {
            Answer::Stored => Ok(Stored::Stored),
            Answer::NotFound => Ok(Stored::NotFound),
            Answer::Other(b"NOT_STORED") => Ok(Stored::NotStored),
            Answer::Other(b"EXISTS") => Ok(Stored::Changed),
            _ => Err(unexpected(&line)),
        }
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// When the key is invalid, the server refuses, or the connection breaks.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, ClientError> {
        self.send([b"delete ", checked(key)?].concat(), b"")?;
        let line = self.line()?;
        match read_answer(&line) {
            Answer::Deleted => Ok(true),
            Answer::NotFound => Ok(false),
            _ => Err(unexpected(&line)),
        }
    }

    /// Sets a key's expiry. Returns whether the key was present.
    ///
    /// # Errors
    /// When the key is invalid, the server refuses, or the connection breaks.
    pub fn touch(&mut self, key: &[u8], expire_s: i64) -> Result<bool, ClientError> {
        let end = format!(" {expire_s}");
        self.send([b"touch ", checked(key)?, end.as_bytes()].concat(), b"")?;
        let line = self.line()?;
        match read_answer(&line) {
            Answer::Other(b"TOUCHED") => Ok(true),
            Answer::NotFound => Ok(false),
            _ => Err(unexpected(&line)),
        }
    }

    /// Counts a number up, or down where `grows` is not so; what it is then, if there is one.
    ///
    /// # Errors
    /// When the key is invalid, the value is no number, or the connection breaks.
    pub fn count(&mut self, key: &[u8], by: u64, grows: bool) -> Result<Option<u64>, ClientError> {
        let (name, end) = (if grows { b"incr " } else { b"decr " }, format!(" {by}"));
        self.send([name, checked(key)?, end.as_bytes()].concat(), b"")?;
        let line = self.line()?;
        if read_answer(&line) == Answer::NotFound {
            return Ok(None);
        }
        let number = std::str::from_utf8(&line).ok().and_then(|text| text.trim().parse().ok());
        number.map(Some).ok_or_else(|| unexpected(&line))
    }

    /// Forgets everything, after `delay_s` seconds.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn flush(&mut self, delay_s: u32) -> Result<(), ClientError> {
        self.send(format!("flush_all {delay_s}").into_bytes(), b"")?;
        let line = self.line()?;
        if line == b"OK" { Ok(()) } else { Err(unexpected(&line)) }
    }

    /// Authenticates, where a server requires it.
    ///
    /// # Errors
    /// When the server does not believe it, or the connection breaks.
    pub fn sign_in(&mut self, name: &str, password: &str) -> Result<(), ClientError> {
        self.set(b"sign-in", format!("{name} {password}").as_bytes(), 0, 0)
    }

    /// Shows all items, without their values, for as long as `show` returns true.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn dump(&mut self, mut show: impl FnMut(Dumped) -> bool) -> Result<(), ClientError> {
        self.send(b"lru_crawler metadump all".to_vec(), b"")?;
        loop {
            let line = self.line()?;
            if line == b"END" {
                return Ok(());
            }
            let text = text(&line);
            let mut facts = text.split(' ').filter_map(|word| word.split_once('='));
            let Some(("key", key)) = facts.next() else { return Err(unexpected(&line)) };
            let facts = facts.map(|(name, fact)| (name.to_owned(), fact.to_owned())).collect();
            if !show(Dumped { key: decoded(key), facts }) {
                return Ok(());
            }
        }
    }

    /// Shows lines of what happens, for as long as `show` returns true or the server runs.
    ///
    /// # Errors
    /// When the server refuses, knows no such stream, or the connection breaks.
    pub fn watch(
        &mut self,
        streams: &[String],
        mut show: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        if streams.iter().flat_map(|one| one.bytes()).any(|byte| byte <= b' ') {
            return Err(ClientError::BadKey);
        }
        self.send(format!("watch {}", streams.join(" ")).trim_end().as_bytes().to_vec(), b"")?;
        let line = self.line()?;
        if line != b"OK" {
            return Err(unexpected(&line));
        }
        self.socket.set_timeout(None)?;
        loop {
            match self.line() {
                Ok(line) if show(&text(&line)) => {}
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.into()),
            }
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
        self.socket.write_all(&request)?;
        self.socket.flush()
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
            None if bytes.len() > MAX_ANSWER_LINE_BYTES => Some(None),
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
    let fits = (1..=MAX_KEY_BYTES).contains(&key.len());
    if fits && is_plain { Ok(key) } else { Err(ClientError::BadKey) }
}

/// A key in which `%` and two digits stand for a byte.
fn decoded(written: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let [first, after @ ..] = rest {
        let byte = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        rest = if byte.is_some() { &after[2..] } else { after };
        key.push(byte.unwrap_or(*first));
    }
    key
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn unexpected(line: &[u8]) -> ClientError {
    let line = text(line);
    if line.starts_with("ERROR")
        || line.starts_with("CLIENT_ERROR ")
        || line.starts_with("SERVER_ERROR ")
        || line.starts_with("WATCHER_")
        || line.starts_with("BUSY ")
    {
        ClientError::Refused(line)
    } else {
        ClientError::Unexpected(line)
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn a_key_is_decoded_as_it_was_encoded_whatever_bytes_it_has() {
        let mut written = Vec::new();
        let key: Vec<u8> = (0..=255).collect();
        crate::protocol::text::put_encoded(&key, &mut written);
        assert_eq!(decoded(&String::from_utf8(written).expect("text")), key);
        assert_eq!(decoded("100%"), b"100%");
        assert_eq!(decoded("%zz%4"), b"%zz%4");
    }
}
