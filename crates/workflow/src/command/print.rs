//! `loadline workflow print`: a definition as servers print it. Control plane.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use service::{Failure, Outcome, out};

use super::input;
use crate::definition::{Style, parse, print};

const EXAMPLES: &str = "\
Examples:
  loadline workflow print x.def                   as --get prints it: tidy, without comments
  loadline workflow print x.def --style migrate   as a checkpoint has it
  loadline workflow print x.def --again           read that again, compare, say what each took";

/// What is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PrintArgs {
    /// The definition
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How: defs as people write it, state with what is generated, too, migrate as a checkpoint
    #[arg(long, value_name = "STYLE", default_value = "defs")]
    style: StyleWord,
    /// Read what was printed again instead, compare both, and print how long each took
    #[arg(long)]
    again: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum StyleWord {
    Defs,
    State,
    Migrate,
}

pub(super) fn run(args: &PrintArgs) -> Outcome {
    let style = match args.style {
        StyleWord::Defs => Style::Defs,
        StyleWord::State => Style::State,
        StyleWord::Migrate => Style::Migrate,
    };
    let file = args.file.display().to_string();
    if args.again {
        return again(args, style, &file);
    }
    let parsed = parse(&input::text(&args.file)?, &file).map_err(Failure::usage)?;
    if parsed.tree.count() == 0 {
        out::note(format!("{file}: there is no suite in it"));
    }
    out::print(print(&parsed.tree, style, style != Style::Migrate))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads, prints, reads that again and compares. Each time is a line of its own; the file is read
/// with the first.
fn again(args: &PrintArgs, style: Style, file: &str) -> Outcome {
    let clock = Instant::now();
    let first = parse(&input::text(&args.file)?, file).map_err(Failure::usage)?;
    let parse_ns = clock.elapsed().as_nanos();
    let clock = Instant::now();
    let printed = print(&first.tree, style, style != Style::Migrate);
    let print_ns = clock.elapsed().as_nanos();
    let clock = Instant::now();
    let second = parse(&printed, file).map_err(Failure::usage)?;
    let reload_ns = clock.elapsed().as_nanos();
    if print(&second.tree, style, style != Style::Migrate) != printed {
        let why = "what is printed is read as another definition: please report this file";
        return Err(anyhow::anyhow!("{file}: {why}").into());
    }
    let nodes = second.tree.count();
    let clock = Instant::now();
    drop(second);
    let destroy_ns = clock.elapsed().as_nanos();
    out::print(format_args!(
        "nodes={nodes}\nparse_ns={parse_ns}\nprint_ns={print_ns}\nreload_ns={reload_ns}\n\
         destroy_ns={destroy_ns}\nprinted_bytes={}\n",
        printed.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}
