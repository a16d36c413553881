//! Targets: started in process groups of their own, pinned, awaited, and stopped. Control plane.

mod data_sets;
mod deployed;
mod deployer;
mod error;
mod last_words;
mod program;
mod ready;
mod site;
mod supervisor;

pub use deployed::Deployed;
pub use deployer::Deployer;
pub use error::DeployError;
pub(crate) use program::{missing_program, program_file};
pub(crate) use supervisor::{NO_PROGRAM, Supervised};
pub use supervisor::{Orphans, run_supervised, supervise_main};
