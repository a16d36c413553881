//! `cargo xtask proof`: heavy proofs, one row each. They run under CI and in `make soak`, and not
//! in a user's `make test`, which they would make much longer.

use anyhow::{Result, anyhow, bail};

use crate::skips::{self, Skips};
use crate::step::{Step, Work};

/// Which proofs to run.
#[derive(Default, clap::Args)]
pub(crate) struct Args {
    /// Only these, by name; all of them otherwise
    names: Vec<String>,
    /// Print the proofs and what each shows, and run nothing
    #[arg(long)]
    list: bool,
}

/// One proof.
pub(crate) struct Proof {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it shows, in a sentence.
    pub(crate) doc: &'static str,
    /// Its cargo commands, in order.
    pub(crate) commands: &'static [&'static [&'static str]],
}

/// Every proof.
pub(crate) const PROOFS: &[Proof] = &[PARQUET, PEERS];

const PARQUET: Proof = Proof {
    name: "parquet",
    doc: "Another implementation reads the Parquet files of the ledger's optional exporter.",
    commands: &[
        &[
            "clippy",
            "--package",
            "loadline-ledger",
            "--package",
            "loadline",
            "--features",
            "parquet",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        &[
            "test",
            "--package",
            "loadline-ledger",
            "--features",
            "parquet",
            "--test",
            "main",
            "--locked",
            "parquet",
        ],
    ],
};

const PEERS: Proof = Proof {
    name: "peers",
    doc: "PostgreSQL and SQLite answer the operations of conditions rightly; several servers share \
          their data, and are killed.",
    commands: &[
        &[
            "clippy",
            "--package",
            "loadline-conditions",
            "--package",
            "loadline",
            "--features",
            "postgres,sqlite,tier",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        &[
            "test",
            "--package",
            "loadline-conditions",
            "--features",
            "postgres,sqlite,tier",
            "--test",
            "conditions",
            "--locked",
        ],
        &[
            "test",
            "--package",
            "loadline",
            "--features",
            "postgres,sqlite,tier",
            "--test",
            "main",
            "--locked",
            "conditions",
        ],
    ],
};

/// The steps of a proof.
pub(crate) fn steps(proof: &'static Proof) -> impl Iterator<Item = Step> {
    let step =
        |args: &&'static [&'static str]| Step { name: proof.name, work: Work::Cargo(args, None) };
    proof.commands.iter().map(step)
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(name) = args.names.iter().find(|name| PROOFS.iter().all(|one| one.name != **name)) {
        let known: Vec<_> = PROOFS.iter().map(|proof| proof.name).collect();
        bail!("there is no proof \"{name}\"; there are: {}", known.join(", "));
    }
    let wanted =
        |proof: &&Proof| args.names.is_empty() || args.names.iter().any(|n| n == proof.name);
    let skips = Skips::begin()?;
    for proof in PROOFS.iter().filter(wanted) {
        println!("{}: {}", proof.name, proof.doc);
        for step in steps(proof).filter(|_| !args.list) {
            let alone = step.alone();
            step.run().map_err(|error| anyhow!("{error:#}\n\nonly that: {alone}"))?;
        }
    }
    if !args.list {
        print!("{}", skips::list(&skips.end()?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_named_once_and_say_what_they_show() {
        for (index, proof) in PROOFS.iter().enumerate() {
            assert!(proof.doc.ends_with('.') && !proof.commands.is_empty(), "{}", proof.name);
            assert!(PROOFS[..index].iter().all(|other| other.name != proof.name));
        }
    }
}
