//! One connection of a client: settings, streams, flow control in both directions.
//!
//! Who uses it names each stream by a tag of its own and says what to send; what comes back is
//! handed to [`Streams`].

use std::borrow::Cow;

use wire::{Input, Output, ProtocolError};

use super::frame::{
    HEAD_BYTES, Head, MAX_FRAME_BYTES, PREFACE, code, code_name, flag, kind, setting,
};
use super::head::{Asks, Path, RequestHeads};
use super::ids::Ids;

/// The most bytes of a header block; its fields decoded may have as many.
pub const MAX_BLOCK_BYTES: usize = 16_384;

/// The most frames that a header block goes on in.
pub const MAX_CONTINUATIONS: u32 = 32;

/// How many bytes of a stream the server may send beyond what is read.
pub const STREAM_WINDOW: u32 = 2 << 20;

/// How many bytes of all streams the server may send beyond what is read.
pub const CONNECTION_WINDOW: u32 = 16 << 20;

/// A server that has not taken this many bytes, and sends frames that have to be answered, is left.
pub const MAX_OWED_BYTES: usize = 4 << 20;

/// The window of both sides before anyone says otherwise.
const DEFAULT_WINDOW: u32 = 65_535;

/// No window may be larger.
const MAX_WINDOW: i64 = (1 << 31) - 1;

/// How an alert of TLS begins: its kind, and a version 3.x.
const TLS_ALERT: [u8; 2] = [21, 3];

/// Streams have ids up to this.
const MAX_ID: u32 = (1 << 31) - 1;

/// Takes what streams bring. A stream is over after a call with `ends`, and after a reset.
pub trait Streams {
    /// A whole header block.
    fn headers(&mut self, tag: u32, block: &[u8], ends: bool);

    /// Bytes, maybe none.
    fn data(&mut self, tag: u32, bytes: &[u8], ends: bool);

    /// The server has ended the stream with this error code. With [`code::REFUSED_STREAM`] it has
    /// not begun it.
    fn reset(&mut self, tag: u32, code: u32);
}

/// What is known of a stream by its tag.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// 0 when there is none.
    id: u32,
    /// How many bytes may be sent.
    window: i64,
    /// Bytes read that are not granted again.
    read: u32,
    /// Nothing more is sent.
    is_half_closed: bool,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct Client {
    heads: RequestHeads,
    ids: Ids,
    /// By tag.
    streams: Vec<Stream>,
    /// The id of the next stream.
    next: u32,
    /// How many bytes of all streams may be sent.
    window: i64,
    /// How many bytes of a new stream may be sent.
    stream_window: i64,
    /// The most streams at once.
    most: u32,
    /// Bytes of all streams that are read and not granted again.
    read: u32,
    /// The server's settings have come.
    is_ready: bool,
    /// The server begins no more streams.
    is_leaving: bool,
    /// Whether more may be sent than before.
    has_room: bool,
    /// Streams to be ended, which their users have left.
    left: Vec<u32>,
    /// What is still to come of a frame of bytes.
    partial: Option<Head>,
    /// A header block that is not whole: its stream, flags, and frames.
    unfinished: Option<(Head, u32)>,
    block: Vec<u8>,
}

#[cold]
fn broken(what: impl Into<Cow<'static, str>>) -> ProtocolError {
    ProtocolError::new(format!("HTTP/2: the server {}", what.into()))
}

fn number(payload: &[u8]) -> Option<u32> {
    payload.try_into().ok().map(u32::from_be_bytes)
}

/// The bytes of a frame without its padding, and without priority.
fn unpadded(head: Head, mut payload: &[u8]) -> Option<&[u8]> {
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (first, rest) = payload.split_first()?;
        (padding, payload) = (usize::from(*first), rest);
    }
    if head.kind == kind::HEADERS && head.has(flag::PRIORITY) {
        payload = payload.get(5..)?;
    }
    payload.get(..payload.len().checked_sub(padding)?)
}

impl Client {
    /// A connection that asks for `paths`.
    pub fn new(asks: &Asks, paths: &[Path<'_>]) -> Self {
        Self {
            heads: RequestHeads::new(asks, paths),
            ids: Ids::default(),
            streams: Vec::new(),
            next: 1,
            window: i64::from(DEFAULT_WINDOW),
            stream_window: i64::from(DEFAULT_WINDOW),
            most: u32::MAX,
            read: 0,
            is_ready: false,
            is_leaving: false,
            has_room: false,
            left: Vec::new(),
            partial: None,
            unfinished: None,
            block: Vec::new(),
        }
    }

    /// Writes what comes first.
    pub fn open(&mut self, out: &mut Output) {
        let settings = [
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, MAX_BLOCK_BYTES as u32),
        ];
        out.put(PREFACE);
        let len = 6 * settings.len();
        out.put(&Head { len, kind: kind::SETTINGS, flags: 0, stream: 0 }.bytes());
        for (name, value) in settings {
            out.put(&name.to_be_bytes());
            out.put(&value.to_be_bytes());
        }
        put_number(kind::WINDOW_UPDATE, 0, CONNECTION_WINDOW - DEFAULT_WINDOW, out);
    }

    /// Whether the server's settings have come: streams may be begun from then on.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the server takes no more streams and all that it had are over.
    pub fn is_over(&self) -> bool {
        (self.is_leaving || self.next > MAX_ID) && self.ids.len() == 0
    }

    /// Whether another stream may be begun now.
    #[inline]
    pub fn may_begin(&self) -> bool {
        let has_place = (self.ids.len() as u64) < u64::from(self.most);
        has_place && self.is_ready && !self.is_leaving && self.next <= MAX_ID
    }

    /// Whether there is more room to send than at the last call, or another stream may be begun.
    #[inline]
    pub fn take_has_room(&mut self) -> bool {
        std::mem::take(&mut self.has_room)
    }

    /// Begins a stream to path number `path`. Call it where [`Client::may_begin`].
    #[inline]
    pub fn begin(&mut self, tag: u32, path: usize, out: &mut Output) {
        debug_assert!(self.may_begin());
        self.leave_streams(out);
        let index = tag as usize;
        if index >= self.streams.len() {
            self.streams.resize(index + 1, Stream::default());
        }
        let id = self.next;
        self.next += 2;
        debug_assert_eq!(self.streams[index].id, 0, "a tag has one stream at a time");
        self.streams[index] =
            Stream { id, window: self.stream_window, read: 0, is_half_closed: false };
        self.ids.insert(id, tag);
        let into = out.tail();
        let start = into.len();
        into.extend_from_slice(&[0; HEAD_BYTES]);
        self.heads.put(path, into);
        let len = into.len() - start - HEAD_BYTES;
        let head = Head { len, kind: kind::HEADERS, flags: flag::END_HEADERS, stream: id };
        into[start..start + HEAD_BYTES].copy_from_slice(&head.bytes());
    }

    /// How many bytes the next frame of the stream may have; none where it is over.
    #[inline]
    pub fn room(&self, tag: u32) -> usize {
        let stream = self.streams.get(tag as usize).copied().unwrap_or_default();
        let room = stream.window.min(self.window).clamp(0, MAX_FRAME_BYTES as i64);
        if stream.id == 0 || stream.is_half_closed { 0 } else { room as usize }
    }

    /// Writes what is before the next `len` bytes of the stream, at most [`Client::room`]; the
    /// caller appends them. With `ends` they are its last.
    #[inline]
    pub fn data(&mut self, tag: u32, len: usize, ends: bool, out: &mut Output) {
        let stream = &mut self.streams[tag as usize];
        debug_assert!(!stream.is_half_closed && stream.id != 0);
        stream.window -= len as i64;
        stream.is_half_closed = ends;
        self.window -= len as i64;
        let flags = if ends { flag::END_STREAM } else { 0 };
        out.put(&Head { len, kind: kind::DATA, flags, stream: stream.id }.bytes());
    }

    /// Leaves a stream that its user waits for no longer; the tag is free. The server learns of it
    /// with what is sent next.
    pub fn leave(&mut self, tag: u32) {
        let stream = self.streams.get_mut(tag as usize).map(std::mem::take).unwrap_or_default();
        if self.ids.remove(stream.id).is_some() {
            self.left.push(stream.id);
            self.has_room = true;
        }
    }

    #[inline]
    fn leave_streams(&mut self, out: &mut Output) {
        while let Some(id) = self.left.pop() {
            put_number(kind::RST_STREAM, id, code::CANCEL, out);
        }
    }

    /// Takes every whole frame of `input`.
    ///
    /// # Errors
    /// Where the server has broken the protocol or a limit, or ends the connection with an error.
    pub fn receive(
        &mut self,
        input: &mut Input,
        streams: &mut impl Streams,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let bytes = input.bytes();
        let mut used = 0;
        let outcome = loop {
            let rest = &bytes[used..];
            let (head, start) = match self.partial.take() {
                Some(head) => (head, 0),
                None => match rest.first_chunk() {
                    Some(head) => (Head::read(*head), HEAD_BYTES),
                    // An alert is shorter than a head.
                    None if !self.is_ready && rest.starts_with(&TLS_ALERT) => {
                        break Err(self.no_frame(rest));
                    }
                    None => break Ok(()),
                },
            };
            if head.len > MAX_FRAME_BYTES || !(self.is_ready || head.kind == kind::SETTINGS) {
                break Err(self.no_frame(rest));
            }
            let Some(payload) = rest.get(start..start + head.len) else {
                used += match head.kind {
                    kind::DATA if !head.has(flag::PADDED) => start,
                    _ => break Ok(()),
                };
                break self.take_part(head, &bytes[used..], streams, out).map(|()| {
                    used = bytes.len();
                });
            };
            if let Err(fault) = self.frame(head, payload, streams, out) {
                break Err(fault);
            }
            used += start + head.len;
        };
        input.consume(used);
        self.leave_streams(out);
        outcome
    }

    /// Takes what has come of a frame of bytes, so that a large one is not kept until it is whole.
    fn take_part(
        &mut self,
        head: Head,
        part: &[u8],
        streams: &mut impl Streams,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let left = Head { len: head.len - part.len(), ..head };
        if !part.is_empty() {
            let flags = head.flags & !flag::END_STREAM;
            self.frame(Head { len: part.len(), flags, ..head }, part, streams, out)?;
        }
        self.partial = Some(left);
        Ok(())
    }

    /// What is at the place of a frame is none, or one that is too large.
    #[cold]
    fn no_frame(&self, bytes: &[u8]) -> ProtocolError {
        if !self.is_ready {
            if bytes.starts_with(&TLS_ALERT) {
                return broken("speaks TLS: in a suite, speaks = { grpc = { tls = true } }");
            }
            let start = bytes[..bytes.len().min(16)].escape_ascii();
            return broken(format!("does not answer in HTTP/2: it begins with \"{start}\""));
        }
        broken(format!("has sent a frame of more than {MAX_FRAME_BYTES} bytes"))
    }

    #[inline]
    fn frame(
        &mut self,
        head: Head,
        payload: &[u8],
        streams: &mut impl Streams,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        if self.unfinished.is_some() && head.kind != kind::CONTINUATION {
            return Err(broken("has begun another frame within a header block"));
        }
        match head.kind {
            kind::DATA => self.take_data(head, payload, streams, out),
            kind::HEADERS => {
                let block = unpadded(head, payload)
                    .ok_or_else(|| broken("has sent more padding than bytes"))?;
                if head.has(flag::END_HEADERS) {
                    return self.take_headers(head, block, streams);
                }
                self.unfinished = Some((head, 0));
                self.block.clear();
                self.block.extend_from_slice(block);
                Ok(())
            }
            _ => self.rarer(head, payload, streams, out),
        }
    }

    /// Whose stream a frame is about; `None` where its user has left it.
    #[inline]
    fn tag_of(&self, id: u32) -> Result<Option<u32>, ProtocolError> {
        let tag = self.ids.find(id);
        if tag.is_none() && (id.is_multiple_of(2) || id >= self.next) {
            return Err(broken(format!("has sent a frame of stream {id}, which was not begun")));
        }
        Ok(tag)
    }

    #[inline]
    fn take_data(
        &mut self,
        head: Head,
        payload: &[u8],
        streams: &mut impl Streams,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let bytes =
            unpadded(head, payload).ok_or_else(|| broken("has sent more padding than bytes"))?;
        let tag = self.tag_of(head.stream)?;
        // Padding counts, and so do frames of streams that were left.
        self.read += head.len as u32;
        if self.read >= CONNECTION_WINDOW / 2 {
            put_number(kind::WINDOW_UPDATE, 0, std::mem::take(&mut self.read), out);
        }
        let Some(tag) = tag else { return Ok(()) };
        let ends = head.has(flag::END_STREAM);
        if ends {
            self.end(tag, head.stream);
        } else {
            let stream = &mut self.streams[tag as usize];
            stream.read += head.len as u32;
            if stream.read >= STREAM_WINDOW / 2 {
                put_number(kind::WINDOW_UPDATE, head.stream, std::mem::take(&mut stream.read), out);
            }
        }
        streams.data(tag, bytes, ends);
        Ok(())
    }

    #[inline]
    fn take_headers(
        &mut self,
        head: Head,
        block: &[u8],
        streams: &mut impl Streams,
    ) -> Result<(), ProtocolError> {
        let Some(tag) = self.tag_of(head.stream)? else { return Ok(()) };
        let ends = head.has(flag::END_STREAM);
        if ends {
            self.end(tag, head.stream);
        }
        streams.headers(tag, block, ends);
        Ok(())
    }

    /// The server says no more of a stream.
    #[inline]
    fn end(&mut self, tag: u32, id: u32) {
        self.ids.remove(id);
        let stream = std::mem::take(&mut self.streams[tag as usize]);
        if !stream.is_half_closed {
            self.left.push(id);
        }
        self.has_room = true;
    }

    /// Frames that not every call has.
    fn rarer(
        &mut self,
        head: Head,
        payload: &[u8],
        streams: &mut impl Streams,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        match head.kind {
            kind::CONTINUATION => return self.continuation(head, payload, streams),
            kind::SETTINGS if !head.has(flag::ACK) => {
                self.settings(payload)?;
                out.put(&Head { len: 0, flags: flag::ACK, ..head }.bytes());
            }
            kind::PING if payload.len() != 8 => {
                return Err(broken("has sent a ping of no 8 bytes"));
            }
            kind::PING if !head.has(flag::ACK) => {
                out.put(&Head { flags: flag::ACK, ..head }.bytes());
                out.put(payload);
            }
            kind::WINDOW_UPDATE => self.grant(head.stream, number(payload))?,
            kind::RST_STREAM => {
                let code = number(payload).ok_or_else(|| broken("has reset a stream wrongly"))?;
                if let Some(tag) = self.tag_of(head.stream)? {
                    self.forget(tag, head.stream);
                    streams.reset(tag, code);
                }
            }
            kind::GOAWAY => self.go_away(payload, streams)?,
            kind::PUSH_PROMISE => return Err(broken("pushes, though it was asked not to")),
            // Others are passed over.
            _ => {}
        }
        if out.len() > MAX_OWED_BYTES {
            return Err(broken("asks for answers, and takes none"));
        }
        Ok(())
    }

    fn continuation(
        &mut self,
        head: Head,
        payload: &[u8],
        streams: &mut impl Streams,
    ) -> Result<(), ProtocolError> {
        let Some((first, frames)) =
            self.unfinished.filter(|(first, _)| first.stream == head.stream)
        else {
            return Err(broken("goes on with a header block that it has not begun"));
        };
        self.block.extend_from_slice(payload);
        if self.block.len() > MAX_BLOCK_BYTES || frames >= MAX_CONTINUATIONS {
            return Err(broken(format!(
                "has sent a header block of more than {MAX_BLOCK_BYTES} bytes, or in more than \
                 {MAX_CONTINUATIONS} frames"
            )));
        }
        self.unfinished = Some((first, frames + 1));
        if head.has(flag::END_HEADERS) {
            self.unfinished = None;
            let block = std::mem::take(&mut self.block);
            let taken = self.take_headers(first, &block, streams);
            self.block = block;
            return taken;
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let (settings, []) = payload.as_chunks::<6>() else {
            return Err(broken("has sent settings of an odd length"));
        };
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                setting::HEADER_TABLE_SIZE => self.heads.set_table(value),
                setting::MAX_CONCURRENT_STREAMS => self.most = value,
                setting::INITIAL_WINDOW_SIZE if i64::from(value) > MAX_WINDOW => {
                    return Err(broken("has set a window of more than 2^31 - 1 bytes"));
                }
                setting::INITIAL_WINDOW_SIZE => {
                    let more = i64::from(value) - self.stream_window;
                    self.stream_window = i64::from(value);
                    self.streams.iter_mut().for_each(|stream| stream.window += more);
                }
                // Frames stay as large as every server takes them.
                _ => {}
            }
        }
        (self.is_ready, self.has_room) = (true, true);
        Ok(())
    }

    /// More may be sent of a stream, or of all.
    fn grant(&mut self, id: u32, more: Option<u32>) -> Result<(), ProtocolError> {
        let more = more.map(|more| more & MAX_ID).filter(|more| *more > 0);
        let Some(more) = more else { return Err(broken("has granted no bytes")) };
        let tag = if id == 0 { None } else { self.tag_of(id)? };
        let window = match tag {
            None if id == 0 => &mut self.window,
            None => return Ok(()),
            Some(tag) => &mut self.streams[tag as usize].window,
        };
        *window += i64::from(more);
        if *window > MAX_WINDOW {
            return Err(broken("has granted more than 2^31 - 1 bytes"));
        }
        self.has_room = true;
        Ok(())
    }

    /// A stream is over without a word to the server.
    fn forget(&mut self, tag: u32, id: u32) {
        self.ids.remove(id);
        self.streams[tag as usize] = Stream::default();
        self.has_room = true;
    }

    /// The server ends the connection: streams up to some number still go on.
    #[cold]
    fn go_away(&mut self, payload: &[u8], streams: &mut impl Streams) -> Result<(), ProtocolError> {
        let (last, code) = (payload.get(..4).and_then(number), payload.get(4..8).and_then(number));
        let (Some(last), Some(code)) = (last, code) else {
            return Err(broken("has ended the connection wrongly"));
        };
        if code != code::NO_ERROR {
            let said = payload[8..payload.len().min(208)].escape_ascii();
            return Err(broken(format!("ends the connection: {} \"{said}\"", code_name(code))));
        }
        self.is_leaving = true;
        for id in self.ids.beyond(last & MAX_ID) {
            if let Some(tag) = self.ids.find(id) {
                self.forget(tag, id);
                streams.reset(tag, code::REFUSED_STREAM);
            }
        }
        Ok(())
    }
}

/// Writes a frame that is one number.
fn put_number(kind: u8, stream: u32, number: u32, out: &mut Output) {
    out.put(&Head { len: 4, kind, flags: 0, stream }.bytes());
    out.put(&number.to_be_bytes());
}

#[cfg(test)]
mod tests;
