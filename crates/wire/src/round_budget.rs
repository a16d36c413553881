//! The bytes that one round of the loop may send: one wait, and the turns that follow it. Data
//! plane.
//!
//! Each turn may send `turn_bytes` while few connections have much to send. Once the turns of one
//! round have sent [`ROUND_TURNS`] times as much, the others of that round send the least share,
//! and those that only continue to send wait for the next round. A request therefore waits for a
//! bounded number of bytes, however many connections are sent to: one wait returns at most
//! `MAX_EVENTS` (`poll.rs`) of them.

/// A round's bytes, in full turns: once for connections that are ready, then again for those that
/// yielded.
const ROUND_TURNS: usize = 4;

/// A turn may always send a full turn's bytes divided by this.
const MIN_SHARE_DIVISOR: usize = 32;

/// What is left of one round's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundBudget {
    turn_bytes: usize,
    /// The most that one turn of this round may send.
    share_bytes: usize,
    left_bytes: usize,
}

impl RoundBudget {
    pub(crate) fn new(turn_bytes: usize) -> Self {
        let mut budget = Self { turn_bytes: turn_bytes.max(1), share_bytes: 0, left_bytes: 0 };
        budget.begin(1);
        budget
    }

    /// Begins a round, or the part of it for connections that yielded, in which at least `turns`
    /// turns share the bytes.
    #[inline]
    pub(crate) fn begin(&mut self, turns: usize) {
        self.left_bytes = self.turn_bytes.saturating_mul(ROUND_TURNS);
        self.share_bytes = (self.left_bytes / turns.max(1)).min(self.turn_bytes);
    }

    /// Returns the bytes that the next turn may send, at least 1.
    #[inline]
    pub(crate) fn share(&self) -> usize {
        let least = (self.turn_bytes / MIN_SHARE_DIVISOR).max(1);
        self.left_bytes.min(self.share_bytes).max(least)
    }

    /// Counts bytes that a turn has sent.
    #[inline]
    pub(crate) fn spend(&mut self, sent_bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(sent_bytes);
    }

    /// Whether turns that only continue to send wait for the next round.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.left_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::RoundBudget;

    #[test]
    fn a_round_is_bounded_however_many_take_their_whole_share() {
        for turn_bytes in [1, 1000, 1 << 20] {
            let mut budget = RoundBudget::new(turn_bytes);
            let mut sent = 0;
            for _ in 0..256 {
                let share = budget.share();
                assert!((1..=turn_bytes).contains(&share));
                budget.spend(share);
                sent += share;
            }
            assert!(budget.is_spent() && sent <= 4 * turn_bytes + 256 * (turn_bytes / 32).max(1));
            budget.begin(4);
            assert!(!budget.is_spent() && budget.share() == turn_bytes);
            budget.begin(8);
            assert_eq!(budget.share(), (turn_bytes / 2).max(1));
        }
        let mut budget = RoundBudget::new(1 << 20);
        budget.begin(1000);
        assert_eq!(budget.share(), 1 << 15);
    }
}
