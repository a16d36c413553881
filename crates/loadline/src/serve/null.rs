//! `loadline serve null`: gives eight bytes back after a service time that is known, so that what
//! the lab measures can be held against what is true. Data plane.

mod plant;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use load::null::MESSAGE_BYTES;
use load::units::Span;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use wire::{
    Address, Config, Connection, Flow, Input, ListenOptions, Listener, Ns, Output, ProtocolError,
    Server, clock,
};

use super::door::Ready;
use crate::exit::Failure;

/// Arguments of `loadline serve null`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline serve null                                                 as fast as it can
  loadline serve null --service-time 200us --spread exponential       a queue's textbook server
  loadline serve null --plant lock --threads 4                        a limit to be found")]
pub(crate) struct NullArgs {
    /// Where to listen: ADDRESS:PORT or unix:PATH
    #[arg(long, short = 'l', value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: Address,

    /// How long a thread works for each request; it spins, so it is CPU time too
    #[arg(long, value_name = "TIME", default_value = "0s")]
    service_time: Span,

    /// Whether each takes that long, or that long on average
    #[arg(long, value_enum, default_value_t = Spread::Constant)]
    spread: Spread,

    /// Where the random numbers start
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,

    /// A limit that is planted on purpose
    #[arg(long, value_enum)]
    plant: Option<plant::Plant>,

    /// Where the plant for the disk writes
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
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
    deed: Option<Arc<plant::Deed>>,
}

impl NullService {
    /// One that does nothing but to answer.
    pub(crate) fn idle() -> Self {
        Self::working(Duration::ZERO, Spread::Constant, 1)
    }

    fn working(mean: Duration, spread: Spread, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { mean_ns: mean.as_nanos() as f64, spread, random, deed: None }
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
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let whole = input.bytes().len() / MESSAGE_BYTES;
        if self.mean_ns > 0.0 {
            (0..whole).for_each(|_| self.work());
        }
        if let Some(deed) = &self.deed {
            (0..whole).for_each(|_| deed.perform());
        }
        out.put(&input.bytes()[..whole * MESSAGE_BYTES]);
        input.consume(whole * MESSAGE_BYTES);
        Ok(Flow::Continue)
    }
}

/// Serves until a signal ends it.
pub(crate) fn run(args: &NullArgs) -> Result<ExitCode, Failure> {
    use plant::Plant;
    if args.plant == Some(Plant::Burner) {
        plant::burn();
        return Ok(ExitCode::SUCCESS);
    }
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let neighbour = args.plant == Some(Plant::Neighbour);
    let _neighbour = neighbour.then(plant::Neighbour::start).transpose()?;
    if let Some(plant @ (Plant::Nagle | Plant::Backlog)) = args.plant {
        let Address::Internet(address) = &args.listen else {
            let message = format!("{plant:?} is in TCP, and {} is not", args.listen);
            return Err(Failure::Usage(message));
        };
        let listener = std::net::TcpListener::bind(address)?;
        let address = listener.local_addr()?.to_string();
        plant::serve_plainly(plant, listener)?;
        announce(&address)?;
        signals.forever().next();
        return Ok(ExitCode::SUCCESS);
    }
    let server = start(args)?;
    announce(&server.addresses()[0].to_string())?;
    signals.forever().next();
    server.stop(Duration::ZERO);
    Ok(ExitCode::SUCCESS)
}

fn start(args: &NullArgs) -> anyhow::Result<Server> {
    let listener = Listener::bind(&args.listen, &ListenOptions::default())
        .with_context(|| format!("listening at {}", args.listen))?;
    let (mean, spread, seed) = (args.service_time.duration(), args.spread, args.seed);
    // Each connection has numbers of its own, in the order in which they come.
    let next = std::sync::atomic::AtomicU64::new(seed);
    let number = move || next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let deed = args.plant.map(|plant| plant::Deed::new(plant, &args.data)).transpose()?;
    let deed = deed.map(Arc::new);
    let make = move |_| {
        let service = NullService::working(mean, spread, number());
        NullService { deed: deed.clone(), ..service }
    };
    let config = Config { threads: usize::from(args.threads), ..Config::default() };
    Ok(Server::start(config, vec![listener], make)?)
}

/// Says that it is ready, once.
fn announce(address: &str) -> anyhow::Result<()> {
    let addresses = [address.to_owned()];
    let (datagrams, metrics) = (None, None);
    Ready { service: "null", speaks: "null", addresses: &addresses, datagrams, metrics }.print()
}
