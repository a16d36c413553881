//! The slowest requests of a trial, for the pages that show them one by one.

use wire::Ns;

/// A slow request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    /// From the moment it was due to its answer, or until it was given up.
    pub latency_ns: u64,
    /// When that was, on the run's clock.
    pub at: Ns,
    /// Which group of clients, as an index into the point's.
    pub group: usize,
    /// Which operation, as an index into the service's.
    pub operation: usize,
}

/// The slowest requests of a trial that are kept.
const MAX_SLOW: usize = 64;

/// The slowest requests seen so far.
#[derive(Clone, Debug, Default)]
pub struct Slowest {
    kept: Vec<Slow>,
    /// A request has to be slower than this to be kept.
    bar_ns: u64,
}

impl Slowest {
    /// Keeps a request if it is among the slowest.
    #[inline]
    pub(crate) fn offer(&mut self, slow: Slow) {
        if slow.latency_ns > self.bar_ns {
            self.keep(slow);
        }
    }

    #[cold]
    fn keep(&mut self, slow: Slow) {
        if self.kept.len() < MAX_SLOW {
            self.kept.push(slow);
        } else if let Some(least) = self.kept.iter_mut().min() {
            *least = slow;
        }
        if self.kept.len() == MAX_SLOW {
            self.bar_ns = self.kept.iter().map(|slow| slow.latency_ns).min().unwrap_or(0);
        }
    }

    /// Adds what others kept.
    pub(crate) fn add(&mut self, other: Self) {
        for slow in other.kept {
            self.offer(slow);
        }
    }

    /// The slowest first.
    pub fn in_order(&self) -> Vec<Slow> {
        let mut kept = self.kept.clone();
        kept.sort_unstable_by(|a, b| b.cmp(a));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_requests_are_kept_and_no_more_than_wanted() {
        let mut slowest = Slowest::default();
        let mut others = Slowest::default();
        for index in 0..10_000_u64 {
            let latency_ns = index * 7919 % 10_007;
            let slow = Slow { latency_ns, at: index, group: 0, operation: 0 };
            if index % 2 == 0 { slowest.offer(slow) } else { others.offer(slow) }
        }
        slowest.add(others);
        let kept: Vec<u64> = slowest.in_order().iter().map(|slow| slow.latency_ns).collect();
        let mut all: Vec<u64> = (0..10_000).map(|index| index * 7919 % 10_007).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(kept, all[..MAX_SLOW]);
    }
}
