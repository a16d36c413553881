//! The service's seconds, and how an expiry as clients write it becomes one of them. Pure
//! arithmetic: the reading of clocks is the server's.

/// Seconds of the service's own clock. They start at [`FIRST_SECOND`], so that a second that has
/// certainly passed and is not 0 exists from the start.
pub type Seconds = u32;

/// The second at which the service's clock starts.
pub const FIRST_SECOND: Seconds = 2;

/// An `expires_s` that has always passed.
pub const EXPIRED: Seconds = 1;

/// Ties the service's seconds to the two clocks that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The monotonic clock at the service's start.
    pub start_ns: u64,
    /// Unix time at the service's start.
    pub start_unix_s: u64,
}

/// An expiry of at most this many seconds is counted from now; a larger one is Unix time.
const MAX_RELATIVE_S: i64 = 60 * 60 * 24 * 30;

impl Clock {
    /// The service's second at `now_ns` of the monotonic clock.
    #[inline]
    pub fn seconds(&self, now_ns: u64) -> Seconds {
        let uptime_s = now_ns.saturating_sub(self.start_ns) / 1_000_000_000;
        u32::try_from(uptime_s).unwrap_or(u32::MAX).saturating_add(FIRST_SECOND)
    }

    /// Seconds since the service's start.
    pub fn uptime_s(&self, now_s: Seconds) -> u32 {
        now_s.saturating_sub(FIRST_SECOND)
    }

    /// Unix time, unless the host's clock has been set since the start.
    pub fn unix_s(&self, now_s: Seconds) -> u64 {
        self.start_unix_s + u64::from(self.uptime_s(now_s))
    }

    /// The second that `exptime` means: 0 is never, negative at once, up to thirty days from now,
    /// else Unix time.
    #[inline]
    pub fn expires_s(&self, exptime: i64, now_s: Seconds) -> Seconds {
        match exptime {
            0 => 0,
            ..0 => EXPIRED,
            1..=MAX_RELATIVE_S => now_s.saturating_add(exptime as u32),
            _ => {
                let since_start = exptime.saturating_sub_unsigned(self.start_unix_s);
                let second = since_start.saturating_add(i64::from(FIRST_SECOND));
                u32::try_from(second.max(i64::from(EXPIRED))).unwrap_or(u32::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_never_or_at_once_or_relative_or_absolute() {
        let clock = Clock { start_ns: 5_000_000_000, start_unix_s: 1_700_000_000 };
        let now_s = clock.seconds(105_000_000_000);
        assert_eq!(now_s, 100 + FIRST_SECOND);
        assert_eq!(clock.unix_s(now_s), 1_700_000_100);
        assert_eq!(clock.expires_s(0, now_s), 0);
        assert_eq!(clock.expires_s(-1, now_s), EXPIRED);
        assert_eq!(clock.expires_s(60, now_s), now_s + 60);
        assert_eq!(clock.expires_s(MAX_RELATIVE_S, now_s), now_s + MAX_RELATIVE_S as u32);
        assert_eq!(clock.expires_s(1_700_000_200, now_s), now_s + 100);
        assert_eq!(clock.expires_s(MAX_RELATIVE_S + 1, now_s), EXPIRED);
        assert_eq!(clock.expires_s(i64::MAX, now_s), u32::MAX);
    }
}
