//! What the examples share: a lab that knows one service, and a suite about it.

use std::path::Path;
use std::sync::Arc;

use findings::Summary;
use lab::plan::{Plan, Registry};
use load::Service;
use wire::ProtocolError;

/// Runs `suite`, in which `FOLDER` is an empty folder, and prints its report.
pub(crate) fn main(
    service: &'static Service,
    suite: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("loadline-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let summary = run(service, suite, &std::env::current_exe()?, &folder)?;
    print!("{}", report::text(&summary, false));
    Ok(std::fs::remove_dir_all(folder)?)
}

/// Runs `suite` in `folder`. `exe` is this program.
pub(crate) fn run(
    service: &'static Service,
    suite: &str,
    exe: &Path,
    folder: &Path,
) -> Result<Summary, Box<dyn std::error::Error>> {
    let registry = Registry {
        services: &[service],
        check_arguments: &|_, _| Ok(()),
        default_of: |_, _| None,
        page: |_, _| Err(ProtocolError::new("no page of counters here")),
        may_miss: |_| true,
    };
    let suite = suite.replace("FOLDER", &folder.display().to_string());
    let plan = Plan::parse(Path::new("example.toml"), suite, &[], registry)?;
    let mut ledger = ledger::Ledger::open(folder.join("ledger/ledger.sqlite"))?;
    let (run, _) = lab::run::run(lab::run::RunOptions {
        plan: &plan,
        exe,
        ledger: &mut ledger,
        build: &[],
        logs: &folder.join("ledger/runs"),
        command: service.name.into(),
        seed: 1,
        extras: lab::run::Extras::default(),
        stop: Arc::default(),
        progress: &mut |_| {},
    })?;
    Ok(Summary::of(ledger.run_view(run)?)?)
}
