//! A client that checks every byte.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Nothing here takes so long; this only ends a run that would hang.
const HANG_GUARD: Duration = Duration::from_secs(60);

/// A socket of either kind.
pub(crate) trait Socket: Read + Write + Send {}
impl<S: Read + Write + Send> Socket for S {}

/// One connection.
pub(crate) struct Client {
    socket: Box<dyn Socket>,
    received: Vec<u8>,
}

/// A TCP connection whose calls end at some time.
pub(crate) fn tcp(address: &str) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(HANG_GUARD))?;
    socket.set_write_timeout(Some(HANG_GUARD))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

impl Client {
    pub(crate) fn tcp(address: &str) -> io::Result<Self> {
        Ok(Self { socket: Box::new(tcp(address)?), received: Vec::new() })
    }

    pub(crate) fn unix(path: &str) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(HANG_GUARD))?;
        Ok(Self { socket: Box::new(socket), received: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
            }
            self.receive()?;
        }
    }

    fn block(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.received.len() < count {
            self.receive()?;
        }
        Ok(self.received.drain(..count).collect())
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut chunk = [0; 64 << 10];
        match self.socket.read(&mut chunk)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }

    /// Stores a value.
    pub(crate) fn set(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let head = format!("set {key} 0 0 {}\r\n", value.len());
        self.send(&[head.as_bytes(), value, b"\r\n"].concat())?;
        match self.line()?.as_str() {
            "STORED" => Ok(()),
            other => Err(io::Error::other(format!("set {key}: {other}"))),
        }
    }

    /// Reads a value, if there is one.
    pub(crate) fn get(&mut self, key: &str) -> io::Result<Option<Vec<u8>>> {
        self.send(format!("get {key}\r\n").as_bytes())?;
        self.value(key)
    }

    /// The answer to a `get` that was sent.
    pub(crate) fn value(&mut self, key: &str) -> io::Result<Option<Vec<u8>>> {
        let line = self.line()?;
        if line == "END" {
            return Ok(None);
        }
        let length = line.strip_prefix(&format!("VALUE {key} 0 ")).and_then(|n| n.parse().ok());
        let Some(length): Option<usize> = length else {
            return Err(io::Error::other(format!("get {key}: {line}")));
        };
        let mut value = self.block(length + 2)?;
        value.truncate(length);
        match self.line()?.as_str() {
            "END" => Ok(Some(value)),
            other => Err(io::Error::other(format!("the end of get {key}: {other}"))),
        }
    }

    /// One of the server's statistics.
    pub(crate) fn stat(&mut self, name: &str) -> io::Result<u64> {
        self.send(b"stats\r\n")?;
        let mut found = None;
        loop {
            let line = self.line()?;
            if line == "END" {
                return found.ok_or_else(|| io::Error::other(format!("no statistic {name}")));
            }
            if let Some(value) = line.strip_prefix(&format!("STAT {name} ")) {
                found = value.parse().ok();
            }
        }
    }
}

/// A small generator of test data; its seed is printed by who uses it.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound` (xorshift64*).
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}
