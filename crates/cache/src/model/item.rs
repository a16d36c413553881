//! How one item lies in a shard's log: a fixed head, what is rarely there, key, value.
//!
//! ```text
//! 0        1     2          4         8            12
//! key_len  bits  cas_high   cas_low   value_bytes  accessed_s  [flags] [expires_s]  key  value
//! ```
//!
//! Numbers are little-endian. The upper four bits of `value_bytes` are the item's age: when it was
//! last read, in fifteenths of its ring's laps. Those of `accessed_s` are its level: how often it
//! is requested, in half octaves. Flags and expiry take four bytes each and only when they aren't
//! zero, which they nearly always are: the head of most items is 16 bytes.

/// Everything in a log starts at a multiple of this, so that a 32-bit index reaches 16 GiB.
pub(super) const GRANULE_BYTES: usize = 4;

/// The part of the head that every item has.
const HEAD_BYTES: usize = 16;

/// The most that a head takes, with what is rarely there and rounding.
pub(super) const MAX_HEAD_BYTES: usize = HEAD_BYTES + 8 + GRANULE_BYTES - 1;

/// The item has been removed or replaced; its bytes wait for the tail to pass.
pub(super) const DEAD: u8 = 1;
/// The item has been read since the tail last passed it.
pub(super) const REFERENCED: u8 = 2;
/// The item has been read since it was stored.
pub(super) const FETCHED: u8 = 4;
/// The item has flags other than 0.
const HAS_FLAGS: u8 = 8;
/// The item has a place for its expiry; the expiry may still be 0, which is never.
const HAS_EXPIRY: u8 = 16;
/// The item has been invalidated: it may be served until a new value is stored.
pub(super) const STALE: u8 = 32;
/// A reader is about to recache the item: memcached's "win".
pub(super) const WON: u8 = 64;
/// The key is not text: where it is shown, it is shown in base64.
pub(super) const BINARY: u8 = 128;

/// The largest unique number; after it the numbers repeat.
pub const CAS_MASK: u64 = (1 << 48) - 1;

/// How many bits of its word an item's length has, and its last second; age and level have the
/// others. Seconds end with the largest number, after eight and a half years: what is read later
/// looks as if it had been read then.
const LOWER_BITS: u32 = 28;

/// The lower bits of those words.
const LOWER_MASK: u32 = (1 << LOWER_BITS) - 1;

/// When something happens to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The second.
    second: u32,
    /// The fifteenth of a lap, modulo 16.
    pub(super) age: u8,
}

impl Moment {
    /// At a second, and at a fifteenth of a lap.
    #[inline]
    pub(super) fn new(second: u32, age: u8) -> Self {
        debug_assert!(age < 16, "an age has four bits");
        Self { second: second.min(LOWER_MASK), age }
    }
}

/// What is stored, as the caller hands it in.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The client's own 32 bits, kept and given back.
    pub flags: u32,
    /// The second from which on the item is gone; 0 is never.
    pub expires_s: u32,
}

/// What an item is marked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// [`REFERENCED`] and the like.
    pub(super) bits: u8,
    /// How often it is requested, in half octaves.
    pub(super) level: u8,
}

impl Entry<'_> {
    /// How many bytes the entry takes in a log.
    pub(super) fn stored_bytes(&self) -> usize {
        let optional = usize::from(self.flags != 0) + usize::from(self.expires_s != 0);
        round_up(HEAD_BYTES + optional * 4 + self.key.len() + self.value.len())
    }

    /// Writes the entry with `marks` to the start of `log`, which is at least `stored_bytes` long,
    /// as last read at `now`. The key has been checked to be at most 255 bytes, the value to be
    /// less than 2^28.
    pub(super) fn write(&self, cas: u64, marks: Marks, now: Moment, log: &mut [u8]) {
        debug_assert!(self.key.len() <= usize::from(u8::MAX), "a length of one byte");
        debug_assert!(self.value.len() <= LOWER_MASK as usize, "a length of 28 bits");
        debug_assert!(log.len() >= self.stored_bytes(), "room for the whole item");
        let Marks { mut bits, level } = marks;
        let mut at = HEAD_BYTES;
        for (value, bit) in [(self.flags, HAS_FLAGS), (self.expires_s, HAS_EXPIRY)] {
            if value != 0 {
                bits |= bit;
                log[at..at + 4].copy_from_slice(&value.to_le_bytes());
                at += 4;
            }
        }
        let head: &mut [u8; HEAD_BYTES] = (&mut log[..HEAD_BYTES]).try_into().expect("16 bytes");
        head[0] = self.key.len() as u8;
        head[1] = bits;
        head[2..4].copy_from_slice(&((cas >> 32) as u16).to_le_bytes());
        head[4..8].copy_from_slice(&(cas as u32).to_le_bytes());
        let length_and_age = self.value.len() as u32 | u32::from(now.age) << LOWER_BITS;
        head[8..12].copy_from_slice(&length_and_age.to_le_bytes());
        let second_and_level = now.second | u32::from(level) << LOWER_BITS;
        head[12..16].copy_from_slice(&second_and_level.to_le_bytes());
        let value_at = at + self.key.len();
        log[at..value_at].copy_from_slice(self.key);
        log[value_at..value_at + self.value.len()].copy_from_slice(self.value);
    }
}

/// An item as it is read.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The client's own 32 bits.
    pub flags: u32,
    /// The second from which on the item is gone; 0 is never.
    pub expires_s: u32,
    /// The second in which it was last read, or stored when never read, before this call.
    pub accessed_s: u32,
    /// Whether it had been read since it was stored, before this call.
    pub fetched: bool,
    /// The unique number of the store that wrote it.
    pub cas: u64,
    /// Whether it has been invalidated and waits for a new value.
    pub stale: bool,
    /// Whether an earlier reader is to recache the item: memcached's "win".
    pub won: bool,
    /// Whether its key is shown in base64.
    pub binary_key: bool,
}

/// The head of an item, decoded.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) bits: u8,
    /// When it was last read, or stored when never read.
    pub(super) accessed: Moment,
    /// How often it is requested, in half octaves.
    pub(super) level: u8,
    pub(super) cas: u64,
    key_bytes: usize,
    value_bytes: usize,
}

impl Head {
    /// Decodes the head at the start of `log`.
    #[inline]
    pub(super) fn read(log: &[u8]) -> Self {
        let head: &[u8; HEAD_BYTES] = log[..HEAD_BYTES].try_into().expect("16 bytes");
        let high = u16::from_le_bytes([head[2], head[3]]);
        let low = word(head, 4);
        let length_and_age = word(head, 8);
        let second_and_level = word(head, 12);
        Self {
            key_bytes: usize::from(head[0]),
            bits: head[1],
            cas: u64::from(high) << 32 | u64::from(low),
            value_bytes: (length_and_age & LOWER_MASK) as usize,
            accessed: Moment {
                second: second_and_level & LOWER_MASK,
                age: (length_and_age >> LOWER_BITS) as u8,
            },
            level: (second_and_level >> LOWER_BITS) as u8,
        }
    }

    /// How many bytes the item takes in the log.
    #[inline]
    pub(super) fn stored_bytes(&self) -> usize {
        round_up(self.key_at() + self.key_bytes + self.value_bytes)
    }

    #[inline]
    fn key_at(&self) -> usize {
        HEAD_BYTES + (self.bits & (HAS_FLAGS | HAS_EXPIRY)).count_ones() as usize * 4
    }

    /// The key of the item whose head this is.
    #[inline]
    pub(super) fn key<'a>(&self, log: &'a [u8]) -> &'a [u8] {
        &log[self.key_at()..][..self.key_bytes]
    }

    /// The second from which on the item is gone; 0 is never.
    #[inline]
    pub(super) fn expires_s(&self, log: &[u8]) -> u32 {
        if self.bits & HAS_EXPIRY == 0 {
            return 0;
        }
        word(log, HEAD_BYTES + usize::from(self.bits & HAS_FLAGS != 0) * 4)
    }

    /// Whether the item is gone at `now_s` because of its expiry.
    #[inline]
    pub(super) fn is_expired(&self, log: &[u8], now_s: u32) -> bool {
        let expires_s = self.expires_s(log);
        expires_s != 0 && expires_s <= now_s
    }

    /// The whole item.
    #[inline]
    pub(super) fn item<'a>(&self, log: &'a [u8]) -> Item<'a> {
        let key_at = self.key_at();
        let (key, value) =
            log[key_at..][..self.key_bytes + self.value_bytes].split_at(self.key_bytes);
        Item {
            key,
            value,
            flags: if self.bits & HAS_FLAGS == 0 { 0 } else { word(log, HEAD_BYTES) },
            expires_s: self.expires_s(log),
            accessed_s: self.accessed.second,
            fetched: self.bits & FETCHED != 0,
            cas: self.cas,
            stale: self.bits & STALE != 0,
            won: self.bits & WON != 0,
            binary_key: self.bits & BINARY != 0,
        }
    }

    /// The second in which it was last read, or stored when never read.
    #[inline]
    pub(super) fn accessed_s(&self) -> u32 {
        self.accessed.second
    }

    /// How many bytes the value has.
    #[inline]
    pub(super) fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Where the value starts.
    #[inline]
    pub(super) fn value_at(&self) -> usize {
        self.key_at() + self.key_bytes
    }

    /// Changes the expiry of the item at the start of `log`, if it has a place for one; whether
    /// that was enough.
    pub(super) fn set_expires(&self, log: &mut [u8], expires_s: u32) -> bool {
        if self.bits & HAS_EXPIRY != 0 {
            let at = HEAD_BYTES + usize::from(self.bits & HAS_FLAGS != 0) * 4;
            log[at..at + 4].copy_from_slice(&expires_s.to_le_bytes());
        }
        self.bits & HAS_EXPIRY != 0 || expires_s == 0
    }
}

/// Sets `bits` of the item at the start of `log`.
#[inline]
pub(super) fn set_bits(log: &mut [u8], bits: u8) {
    log[1] |= bits;
}

/// Clears `bits` of the item at the start of `log`.
#[inline]
pub(super) fn clear_bits(log: &mut [u8], bits: u8) {
    log[1] &= !bits;
}

/// Changes the unique number of the item at the start of `log`.
pub(super) fn set_cas(log: &mut [u8], cas: u64) {
    log[2..4].copy_from_slice(&((cas >> 32) as u16).to_le_bytes());
    log[4..8].copy_from_slice(&(cas as u32).to_le_bytes());
}

/// Notes when the item at the start of `log` was read.
#[inline]
pub(super) fn set_accessed(log: &mut [u8], now: Moment) {
    log[11] = log[11] & 0x0f | now.age << 4;
    let level = log[15] & 0xf0;
    log[12..16].copy_from_slice(&now.second.to_le_bytes());
    log[15] |= level;
}

/// Changes the level of the item at the start of `log`.
#[inline]
pub(super) fn set_level(log: &mut [u8], level: u8) {
    debug_assert!(level < 16, "a level has four bits");
    log[15] = log[15] & 0x0f | level << 4;
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

#[inline]
const fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(GRANULE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for (flags, expires_s) in [(0, 0), (7, 0), (0, 9), (u32::MAX, u32::MAX)] {
            let entry = Entry { key: b"a key", value: b"some value", flags, expires_s };
            let mut log = vec![0xaa; entry.stored_bytes()];
            let marks = Marks { bits: 0, level: 9 };
            entry.write(CAS_MASK - 1, marks, Moment::new(5, 15), &mut log);
            let head = Head::read(&log);
            let item = head.item(&log);
            assert_eq!((item.key, item.value), (entry.key, entry.value));
            assert_eq!((item.flags, item.expires_s), (flags, expires_s));
            assert_eq!((item.cas, item.accessed_s, item.fetched), (CAS_MASK - 1, 5, false));
            assert_eq!(head.stored_bytes(), entry.stored_bytes());
            assert_eq!(head.key(&log), b"a key");
            assert_eq!((head.accessed.age, head.level), (15, 9));
            set_accessed(&mut log, Moment::new(u32::MAX, 3));
            let head = Head::read(&log);
            assert_eq!((head.accessed, head.level), (Moment::new(LOWER_MASK, 3), 9));
            set_level(&mut log, 15);
            let head = Head::read(&log);
            assert_eq!((head.accessed, head.level), (Moment::new(LOWER_MASK, 3), 15));
            assert_eq!(head.item(&log).value, entry.value);
        }
    }

    #[test]
    fn a_small_item_takes_sixteen_bytes_more_than_it_holds() {
        let entry = Entry { key: b"k0000001", value: &[0; 16], flags: 0, expires_s: 0 };
        assert_eq!(entry.stored_bytes(), 16 + 8 + 16);
    }
}
