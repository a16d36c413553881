//! How much longer one answer may have taken because a disturbance kept threads of the target or
//! of the load from running, so that a limit which answers pass all the same is passed without it.
//!
//! Let δ be the most time that was taken from both sides together within any stretch of time as
//! long as an answer's life. Time in which several threads waited counts for each of them, and so
//! does time that the hypervisor took: the sum is never less than what one answer lost, which
//! waits for one thread at a time. Three things can make more of it than δ:
//!
//! - A target that stands still now and then by itself. A request that is held up by e just before
//!   such a stall is answered after it: it loses much more than e. But the requests that meet the
//!   stall are then those that would have been sent up to e later, and of a schedule that knows
//!   nothing of the stall there are, on average, as many of these as of any others. So a
//!   disturbance before the stall only shifts requests against it, by δ at most, and what comes
//!   after the stall adds δ at most: answers over L + 2δ are, on average, no more than answers over
//!   L would be without the disturbance. That takes one stall at most in a life.
//! - The queue that a wait leaves behind. It is the work of the requests that came meanwhile: with
//!   no thread busy for more than half of the time, that is at most δ / 2 and gone after δ. So the
//!   life begins δ before the request was due, and is L + 3δ long.
//! - A closed loop sends less while it waits, so that the share of slow answers grows without one
//!   of them being slower. It has no margin: only a schedule has.
//!
//! A kernel books a wait when it ends, so a wait lies in the reading after it in one piece, which
//! makes δ greater and never less.
//!
//! A bound on the share of answers instead of their time, such as the part of all time that was
//! waited for, would be wrong: a target that always takes nearly as long as the limit allows passes
//! it with every answer, and needs waits of a hundredth of the time for that.

/// Some time, on any clock, in which a disturbance took time from both sides or one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// How much was taken in it, summed over threads; it may be longer than the stretch.
    pub taken_ns: u64,
}

/// The margin 2δ to a limit on the latency of a schedule's answers; `None` where so much was taken
/// that δ exceeds the limit itself.
pub fn margin(stretches: &[Stretch], limit_ns: u64) -> Option<u64> {
    let mut most_ns: u64 = 0;
    loop {
        let life_ns = limit_ns.checked_add(most_ns.checked_mul(3)?)?;
        match most_taken(stretches, life_ns) {
            taken_ns if taken_ns <= most_ns => return most_ns.checked_mul(2),
            taken_ns if taken_ns > limit_ns => return None,
            taken_ns => most_ns = taken_ns,
        }
    }
}

/// The most that was taken in all stretches which touch any time of this length.
fn most_taken(stretches: &[Stretch], length_ns: u64) -> u64 {
    // The beginnings of such times that touch a stretch: from `length_ns` before it to its end.
    let mut changes: Vec<(i128, bool, u64)> = Vec::with_capacity(2 * stretches.len());
    for stretch in stretches {
        let first = i128::from(stretch.from_ns) - i128::from(length_ns);
        changes.push((first, false, stretch.taken_ns));
        changes.push((i128::from(stretch.to_ns), true, stretch.taken_ns));
    }
    // What begins comes before what ends at the same time.
    changes.sort_unstable();
    let (mut now, mut most) = (0_u64, 0);
    for (_, ends, taken_ns) in changes {
        now = if ends { now.saturating_sub(taken_ns) } else { now.saturating_add(taken_ns) };
        most = now.max(most);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenths(taken: &[u64]) -> Vec<Stretch> {
        let of = |(tenth, taken_ns): (u64, &u64)| Stretch {
            from_ns: tenth * 100,
            to_ns: (tenth + 1) * 100,
            taken_ns: *taken_ns,
        };
        (0..).zip(taken).map(of).collect()
    }

    #[test]
    fn the_most_is_that_of_all_stretches_which_a_life_can_touch() {
        let all = tenths(&[1, 2, 40, 3, 30, 1]);
        // A life of 50 touches two tenths at most, and one of 100 three.
        assert_eq!(most_taken(&all, 50), 43);
        assert_eq!(most_taken(&all, 101), 73);
        assert_eq!(most_taken(&all, 10_000), 77);
        assert_eq!(most_taken(&[], 100), 0);
        // Readings of several threads need not be of the same times.
        let other = Stretch { from_ns: 250, to_ns: 350, taken_ns: 5 };
        assert_eq!(most_taken(&[all, vec![other]].concat(), 50), 48);
    }

    #[test]
    fn a_life_is_longer_by_what_was_taken_from_it() {
        assert_eq!(margin(&[], 100), Some(0));
        assert_eq!(margin(&tenths(&[5; 20]), 80), Some(2 * 15), "80 touch two, 80 + 45 three");
        assert_eq!(margin(&tenths(&[40; 20]), 100), None);
        assert_eq!(margin(&tenths(&[0, 0, 101, 0]), 100), None);
        assert_eq!(margin(&tenths(&[u64::MAX; 3]), 100), None);
    }
}
