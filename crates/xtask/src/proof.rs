//! `cargo xtask proof`: heavy proofs, one row each. They run under CI and in `make soak`, and not
//! in a user's `make test`, which they would make much longer.

use anyhow::{Result, anyhow, bail};

use crate::process;
use crate::skips::{self, Skips};
use crate::step::{self, Step, Work};

/// What `--minutes` may be, in seconds.
const MIN_SECONDS: f64 = 30.0;
const MAX_SECONDS: f64 = 86_400.0;

/// Which proofs to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these, by name; all of them otherwise
    names: Vec<String>,
    /// Print the proofs and what each shows, and run nothing
    #[arg(long)]
    list: bool,
    /// How long a proof lasts that takes as long as it is given
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    minutes: f64,
}

impl Args {
    /// All but those that last as long as they are given.
    pub(crate) fn untimed() -> Self {
        Self { names: Vec::new(), list: false, minutes: 60.0 }
    }
}

/// One proof.
pub(crate) struct Proof {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it shows, in a sentence.
    pub(crate) doc: &'static str,
    /// Its cargo commands, in order.
    pub(crate) commands: &'static [&'static [&'static str]],
    /// Whether it lasts as long as it is given: then it is run only where it is named.
    pub(crate) is_timed: bool,
}

/// Every proof.
pub(crate) const PROOFS: &[Proof] = &[PARQUET, PEERS, RPC, CONDITIONS_HOUR];

const PARQUET: Proof = Proof {
    name: "parquet",
    doc: "Other implementations read the Parquet files of the ledger and of conditions, and Arrow.",
    commands: &[
        &[
            "clippy",
            "--package",
            "loadline-ledger",
            "--package",
            "loadline-conditions",
            "--package",
            "loadline",
            "--features",
            "arrow,parquet",
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
        &[
            "test",
            "--package",
            "loadline-conditions",
            "--features",
            "arrow,parquet",
            "--lib",
            "--test",
            "conditions",
            "--locked",
            "--",
            "parquet",
            "arrow",
        ],
    ],
    is_timed: false,
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
    is_timed: false,
};

const RPC: Proof = Proof {
    name: "rpc",
    doc: "grpcurl, grpcio, Go's interoperability client and the conformance suites of Connect and \
          of Protocol Buffers find the server right; the lab loads it over gRPC; without gRPC own \
          frames are all there.",
    commands: &[
        &[
            "clippy",
            "--package",
            "loadline-rpc",
            "--package",
            "loadline",
            "--features",
            "rpc",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        &[
            "test",
            "--package",
            "loadline-rpc",
            "--features",
            "conformance",
            "--test",
            "rpc",
            "--locked",
        ],
        &[
            "test",
            "--package",
            "loadline-rpc",
            "--no-default-features",
            "--lib",
            "--test",
            "rpc",
            "--locked",
        ],
        // The whole workspace, whose dependencies are built with these features already.
        &[
            "test",
            "--workspace",
            "--features",
            "loadline/rpc",
            "--test",
            "main",
            "--locked",
            "cli::rpc",
        ],
    ],
    is_timed: false,
};

const CONDITIONS_HOUR: Proof = Proof {
    name: "conditions-hour",
    doc: "An hour of jobs that insert and read conditions leaves memory and descriptors flat.",
    commands: &[&[
        "test",
        "--release",
        "--package",
        "loadline",
        "--test",
        "main",
        "--locked",
        "soak::conditions_for",
        "--",
        "--ignored",
        "--nocapture",
    ]],
    is_timed: true,
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
    let seconds = args.minutes * 60.0;
    if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
        bail!("--minutes {} is not between 0.5 and 1440", args.minutes);
    }
    let wanted = |proof: &&Proof| match args.names.is_empty() {
        true => !proof.is_timed || args.list,
        false => args.names.iter().any(|name| name == proof.name),
    };
    let skips = Skips::begin()?;
    for proof in PROOFS.iter().filter(wanted) {
        println!("{}: {}", proof.name, proof.doc);
        for step in steps(proof).filter(|_| !args.list) {
            let alone = step.alone();
            let ran = match (proof.is_timed, step.work) {
                (true, Work::Cargo(words, _)) => {
                    let seconds = (seconds as u64).to_string();
                    process::run(step::cargo().args(words).env("SOAK_SECONDS", seconds))
                }
                _ => step.run(),
            };
            ran.map_err(|error| anyhow!("{error:#}\n\nonly that: {alone}"))?;
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
