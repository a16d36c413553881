//! What limited a trial: one row per limit, each a pure function over the trial's [`Figures`].
//!
//! The method is the checklist of utilisation, saturation and errors per resource (B. Gregg, The
//! USE Method), as rules: a rule that holds names its evidence. More than one may hold; they are
//! ranked by kind and then by strength:
//!
//! 1. what comes **from outside** and takes a tenth of the time, or stops everything (a quota,
//!    pages from disk): it invalidates every other figure. What takes less of it stands last;
//! 2. what is **full**: a thread, cores, a disk, a queue, a timer that most answers wait for;
//! 3. **waiting** for one another while nothing is full: wake-ups, a lock;
//! 4. what **will** be exhausted: memory and descriptors that grow.
//!
//! No limit reached is a result, too, where enough was seen to say so.

mod figures;
mod limit;
mod rules;
mod shared_resources;
mod threshold;

pub use figures::{FIGURES, Figures};
pub use limit::{Limit, LimitKind, Reached};
pub use rules::{LIMITS, unseen};
pub use shared_resources::shared_resources;
pub use threshold::{THRESHOLDS, Threshold, is_generator_bound};

/// Returns every limit that was reached, ranked; empty is *none reached*, unless it is [`unseen`].
pub fn limits_reached(figures: &Figures) -> Vec<Reached> {
    let mut reached: Vec<Reached> = LIMITS
        .iter()
        .filter_map(|limit| {
            let (strength, evidence) = (limit.holds)(figures)?;
            Some(Reached { limit, strength, evidence })
        })
        .collect();
    // Less than a tenth of the time explains no rate.
    let is_slight = |one: &Reached| {
        one.limit.kind == LimitKind::Outside && one.strength < threshold::OUTSIDE_FIRST
    };
    // Waiting explains only what nothing else does: threads behind a full resource sleep, too.
    let explains = |one: &Reached| match one.limit.kind {
        LimitKind::Outside => one.strength >= threshold::OUTSIDE_ALONE,
        kind => kind < LimitKind::Waiting,
    };
    if reached.iter().any(explains) {
        reached.retain(|one| one.limit.kind != LimitKind::Waiting);
    }
    // Other programs take time, but no 40 ms from every other answer: that is a timer's.
    let is_of_the_median = figures.near_40ms.is_some_and(|share| share >= threshold::OF_THE_MEDIAN);
    let comes_first = |one: &Reached| is_of_the_median && one.limit.code == "delayed_ack";
    reached.sort_by(|a, b| {
        let kind = a.limit.kind.cmp(&b.limit.kind);
        let first = comes_first(b).cmp(&comes_first(a));
        let slight = is_slight(a).cmp(&is_slight(b));
        first.then(slight).then(kind).then(b.strength.total_cmp(&a.strength))
    });
    reached
}

/// Returns the limit of this code.
pub fn limit_coded(code: &str) -> Option<&'static Limit> {
    LIMITS.iter().find(|limit| limit.code == code)
}

#[cfg(test)]
mod tests;
