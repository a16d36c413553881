//! Cutting a stream of bytes into messages: small ones lie in the input; large ones and those in
//! several segments are put together in a place of their own, which the loop reads straight into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use wire::{Bytes, ProtocolError};

use super::{Buffer, Command, HEADER_BYTES, Header, Order, Pool, Reader, Segment, Sender};

/// A message whose payload is larger gets a place of its own.
const SMALL_BYTES: usize = 16 << 10;

/// A message or a control message.
#[derive(Debug)]
pub enum Frame<'a> {
    /// A control message; its argument is the header's `size`.
    Control(Header),
    /// An application message.
    Message {
        /// What it is.
        command: Command,
        /// The sender's version of the protocol.
        version: u8,
        /// The order of bytes in it.
        order: Order,
        /// Its payload.
        body: Body<'a>,
    },
}

/// The payload of a message.
#[derive(Debug)]
pub enum Body<'a> {
    /// Borrowed from the input: what is kept of it has to be copied.
    Small(&'a [u8]),
    /// In memory of its own, which may be kept.
    Large(Bytes),
}

impl Body<'_> {
    /// Reads it.
    #[inline]
    pub fn reader(&self, order: Order) -> Reader<'_> {
        match self {
            Self::Small(bytes) => Reader::new(bytes, order),
            Self::Large(bytes) => Reader::shared(bytes, order),
        }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Small(bytes) => bytes.len(),
            Self::Large(bytes) => bytes.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A message that is being put together.
#[derive(Debug)]
struct Assembly {
    command: u8,
    version: u8,
    order: Order,
    memory: Memory,
    /// How many bytes are there.
    filled: usize,
    /// How many there are once the present segment has come.
    due: usize,
    /// Whether that was the last segment.
    is_last: bool,
}

#[derive(Debug)]
enum Memory {
    /// Of a message in one piece, whose size is known.
    Whole(Buffer),
    /// Of a message in segments, which grows with them.
    Growing(Vec<u8>),
}

impl Memory {
    fn len(&self) -> usize {
        match self {
            Self::Whole(buffer) => buffer.as_ref().len(),
            Self::Growing(bytes) => bytes.len(),
        }
    }
}

/// How many bytes of large messages that aren't complete several connections hold together.
#[derive(Clone, Debug)]
pub struct Unfinished(Arc<(AtomicUsize, usize)>);

impl Unfinished {
    /// At most `most_bytes` of them.
    pub fn new(most_bytes: usize) -> Self {
        Self(Arc::new((AtomicUsize::new(0), most_bytes)))
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.0.0.load(Relaxed)
    }

    fn add(&self, count: usize) {
        self.0.0.fetch_add(count, Relaxed);
    }

    fn remove(&self, count: usize) {
        self.0.0.fetch_sub(count, Relaxed);
    }
}

/// Cuts one direction of a connection into messages.
#[derive(Debug)]
pub struct Frames {
    from: Sender,
    most_bytes: usize,
    pool: Pool,
    assembly: Option<Assembly>,
    unfinished: Option<Unfinished>,
}

impl Frames {
    /// Cuts what `from` sends. A message of more than `most_bytes` is a fault; the memory of large
    /// ones comes from `pool`.
    pub fn new(from: Sender, most_bytes: usize, pool: Pool) -> Self {
        Self { from, most_bytes, pool, assembly: None, unfinished: None }
    }

    /// Changes the limit of a message, for those that begin from now on.
    pub fn set_limit(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
    }

    /// The same, counted with others: what comes when they hold too much together is a fault.
    #[must_use]
    pub fn counted(mut self, unfinished: Unfinished) -> Self {
        self.unfinished = Some(unfinished);
        self
    }

    /// The next message of `input`, if all of it is there, and how many bytes were consumed, which
    /// may be some even if it isn't. Call it again until it neither finds nor consumes anything.
    ///
    /// # Errors
    /// When the bytes are no messages, come from the wrong side, or make one that is too large.
    #[inline]
    pub fn next<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Frame<'a>>), ProtocolError> {
        if let Some(assembly) = &self.assembly
            && (assembly.filled < assembly.due || assembly.is_last)
        {
            let done = self.finish();
            if done.is_none() {
                self.check_unfinished()?;
            }
            return Ok((0, done));
        }
        let Some(bytes) = input.first_chunk::<HEADER_BYTES>() else { return Ok((0, None)) };
        let header = Header::read(bytes)?;
        if header.sender != self.from {
            return Err(ProtocolError::new("a message claims to come from the other side"));
        }
        if header.is_control {
            return Ok((HEADER_BYTES, Some(Frame::Control(header))));
        }
        let size = header.size as usize;
        if header.segment == Segment::Whole && self.assembly.is_none() && size <= SMALL_BYTES {
            let Some(body) = input.get(HEADER_BYTES..HEADER_BYTES + size) else {
                return Ok((0, None));
            };
            let Header { version, order, .. } = header;
            let body = Body::Small(body);
            let frame = Frame::Message { command: header.command(), version, order, body };
            return Ok((HEADER_BYTES + size, Some(frame)));
        }
        self.assemble(&header)?;
        Ok((HEADER_BYTES, self.finish()))
    }

    /// Whether all connections together hold no more than they may.
    fn check_unfinished(&self) -> Result<(), ProtocolError> {
        let Some(Unfinished(shared)) = &self.unfinished else { return Ok(()) };
        let (bytes, most) = (shared.0.load(Relaxed), shared.1);
        if bytes <= most {
            return Ok(());
        }
        Err(ProtocolError::new(format!(
            "the unfinished messages of all connections have more than the {most} bytes that are \
             allowed"
        )))
    }

    /// Makes room for what this header announces.
    fn assemble(&mut self, header: &Header) -> Result<(), ProtocolError> {
        let size = header.size as usize;
        let is_last = matches!(header.segment, Segment::Whole | Segment::Last);
        let is_first = matches!(header.segment, Segment::Whole | Segment::First);
        let filled = self.assembly.as_ref().map_or(0, |assembly| assembly.filled);
        let due = filled + size;
        if due > self.most_bytes {
            let what = format!(
                "a message of {due} bytes or more is larger than the {} that are allowed",
                self.most_bytes
            );
            return Err(ProtocolError::new(what));
        }
        match &mut self.assembly {
            None if is_first => {
                let memory = match header.segment {
                    Segment::Whole => self.pool.try_take(size).map(Memory::Whole),
                    // Zeros of the allocator cost nothing before they are touched, but to ask for
                    // too many ends the process: so it is asked first.
                    _ => Vec::<u8>::new()
                        .try_reserve_exact(size)
                        .map(|()| Memory::Growing(vec![0; size]))
                        .ok(),
                };
                let memory = memory.ok_or_else(|| no_memory(due))?;
                let Header { code: command, version, order, .. } = *header;
                self.assembly =
                    Some(Assembly { command, version, order, memory, filled, due, is_last });
            }
            Some(assembly)
                if !is_first
                    && assembly.command == header.code
                    && assembly.order == header.order =>
            {
                if let Memory::Growing(bytes) = &mut assembly.memory {
                    bytes.try_reserve(due - bytes.len()).map_err(|_| no_memory(due))?;
                    bytes.resize(due, 0);
                }
                (assembly.due, assembly.is_last) = (due, is_last);
            }
            _ => {
                return Err(ProtocolError::new(
                    "the segments of a message do not follow each other",
                ));
            }
        }
        Ok(())
    }

    /// The message that is put together, if it is complete.
    fn finish<'a>(&mut self) -> Option<Frame<'a>> {
        let done = self.assembly.take_if(|it| it.is_last && it.filled == it.due)?;
        debug_assert!(done.memory.len() == done.due, "a message is as long as its memory");
        if let Some(unfinished) = &self.unfinished {
            unfinished.remove(done.filled);
        }
        let body = Body::Large(match done.memory {
            Memory::Whole(buffer) => buffer.freeze(),
            Memory::Growing(bytes) => bytes.into(),
        });
        let Assembly { version, order, .. } = done;
        Some(Frame::Message { command: done.command.into(), version, order, body })
    }

    /// Where the next bytes of the stream belong, while a large message is under way.
    pub fn place(&mut self) -> Option<&mut [u8]> {
        let assembly = self.assembly.as_mut().filter(|it| it.filled < it.due)?;
        debug_assert!(assembly.due <= self.most_bytes, "a place passes the limit of a message");
        let bytes = match &mut assembly.memory {
            Memory::Whole(buffer) => buffer.as_mut(),
            Memory::Growing(bytes) => bytes.as_mut_slice(),
        };
        Some(&mut bytes[assembly.filled..assembly.due])
    }

    /// The first `count` bytes of the place are filled.
    pub fn placed(&mut self, count: usize) {
        if let Some(assembly) = &mut self.assembly {
            let room = assembly.due - assembly.filled;
            debug_assert!(count <= room, "{count} bytes were put into a place of {room}");
            let count = count.min(room);
            assembly.filled += count;
            if let Memory::Whole(buffer) = &mut assembly.memory {
                buffer.arrived(assembly.filled);
            }
            if let Some(unfinished) = &self.unfinished {
                unfinished.add(count);
            }
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let (Some(unfinished), Some(assembly)) = (&self.unfinished, &self.assembly) {
            unfinished.remove(assembly.filled);
        }
    }
}

fn no_memory(bytes: usize) -> ProtocolError {
    ProtocolError::new(format!("the system has no memory for a message of {bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds a stream in pieces, as a loop does, and says what came out of it.
    fn cut(
        stream: &[u8],
        pieces: &[usize],
        most: usize,
    ) -> Result<Vec<(u8, Vec<u8>)>, ProtocolError> {
        let mut frames = Frames::new(Sender::Client, most, Pool::new(1));
        let (mut all, mut waiting, mut at) = (Vec::new(), Vec::new(), 0);
        let mut pieces = pieces.iter().cycle();
        while at < stream.len() {
            let end = stream.len().min(at + pieces.next().copied().unwrap_or(1).max(1));
            waiting.extend_from_slice(&stream[at..end]);
            at = end;
            loop {
                let (used, frame) = frames.next(&waiting)?;
                match &frame {
                    Some(Frame::Control(header)) => all.push((255, vec![header.code])),
                    Some(Frame::Message { command, body, order, .. }) => {
                        all.push((command.code(), body.reader(*order).rest().to_vec()));
                    }
                    None => {}
                }
                let is_idle = used == 0 && frame.is_none();
                waiting.drain(..used);
                match frames.place() {
                    Some(place) if !waiting.is_empty() => {
                        let count = place.len().min(waiting.len());
                        place[..count].copy_from_slice(&waiting[..count]);
                        waiting.drain(..count);
                        frames.placed(count);
                    }
                    _ if is_idle => break,
                    _ => {}
                }
            }
        }
        Ok(all)
    }

    fn frame(segment: Segment, code: u8, body: &[u8]) -> Vec<u8> {
        let size = body.len() as u32;
        let whole = Header::whole(Sender::Client, Order::Big, code.into(), size);
        [&Header { segment, ..whole }.bytes()[..], body].concat()
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_the_stream_is_cut(
            bodies in prop::collection::vec((0_u8..20, 0_usize..40_000, 0_usize..4), 1..6),
            pieces in prop::collection::vec(1_usize..20_000, 1..8),
        ) {
            let (mut stream, mut expected) = (Vec::new(), Vec::new());
            for (code, len, cuts) in bodies {
                let body: Vec<u8> = (0..len).map(|at| (at % 253) as u8).collect();
                if cuts == 0 {
                    stream.extend(frame(Segment::Whole, code, &body));
                } else {
                    let parts: Vec<_> = body.chunks(len / (cuts + 1) + 1).collect();
                    stream.extend(frame(Segment::First, code, parts.first().unwrap_or(&&[][..])));
                    for part in parts.iter().skip(1) {
                        let echo = Header::control(Sender::Client, Order::Little, 3, 7);
                        stream.extend(echo.bytes());
                        expected.push((255, vec![3]));
                        stream.extend(frame(Segment::Middle, code, part));
                    }
                    stream.extend(frame(Segment::Last, code, &[]));
                }
                expected.push((code, body));
            }
            prop_assert_eq!(cut(&stream, &pieces, 1 << 20).unwrap(), expected);
        }

        #[test]
        fn no_stream_makes_it_panic(
            stream in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..50,
        ) {
            let _ = cut(&stream, &[size], 1000);
        }
    }

    #[test]
    fn unfinished_messages_of_several_connections_are_counted_together() {
        let unfinished = Unfinished::new(30_000);
        let frames = || {
            let pool = Pool::new(0);
            Frames::new(Sender::Client, 1 << 20, pool).counted(unfinished.clone())
        };
        let head = Header::whole(Sender::Client, Order::Big, Command::Put, 20_000).bytes();
        let begin = |frames: &mut Frames, count: usize| {
            frames.next(&head).unwrap();
            frames.placed(count);
        };
        let (mut one, mut other) = (frames(), frames());
        begin(&mut one, 15_000);
        assert!(one.next(&[]).unwrap().1.is_none());
        begin(&mut other, 16_000);
        assert!(other.next(&[]).unwrap_err().to_string().contains("the 30000 bytes"));
        drop(other);
        one.placed(5_000);
        assert_eq!(unfinished.bytes(), 20_000);
        assert!(one.next(&[]).unwrap().1.is_some());
        assert_eq!(unfinished.bytes(), 0);
    }

    #[test]
    fn what_is_too_large_or_out_of_order_is_a_fault() {
        let fault = |stream: &[u8]| cut(stream, &[100], 1000).unwrap_err().to_string();
        let two =
            [frame(Segment::First, 1, &[0; 600]), frame(Segment::Last, 1, &[0; 401])].concat();
        assert!(fault(&two).contains("1001 bytes or more is larger than the 1000"));
        let huge = Header::whole(Sender::Client, Order::Big, Command::Put, u32::MAX).bytes();
        assert!(fault(&huge).contains("4294967295 bytes"));
        let others = [frame(Segment::First, 1, &[0; 6]), frame(Segment::Last, 2, &[0; 4])].concat();
        assert!(fault(&others).contains("do not follow each other"));
        let whole = [frame(Segment::First, 1, &[0; 6]), frame(Segment::Whole, 1, &[0; 4])].concat();
        assert!(fault(&whole).contains("do not follow each other"));
        assert!(fault(&frame(Segment::Last, 1, b"x")).contains("do not follow each other"));
        let wrong = Header::whole(Sender::Server, Order::Big, Command::Put, 0).bytes();
        assert!(fault(&wrong).contains("other side"));
    }
}
