//! One thread of load: its slots, its event loop, and the commands that it executes.
//!
//! `turn` is the loop; `submit` makes the calls of several slots together; `broken` makes
//! connections again; `scheduled`, `streaming` and `preparing` hold what differs for requests that
//! are due at a time, for slots that subscribe, and before the load begins.

mod broken;
mod preparing;
mod scheduled;
mod state;
mod streaming;
mod submit;
mod turn;

pub(super) use state::Worker;
