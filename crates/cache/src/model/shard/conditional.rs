//! Operations that depend on the present item.

use super::super::item::{self, BINARY, Entry, FETCHED, Head, Item, REFERENCED, STALE, WON};
use super::super::key_hash::Hashed;
use super::super::requests::{
    Access, Change, Mark, Mode, Removed, Seen, Stored, Sum, Summed, Total,
};
use super::Shard;

/// The most memory that the scratch buffer keeps after a value has been put together.
const MAX_SCRATCH_BYTES: usize = 64 << 10;

/// The most decimal digits of a number of 64 bits.
const MAX_DIGITS: usize = 20;

/// What a store with a condition may do.
enum Verdict {
    /// Store, with these bits.
    Go(u8),
    Stop(Stored),
}

impl Shard {
    /// Stores under conditions; `None` when there is no room. `fits` tests whether a value of
    /// this many bytes may be stored at all.
    pub(in crate::model) fn change(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        change: &Change<'_>,
        fits: impl Fn(usize) -> bool,
    ) -> Option<Stored> {
        let there = self.find_live(now_s, hashed).map(|(_, at, head)| (at, head));
        let (bits, mut entry) = match self.judge(change, there.as_ref().map(|(_, head)| head)) {
            Verdict::Stop(stopped) => {
                if let (Mode::Add, Some((at, _))) = (change.mode, there) {
                    let now = self.moment(now_s);
                    item::set_accessed(self.bytes_mut(at), now);
                }
                return Some(stopped);
            }
            Verdict::Go(bits) => (bits, change.entry),
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        if let Some((at, head)) = there {
            let old = head.item(self.bytes(at));
            if bits & STALE != 0 {
                entry.expires_s = old.expires_s;
            }
            if let Mode::Append | Mode::Prepend = change.mode {
                scratch.clear();
                let [first, second] = match change.mode {
                    Mode::Append => [old.value, entry.value],
                    _ => [entry.value, old.value],
                };
                scratch.extend_from_slice(first);
                scratch.extend_from_slice(second);
                entry =
                    Entry { value: &scratch, flags: old.flags, expires_s: old.expires_s, ..entry };
            }
        }
        let outcome = if fits(entry.value.len()) {
            let cas = match change.cas {
                Some(cas) if self.rules.cas => cas,
                _ => self.next_cas(),
            };
            let bits = bits | if change.binary_key { BINARY } else { 0 };
            self.counts.stored += 1;
            self.put(now_s, hashed, &entry, cas, bits).then_some(Stored::Stored(cas))
        } else {
            Some(Stored::NotStored)
        };
        scratch.clear();
        scratch.shrink_to(MAX_SCRATCH_BYTES);
        self.scratch = scratch;
        outcome
    }

    /// Whether the item that is there allows the change.
    fn judge(&mut self, change: &Change<'_>, there: Option<&Head>) -> Verdict {
        let compared = matches!(change.mode, Mode::Set | Mode::Replace);
        let Some(head) = there else {
            return match (change.mode, change.compare) {
                (Mode::Set | Mode::Replace, Some(_)) => {
                    self.counts.cas_misses += 1;
                    Verdict::Stop(Stored::NotFound)
                }
                (Mode::Set | Mode::Add, _) => Verdict::Go(0),
                (Mode::Append | Mode::Prepend, None) if change.vivify => Verdict::Go(0),
                _ => Verdict::Stop(Stored::NotStored),
            };
        };
        match change.compare {
            _ if change.mode == Mode::Add => Verdict::Stop(Stored::NotStored),
            None => Verdict::Go(0),
            // A unique number is never 0: 0 stands for no comparison.
            Some(0) if !compared => Verdict::Go(0),
            Some(cas) if cas != 0 && cas == head.cas => {
                self.counts.cas_hits += u64::from(compared);
                Verdict::Go(0)
            }
            Some(cas) if cas != 0 && compared && change.stale_if_older && cas < head.cas => {
                self.counts.cas_hits += 1;
                Verdict::Go(STALE | head.bits & WON)
            }
            Some(_) => {
                self.counts.cas_badval += u64::from(compared);
                Verdict::Stop(Stored::Exists)
            }
        }
    }

    /// Removes an item, or only marks it, under conditions.
    pub(in crate::model) fn remove(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        compare: Option<u64>,
        mark: Option<&Mark>,
    ) -> Removed {
        let Some((slot, at, head)) = self.find_live(now_s, hashed) else {
            self.counts.delete_misses += 1;
            return Removed::NotFound;
        };
        if compare.is_some_and(|cas| cas != head.cas) {
            self.counts.delete_misses += 1;
            return Removed::Exists;
        }
        let Some(mark) = mark else {
            self.counts.delete_hits += 1;
            self.remove_at(slot, at, &head);
            return Removed::Removed;
        };
        let cas = mark.cas.filter(|_| self.rules.cas).unwrap_or_else(|| self.next_cas());
        let log = self.bytes_mut(at);
        item::set_cas(log, cas);
        if mark.stale {
            item::set_bits(log, STALE);
            item::clear_bits(log, WON);
        }
        if mark.empty {
            let log = self.bytes(at);
            let head = Head::read(log);
            let expires_s = head.expires_s(log);
            let entry = Entry { key: hashed.key, value: b"", flags: 0, expires_s };
            // It is never longer than what it takes the place of.
            self.put(now_s, hashed, &entry, cas, head.bits & (FETCHED | STALE | WON | BINARY));
        }
        if let Some(expires_s) = mark.expires_s {
            self.set_expires(now_s, hashed, expires_s);
        }
        Removed::Removed
    }

    /// Changes the expiry of a present item.
    fn set_expires(&mut self, now_s: u32, hashed: &Hashed<'_>, expires_s: u32) {
        let Some((_, at)) = self.find(hashed) else { return };
        let head = Head::read(self.bytes(at));
        self.note_expiry(expires_s);
        if head.set_expires(self.bytes_mut(at), expires_s) {
            return;
        }
        // There is no place for the expiry: the item is rewritten as it is.
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let old = head.item(self.bytes(at));
        scratch.extend_from_slice(old.value);
        let entry = Entry { key: hashed.key, value: &scratch, flags: old.flags, expires_s };
        let bits = head.bits & (FETCHED | REFERENCED | STALE | WON | BINARY);
        let accessed = head.accessed;
        if self.put(now_s, hashed, &entry, head.cas, bits)
            && let Some((_, at)) = self.find(hashed)
        {
            item::set_accessed(self.bytes_mut(at), accessed);
        }
        scratch.clear();
        scratch.shrink_to(MAX_SCRATCH_BYTES);
        self.scratch = scratch;
    }

    /// Reads an item, with changes; `show` gets the item as it was before. Returns `None` when
    /// there is none and none was made.
    pub(in crate::model) fn access<R>(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        access: &Access,
        show: impl FnOnce(&Item<'_>, &Seen) -> R,
    ) -> Option<R> {
        let touches = access.expires_s.is_some();
        let found = self.find_live(now_s, hashed).map(|(_, at, head)| (at, head));
        self.counts.cmd_touch += u64::from(touches);
        let (at, head, seen) = match found {
            Some((at, head)) => {
                let before_s = head.expires_s(self.bytes(at));
                self.counts.touch_hits += u64::from(touches);
                self.counts.get_hits += u64::from(!touches);
                if self.density.is_in_force() && !access.unnoticed {
                    self.note_request(Some((at, &head)));
                }
                (at, head, seen(access, &head, before_s))
            }
            None => {
                self.counts.touch_misses += u64::from(touches);
                self.counts.get_misses += u64::from(!touches);
                let expires_s = access.vivify_s?;
                let entry = Entry { key: hashed.key, value: b"", flags: 0, expires_s };
                let cas = self.next_cas();
                let bits = if access.binary_key { BINARY } else { 0 };
                self.counts.stored += 1;
                if !self.put(now_s, hashed, &entry, cas, bits) {
                    return None;
                }
                let (_, at) = self.find(hashed)?;
                let after_s = access.expires_s.unwrap_or(expires_s);
                (at, Head::read(self.bytes(at)), Seen { won: true, before_s: 0, after_s })
            }
        };
        let now = self.moment(now_s);
        let log = self.bytes_mut(at);
        if seen.won {
            item::set_bits(log, WON);
        }
        let shown = show(&head.item(log), &seen);
        if !access.unnoticed {
            item::set_bits(log, REFERENCED | FETCHED);
            item::set_accessed(log, now);
        }
        if let Some(expires_s) = access.expires_s {
            self.set_expires(now_s, hashed, expires_s);
        }
        Some(shown)
    }

    /// Increments or decrements a number.
    pub(in crate::model) fn sum(&mut self, now_s: u32, hashed: &Hashed<'_>, sum: &Sum) -> Summed {
        let Some((_, at, head)) = self.find_live(now_s, hashed) else {
            let Some((number, expires_s)) = sum.create else {
                let misses = match sum.increment {
                    true => &mut self.counts.incr_misses,
                    false => &mut self.counts.decr_misses,
                };
                *misses += 1;
                return Summed::NotFound;
            };
            let bits = if sum.binary_key { BINARY } else { 0 };
            let after_s = sum.expires_s.unwrap_or(expires_s);
            return self.write_number(now_s, hashed, sum, number, (0, after_s), bits);
        };
        let old = head.item(self.bytes(at));
        let is_empty = old.value.is_empty();
        if !is_empty && sum.compare.is_some_and(|cas| cas != 0 && cas != head.cas) {
            return Summed::Exists;
        }
        let Some(number) = number_of(old.value) else { return Summed::NotANumber };
        let number = match sum.increment {
            true => number.wrapping_add(sum.delta),
            false => number.saturating_sub(sum.delta),
        };
        let before_s = old.expires_s;
        let hits = match sum.increment {
            true => &mut self.counts.incr_hits,
            false => &mut self.counts.decr_hits,
        };
        *hits += 1;
        let after_s = sum.expires_s.unwrap_or(before_s);
        let (text, digits) = digits_of(number);
        if digits > head.value_bytes() {
            // A new item, as in memcached: whether the old one was stale is forgotten.
            let bits = head.bits & BINARY;
            return self.write_number(now_s, hashed, sum, number, (before_s, after_s), bits);
        }
        // As long as before, with spaces at its end: as memcached does and documents.
        let cas = sum.cas.filter(|_| self.rules.cas).unwrap_or_else(|| self.next_cas());
        let now = self.moment(now_s);
        let log = self.bytes_mut(at);
        let value = &mut log[head.value_at()..][..head.value_bytes()];
        value.fill(b' ');
        value[..digits].copy_from_slice(&text[MAX_DIGITS - digits..]);
        item::set_cas(log, cas);
        item::set_accessed(log, now);
        if before_s != after_s {
            self.set_expires(now_s, hashed, after_s);
        }
        Summed::Done(Total { number, cas, is_new: false, before_s, after_s })
    }

    /// Stores a number as a new item with the expiry that is the second of `(before, after)`.
    fn write_number(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        sum: &Sum,
        number: u64,
        (before_s, after_s): (u32, u32),
        bits: u8,
    ) -> Summed {
        let flags = self.find(hashed).map(|(_, at)| {
            let log = self.bytes(at);
            Head::read(log).item(log).flags
        });
        let (is_new, flags) = (flags.is_none(), flags.unwrap_or(0));
        let cas = sum.cas.filter(|_| self.rules.cas).unwrap_or_else(|| self.next_cas());
        let (text, digits) = digits_of(number);
        let value = &text[MAX_DIGITS - digits..];
        let entry = Entry { key: hashed.key, value, flags, expires_s: after_s };
        self.counts.stored += 1;
        if !self.put(now_s, hashed, &entry, cas, bits) {
            return Summed::NoRoom;
        }
        Summed::Done(Total { number, cas, is_new, before_s, after_s })
    }
}

/// Whether the reader of an item is to recache it.
fn seen(access: &Access, head: &Head, before_s: u32) -> Seen {
    let after_s = access.expires_s.unwrap_or(before_s);
    let held = if access.recache_last { after_s } else { before_s };
    let is_due = access.recache_s.is_some_and(|recache_s| held != 0 && held < recache_s);
    let won = head.bits & WON == 0 && (is_due || access.wins && head.bits & STALE != 0);
    Seen { won, before_s, after_s }
}

/// The number that a value starts with: digits, up to its end or a blank.
fn number_of(value: &[u8]) -> Option<u64> {
    let text = value.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let digits = text[..end].strip_prefix(b"+").unwrap_or(&text[..end]);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// A number's digits, at the end of the array, and how many there are.
fn digits_of(mut number: u64) -> ([u8; MAX_DIGITS], usize) {
    let mut text = [b'0'; MAX_DIGITS];
    let mut count = 0;
    loop {
        count += 1;
        text[MAX_DIGITS - count] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (text, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DIGITS, digits_of, number_of};

    #[test]
    fn a_number_is_digits_up_to_a_blank() {
        assert_eq!(number_of(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number_of(b"9  "), Some(9));
        assert_eq!(number_of(b" +9 and more"), Some(9));
        for wrong in [&b""[..], b" ", b"-1", b"1a", b"a", b"18446744073709551616", b"+"] {
            assert_eq!(number_of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for number in [0, 9, 10, 12345, u64::MAX] {
            let (text, count) = digits_of(number);
            assert_eq!(&text[MAX_DIGITS - count..], number.to_string().as_bytes());
        }
    }
}
