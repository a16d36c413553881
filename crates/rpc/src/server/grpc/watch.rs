//! Looks at the frames that a client sends, as they pass, for what h2 leaves to its user: pings and
//! settings without end, which cost work and bring nothing, and answers to pings that were never
//! sent, each of which h2 logs.

use std::time::{Duration, Instant};

use super::authority::Authority;
use crate::protocol::http2::frame::PREFACE;

/// The head of a frame: length, type, flags, stream.
const HEAD_BYTES: usize = 9;

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// Pings that may come too early, without anything sent meanwhile; one more ends the connection.
const MOST_STRIKES: u32 = 2;

/// SETTINGS that a client may send; one is usual.
const MOST_SETTINGS: u32 = 100;

/// Answers to pings that a client may send; the server pings once, when it stops.
const MOST_PONGS: u32 = 10;

/// The frames of one connection.
#[derive(Debug)]
pub(super) struct Watch {
    keepalive_min: Duration,
    /// What is left of the preface, or of a frame's payload.
    skip: usize,
    head: [u8; HEAD_BYTES],
    have: usize,
    last_ping: Option<Instant>,
    strikes: u32,
    settings: u32,
    pongs: u32,
    /// Frames since this was asked last.
    frames: usize,
    /// Header blocks over a Unix socket.
    authority: Option<Authority>,
    block: Option<Block>,
}

/// What of the frame's payload is still to come of a header block.
#[derive(Debug)]
struct Block {
    /// The next byte says how much padding is behind the fields.
    is_padded: bool,
    /// Bytes of a priority.
    before: usize,
    /// Those of fields; with the padding, until its length has come.
    fields: usize,
}

impl Watch {
    /// From the first byte of the connection on.
    pub(super) fn new(keepalive_min: Duration, is_unix: bool) -> Self {
        Self {
            keepalive_min,
            skip: PREFACE.len(),
            head: [0; HEAD_BYTES],
            have: 0,
            last_ping: None,
            strikes: 0,
            settings: 0,
            pongs: 0,
            frames: 0,
            authority: is_unix.then(Authority::new),
            block: None,
        }
    }

    /// How many frames have begun since this was asked last.
    pub(super) fn take_frames(&mut self) -> usize {
        std::mem::take(&mut self.frames)
    }

    /// Something was sent: pings that measure its way are welcome.
    pub(super) fn sent(&mut self) {
        self.strikes = 0;
        self.last_ping = None;
    }

    /// Looks at the next bytes, and changes those of an authority. Returns whether the client asks
    /// for too much.
    pub(super) fn see(&mut self, mut bytes: &mut [u8]) -> bool {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            let (payload, rest) = bytes.split_at_mut(skipped);
            self.pass(payload);
            bytes = rest;
            if bytes.is_empty() {
                return false;
            }
            let taken = (HEAD_BYTES - self.have).min(bytes.len());
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &mut bytes[taken..];
            if self.have < HEAD_BYTES {
                return false;
            }
            self.have = 0;
            self.frames += 1;
            let [a, b, c, kind, flags, ..] = self.head;
            self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
            self.begin(kind, flags);
            if self.is_too_much(kind, flags & ACK != 0) {
                return true;
            }
        }
    }

    /// A frame begins.
    fn begin(&mut self, kind: u8, flags: u8) {
        let Some(authority) = &mut self.authority else { return };
        let has = |flag| kind == HEADERS && flags & flag != 0;
        let (is_padded, before) = (has(PADDED), 5 * usize::from(has(PRIORITY)));
        let fields = self.skip.saturating_sub(before + usize::from(is_padded));
        self.block =
            [HEADERS, CONTINUATION].contains(&kind).then_some(Block { is_padded, before, fields });
        if kind == HEADERS {
            authority.begin();
        }
    }

    /// A part of a frame's payload.
    fn pass(&mut self, mut payload: &mut [u8]) {
        let (Some(authority), Some(block)) = (&mut self.authority, &mut self.block) else { return };
        if block.is_padded && !payload.is_empty() {
            let (padding, rest) = payload.split_at_mut(1);
            block.fields = block.fields.saturating_sub(padding[0].into());
            (block.is_padded, payload) = (false, rest);
        }
        let before = block.before.min(payload.len());
        block.before -= before;
        let payload = &mut payload[before..];
        let fields = block.fields.min(payload.len());
        block.fields -= fields;
        authority.pass(&mut payload[..fields]);
    }

    fn is_too_much(&mut self, kind: u8, is_ack: bool) -> bool {
        match kind {
            PING if is_ack => {
                self.pongs += 1;
                self.pongs > MOST_PONGS
            }
            SETTINGS if !is_ack => {
                self.settings += 1;
                self.settings > MOST_SETTINGS
            }
            PING => {
                let now = Instant::now();
                let last = self.last_ping.replace(now);
                if last.is_some_and(|last| now - last < self.keepalive_min) {
                    self.strikes += 1;
                }
                self.strikes > MOST_STRIKES
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const PING_FRAME: [u8; 17] = [0, 0, 8, PING, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

    fn begun() -> Watch {
        let mut watch = Watch::new(HOUR, false);
        assert!(!see(&mut watch, PREFACE));
        watch
    }

    fn see(watch: &mut Watch, bytes: &[u8]) -> bool {
        watch.see(&mut bytes.to_vec())
    }

    #[test]
    fn pings_are_too_many_unless_something_is_sent_meanwhile() {
        let mut watch = begun();
        let mut pings = || (0..10).take_while(|_| !see(&mut watch, &PING_FRAME)).count();
        assert_eq!(pings(), 3);
        let mut watch = begun();
        for _ in 0..100 {
            assert!(!see(&mut watch, &PING_FRAME));
            watch.sent();
        }
        let mut rare = Watch::new(Duration::ZERO, false);
        see(&mut rare, PREFACE);
        assert!((0..100).all(|_| !see(&mut rare, &PING_FRAME)));
    }

    #[test]
    fn frames_are_found_in_any_division_of_the_bytes() {
        let data = [&[0, 0, 20, 0, 0, 0, 0, 0, 1][..], &[PING; 20]].concat();
        let all = [PREFACE, &data, &PING_FRAME, &data, &PING_FRAME, &PING_FRAME, &PING_FRAME];
        let all = all.concat();
        for size in 1..all.len() {
            let mut watch = Watch::new(HOUR, true);
            let at = all.chunks(size).position(|piece| see(&mut watch, piece));
            let at = at.expect("too many");
            // The last head is whole eight bytes before the end.
            assert_eq!(at, (all.len() - 9) / size, "{size}");
        }
    }

    #[test]
    fn answers_to_pings_that_were_not_sent_have_an_end() {
        let mut watch = begun();
        let pong = [0, 0, 8, PING, ACK, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!((0..100).position(|_| see(&mut watch, &pong)), Some(10));
    }

    #[test]
    fn settings_have_an_end_and_answers_to_ours_do_not() {
        let mut watch = begun();
        let frame = |flags| [0, 0, 0, SETTINGS, flags, 0, 0, 0, 0];
        assert!((0..1_000).all(|_| !see(&mut watch, &frame(ACK))));
        assert_eq!((0..1_000).position(|_| see(&mut watch, &frame(0))), Some(100));
    }

    #[test]
    fn header_blocks_of_a_unix_socket_are_changed_in_their_frames() {
        let frame = |kind, flags, payload: &[u8]| {
            [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, 1][..], payload].concat()
        };
        let all = |percent: u8| {
            let block = [0x41, 4, b'a', percent, b'2', b'F', 0x41, 2, percent, b'b'];
            let padded = [&[2, b'%', b'%', b'%', b'%', b'%'][..], &block, &[0, 0]].concat();
            [
                PREFACE,
                &frame(HEADERS, PADDED | PRIORITY, &padded),
                // As it stands in two frames.
                &frame(HEADERS, 0, &block[..3]),
                &frame(CONTINUATION, 4, &block[3..]),
                // So it does with padding between, which is no part of a text, nor a field.
                &frame(HEADERS, PADDED, &[&[4][..], &block[..3], &[0; 4]].concat()),
                &frame(CONTINUATION, 0, &block[3..6]),
                &frame(CONTINUATION, 4, &block[6..]),
                &frame(0, 0, b"A%%%"),
            ]
            .concat()
        };
        let (came, leaves) = (all(b'%'), all(b'-'));
        for size in 1..came.len() {
            for (is_unix, right) in [(true, &leaves), (false, &came)] {
                let (mut watch, mut bytes) = (Watch::new(HOUR, is_unix), came.clone());
                assert!(bytes.chunks_mut(size).all(|piece| !watch.see(piece)));
                assert_eq!(&bytes, right, "{size}");
            }
        }
    }
}
