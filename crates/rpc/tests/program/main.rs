//! The service's two commands as a program of their own, by which they are tested: `serve …` and,
//! for the client, `rpc …`.

use std::process::ExitCode;

use clap::Command;
use service::{Failure, file_limit};

fn main() -> ExitCode {
    file_limit::turn_into_error();
    let (doc, client) = rpc::SERVICE.command.expect("it has a client");
    let program = Command::new("rpc-program").subcommand_required(true);
    let program = program.subcommand(rpc::SERVICE.serve_command().name("serve"));
    let matches = program.subcommand(client.command("rpc", doc)).get_matches();
    let outcome = match matches.subcommand() {
        Some(("serve", matches)) => rpc::SERVICE.serve.run(matches),
        Some((_, matches)) => client.run(matches),
        None => Ok(ExitCode::FAILURE),
    };
    outcome.unwrap_or_else(Failure::report)
}
