//! What a limit is: a row of the index, and a limit that was reached.

use super::figures::Figures;

/// The result of a rule: strength and evidence.
pub(super) type Finding = Option<(f64, String)>;

/// The kinds of limits, in the order in which they are ranked (what takes little of the time from
/// outside apart: [`limits_reached`](super::limits_reached)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitKind {
    /// From outside: from a tenth of the time on it invalidates the other figures.
    Outside,
    /// A resource is full.
    Full,
    /// Nothing is full; threads wait for one another.
    Waiting,
    /// A resource grows, and will be exhausted.
    Growing,
}

/// One limit: a row of [`LIMITS`](super::LIMITS).
#[derive(Debug)]
pub struct Limit {
    /// Its code, one lower-case word: `server_thread`.
    pub code: &'static str,
    /// Its name in a report: `one server thread`.
    pub name: &'static str,
    /// The condition under which it holds, in words.
    pub condition: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// Its place in the ranking.
    pub kind: LimitKind,
    /// Its strength and evidence, when it holds.
    pub(super) holds: fn(&Figures) -> Finding,
}

/// A limit that was reached.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Which.
    pub limit: &'static Limit,
    /// The share of the time, the cores or the answers that it accounts for, 0 to 1, and 1 more
    /// where it is the cause of what else is full. Ranks limits of one kind.
    pub strength: f64,
    /// The figures that show it, in words.
    pub evidence: String,
}
