//! The client side of calls that are too short for the clock: parsers and codecs, and messages over
//! memory that both sides share. Many are timed together.

use crate::dialect::Finding;
use crate::mix::Op;

/// One slot's client: each call takes nanoseconds, and never waits for long.
///
/// What a call works on is made ready before anything is timed, and then called over and over; so a
/// call must leave its input as it was.
pub trait Busy: Send {
    /// Makes ready what a call of `op` works on. Calls are numbered from 0 in the order in which
    /// they are made ready.
    fn ready(&mut self, op: Op);

    /// Does one of them, and returns how many bytes it has read or written.
    fn call(&mut self, index: usize) -> usize;

    /// Whether a call comes to the right result. It is asked of every call, before they are timed
    /// and after that.
    ///
    /// # Errors
    /// What it comes to instead.
    fn check(&mut self, index: usize) -> Result<(), Box<Finding>>;
}
