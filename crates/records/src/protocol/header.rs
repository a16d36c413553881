//! The eight bytes before every message (`Protocol-Messages.md`, "Message Header").

use wire::ProtocolError;

use super::Order;

/// How long a header is.
pub const HEADER_BYTES: usize = 8;

/// The version of the protocol that this program speaks.
pub const VERSION: u8 = 2;

const MAGIC: u8 = 0xCA;
const CONTROL: u8 = 0x01;
const SEGMENT: u8 = 0x30;
const FROM_SERVER: u8 = 0x40;
const BIG: u8 = 0x80;

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The one that connected.
    Client,
    /// The one that was connected to.
    Server,
}

/// What part of a message the payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// All of it.
    Whole,
    /// Its beginning.
    First,
    /// Something between.
    Middle,
    /// Its end.
    Last,
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// What an application message is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Command {
            $($(#[$doc])* $name,)*
            /// One that this program doesn't know.
            Other(u8),
        }

        impl Command {
            /// Its number.
            #[inline]
            pub fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Other(code) => code,
                }
            }
        }

        impl From<u8> for Command {
            #[inline]
            fn from(code: u8) -> Self {
                match code {
                    $($code => Self::$name,)*
                    code => Self::Other(code),
                }
            }
        }
    };
}

commands! {
    /// A server is there.
    Beacon = 0x00,
    /// The server offers methods of introduction, and the client introduces itself.
    Validation = 0x01,
    /// Is the other side alive?
    Echo = 0x02,
    /// Who has these channels?
    Search = 0x03,
    /// I have these channels.
    SearchResponse = 0x04,
    /// More of an introduction; unused.
    Authentication = 0x05,
    /// Rights have changed; unused.
    RightsChange = 0x06,
    /// Opens a channel.
    CreateChannel = 0x07,
    /// Closes a channel.
    DestroyChannel = 0x08,
    /// The introduction is accepted.
    Validated = 0x09,
    /// Reads.
    Get = 0x0A,
    /// Writes.
    Put = 0x0B,
    /// Writes, then reads.
    PutGet = 0x0C,
    /// Subscribes.
    Monitor = 0x0D,
    /// Reads or writes a part of an array.
    Array = 0x0E,
    /// Forgets an operation.
    DestroyRequest = 0x0F,
    /// Has a record do what it does.
    Process = 0x10,
    /// Asks for a type.
    GetField = 0x11,
    /// A text for a human.
    Message = 0x12,
    /// Nobody uses it.
    MultipleData = 0x13,
    /// Calls a procedure.
    Rpc = 0x14,
    /// Stops an operation that is under way.
    CancelRequest = 0x15,
    /// Where a forwarded search came from.
    OriginTag = 0x16,
}

/// A control message; its payload size is its argument.
pub mod control {
    /// How many bytes have been sent; unused.
    pub const MARK: u8 = 0;
    /// How many bytes have been received; unused.
    pub const ACKNOWLEDGE: u8 = 1;
    /// The order of bytes from now on.
    pub const SET_ORDER: u8 = 2;
    /// Asks for [`ECHO_RESPONSE`].
    pub const ECHO_REQUEST: u8 = 3;
    /// Answers with the same argument.
    pub const ECHO_RESPONSE: u8 = 4;
}

/// A header, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender's version of the protocol.
    pub version: u8,
    /// Whether it is a control message, whose `size` is an argument and which has no payload.
    pub is_control: bool,
    /// What part of a message this is.
    pub segment: Segment,
    /// Who sent it.
    pub sender: Sender,
    /// The order of bytes.
    pub order: Order,
    /// The command, or the number of the control message.
    pub code: u8,
    /// Bytes of payload that follow.
    pub size: u32,
}

impl Header {
    /// The header of an application message in one piece.
    #[inline]
    pub fn whole(sender: Sender, order: Order, command: Command, size: u32) -> Self {
        let (is_control, segment) = (false, Segment::Whole);
        Self { version: VERSION, is_control, segment, sender, order, code: command.code(), size }
    }

    /// A control message.
    pub fn control(sender: Sender, order: Order, code: u8, argument: u32) -> Self {
        let segment = Segment::Whole;
        Self { version: VERSION, is_control: true, segment, sender, order, code, size: argument }
    }

    /// Reads a header.
    ///
    /// # Errors
    /// When it is not of this protocol, or contradicts itself.
    #[inline]
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Self, ProtocolError> {
        let [magic, version, flags, code, size @ ..] = *bytes;
        if magic != MAGIC || version == 0 {
            return Err(foreign(bytes));
        }
        let order = if flags & BIG == 0 { Order::Little } else { Order::Big };
        let segment = match (flags & SEGMENT) >> 4 {
            0 => Segment::Whole,
            1 => Segment::First,
            2 => Segment::Last,
            _ => Segment::Middle,
        };
        let size = match order {
            Order::Little => u32::from_le_bytes(size),
            Order::Big => u32::from_be_bytes(size),
        };
        let sender = if flags & FROM_SERVER == 0 { Sender::Client } else { Sender::Server };
        Ok(Self { version, is_control: flags & CONTROL != 0, segment, sender, order, code, size })
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut flags = match self.segment {
            Segment::Whole => 0x00,
            Segment::First => 0x10,
            Segment::Last => 0x20,
            Segment::Middle => 0x30,
        };
        flags |= if self.is_control { CONTROL } else { 0 };
        flags |= if self.sender == Sender::Server { FROM_SERVER } else { 0 };
        let size = match self.order {
            Order::Little => self.size.to_le_bytes(),
            Order::Big => {
                flags |= BIG;
                self.size.to_be_bytes()
            }
        };
        let [a, b, c, d] = size;
        [MAGIC, self.version, flags, self.code, a, b, c, d]
    }

    /// The command of an application message.
    #[inline]
    pub fn command(&self) -> Command {
        self.code.into()
    }
}

/// The fault of bytes that are no header of this protocol.
#[cold]
fn foreign(bytes: &[u8; HEADER_BYTES]) -> ProtocolError {
    let why = match bytes[0] {
        MAGIC => format!("it has version 0, and {VERSION} is spoken here"),
        first => format!("it begins with the byte {first:02x}, not {MAGIC:02x}"),
    };
    let shown = bytes.escape_ascii();
    ProtocolError::new(format!("\"{shown}\" is the header of no pvAccess message: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        for flags in (0..=255_u8).filter(|flags| flags & 0x0e == 0) {
            let bytes = [0xCA, 2, flags, 0x0d, 1, 2, 3, 4];
            assert_eq!(Header::read(&bytes).unwrap().bytes(), bytes);
        }
        for code in 0..=255 {
            assert_eq!(Command::from(code).code(), code);
        }
        let said = |bytes| Header::read(bytes).unwrap_err().to_string();
        let http = said(b"HTTP/1.1");
        assert!(http.contains("\"HTTP/1.1\"") && http.contains("byte 48, not ca"), "{http}");
        assert!(said(&[0xCA, 0, 0, 0, 0, 0, 0, 0]).contains("version 0"));
    }
}
