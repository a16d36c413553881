//! Operations without a socket: parsers and codecs, each implementation measured in a process of
//! its own.

use crate::{Finding, Op};

/// One implementation of a service's operations that needs nothing but memory.
///
/// What an operation works on is made ready before anything is timed, and evaluated over and over
/// then; so an evaluation must leave its input as it was.
pub trait InProcess {
    /// Makes ready what one evaluation of `op` works on. Evaluations are numbered from 0 in the
    /// order in which they are made ready.
    fn prepare(&mut self, op: &Op<'_>);

    /// Evaluates one of them, and says how many bytes it has read or written.
    fn evaluate(&mut self, index: usize) -> usize;

    /// Whether an evaluation comes to the right result.
    ///
    /// # Errors
    /// What it comes to instead.
    fn check(&mut self, index: usize) -> Result<(), Box<Finding>>;
}
