//! Failures of the lab's commands: the harness's, and a suite that is wrong.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use lab::plan::SuiteError;
pub(crate) use service::Failure;

/// Prints what went wrong, which may quote a server or a ledger, and returns the exit code.
pub(crate) fn report(failure: Failure) -> ExitCode {
    match failure {
        Failure::Usage(message) => Failure::Usage(report::lines(&message)),
        Failure::Other(error) => {
            let message = format!("{error:#}");
            let shown = report::lines(&message);
            Failure::Other(if shown == message { error } else { anyhow::Error::msg(shown) })
        }
        explained @ Failure::Explained(_) => explained,
    }
    .report()
}

/// Prints help, the version, or what is wrong with what was typed, and returns the exit code.
pub(crate) fn typed(error: &clap::Error) -> ExitCode {
    match error.print().and_then(|()| std::io::stdout().flush()) {
        Err(unwritten) if !error.use_stderr() && unwritten.kind() != ErrorKind::BrokenPipe => {
            report(unwritten.into())
        }
        _ => ExitCode::from(error.exit_code() as u8),
    }
}

/// A suite that is wrong, each mistake shown with its place: exit code 2.
#[expect(clippy::boxed_local, reason = "that is how a plan returns its error")]
pub(crate) fn suite(error: Box<SuiteError>) -> Failure {
    let shown = error.apart().into_iter().map(|one| format!("{:?}", miette::Report::new(one)));
    Failure::Explained(shown.collect::<Vec<_>>().join("\n"))
}
