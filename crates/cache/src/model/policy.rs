//! Eviction policies over the same two rings.
//!
//! Every policy evicts the oldest item of a ring; they differ in which get another lap.
//! An item's age since it was last read is known to a fifteenth of a lap, in four bits of its head,
//! so none keeps a list: a read writes at most those bits.

/// A policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// What was stored first goes first, read or not.
    Fifo,
    /// What was read since it came to the ring's front comes there once more: second chance, or
    /// CLOCK (F. J. Corbató, A Paging Experiment with the Multics System, 1968).
    Clock,
    /// CLOCK that also looks at how long ago the read was: what was not read in the last thirteen
    /// fifteenths of a lap goes. It takes the mean of an item's idle time at its end, which CLOCK
    /// doubles, back to that of LRU: hit ratios are LRU's within a few tenths of a point.
    Lru,
    /// New items come to a small ring first, and only what is read there, or asked for again soon
    /// after it has gone, comes to the main ring, which is a CLOCK: what is read once doesn't
    /// displace what is read often (J. Yang et al., FIFO queues are all you need for cache
    /// eviction, SOSP 2023; with one bit of frequency, as in the same authors' QD-LP-FIFO,
    /// HotOS 2023).
    S3Fifo,
    /// What is requested most for its size stays: frequency × (1/size + 2/mean size of requests),
    /// with frequencies remembered past eviction (`shard/density.rs`).
    Density,
    /// [`Policy::Density`] where sizes are mixed: the mean of their squares is more than twice the
    /// square of their mean. Else [`Policy::Lru`] or [`Policy::S3Fifo`], whichever has more hits in
    /// miniature simulations of both, fed with a sample of the keys (C. Waldspurger et al., Cache
    /// Modeling and Optimization using Miniature Simulations, USENIX ATC 2017).
    #[default]
    Adaptive,
}

/// The age classes of one lap of a ring.
pub(super) const AGES: u8 = 15;

/// An item read less than this many fifteenths of a lap ago stays, under [`Policy::Lru`].
const RECENT: u8 = 13;

/// The small ring has this part of the memory.
pub(super) const SMALL_PART: usize = 10;

/// The part of a budget that the small ring and its ghosts take.
pub(super) fn small_part_of(budget_bytes: usize) -> usize {
    budget_bytes / SMALL_PART
}

impl Policy {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("lru", Self::Lru),
        ("fifo", Self::Fifo),
        ("clock", Self::Clock),
        ("s3fifo", Self::S3Fifo),
        ("density", Self::Density),
        ("adaptive", Self::Adaptive),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(_, policy)| *policy == self);
        row.map_or("", |(name, _)| name)
    }

    /// The policy of which this is the number.
    #[inline]
    pub(super) fn of(number: u8) -> Self {
        const BY_NUMBER: [Policy; 6] = [
            Policy::Fifo,
            Policy::Clock,
            Policy::Lru,
            Policy::S3Fifo,
            Policy::Density,
            Policy::Adaptive,
        ];
        BY_NUMBER.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// The policy in force at the start.
    pub(super) fn at_first(self) -> Self {
        if self == Self::Adaptive { Self::Lru } else { self }
    }

    /// Whether an item read `age` ago, if it was read since it came to its ring's front, gets
    /// another lap.
    #[inline]
    pub(super) fn keeps(self, age: Option<u8>) -> bool {
        match (self, age) {
            (_, None) | (Self::Fifo, _) => false,
            (Self::Lru | Self::Adaptive, Some(age)) => age < RECENT,
            (Self::Clock | Self::S3Fifo | Self::Density, Some(_)) => true,
        }
    }

    /// Whether new items have to prove themselves in a small ring first.
    #[inline]
    pub(super) fn filters(self) -> bool {
        matches!(self, Self::S3Fifo | Self::Density)
    }
}

impl std::str::FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let row = Self::ALL.iter().find(|(known, _)| *known == name);
        row.map(|(_, policy)| *policy).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("{name:?} is no policy: there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn a_policy_is_known_by_its_name() {
        for (name, policy) in Policy::ALL {
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(policy.name(), name);
            assert_eq!(Policy::of(policy as u8), policy);
        }
        assert!("mru".parse::<Policy>().unwrap_err().contains("s3fifo"));
    }
}
