//! The tree of suites, families and tasks, and the rules by which its states change.
//!
//! [`Tree`] is the owner's: nodes in an arena, found by path, with an index from each operand to
//! the expressions that wait for it. [`Snapshot`] is one state of it, taken in microseconds and
//! read by other threads. [`Rules`] applies commands. Nothing here does I/O or reads a clock: the
//! time is handed in, and what is to be done comes out as values.

mod adding;
mod attribute;
mod calendar;
mod changes;
mod evaluate;
mod expression;
mod hybrid;
mod index;
mod limits;
mod memory;
mod node;
mod noting;
mod numbers;
mod path;
mod portion;
mod repeat;
mod rules;
mod same;
mod says;
mod series;
mod state;
mod text;
mod time;
mod tree;
mod variables;
mod waiting;
mod why;

pub use attribute::{
    After, Attribute, Child, Condition, DateRule, DayRule, Event, Generic, InLimit, Label, Late,
    Limit, Meter, Queue, Variable, Verify, WEEKDAYS, ZombieAction, ZombieRule, ZombieType,
};
pub use calendar::{Calendar, Clock};
pub use changes::{Aspect, Changed, Passed};
pub use evaluate::{Found, From, Named};
pub use expression::{
    Binary, Expression, Function, Joint, Operand, Operands, Part, Program, Step, Value,
};
pub use memory::{Memory, Used};
pub use node::{Job, Node, NodeId};
pub use portion::{ALL_LEVELS, Mark, Marks, Portion, Wanted};
pub use repeat::{List, Over, Range, Repeat, instant_of_text, instant_text};
pub use rules::{
    Archived, ChildError, Credentials, Effect, Free, LoadError, Moment, Order, QueueAction,
    Restoring, RuleError, Rules, Submit, Verdict, Which, at_or_below,
};
pub use series::{Cron, Series};
pub use state::{Displayed, Flag, Flags, Kind, ServerState, State};
pub use text::{OwnText, Text, Texts};
pub use time::{Date, Duration, Instant, Slot, date_to_julian, julian_to_date};
pub use tree::{
    AddError, Children, DEPTH_LIMIT, Discarded, NAME_LIMIT, Server, Snapshot, Tree, Walk,
};
pub use why::OfCommands;
