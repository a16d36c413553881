//! The responses on one connection, parsed as their bytes arrive.

use super::head::{Body, Head, START, no_status_line, read_number, split_line};
use super::limits::{MAX_HEAD_BYTES, MAX_INTERIM, MAX_LINE_BYTES};
use wire::ProtocolError;

/// One parsed part of a response, as [`Responses::read`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The head of a final response.
    Head(Head<'a>),
    /// The next bytes of its body, at least one.
    Body(&'a [u8]),
    /// The response is complete.
    End {
        /// Whether it is the last one on this connection.
        closes: bool,
    },
    /// More bytes are needed.
    More,
}

/// What the end of the connection means for the response in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No response had begun.
    Between,
    /// It ends the response in progress, which is complete.
    Whole,
    /// The response in progress is truncated.
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// This many bytes of the body follow.
    Length(u64),
    ChunkLine,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    UntilClose,
    Whole,
}

/// Parses responses in the order of their requests. Holds its position, and no bytes.
#[derive(Debug)]
pub struct Responses {
    state: State,
    closes: bool,
    /// Bytes of an unfinished head that are scanned already, up to the start of a line.
    scanned: usize,
    /// Whether a byte of the current head has been seen.
    has_begun: bool,
    interim: u32,
    trailer_bytes: usize,
}

impl Default for Responses {
    fn default() -> Self {
        Self::new()
    }
}

impl Responses {
    /// A parser before the first response.
    pub fn new() -> Self {
        Self {
            state: State::Head,
            closes: false,
            scanned: 0,
            has_begun: false,
            interim: 0,
            trailer_bytes: 0,
        }
    }

    /// Parses the next part of `bytes`: those that the last call has not used, and those received
    /// since. Returns how many are used, also with [`Part::More`]. Interim responses are skipped.
    /// `is_bodiless`: the oldest unanswered request is a `HEAD`.
    ///
    /// # Errors
    /// When this isn't an HTTP/1 response, or exceeds a limit; the bytes after it have no meaning.
    #[inline]
    pub fn read<'a>(
        &mut self,
        bytes: &'a [u8],
        is_bodiless: bool,
    ) -> Result<(usize, Part<'a>), ProtocolError> {
        match self.state {
            State::Head => self.read_head(bytes, is_bodiless),
            State::Length(left) => {
                let (piece, rest) = split_piece(bytes, left);
                self.state = if rest == 0 { State::Whole } else { State::Length(rest) };
                Ok(body(piece))
            }
            State::UntilClose => Ok(body(bytes)),
            State::Whole => Ok((0, self.end())),
            _ => self.read_chunked(bytes),
        }
    }

    /// The server has closed the connection. Returns what that means for the current response.
    pub fn closed(&mut self) -> Ending {
        match self.state {
            State::UntilClose | State::Whole => {
                self.end();
                Ending::Whole
            }
            State::Head if !self.has_begun => Ending::Between,
            _ => Ending::Cut,
        }
    }

    fn end(&mut self) -> Part<'static> {
        self.state = State::Head;
        self.trailer_bytes = 0;
        Part::End { closes: self.closes }
    }

    #[inline]
    fn read_head<'a>(
        &mut self,
        bytes: &'a [u8],
        is_bodiless: bool,
    ) -> Result<(usize, Part<'a>), ProtocolError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some(length) = self.head_length(rest)? else { return Ok((used, Part::More)) };
            let head = Head::read(&rest[..length], is_bodiless)?;
            used += length;
            (self.scanned, self.has_begun) = (0, false);
            match head.status {
                101 => return Err(ProtocolError::new("the server switches protocols, unasked")),
                100..=199 if self.interim == MAX_INTERIM => {
                    return Err(ProtocolError::new("too many interim answers"));
                }
                100..=199 => self.interim += 1,
                _ => {
                    self.interim = 0;
                    self.closes = head.closes;
                    self.state = match head.body {
                        Body::Length(0) => State::Whole,
                        Body::Length(length) => State::Length(length),
                        Body::Chunked => State::ChunkLine,
                        Body::UntilClose => State::UntilClose,
                    };
                    return Ok((used, Part::Head(head)));
                }
            }
        }
    }

    /// The length of the head, once its empty line has arrived. No line is scanned twice.
    #[inline]
    fn head_length(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProtocolError> {
        self.has_begun = !bytes.is_empty();
        // Bytes that can't begin a head are refused before more are waited for.
        if !START.starts_with(&bytes[..bytes.len().min(START.len())]) {
            return Err(no_status_line());
        }
        let mut at = self.scanned.min(bytes.len());
        while let Some((line, rest)) = split_line(&bytes[at..]) {
            at = bytes.len() - rest.len();
            if line.is_empty() && at <= MAX_HEAD_BYTES {
                self.scanned = 0;
                return Ok(Some(at));
            }
            self.scanned = at;
        }
        if bytes.len() > MAX_HEAD_BYTES {
            let limit = MAX_HEAD_BYTES / 1024;
            return Err(ProtocolError::new(format!(
                "the answer's head is larger than {limit} KiB"
            )));
        }
        Ok(None)
    }

    fn read_chunked<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Part<'a>), ProtocolError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match self.state {
                State::ChunkLine => {
                    let Some((line, length)) = whole_line(rest)? else { break };
                    let size = read_chunk_line(line)?;
                    used += length;
                    self.state = if size == 0 { State::Trailers } else { State::Chunk(size) };
                }
                State::Chunk(left) => {
                    let (piece, left) = split_piece(rest, left);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    let (length, part) = body(piece);
                    return Ok((used + length, part));
                }
                State::ChunkEnd => {
                    let end = &rest[..rest.len().min(2)];
                    if !b"\r\n".starts_with(end) {
                        return Err(ProtocolError::new("a chunk is longer than it says"));
                    }
                    if end.len() < 2 {
                        break;
                    }
                    used += 2;
                    self.state = State::ChunkLine;
                }
                State::Trailers => {
                    let Some((line, length)) = whole_line(rest)? else { break };
                    used += length;
                    self.trailer_bytes += length;
                    if self.trailer_bytes > MAX_HEAD_BYTES {
                        return Err(ProtocolError::new("the answer's trailers are too large"));
                    }
                    if line.is_empty() {
                        return Ok((used, self.end()));
                    }
                }
                State::Head | State::Length(_) | State::UntilClose | State::Whole => break,
            }
        }
        Ok((used, Part::More))
    }
}

/// A piece of a body, or [`Part::More`] if it is empty.
#[inline]
fn body(piece: &[u8]) -> (usize, Part<'_>) {
    (piece.len(), if piece.is_empty() { Part::More } else { Part::Body(piece) })
}

/// Splits off the bytes that belong to an item of which `left` bytes are missing. Returns them and
/// the number still missing after them.
#[inline]
fn split_piece(bytes: &[u8], left: u64) -> (&[u8], u64) {
    let take = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    (&bytes[..take], left - take as u64)
}

/// The first line without its end, and its length including it.
fn whole_line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, ProtocolError> {
    match split_line(bytes) {
        Some((line, rest)) if bytes.len() - rest.len() <= MAX_LINE_BYTES => {
            Ok(Some((line, bytes.len() - rest.len())))
        }
        None if bytes.len() < MAX_LINE_BYTES => Ok(None),
        _ => Err(ProtocolError::new("a line between the answer's chunks is too long")),
    }
}

/// `1a3;name=value`: the size of a chunk; extensions are ignored.
fn read_chunk_line(line: &[u8]) -> Result<u64, ProtocolError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    read_number(digits.trim_ascii_end(), 16)
        .ok_or_else(|| ProtocolError::new("a chunk does not say its size"))
}
