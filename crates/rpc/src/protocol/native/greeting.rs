//! The greetings that a connection begins with, little-endian. The client's: magic (4 bytes),
//! version (2), bytes of its token (2), the largest message that it takes (4), the token. The
//! server's: magic, version, count of methods (2), the largest message that it takes (4), calls
//! that may be outstanding (4), bytes of the table (4), and the table: for each method a byte of
//! its kind (1 the client streams, 2 the server does), two bytes of length and its name,
//! `/package.Service/Method`. A method's row is its number, from 0 on.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::fault::{Fault, MOST_SHOWN};

/// The version that is spoken.
pub const VERSION: u16 = 1;

/// What a greeting begins with. No method of HTTP and no record of TLS begins with its first byte.
pub const MAGIC: [u8; 4] = *b"\x9blrf";

/// The first byte of a connection with own frames.
pub const FIRST_BYTE: u8 = MAGIC[0];

/// The first byte of what a server of TLS answers to anything else.
const TLS_ALERT: u8 = 21;

/// The most bytes of a token.
pub const MOST_TOKEN_BYTES: usize = 512;

/// The most bytes of the table of methods.
pub const MOST_TABLE_BYTES: usize = 64 << 10;

const CLIENT_BYTES: usize = 12;
const SERVER_BYTES: usize = 20;

/// The greeting of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientGreeting {
    /// The largest message that it takes, in bytes.
    pub max_message: u32,
    /// Its token; none where empty.
    pub token: Bytes,
}

/// A method that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// `/package.Service/Method`.
    pub name: String,
    /// The client sends any number of messages, not one.
    pub client_streams: bool,
    /// The server does.
    pub server_streams: bool,
}

impl Method {
    /// Whether it has one message for one message.
    pub fn is_unary(&self) -> bool {
        !self.client_streams && !self.server_streams
    }

    fn kind(&self) -> u8 {
        u8::from(self.client_streams) | u8::from(self.server_streams) << 1
    }
}

/// The greeting of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGreeting {
    /// The largest message that it takes, in bytes.
    pub max_message: u32,
    /// Calls of a connection that may be outstanding.
    pub max_calls: u32,
    /// The methods by their numbers.
    pub methods: Vec<Method>,
}

/// Checks magic and version as far as they have come; returns whether `bytes` have.
fn begins(buffer: &BytesMut, bytes: usize) -> Result<bool, Fault> {
    let length = buffer.len().min(MAGIC.len());
    if buffer[..length] != MAGIC[..length] {
        return Err(if buffer[0] == TLS_ALERT { Fault::Tls } else { no_magic(buffer) });
    }
    if let Some([_, _, _, _, a, b]) = buffer.first_chunk() {
        let version = u16::from_le_bytes([*a, *b]);
        if version != VERSION {
            return Err(Fault::Version(version));
        }
    }
    Ok(buffer.len() >= bytes)
}

fn no_magic(bytes: &[u8]) -> Fault {
    let mut first = [0; MOST_SHOWN];
    let length = bytes.len().min(MOST_SHOWN);
    first[..length].copy_from_slice(&bytes[..length]);
    Fault::Magic(first, length)
}

impl ClientGreeting {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut BytesMut) {
        let token = &self.token[..self.token.len().min(MOST_TOKEN_BYTES)];
        out.put_slice(&MAGIC);
        out.put_u16_le(VERSION);
        out.put_u16_le(token.len() as u16);
        out.put_u32_le(self.max_message);
        out.put_slice(token);
    }

    /// Takes it from the buffer; `None` until all of it has come.
    ///
    /// # Errors
    /// When it is no greeting, of another version, or too long.
    pub fn decode(buffer: &mut BytesMut) -> Result<Option<Self>, Fault> {
        if !begins(buffer, CLIENT_BYTES)? {
            return Ok(None);
        }
        let mut head = &buffer[6..CLIENT_BYTES];
        let (token_bytes, max_message) = (usize::from(head.get_u16_le()), head.get_u32_le());
        if token_bytes > MOST_TOKEN_BYTES {
            return Err(Fault::Greeting(token_bytes));
        }
        if buffer.len() < CLIENT_BYTES + token_bytes {
            return Ok(None);
        }
        buffer.advance(CLIENT_BYTES);
        Ok(Some(Self { max_message, token: buffer.split_to(token_bytes).freeze() }))
    }
}

impl ServerGreeting {
    /// Appends its bytes. Methods beyond [`MOST_TABLE_BYTES`] are left out.
    pub fn encode(&self, out: &mut BytesMut) {
        let mut table = BytesMut::new();
        let mut count = 0;
        for method in &self.methods {
            let name = method.name.as_bytes();
            let fits = table.len() + 3 + name.len() <= MOST_TABLE_BYTES;
            let Some(length) = u16::try_from(name.len()).ok().filter(|_| fits) else { break };
            table.put_u8(method.kind());
            table.put_u16_le(length);
            table.put_slice(name);
            count += 1;
        }
        out.put_slice(&MAGIC);
        out.put_u16_le(VERSION);
        out.put_u16_le(count);
        out.put_u32_le(self.max_message);
        out.put_u32_le(self.max_calls);
        out.put_u32_le(table.len() as u32);
        out.put_slice(&table);
    }

    /// Takes it from the buffer; `None` until all of it has come.
    ///
    /// # Errors
    /// When it is no greeting, of another version, or its table is too long or isn't one.
    pub fn decode(buffer: &mut BytesMut) -> Result<Option<Self>, Fault> {
        if !begins(buffer, SERVER_BYTES)? {
            return Ok(None);
        }
        let mut head = &buffer[6..SERVER_BYTES];
        let (count, max_message) = (head.get_u16_le(), head.get_u32_le());
        let (max_calls, table_bytes) = (head.get_u32_le(), head.get_u32_le() as usize);
        if table_bytes > MOST_TABLE_BYTES {
            return Err(Fault::Greeting(table_bytes));
        }
        if buffer.len() < SERVER_BYTES + table_bytes {
            return Ok(None);
        }
        buffer.advance(SERVER_BYTES);
        let mut table = buffer.split_to(table_bytes);
        let mut methods = Vec::new();
        for _ in 0..count {
            methods.push(method(&mut table)?);
        }
        if !table.is_empty() {
            return Err(Fault::Greeting(table.len()));
        }
        Ok(Some(Self { max_message, max_calls, methods }))
    }
}

fn method(table: &mut BytesMut) -> Result<Method, Fault> {
    let missing = Fault::Greeting(table.len());
    let kind = table.try_get_u8().map_err(|_| missing)?;
    let length = usize::from(table.try_get_u16_le().map_err(|_| missing)?);
    if length > table.len() || kind > 3 {
        return Err(missing);
    }
    let name = table.split_to(length);
    let name = std::str::from_utf8(&name).map(str::to_owned).map_err(|_| Fault::Name)?;
    Ok(Method { name, client_streams: kind & 1 != 0, server_streams: kind & 2 != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_comes_back_once_all_of_it_has_come() {
        let client = ClientGreeting { max_message: 7, token: Bytes::from_static(b"secret") };
        let method = |name: &str, client_streams, server_streams| Method {
            name: name.to_owned(),
            client_streams,
            server_streams,
        };
        let methods = vec![method("/a.B/C", false, true), method("", true, false)];
        let server = ServerGreeting { max_message: 8, max_calls: 9, methods };
        let (mut one, mut two) = (BytesMut::new(), BytesMut::new());
        client.encode(&mut one);
        server.encode(&mut two);
        for length in 0..one.len() {
            assert_eq!(ClientGreeting::decode(&mut BytesMut::from(&one[..length])), Ok(None));
        }
        for length in 0..two.len() {
            assert_eq!(ServerGreeting::decode(&mut BytesMut::from(&two[..length])), Ok(None));
        }
        assert_eq!(ClientGreeting::decode(&mut one), Ok(Some(client)));
        assert_eq!(ServerGreeting::decode(&mut two), Ok(Some(server)));
        assert!(one.is_empty() && two.is_empty());
    }

    #[test]
    fn other_protocols_versions_and_tables_are_faults() {
        let decode = |bytes: &[u8]| ServerGreeting::decode(&mut BytesMut::from(bytes));
        assert_eq!(decode(b"PRI"), Err(no_magic(b"PRI")));
        assert_eq!(decode(&[21, 3, 3, 0, 2, 2, 80]), Err(Fault::Tls));
        assert_eq!(decode(b"\x9blrf\x02\0"), Err(Fault::Version(2)));
        let head = |count: u8, table: &[u8]| {
            let mut bytes = b"\x9blrf\x01\0".to_vec();
            bytes.extend([count, 0, 0, 0, 0, 0, 0, 0, 0, 0, table.len() as u8, 0, 0, 0]);
            bytes.extend(table);
            bytes
        };
        assert_eq!(decode(&head(1, &[0, 2, 0, b'a'])), Err(Fault::Greeting(4)), "a name too long");
        assert_eq!(decode(&head(1, &[0, 1, 0, 0xff])), Err(Fault::Name));
        assert_eq!(decode(&head(1, &[4, 0, 0])), Err(Fault::Greeting(3)), "a kind of its own");
        assert_eq!(decode(&head(0, &[0, 0])), Err(Fault::Greeting(2)), "more than is counted");
    }
}
