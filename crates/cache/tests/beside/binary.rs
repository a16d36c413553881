//! Random packets of the binary protocol, and answers in comparable form.

use rand::{RngExt, rngs::SmallRng};

use super::side::Side;

const KEYS: &[&str] = &["a", "b", "counter", "other:key"];

/// One packet.
#[derive(Debug)]
pub(crate) struct Packet {
    opcode: u8,
    extras: Vec<u8>,
    key: &'static str,
    value: Vec<u8>,
    /// Whether the unique number last seen is asked for.
    unique: Unique,
}

#[derive(Clone, Copy, Debug)]
enum Unique {
    Any,
    Known,
    Other,
}

const NOOP_END: [u8; 24] = {
    let mut end = [0; 24];
    (end[0], end[1], end[15]) = (0x81, 0x0a, 0x7f);
    end
};

/// Has a server forget everything.
pub(crate) fn empty(side: &mut Side) {
    let flush = Packet { opcode: 8, extras: vec![], key: "", value: vec![], unique: Unique::Any };
    flush.ask(side);
}

/// A random packet whose lengths make sense.
pub(crate) fn packet(random: &mut SmallRng) -> Packet {
    let key = KEYS[random.random_range(0..KEYS.len())];
    let exptime = [0_u32, 0, 1000, 2_592_001][random.random_range(0..4)].to_be_bytes();
    let digits = random.random_range(0..300_u32).to_string().into_bytes();
    let value = if random.random_range(0..3) == 0 { b"some text".to_vec() } else { digits };
    let store = [&random.random_range(0..9_u32).to_be_bytes()[..], &exptime].concat();
    let (none, plain) = (vec![], vec![]);
    let quiet = random.random_range(0..3) == 0;
    let unique = match random.random_range(0..5) {
        0 => Unique::Known,
        1 => Unique::Other,
        _ => Unique::Any,
    };
    let of = |loud: u8, silent: u8| if quiet { silent } else { loud };
    let sum = || {
        let delta = [1_u64, 5, 1 << 40][usize::from(quiet) + usize::from(value.len() > 2)];
        let expiry = if value.len() > 2 { 0_u32 } else { u32::MAX };
        [&delta.to_be_bytes()[..], &7_u64.to_be_bytes(), &expiry.to_be_bytes()].concat()
    };
    let (opcode, extras, key, value, unique) = match random.random_range(0..16) {
        0 | 1 => (of(0x01, 0x11), store, key, value, unique),
        2 => (of(0x02, 0x12), store, key, value, unique),
        3 => (of(0x03, 0x13), store, key, value, unique),
        4 => (of(0x0e, 0x19), none, key, value, unique),
        5 => (of(0x0f, 0x1a), none, key, value, unique),
        6 | 7 => (of(0x00, 0x09), none, key, plain, Unique::Any),
        8 => (of(0x0c, 0x0d), none, key, plain, Unique::Any),
        9 => (of(0x04, 0x14), none, key, plain, unique),
        10 => (of(0x05, 0x15), sum(), key, plain, unique),
        11 => (of(0x06, 0x16), sum(), key, plain, unique),
        12 => (0x1c, exptime.to_vec(), key, plain, Unique::Any),
        13 => (of(0x1d, 0x1e), exptime.to_vec(), key, plain, Unique::Any),
        14 => (of(0x23, 0x24), exptime.to_vec(), key, plain, Unique::Any),
        _ if quiet => (0x18, none, "", plain, Unique::Any),
        _ => ([0x0a, 0x20, 0x60][value.len() % 3], none, "", plain, Unique::Any),
    };
    Packet { opcode, extras, key, value, unique }
}

impl Packet {
    fn bytes(&self, unique: u64) -> Vec<u8> {
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut bytes = vec![0x80, self.opcode];
        bytes.extend((self.key.len() as u16).to_be_bytes());
        bytes.extend([self.extras.len() as u8, 0, 0, 0]);
        bytes.extend((body as u32).to_be_bytes());
        bytes.extend(0xabcd_u32.to_be_bytes());
        bytes.extend(unique.to_be_bytes());
        [&bytes[..], &self.extras, self.key.as_bytes(), &self.value].concat()
    }

    /// Says it, with a no-op behind it, and gives the answers.
    pub(crate) fn ask(&self, side: &mut Side) -> Vec<String> {
        let unique = match self.unique {
            Unique::Any => 0,
            Unique::Known => side.unique(self.key),
            Unique::Other => 999_999_999,
        };
        let mut packets = self.bytes(unique);
        let mut noop = NOOP_END;
        noop[0] = 0x80;
        packets.extend(noop);
        let answers = side.send(&packets, &NOOP_END);
        let mut rest = &answers[..];
        let mut shown = Vec::new();
        while rest.len() >= 24 {
            let (head, body) = rest.split_at(24);
            let length = u32::from_be_bytes(head[8..12].try_into().expect("4 bytes")) as usize;
            let unique = u64::from_be_bytes(head[16..24].try_into().expect("8 bytes"));
            if unique != 0 {
                side.know(self.key, unique);
            }
            let (body, after) = body.split_at(length.min(body.len()));
            let nth = side.nth(unique);
            shown.push(format!("{:02x?} #{nth} {}", &head[..16], body.escape_ascii()));
            rest = after;
        }
        assert!(rest.is_empty(), "{rest:?}");
        shown
    }
}
