//! `loadline workflow print`: a definition as servers print it. Control plane.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use service::{Failure, Outcome, out};

use super::input;
use crate::binary;
use crate::definition::{Style, parse, print};
use crate::model::{Marks, Snapshot, Tree};

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
    /// How: defs as people write it, state with what is generated, too, migrate as a checkpoint,
    /// binary as this server's snapshots
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
    Binary,
}

/// What is printed.
enum Printed {
    Text(String),
    Binary(Vec<u8>),
}

impl Printed {
    fn of(tree: &Snapshot, word: StyleWord) -> Self {
        let text = |style| Self::Text(print(tree, style, style != Style::Migrate));
        match word {
            StyleWord::Defs => text(Style::Defs),
            StyleWord::State => text(Style::State),
            StyleWord::Migrate => text(Style::Migrate),
            StyleWord::Binary => {
                let mut out = Vec::new();
                binary::write(tree, &Marks::new(), true, &mut |some| out.extend_from_slice(some));
                Self::Binary(out)
            }
        }
    }

    /// Reads it again.
    fn tree(&self, file: &str) -> Result<Tree, Failure> {
        match self {
            Self::Text(text) => Ok(parse(text, file).map_err(Failure::usage)?.tree),
            Self::Binary(bytes) => Ok(binary::read(bytes).map_err(Failure::usage)?.tree),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

pub(super) fn run(args: &PrintArgs) -> Outcome {
    let file = args.file.display().to_string();
    if args.again {
        return again(args, &file);
    }
    if let Some(why) = not_for_people(args.style, std::io::stdout().is_terminal()) {
        return Err(Failure::Usage(why.to_owned()));
    }
    let parsed = parse(&input::text(&args.file)?, &file).map_err(Failure::usage)?;
    if parsed.tree.count() == 0 {
        out::note(format!("{file}: there is no suite in it"));
    }
    let mut output = out::stream();
    output.write_all(Printed::of(&parsed.tree, args.style).bytes())?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Why it isn't printed there.
fn not_for_people(style: StyleWord, is_terminal: bool) -> Option<&'static str> {
    let is_binary = matches!(style, StyleWord::Binary);
    (is_binary && is_terminal).then_some(
        "--style binary prints bytes, not for a terminal: write them to a file, > x.bin, or a pipe",
    )
}

/// Reads, prints, reads that again and compares. Each time is a line of its own; the file is read
/// with the first.
fn again(args: &PrintArgs, file: &str) -> Outcome {
    let clock = Instant::now();
    let first = parse(&input::text(&args.file)?, file).map_err(Failure::usage)?.tree;
    let parse_ns = clock.elapsed().as_nanos();
    let clock = Instant::now();
    let printed = Printed::of(&first, args.style);
    let print_ns = clock.elapsed().as_nanos();
    let clock = Instant::now();
    let second = printed.tree(file)?;
    let reload_ns = clock.elapsed().as_nanos();
    if Printed::of(&second, args.style).bytes() != printed.bytes() {
        let why = "what is printed is read as another definition: please report this file";
        return Err(anyhow::anyhow!("{file}: {why}").into());
    }
    let nodes = second.count();
    let clock = Instant::now();
    drop(second);
    let destroy_ns = clock.elapsed().as_nanos();
    out::print(format_args!(
        "nodes={nodes}\nparse_ns={parse_ns}\nprint_ns={print_ns}\nreload_ns={reload_ns}\n\
         destroy_ns={destroy_ns}\nprinted_bytes={}\n",
        printed.bytes().len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_anywhere_but_on_a_terminal() {
        assert!(not_for_people(StyleWord::Binary, true).is_some_and(|why| why.contains("> x.bin")));
        assert_eq!(not_for_people(StyleWord::Binary, false), None);
        assert_eq!(not_for_people(StyleWord::State, true), None);
    }
}
