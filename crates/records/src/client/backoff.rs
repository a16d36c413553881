//! How long a client waits before it tries again: twice as long each time up to a limit, and each
//! time a random part of it, so that the clients of a server that returns don't come all at once.

use std::time::Duration;

/// The first wait, at most.
const FIRST: Duration = Duration::from_millis(100);

/// No wait is longer.
pub(super) const MOST: Duration = Duration::from_secs(10);

/// The waits between one try and the next.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// Returns the next wait, where `share` (0 to 1) is where it lies in the half that is random.
    pub(super) fn wait(&mut self, share: f64) -> Duration {
        let wait = self.next.mul_f64(0.5 + 0.5 * share.clamp(0.0, 1.0));
        self.next = (self.next * 2).min(MOST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_half_of_each_is_random() {
        let (mut least, mut most) = (Backoff::default(), Backoff::default());
        let waits: Vec<_> = (0..9).map(|_| (least.wait(0.0), most.wait(1.0))).collect();
        let millis: Vec<_> = waits.iter().map(|(_, most)| most.as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert!(waits.iter().all(|(least, most)| *least * 2 == *most));
    }
}
