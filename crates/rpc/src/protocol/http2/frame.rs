//! Frames: the nine bytes before each, their kinds and flags, and the names of errors.

/// What a client sends before its first frame.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The bytes before each frame's own.
pub const HEAD_BYTES: usize = 9;

/// The largest frame's own bytes, here and there: the least that each side has to take, and what
/// most clients and servers keep to.
pub const MAX_FRAME_BYTES: usize = 16_384;

/// The kinds of frames (RFC 9113, section 6).
pub mod kind {
    /// Bytes of a message.
    pub const DATA: u8 = 0;
    /// The beginning of a header block.
    pub const HEADERS: u8 = 1;
    /// The end of a stream, before it is over.
    pub const RST_STREAM: u8 = 3;
    /// What a side can take.
    pub const SETTINGS: u8 = 4;
    /// A stream that the server begins.
    pub const PUSH_PROMISE: u8 = 5;
    /// To be answered.
    pub const PING: u8 = 6;
    /// The end of a connection, after the streams up to some number.
    pub const GOAWAY: u8 = 7;
    /// More bytes may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a header block.
    pub const CONTINUATION: u8 = 9;
}

/// The flags of frames.
pub mod flag {
    /// Of DATA and HEADERS: nothing more of this stream.
    pub const END_STREAM: u8 = 1;
    /// Of SETTINGS and PING: an answer.
    pub const ACK: u8 = 1;
    /// Of HEADERS and CONTINUATION: the header block is whole.
    pub const END_HEADERS: u8 = 4;
    /// Of DATA and HEADERS: padding follows.
    pub const PADDED: u8 = 8;
    /// Of HEADERS: five bytes of priority come first.
    pub const PRIORITY: u8 = 0x20;
}

/// The settings that this client knows.
pub mod setting {
    /// The size of the table of header fields.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the server may begin streams.
    pub const ENABLE_PUSH: u16 = 2;
    /// How many streams there may be at once.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// How many bytes of a stream may be sent before more are granted.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The largest frame.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// The largest list of header fields.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Error codes (RFC 9113, section 7).
pub mod code {
    /// Nothing is wrong.
    pub const NO_ERROR: u32 = 0;
    /// The stream was not begun, and may be asked again.
    pub const REFUSED_STREAM: u32 = 7;
    /// It is no longer wanted.
    pub const CANCEL: u32 = 8;
}

/// The name of an error code.
pub fn code_name(code: u32) -> &'static str {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).copied().unwrap_or("an unknown error code")
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many bytes follow.
    pub len: usize,
    /// One of [`kind`].
    pub kind: u8,
    /// Some of [`flag`].
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

impl Head {
    /// Reads it. The reserved bit is passed over.
    #[inline]
    pub fn read(bytes: [u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = bytes;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        Self { len, kind, flags, stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]) }
    }

    /// How it is written.
    #[inline]
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = (self.len as u32).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
