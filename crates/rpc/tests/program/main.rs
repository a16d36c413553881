//! The service's two commands as a program of their own, by which they are tested: `serve …` and,
//! for the client, `rpc …`; and a client that others' conformance suite asks, `conformance`.

#[cfg(feature = "grpc")]
mod conformance;

use std::process::ExitCode;

use clap::Command;
use service::{Failure, file_limit};

fn main() -> ExitCode {
    file_limit::turn_into_error();
    let (doc, client) = rpc::SERVICE.command.expect("it has a client");
    let program = Command::new("rpc-program").subcommand_required(true);
    let program = program.subcommand(rpc::SERVICE.serve_command().name("serve"));
    #[cfg(feature = "grpc")]
    let program = program.subcommand(Command::new("conformance"));
    let matches = program.subcommand(client.command("rpc", doc)).get_matches();
    let outcome = match matches.subcommand() {
        #[cfg(feature = "grpc")]
        Some(("conformance", _)) => {
            conformance::run().map(|()| ExitCode::SUCCESS).map_err(Failure::Other)
        }
        Some(("serve", matches)) => rpc::SERVICE.serve.run(matches),
        Some((_, matches)) => client.run(matches),
        None => Ok(ExitCode::FAILURE),
    };
    outcome.unwrap_or_else(Failure::report)
}
