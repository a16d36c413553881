//! What a target says of itself while it is loaded: which statements its connections are in, what
//! they wait for, and what would help.
//!
//! The lab owns the thread and the clock. It samples within slices, from a thread that carries no
//! load, and asks for the conclusion once a trial is measured, before the target is stopped.
//! Control plane.

use std::collections::BTreeMap;

use wire::ProtocolError;

/// How many statements of a trial are kept at most.
pub const MAX_STATEMENTS: usize = 10;

/// A statement that a target executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    /// The statement, perhaps cut.
    pub text: String,
    /// How many connections were in it on average.
    pub active: f64,
    /// Where they stood: the class of a wait and its event (`IO/DataFileRead`), or `running`, each
    /// with how many connections on average.
    pub waits: BTreeMap<String, f64>,
    /// How the target executes it, a line for each step, where it says so.
    pub plan: Option<String>,
}

/// What would help a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What would help, in one word: `index`.
    pub code: &'static str,
    /// The class of waits that took most of the connections' time, or `running`.
    pub wait: String,
    /// The share of their time that it took.
    pub share: f64,
    /// What shows it, in words.
    pub evidence: String,
    /// The place of the statement that it is about in [`Conclusion::statements`].
    pub statement: Option<usize>,
    /// What to do.
    pub help: String,
}

/// What was seen in a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// What the target is, with its version, as it says itself: `PostgreSQL 15.14`.
    pub version: Option<String>,
    /// The statements that its connections were in, the first that in which most were: at most
    /// [`MAX_STATEMENTS`].
    pub statements: Vec<Statement>,
    /// What would help, most first.
    pub advice: Vec<Advice>,
}

/// A connection of its own to a target, which looks at what the target does.
pub trait Advisor: Send {
    /// Looks at what the target does now. It is called ten times a second within slices, and has to
    /// return within milliseconds.
    ///
    /// # Errors
    /// When the target doesn't answer; it is not asked again in this trial.
    fn sample(&mut self) -> Result<(), ProtocolError>;

    /// What was seen since the last conclusion. It may execute statements, for seconds at most.
    ///
    /// # Errors
    /// As [`Advisor::sample`].
    fn conclude(&mut self) -> Result<Conclusion, ProtocolError>;
}
