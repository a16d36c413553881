//! How a side waits for the other one: on the CPU, asleep, or first the one and then the other.

use std::io;
use std::time::{Duration, Instant};

/// How a side waits for the other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Wait {
    /// On the CPU: no wake-up to pay, and a whole core while nothing happens
    Spin,
    /// On the CPU for some microseconds, then asleep
    #[default]
    Hybrid,
    /// Asleep: a wake-up each time
    Park,
}

impl Wait {
    /// How long a wait may stay on the CPU, where a hybrid one may stay for `most`.
    pub(crate) fn budget(self, most: Duration) -> Duration {
        match self {
            Self::Spin => Duration::MAX,
            Self::Hybrid => most,
            Self::Park => Duration::ZERO,
        }
    }
}

/// Tries again and again, on the CPU: `None` once that has taken the whole budget. What is tried
/// fails with [`io::ErrorKind::WouldBlock`] until it can be done; `tries` counts how often.
pub(crate) fn spin<T>(
    budget: Duration,
    until: Option<Instant>,
    tries: &mut u64,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<Option<T>> {
    if budget.is_zero() {
        return Ok(None);
    }
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => *tries += 1,
            done => return done.map(Some),
        }
        let now = Instant::now();
        if until.is_some_and(|until| until <= now) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if now - begun >= budget {
            return Ok(None);
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_ends_with_what_is_tried_its_budget_or_its_time() {
        let mut tries = 0;
        let mut left = 5;
        let mut once = || {
            left -= 1;
            if left == 0 { Ok(7) } else { Err(io::Error::from(io::ErrorKind::WouldBlock)) }
        };
        assert_eq!(spin(Duration::MAX, None, &mut tries, &mut once).ok(), Some(Some(7)));
        assert_eq!(tries, 4);
        let mut never = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
        let budget = Duration::from_micros(10);
        assert_eq!(spin(budget, None, &mut tries, &mut never).ok(), Some(None));
        assert_eq!(spin(Duration::ZERO, None, &mut tries, &mut never).ok(), Some(None));
        let now = Some(Instant::now());
        let error = spin(Duration::MAX, now, &mut tries, &mut never).expect_err("no time");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let broken = spin(budget, None, &mut tries, || Err::<(), _>(io::Error::other("broken")));
        assert!(broken.is_err());
    }
}
