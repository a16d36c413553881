//! `loadline serve null`: gives eight bytes back after a service time that is known, so that what
//! the lab measures can be held against what is true. Data plane.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use wire::{
    Address, Config, Connection, Fault, Flow, Input, ListenOptions, Listener, Ns, Output, Server,
    clock,
};
use workload::null::MESSAGE_BYTES;
use workload::units::Span;

/// Arguments of `loadline serve null`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline serve null                                                 as fast as it can
  loadline serve null --service-time 200us --spread exponential       a queue's textbook server")]
pub(crate) struct NullArgs {
    /// Where to listen: ADDRESS:PORT or unix:PATH
    #[arg(long, short = 'l', value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: Address,

    /// How long its one thread works for each request; it spins, so it is CPU time too
    #[arg(long, value_name = "TIME", default_value = "0s")]
    service_time: Span,

    /// Whether each takes that long, or that long on average
    #[arg(long, value_enum, default_value_t = Spread::Constant)]
    spread: Spread,

    /// Where the random numbers start
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How service times are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Spread {
    /// All alike
    Constant,
    /// Exponentially distributed
    Exponential,
}

/// Gives every whole message back once its service time is over.
pub(crate) struct NullService {
    mean_ns: f64,
    spread: Spread,
    random: SmallRng,
}

impl NullService {
    /// One that does nothing but to answer.
    pub(crate) fn idle() -> Self {
        Self::working(Duration::ZERO, Spread::Constant, 1)
    }

    fn working(mean: Duration, spread: Spread, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { mean_ns: mean.as_nanos() as f64, spread, random }
    }

    fn work(&mut self) {
        let length_ns = match self.spread {
            Spread::Constant => self.mean_ns,
            Spread::Exponential => self.mean_ns * self.random.sample::<f64, _>(Exp1),
        };
        let until = clock::now() + length_ns as Ns;
        while clock::now() < until {
            std::hint::spin_loop();
        }
    }
}

impl Connection for NullService {
    fn receive(&mut self, _: Ns, input: &mut Input, out: &mut Output) -> Result<Flow, Fault> {
        let whole = input.bytes().len() / MESSAGE_BYTES;
        if self.mean_ns > 0.0 {
            (0..whole).for_each(|_| self.work());
        }
        out.put(&input.bytes()[..whole * MESSAGE_BYTES]);
        input.consume(whole * MESSAGE_BYTES);
        Ok(Flow::Continue)
    }
}

/// Serves until a signal ends it.
pub(crate) fn run(args: &NullArgs) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let listener = Listener::bind(&args.listen, &ListenOptions::default())
        .with_context(|| format!("listening at {}", args.listen))?;
    let (mean, spread, seed) = (args.service_time.duration(), args.spread, args.seed);
    // Each connection has numbers of its own, in the order in which they come.
    let next = std::sync::atomic::AtomicU64::new(seed);
    let number = move || next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let make = move |_| NullService::working(mean, spread, number());
    let server = Server::start(Config::default(), vec![listener], make)?;
    let address = server.addresses()[0].to_string();
    let ready = json!({
        "ready": true,
        "service": "null",
        "pid": std::process::id(),
        "address": address,
        "addresses": { "null": address },
        "data": null,
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{ready}")?;
    out.flush()?;
    drop(out);
    signals.forever().next();
    server.stop(Duration::ZERO);
    Ok(ExitCode::SUCCESS)
}
