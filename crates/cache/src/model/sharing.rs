//! How threads share a store.

/// How many parts a store has, and what keeps its threads apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One part, for one thread: its lock is never waited for, and is all that is left of sharing.
    Single,
    /// One part: threads wait for each other whatever their keys.
    GlobalLock,
    /// Four parts for each thread: two threads seldom meet.
    #[default]
    Sharded,
}

/// Parts for each thread, so that two of them seldom want the same one.
const SHARDS_A_THREAD: usize = 4;

impl Sharing {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("single", Self::Single), ("global-lock", Self::GlobalLock), ("sharded", Self::Sharded)];

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(_, sharing)| *sharing == self);
        row.map_or("", |(name, _)| name)
    }

    /// How many parts there should be, a power of two.
    pub(super) fn shards(self, threads: usize) -> usize {
        match self {
            Self::Single | Self::GlobalLock => 1,
            Self::Sharded => (threads.max(1) * SHARDS_A_THREAD).next_power_of_two(),
        }
    }
}

impl std::str::FromStr for Sharing {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let row = Self::ALL.iter().find(|(known, _)| *known == name);
        row.map(|(_, sharing)| *sharing).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("{name:?} is no way to share a store: there are {}", names.join(", "))
        })
    }
}
