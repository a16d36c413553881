//! What a server's total should be: the oracle of `add`, shared by all connections to one target.
//!
//! A total lies between what was acknowledged before its call was sent and what had been sent when
//! it came. Whenever no call is under way, which is so at the end of every slice, the highest total
//! is exactly the sum of all calls: a call that was carried out twice, or not at all, is found.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

/// The sums of one target.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// The total before the first call.
    base: OnceLock<i64>,
    /// Calls that were sent. Counted before their numbers are added.
    begun: AtomicU64,
    begun_sum: AtomicI64,
    /// Calls that were answered, or are given up.
    over: AtomicU64,
    given_up: AtomicU64,
    /// The numbers of those that were answered.
    answered_sum: AtomicI64,
    /// The highest total so far, less the base.
    highest: AtomicI64,
}

/// A total that can't be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The least and the highest that can be.
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) note: &'static str,
}

impl Totals {
    /// The total before the first call, as a first call that adds nothing has answered. A later one
    /// says nothing new.
    pub(super) fn set_base(&self, total: i64) {
        let _ = self.base.set(total);
    }

    /// Whether the first total is known.
    pub(super) fn has_base(&self) -> bool {
        self.base.get().is_some()
    }

    /// A call is sent. Returns the least sum that it may answer.
    #[inline]
    pub(super) fn begin(&self, number: i64) -> i64 {
        self.begun.fetch_add(1, SeqCst);
        self.begun_sum.fetch_add(number, SeqCst);
        self.answered_sum.load(SeqCst) + number
    }

    /// A call that was sent is answered, with this total.
    ///
    /// # Errors
    /// Where no order of the calls gives this total.
    #[inline]
    pub(super) fn end(&self, number: i64, least: i64, total: i64) -> Result<(), Mismatch> {
        let base = self.base.get().copied().unwrap_or(0);
        let sum = total.wrapping_sub(base);
        // Every call of this sum was counted before it was added.
        let most = self.begun_sum.load(SeqCst);
        self.highest.fetch_max(sum, SeqCst);
        self.answered_sum.fetch_add(number, SeqCst);
        let over = self.over.fetch_add(1, SeqCst) + 1;
        let wrong = |least: i64, most: i64, note| {
            Err(Mismatch { least: base + least, most: base + most, note })
        };
        if sum < least {
            return wrong(least, most, "a call before it is not in the total");
        }
        if sum > most {
            return wrong(least, most, "more is in the total than was sent");
        }
        // All that was begun is over, and nothing was begun since `most` was read.
        if over == self.begun.load(SeqCst) && most == self.begun_sum.load(SeqCst) {
            let is_exact = self.given_up.load(SeqCst) == 0;
            let least = if is_exact { most } else { self.answered_sum.load(SeqCst) };
            if self.highest.load(SeqCst) < least {
                let note = "no call is under way, and not all are in the total";
                return wrong(least, most, note);
            }
        }
        Ok(())
    }

    /// A call that was sent is given up: it may have been carried out.
    pub(super) fn give_up(&self) {
        self.given_up.fetch_add(1, SeqCst);
        self.over.fetch_add(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_in_any_order_of_the_calls_are_right_and_others_are_found() {
        let totals = Totals::default();
        totals.set_base(100);
        let (one, two) = (totals.begin(1), totals.begin(2));
        assert_eq!((one, two), (1, 2));
        // The second was first.
        assert_eq!(totals.end(2, two, 102), Ok(()));
        assert_eq!(totals.end(1, one, 103), Ok(()));
        let three = totals.begin(3);
        assert_eq!(three, 6);
        let note = |ended: Result<(), Mismatch>| ended.unwrap_err().note;
        assert_eq!(note(totals.end(3, three, 105)), "a call before it is not in the total");
        let four = totals.begin(4);
        assert_eq!(note(totals.end(4, four, 114)), "more is in the total than was sent");
    }

    #[test]
    fn a_call_that_was_not_done_is_found_when_none_is_under_way() {
        let totals = Totals::default();
        totals.set_base(0);
        let (one, two) = (totals.begin(5), totals.begin(5));
        assert_eq!(totals.end(5, one, 5), Ok(()), "the other may be later");
        let ended = totals.end(5, two, 5).unwrap_err();
        assert_eq!((ended.least, ended.most), (10, 10));
        assert_eq!(ended.note, "no call is under way, and not all are in the total");
    }

    #[test]
    fn what_was_given_up_may_be_done_or_not() {
        for total in [3, 7] {
            let totals = Totals::default();
            totals.set_base(0);
            totals.begin(4);
            totals.give_up();
            let least = totals.begin(3);
            assert_eq!(totals.end(3, least, total), Ok(()));
        }
    }
}
