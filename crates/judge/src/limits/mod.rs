//! What limited a trial: one row per limit, each a pure function over the trial's [`Figures`].
//!
//! The method is the checklist of utilisation, saturation and errors per resource (B. Gregg, The
//! USE Method), as rules: a rule that holds names its evidence. More than one may hold; they are
//! ranked by kind and then by strength:
//!
//! 1. what comes **from outside** and falsifies every other figure: a neighbour, pauses, swapping;
//! 2. what is **full**: a thread, cores, a disk, a queue, a timer that most answers wait for;
//! 3. **waiting** for one another while nothing is full: wake-ups, a lock;
//! 4. what is **going to** give way: memory and descriptors that grow.
//!
//! That nothing holds is an answer: none reached.

mod figures;
mod rules;
mod shared;
mod threshold;

pub use figures::{FIGURES, Figures};
pub use rules::LIMITS;
pub use shared::shared;
pub use threshold::{THRESHOLDS, Threshold};

/// The kinds of limits, in the order in which they are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It comes from outside and falsifies the rest.
    Outside,
    /// A resource is full.
    Full,
    /// Nothing is full; threads wait for one another.
    Waiting,
    /// It grows, and will give way if it goes on.
    Growing,
}

/// One limit: a row of [`LIMITS`].
#[derive(Debug)]
pub struct Limit {
    /// In one lower-case word, for programs: `server_thread`.
    pub code: &'static str,
    /// In words, for people: `one server thread`.
    pub name: &'static str,
    /// When it holds, in words.
    pub condition: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// Its place in the ranking.
    pub kind: Kind,
    /// Its strength and evidence, when it holds.
    pub(crate) holds: fn(&Figures) -> Option<(f64, String)>,
}

/// A limit that was reached.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Which.
    pub limit: &'static Limit,
    /// How much of the time, the cores or the answers it accounts for: about 0 to 1. Ranks limits
    /// of one kind.
    pub strength: f64,
    /// The figures that show it.
    pub evidence: String,
}

/// Every limit that was reached, the one that gives way first at the head; empty is *none reached*.
pub fn limits_reached(figures: &Figures) -> Vec<Reached> {
    let mut reached: Vec<Reached> = LIMITS
        .iter()
        .filter_map(|limit| {
            let (strength, evidence) = (limit.holds)(figures)?;
            Some(Reached { limit, strength, evidence })
        })
        .collect();
    // Waiting explains only what nothing else does: threads that wait for a full resource sleep,
    // too.
    if reached.iter().any(|one| one.limit.kind < Kind::Waiting) {
        reached.retain(|one| one.limit.kind != Kind::Waiting);
    }
    reached.sort_by(|a, b| a.limit.kind.cmp(&b.limit.kind).then(b.strength.total_cmp(&a.strength)));
    reached
}

/// The limit of this code; `None` when there is none.
pub fn limit_coded(code: &str) -> Option<&'static Limit> {
    LIMITS.iter().find(|limit| limit.code == code)
}

#[cfg(test)]
mod tests;
