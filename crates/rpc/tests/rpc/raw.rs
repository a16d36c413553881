//! HTTP/2 by hand: frames as bytes, and as much of the header compression (RFC 7541) as the answers
//! of this server need, whose table the client sets to nothing.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

pub(crate) const CALM: u32 = 11;

/// A frame that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The number at a place of the payload.
    pub(crate) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

/// A frame as bytes.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// A header that goes into no table.
pub(crate) fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let mut out = Vec::new();
        match text.len() {
            length @ 0..127 => out.push(length as u8),
            length => {
                out.push(127);
                let mut rest = length - 127;
                while rest >= 128 {
                    out.push((rest % 128 + 128) as u8);
                    rest /= 128;
                }
                out.push(rest as u8);
            }
        }
        out.extend_from_slice(text.as_bytes());
        out
    };
    [vec![0], text(name), text(value)].concat()
}

/// The usual headers of a call, with others instead or behind: an empty value leaves one out.
pub(crate) fn headers(path: &str, changed: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let of = |name: &str| changed.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
    let usual = usual.iter().map(|(name, value)| (*name, of(name).unwrap_or(value)));
    let is_new = |name: &str| !usual.clone().any(|(one, _)| one == name);
    let more = changed.iter().copied().filter(|(name, _)| is_new(name));
    let all: Vec<_> = usual.clone().chain(more).filter(|(_, value)| !value.is_empty()).collect();
    all.iter().flat_map(|(name, value)| literal(name, value)).collect()
}

/// A message with its prefix.
pub(crate) fn message(bytes: &[u8]) -> Vec<u8> {
    [&[0][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// A client that sends given bytes.
pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
    input: Vec<u8>,
}

/// How a call ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// `:status`, where there was one.
    pub(crate) http: String,
    /// `grpc-status`.
    pub(crate) status: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) data: Vec<u8>,
    /// RST_STREAM.
    pub(crate) reset: Option<u32>,
    /// GOAWAY.
    pub(crate) away: Option<u32>,
    /// The server has closed the connection.
    pub(crate) is_closed: bool,
}

impl Raw {
    /// Connects and says preface and settings: a header table of no bytes, and these.
    pub(crate) fn connect(at: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut raw = Self::bare(at);
        let mut payload = Vec::new();
        for (name, value) in [&[(1, 0)], settings].concat() {
            payload.extend_from_slice(&u16::to_be_bytes(name));
            payload.extend_from_slice(&u32::to_be_bytes(value));
        }
        raw.send(&[PREFACE, &frame(SETTINGS, 0, 0, &payload)].concat());
        raw
    }

    /// Connects, and says nothing.
    pub(crate) fn bare(at: SocketAddr) -> Self {
        let socket = TcpStream::connect(at).expect("a connection");
        socket.set_nodelay(true).expect("an option");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
        Self { socket, input: Vec::new() }
    }

    /// Sends bytes. What a server that has closed doesn't take is lost.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Sends the head of a call.
    pub(crate) fn head(&mut self, stream: u32, flags: u8, headers: &[u8]) {
        self.send(&frame(HEADERS, END_HEADERS | flags, stream, headers));
    }

    /// A whole call of one message.
    pub(crate) fn call(&mut self, stream: u32, path: &str, bytes: &[u8]) {
        let head = frame(HEADERS, END_HEADERS, stream, &headers(path, &[]));
        self.send(&[head, frame(DATA, END_STREAM, stream, &message(bytes))].concat());
    }

    /// Puts back what was read from the socket.
    pub(crate) fn unread(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Whether a whole frame has been read.
    pub(crate) fn has_whole(&self) -> bool {
        let Some([a, b, c]) = self.input.first_chunk::<3>() else { return false };
        self.input.len() >= 9 + u32::from_be_bytes([0, *a, *b, *c]) as usize
    }

    /// The next frame; `None` once the server has closed.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if self.input.len() >= 9 {
                let length = u32::from_be_bytes([0, self.input[0], self.input[1], self.input[2]]);
                let end = 9 + length as usize;
                if self.input.len() >= end {
                    let bytes: Vec<u8> = self.input.drain(..end).collect();
                    let stream = u32::from_be_bytes(bytes[5..9].try_into().expect("four"));
                    let payload = bytes[9..].to_vec();
                    return Some(Frame { kind: bytes[3], flags: bytes[4], stream, payload });
                }
            }
            let mut buffer = [0; 65_536];
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Waits for the end of a call, or of the connection.
    pub(crate) fn ended(&mut self, stream: u32) -> Ended {
        let mut ended = Ended::default();
        loop {
            let Some(frame) = self.next() else {
                ended.is_closed = true;
                return ended;
            };
            if frame.kind == GOAWAY {
                ended.away = Some(frame.number(4));
            }
            if frame.stream != stream || stream == 0 {
                continue;
            }
            match frame.kind {
                RESET => {
                    ended.reset = Some(frame.number(0));
                    return ended;
                }
                HEADERS => {
                    ended.headers.extend(decode(&frame.payload));
                    let find = |name: &str| {
                        let found = ended.headers.iter().find(|(one, _)| one == name);
                        found.map_or(String::new(), |(_, value)| value.clone())
                    };
                    (ended.http, ended.status) = (find(":status"), find("grpc-status"));
                }
                DATA => ended.data.extend_from_slice(&frame.payload),
                _ => {}
            }
            if frame.flags & END_STREAM != 0 && [HEADERS, DATA].contains(&frame.kind) {
                return ended;
            }
        }
    }

    /// Waits until the server has closed; returns the last reason of GOAWAY.
    pub(crate) fn away(&mut self) -> Option<u32> {
        self.ended(0).away
    }
}

/// Headers without a table. A symbol of more than six bits is read as the end of its text.
fn decode(mut block: &[u8]) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    while let Some(first) = block.first() {
        match first {
            0x80.. => {
                let index = integer(&mut block, 7);
                let known = match index {
                    8 => (":status", "200"),
                    13 => (":status", "404"),
                    12 => (":status", "400"),
                    _ => ("?", "?"),
                };
                headers.push((known.0.to_owned(), known.1.to_owned()));
            }
            0x20..0x40 => drop(integer(&mut block, 5)),
            _ => {
                let bits = if *first >= 0x40 { 6 } else { 4 };
                let name = match integer(&mut block, bits) {
                    0 => text(&mut block),
                    8..=14 => ":status".to_owned(),
                    31 => "content-type".to_owned(),
                    22 => "allow".to_owned(),
                    index => format!("#{index}"),
                };
                headers.push((name, text(&mut block)));
            }
        }
    }
    headers
}

fn integer(block: &mut &[u8], bits: u32) -> usize {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(block[0]) & most;
    *block = &block[1..];
    if value < most {
        return value;
    }
    for shift in (0..).step_by(7) {
        let byte = block[0];
        *block = &block[1..];
        value += usize::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    value
}

fn text(block: &mut &[u8]) -> String {
    let is_huffman = block[0] >= 128;
    let length = integer(block, 7);
    let (bytes, rest) = block.split_at(length);
    *block = rest;
    if !is_huffman {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    const FIVE: &[u8] = b"012aceiost";
    const SIX: &[u8] = b" %-./3456789=A_bdfghlmnpru";
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    let number = |bits: &[u8]| bits.iter().fold(0, |sum, bit| sum * 2 + usize::from(*bit));
    let (mut out, mut rest) = (String::new(), &bits[..]);
    while rest.len() >= 5 {
        let five = number(&rest[..5]);
        if let Some(symbol) = FIVE.get(five) {
            out.push(char::from(*symbol));
            rest = &rest[5..];
            continue;
        }
        let Some(six) = rest.get(..6).map(number) else { break };
        let Some(symbol) = SIX.get(six - 20) else { break };
        out.push(char::from(*symbol));
        rest = &rest[6..];
    }
    out
}
