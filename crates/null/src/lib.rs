//! The `null` service: returns eight bytes after a known service time, so that what the lab
//! measures can be compared with what is true. Data plane.

#![deny(unsafe_code)]

mod plant;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::units::Span;
use load::null::MESSAGE_BYTES;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;
use service::{
    CommonArgs, Failure, Harness, ListenArgs, Outcome, Run, Running, Service, Subcommand,
    ThreadArgs,
};
use wire::{
    Address, Config, Connection, Flow, Input, Listener, Ns, Output, ProtocolError, Server, clock,
};

use plant::{Plant, Work};

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
    #[arg(long, value_name = "SPREAD", value_enum, default_value_t = Spread::Constant)]
    spread: Spread,

    /// The seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// A limit that is planted on purpose
    #[arg(long, value_name = "LIMIT", value_enum)]
    plant: Option<Plant>,

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
    work: Option<Work>,
    /// Whether each half of an answer is a write of its own, and the second half is due.
    halves: Option<bool>,
}

impl NullConnection {
    /// A connection that answers at once.
    pub fn immediate() -> Self {
        let random = SmallRng::seed_from_u64(1);
        Self { mean_ns: 0.0, spread: Spread::Constant, random, work: None, halves: None }
    }

    /// Whether answers take no time and leave together.
    fn is_immediate(&self) -> bool {
        self.mean_ns <= 0.0 && self.work.is_none() && self.halves.is_none()
    }

    /// Lets the service time of one request pass.
    fn spin(&mut self) {
        if self.mean_ns <= 0.0 {
            return;
        }
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
        if self.is_immediate() {
            let whole = input.len() / MESSAGE_BYTES * MESSAGE_BYTES;
            out.put(&input.bytes()[..whole]);
            input.consume(whole);
            return Ok(Flow::Continue);
        }
        // Each piece fills the output, so that it is sent before the next one's time begins.
        while !out.is_full() {
            let piece = if self.halves.is_some() { MESSAGE_BYTES / 2 } else { MESSAGE_BYTES };
            if self.halves != Some(true) {
                if input.len() < MESSAGE_BYTES {
                    break;
                }
                self.spin();
                self.work.iter().for_each(|work| work());
            }
            out.put(&input.bytes()[..piece]);
            input.consume(piece);
            self.halves = self.halves.map(|is_second| !is_second);
        }
        Ok(Flow::Continue)
    }
}

impl Run for NullArgs {
    fn run(self) -> Outcome {
        if self.plant == Some(Plant::Burner) {
            plant::burn();
            return Ok(ExitCode::SUCCESS);
        }
        let harness = Harness::begin(SERVICE.name, &self.common)?;
        let addresses = self.listen.addresses(0);
        harness.check_exposure("--listen", &addresses)?;
        let is_tcp = addresses.iter().all(|at| matches!(at, Address::Internet(_)));
        if let Some(plant @ (Plant::Nagle | Plant::Backlog)) = self.plant
            && !is_tcp
        {
            let words = format!("{plant:?} is in TCP: use --listen ADDRESS:PORT, no Unix socket");
            return Err(Failure::Usage(words));
        }
        let options = Plant::listen_options(self.plant);
        let listeners = addresses.iter().map(|at| Listener::bind(at, &options));
        let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
        let harness = harness.drop_privileges(&listeners)?;
        let is_neighbour = self.plant == Some(Plant::Neighbour);
        let _neighbour = is_neighbour.then(plant::start_neighbour).transpose()?;
        let server = self.serve(listeners)?;
        harness.run(Running {
            protocol: "null",
            addresses: server.addresses().to_vec(),
            other: None,
            data: None,
            // Nothing of it is worth waiting for.
            stop: Box::new(move |_| Some(server.stop(Duration::ZERO))),
        })
    }
}

impl NullArgs {
    fn serve(&self, listeners: Vec<Listener>) -> anyhow::Result<Server> {
        let is_nagle = self.plant == Some(Plant::Nagle);
        let mut config = Config { threads: self.threads.threads.into(), ..Config::default() };
        let work = self.plant.map(|plant| plant.work(&self.data)).transpose()?.flatten();
        let (mean_ns, spread) = (self.service_time.duration().as_nanos() as f64, self.spread);
        if is_nagle || work.is_some() || mean_ns > 0.0 {
            config.output_limit_bytes = 1;
        }
        // Each connection has random numbers of its own, in the order of their coming, of which
        // neighbouring seeds share none.
        let (seed, number) = (self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), AtomicU64::new(0));
        let make = move |_| NullConnection {
            mean_ns,
            spread,
            random: SmallRng::seed_from_u64(seed ^ number.fetch_add(1, Relaxed)),
            work: work.clone(),
            halves: is_nagle.then_some(false),
        };
        Ok(Server::start(config, listeners, make)?)
    }
}
