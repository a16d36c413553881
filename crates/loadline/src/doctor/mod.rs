//! `loadline doctor`: what this host is good for as a place to measure on, and what to do about it.

mod advice;
mod ceiling;
mod checkup;
mod measure;
mod print;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use lab::observe::{Disturbance, OwnCpu, Watch};

use crate::exit::Failure;
use crate::out::{self, note};
use crate::run_lock::RunLock;
use checkup::Checkup;

/// Arguments of `loadline doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loadline doctor\n  loadline doctor --json | jq .advice")]
pub(crate) struct DoctorArgs {
    /// Print it as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Wait when this host is measuring already, instead of giving up
    #[arg(long)]
    wait: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    // A signal ends the program here.
    let _lock = RunLock::take(args.wait, &AtomicBool::new(false))?;
    note("looking at this host for about six seconds; leave it alone meanwhile");
    let checkup = examine()?;
    let advice = advice::advice(&checkup);
    if args.json {
        out::print(format!("{:#}\n", print::json(&checkup, &advice)))?;
    } else {
        out::print(print::text(&checkup, &advice))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn examine() -> anyhow::Result<Checkup> {
    let cpus = lab::cpus::cpus_here();
    let exe = std::env::current_exe().context("this program can't find itself")?;
    let mut watch = Watch::start(wire::clock::now(), &cpus).context("no thread can be started")?;
    watch.follow_own("doctor");
    let watching = measure::watching();
    watch.before_slice();
    let before = watch.mark();
    let floor = measure::floor();
    let after = watch.mark();
    let own = OwnCpu { server_ns: Some(0), ..OwnCpu::default() };
    let mut others = Disturbance::measure(&before, &after, &own, &[]);
    others.others = watch.other_programs(None, false, &[]);
    drop(watch);
    Ok(Checkup {
        fingerprint: lab::observe::fingerprint(&exe),
        clock_read_ns: lab::observe::clock_read_ns(),
        timers: measure::timers(),
        floor,
        others,
        watching,
        round_trip: lab::observe::round_trip(&cpus, 20_000)
            .context("no round trip over loopback")?,
        copied_bytes_per_s: lab::observe::copied_bytes_per_s(),
        ceilings: ceiling::ceilings(&cpus)?,
        engine: ceiling::engine(&cpus)?,
        seen: lab::observe::check_sensors(&cpus),
        cpus,
    })
}
