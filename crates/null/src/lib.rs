//! The `null` service: returns eight bytes after a known service time, so that what the lab
//! measures can be compared with what is true. Data plane.

#![deny(unsafe_code)]

mod plant;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base::units::Span;
use load::null::MESSAGE_BYTES;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;
use service::{
    CommonArgs, Failure, Harness, ListenArgs, Outcome, Run, Running, Service, Subcommand,
    ThreadArgs, Unprivileged,
};
use wire::{
    Address, Config, Connection, Flow, Input, ListenOptions, Listener, Ns, Output, ProtocolError,
    Server, clock,
};

/// The service's row.
pub static SERVICE: Service = Service {
    name: "null",
    doc: "Eight bytes there and back after a known service time, to measure the lab itself",
    is_hidden: true,
    serve: Subcommand::of::<NullArgs>(),
    command: None,
};

/// Arguments of `loadline serve null`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline serve null                                                 as fast as it can
  loadline serve null --service-time 200us --spread exponential       a queue's textbook server
  loadline serve null --plant lock --threads 4                        a limit to be found")]
struct NullArgs {
    #[command(flatten)]
    common: CommonArgs,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    /// How long a thread works for each request; it spins, so it is CPU time too
    #[arg(long, value_name = "TIME", default_value = "0s")]
    service_time: Span,

    /// The distribution of service times
    #[arg(long, value_enum, default_value_t = Spread::Constant)]
    spread: Spread,

    /// The seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// A limit that is planted on purpose
    #[arg(long, value_enum)]
    plant: Option<plant::Plant>,

    /// Where the plant for the disk writes
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
}

/// The distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Spread {
    /// All equal
    Constant,
    /// Exponentially distributed
    Exponential,
}

/// Returns every whole message once its service time is over.
pub struct NullConnection {
    mean_ns: f64,
    spread: Spread,
    random: SmallRng,
    work: Option<Arc<plant::InjectedWork>>,
}

impl NullConnection {
    /// A connection that answers at once.
    pub fn idle() -> Self {
        Self::working(Duration::ZERO, Spread::Constant, 1)
    }

    fn working(mean: Duration, spread: Spread, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { mean_ns: mean.as_nanos() as f64, spread, random, work: None }
    }

    fn spin(&mut self) {
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

impl Connection for NullConnection {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let whole = input.bytes().len() / MESSAGE_BYTES;
        if self.mean_ns > 0.0 {
            (0..whole).for_each(|_| self.spin());
        }
        if let Some(work) = &self.work {
            (0..whole).for_each(|_| work.perform());
        }
        out.put(&input.bytes()[..whole * MESSAGE_BYTES]);
        input.consume(whole * MESSAGE_BYTES);
        Ok(Flow::Continue)
    }
}

impl Run for NullArgs {
    fn run(self) -> Outcome {
        use plant::Plant;
        if self.plant == Some(Plant::Burner) {
            plant::burn();
            return Ok(ExitCode::SUCCESS);
        }
        let harness = Harness::begin(SERVICE.name, &self.common)?;
        let addresses = self.listen.addresses(0);
        harness.check_exposure("--listen", &addresses)?;
        let neighbour = self.plant == Some(Plant::Neighbour);
        let _neighbour = neighbour.then(plant::Neighbour::start).transpose()?;
        let (harness, running) = match self.plant {
            Some(plant @ (Plant::Nagle | Plant::Backlog)) => {
                serve_plainly(plant, &addresses, harness)?
            }
            _ => serve(&self, &addresses, harness)?,
        };
        harness.run(running)
    }
}

/// Serves with the plants that are in how a socket is used.
fn serve_plainly(
    plant: plant::Plant,
    addresses: &[Address],
    harness: Harness,
) -> Result<(Unprivileged, Running), Failure> {
    let [Address::Internet(address)] = addresses else {
        return Err(Failure::Usage(format!(
            "{plant:?} is in TCP: give it one --listen ADDRESS:PORT"
        )));
    };
    let listener = std::net::TcpListener::bind(address)
        .with_context(|| format!("cannot listen at {address}"))?;
    let addresses = vec![Address::Internet(listener.local_addr()?)];
    let harness = harness.drop_privileges(&[])?;
    plant::serve_plainly(plant, listener)?;
    Ok((harness, running(addresses, Box::new(|_| None))))
}

fn serve(
    args: &NullArgs,
    addresses: &[Address],
    harness: Harness,
) -> anyhow::Result<(Unprivileged, Running)> {
    let listeners = addresses.iter().map(|at| Listener::bind(at, &ListenOptions::default()));
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    let harness = harness.drop_privileges(&listeners)?;
    let (mean, spread) = (args.service_time.duration(), args.spread);
    // Each connection has numbers of its own, in the order in which they come.
    let next = std::sync::atomic::AtomicU64::new(args.seed);
    let number = move || next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let work = args.plant.map(|plant| plant::InjectedWork::new(plant, &args.data)).transpose()?;
    let work = work.map(Arc::new);
    let make = move |_| {
        let service = NullConnection::working(mean, spread, number());
        NullConnection { work: work.clone(), ..service }
    };
    let config = Config { threads: usize::from(args.threads.threads), ..Config::default() };
    let server = Server::start(config, listeners, make)?;
    let addresses = server.addresses().to_vec();
    // Nothing of it is worth waiting for.
    Ok((harness, running(addresses, Box::new(|_| Some(server.stop(Duration::ZERO))))))
}

fn running(
    addresses: Vec<Address>,
    stop: Box<dyn FnOnce(Duration) -> Option<wire::Counters>>,
) -> Running {
    Running { protocol: "null", addresses, datagrams: None, data: None, stop }
}
