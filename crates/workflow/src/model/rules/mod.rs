//! The rules by which states change. A [`Rules`] applies commands at one moment to the owner's
//! tree; what is to be done beside it comes out as [`Effect`]s, in order.
//!
//! A change notes who waits for it; [`Rules::finish`] looks at those only, in the order of the
//! tree's numbers (which is the order of the definition), and submits what has become free.
//! Everything is a function of the tree, the command and the [`Moment`], so that a journal of
//! commands replays to the same tree.

mod archive;
mod awake;
mod change;
mod child;
mod force;
mod limits;
mod queue;
mod requeue;
mod resolve;
mod states;
mod structure;
mod times;

pub use change::{Archived, Effect, Moment, Restoring, RuleError, Rules, Submit};
pub use child::{ChildError, Credentials, Verdict};
pub use force::Free;
pub use queue::QueueAction;
pub use requeue::Which;
pub use structure::{LoadError, Order, at_or_below};
