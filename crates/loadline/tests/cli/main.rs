//! The command from outside: one file per theme.

mod common;
mod load;
mod run;
mod targets;
