//! Targets: started in process groups of their own, pinned, awaited, and stopped. Control plane.

mod data_sets;
mod deployed;
mod deployer;
mod error;
mod guard;
mod last_words;
mod program;
mod ready;
mod site;

pub use deployed::Deployed;
pub use deployer::Deployer;
pub use error::DeployError;
pub(crate) use guard::Guard;
pub use guard::{enter_main, guard_main, run_guarded};
pub(crate) use program::{missing_program, program_file};
