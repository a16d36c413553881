//! Rungs of ladders of this service: ways to print a tree, to write a checkpoint, to let changes
//! go on beside one, and to write texts that nodes share. Control plane.
//!
//! `loadline workflow rung` measures one in a process of its own, of which the suites
//! `workflow-ladder-*.toml` make rungs. What came of it is compared with what it should be.
//!
//! | file | what it holds |
//! |---|---|
//! | `table` | the rungs, a row each |
//! | `site` | what is measured, and where it is written |
//! | `print` | a tree printed to a file, by what formats it and by how much is written at once |
//! | `formatted` | of that: lines by formatted output |
//! | `checkpoint` | a checkpoint by the thread that also makes changes, and who writes the file |
//! | `kernel` | of that: a mapping, POSIX AIO, io_uring |
//! | `snapshot` | a checkpoint by another thread, and what it reads meanwhile |
//! | `strings` | a tree in binary: shared texts once, or each apart |
//! | `triggers` | expressions read and evaluated, by how many are remembered |
//! | `due` | changes that are due at fixed times, and how long they wait |
//! | `peak` | the most memory of a step |

mod checkpoint;
mod due;
mod formatted;
mod kernel;
mod peak;
mod print;
mod site;
mod snapshot;
mod strings;
mod table;
mod triggers;

pub use site::{Figure, Site};
pub use table::{RUNGS, Rung};
