//! Failures of the lab's commands: the harness's, and a suite that is wrong.

use lab::plan::SuiteError;
pub(crate) use service::Failure;

/// A suite that is wrong, shown with the place: exit code 2.
#[expect(clippy::boxed_local, reason = "that is how a plan returns its error")]
pub(crate) fn suite(error: Box<SuiteError>) -> Failure {
    Failure::Explained(format!("{:?}", miette::Report::new(*error)))
}
