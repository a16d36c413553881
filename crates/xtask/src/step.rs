//! One step of a longer task: a cargo command, or a function of this program.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// One step.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Its name, as it is printed.
    pub(crate) name: &'static str,
    /// Its work.
    pub(crate) work: Work,
}

/// The work of a step.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// A cargo command, with one variable of its environment where it needs one.
    Cargo(&'static [&'static str], Option<(&'static str, &'static str)>),
    /// A function, and the command that runs it alone.
    Own(fn() -> Result<()>, &'static str),
}

impl Step {
    /// Does the work.
    pub(crate) fn run(&self) -> Result<()> {
        match self.work {
            Work::Own(work, _) => work(),
            Work::Cargo(args, variable) => {
                let mut cargo = cargo();
                process::run(cargo.args(args).envs(variable))
            }
        }
    }

    /// Returns the command that runs only this step.
    pub(crate) fn alone(&self) -> String {
        match self.work {
            Work::Own(_, words) => words.to_owned(),
            Work::Cargo(args, variable) => {
                let set = variable.map(|(name, value)| format!("{name}=\"{value}\" "));
                format!("{}cargo {}", set.unwrap_or_default(), args.join(" "))
            }
        }
    }
}

/// Cargo in the repository, whose tests append their skips.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    // Cargo passes this program its own package. Build scripts may watch these variables, and would
    // run again whenever `cargo test` is called directly.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo.current_dir(process::repository()).env(testing::SKIPS, process::skips());
    cargo
}
