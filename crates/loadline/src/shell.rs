//! `loadline completions` and `loadline man`: made of the same table of options as the help.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;
use service::{Outcome, out};

/// Arguments of `loadline completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline completions bash > ~/.local/share/bash-completion/completions/loadline
  loadline completions zsh > ~/.zfunc/_loadline
  loadline completions fish > ~/.config/fish/completions/loadline.fish")]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionArgs {
    pub(crate) fn run(&self, mut command: Command) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "loadline", &mut script);
        out::print(String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Arguments of `loadline man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline man | man -l -
  loadline man ~/.local/share/man/man1     then: man loadline-run, man loadline-serve-cache")]
pub(crate) struct ManArgs {
    /// Write a page for each command here; the directory is made if it isn't there
    directory: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(&self, command: Command) -> Outcome {
        let Some(directory) = &self.directory else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out::print(String::from_utf8_lossy(&page))?;
            return Ok(ExitCode::SUCCESS);
        };
        let written = std::fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(command, directory));
        written.with_context(|| format!("cannot write pages to {}", directory.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
