//! The project's own tasks: `cargo xtask tidy`, `peers`, `oracles`, `bench`, `credibility`, `soak`,
//! `memcheck`, `fuzz`, `races`, `simulate`, `shots`, `proof`, `size`, `wheel`, `test`. This file
//! only wires: each subcommand is a file of the same name, and what they share is in `process`.

mod bench;
mod credibility;
mod fuzz;
mod memcheck;
mod oracles;
mod peers;
mod process;
mod proof;
mod races;
mod shots;
mod simulate;
mod size;
mod skips;
mod soak;
mod step;
mod test;
mod tidy;
mod touched;
mod wheel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks for those who work on Loadline.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the rules of the code
    Tidy(tidy::Args),
    /// Install the programs that Loadline is measured against, and show what is there
    Peers(peers::Args),
    /// Compare the tables of tests with the programs that wrote them
    Oracles(oracles::Args),
    /// Run suites and write their figures into the documents
    Bench(bench::Args),
    /// Check the lab's claims against known truth
    Credibility(credibility::Args),
    /// Run the heavy proofs, then abuse the services for minutes
    Soak(soak::Args),
    /// Run the records' server under valgrind while everything is remade all the time
    Memcheck(memcheck::Args),
    /// Feed the decoders malformed input
    Fuzz(fuzz::Args),
    /// Run the cache's threads under ThreadSanitizer
    Races(races::Args),
    /// Run a service's server on a simulated clock and network
    Simulate(simulate::Args),
    /// Draw every kind of page as a picture, to be looked at
    Shots(shots::Args),
    /// Run heavy proofs: what CI and `make soak` run beside the tests
    Proof(proof::Args),
    /// Say how large the shipped program is, and what its features add
    Size(size::Args),
    /// Build the program as a Python wheel, with its symbols apart
    Wheel(wheel::Args),
    /// Run every check that a change must pass: what `make test` runs
    Test(test::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Tidy(args) => tidy::run(&args),
        Task::Peers(args) => peers::run(&args),
        Task::Oracles(args) => oracles::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Credibility(args) => credibility::run(&args),
        Task::Soak(args) => soak::run(&args),
        Task::Memcheck(args) => memcheck::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Races(args) => races::run(&args),
        Task::Simulate(args) => simulate::run(&args),
        Task::Shots(args) => shots::run(&args),
        Task::Proof(args) => proof::run(&args),
        Task::Size(args) => size::run(&args),
        Task::Wheel(args) => wheel::run(&args),
        Task::Test(args) => test::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
