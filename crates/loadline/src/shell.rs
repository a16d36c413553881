//! `loadline completions` and `loadline man`, made of the same table of options as the help, and
//! `loadline version`.

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

/// `loadline version`.
pub(crate) fn version() -> Outcome {
    let built = crate::registry::build().into_iter();
    let built = built.map(|(name, fact)| format!("  {}: {fact}\n", name.replace('_', " ")));
    out::print(format!("loadline {}\n{}", env!("LOADLINE_VERSION"), built.collect::<String>()))?;
    Ok(ExitCode::SUCCESS)
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
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let command = with_synopsis(command);
        let Some(directory) = &self.directory else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out::print(String::from_utf8_lossy(&page))?;
            return Ok(ExitCode::SUCCESS);
        };
        let written = std::fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(command, directory));
        written.with_context(|| format!("cannot write pages to {}", directory.display()))?;
        out::note(format!("the pages are in {0}: man -l {0}/loadline.1", directory.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// Gives each command a synopsis in which options stand with their values; that of clap_mangen
/// leaves values out.
fn with_synopsis(command: Command) -> Command {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let (positional, options): (Vec<_>, Vec<_>) = shown.partition(|one| one.is_positional());
    let optional = options.into_iter().map(|option| match option.is_required_set() {
        true => option.to_string(),
        false => format!("[{option}]"),
    });
    let commands = command.has_subcommands().then(|| "<COMMAND>".to_owned());
    let words =
        [name].into_iter().chain(optional).chain(positional.iter().map(|one| one.to_string()));
    let usage: Vec<String> = words.chain(commands).collect();
    command.override_usage(usage.join(" ")).mut_subcommands(with_synopsis)
}
