//! A service that returns each line, by which the harness is tested: all that a service needs.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clap::Parser as _;
use service::metrics::{Kind, Metrics};
use service::{
    CommonArgs, DataArgs, Failure, Harness, HttpArgs, ListenArgs, Outcome, Run, Running, Service,
    Subcommand, ThreadArgs, TlsArgs, file_limit,
};
use wire::{
    Config, Connection, Flow, Input, ListenOptions, Listener, Ns, Output, ProtocolError, Server,
};

/// The row, as a registry would have it.
static SERVICE: Service = Service {
    name: "toy",
    doc: "Returns each line",
    is_hidden: false,
    serve: Subcommand::of::<ToyArgs>(),
    command: None,
};

/// What it takes; `--token-file` comes with `--metrics`.
#[derive(Debug, clap::Args)]
struct ToyArgs {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    http: HttpArgs,
    #[command(flatten)]
    tls: TlsArgs,
}

/// The version of its data directory.
const DATA_VERSION: u32 = 1;

impl Run for ToyArgs {
    fn run(self) -> Outcome {
        let mut harness = Harness::begin(SERVICE.name, &self.common)?;
        let addresses = self.listen.addresses(0);
        harness.check_exposure("--listen", &addresses)?;
        let files = self.tls.files().map(|files| files.offering(&["lines", "echo"]));
        let tls = files.map(|files| harness.read_tls(files)).transpose()?;
        let bind = |address| {
            let listener = Listener::bind(address, &ListenOptions::default())?;
            Ok(match &tls {
                Some(tls) => listener.with_tls(tls.clone()),
                None => listener,
            })
        };
        let listeners = addresses.iter().map(bind).collect::<std::io::Result<Vec<_>>>()?;
        let handshake_timeout = self.tls.handshake_timeout();
        let threads = self.threads.threads.into();
        let config = Config { threads, handshake_timeout, ..Config::default() };
        let lines = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lines);
        let make = move |_| Echo { lines: Arc::clone(&counted) };
        harness.bind_metrics(&self.http)?;
        let mut harness = harness.drop_privileges(&listeners)?;
        let data = harness.open_data(&self.data, DATA_VERSION)?;
        let server = Server::start(config, listeners, make)?;
        let counters = server.counters_reader();
        harness.serve_metrics(move || {
            let mut page = Metrics::of("toy");
            page.add_loop(&counters());
            page.add(Kind::Counter, "lines", "Lines returned.", lines.load(Relaxed));
            page.text()
        })?;
        harness.run(Running {
            protocol: "lines",
            addresses: server.addresses().to_vec(),
            other: None,
            data: Some(data.path().to_owned()),
            stop: Box::new(move |drain| Some(server.stop(drain))),
        })
    }
}

/// One connection.
struct Echo {
    lines: Arc<AtomicU64>,
}

impl Connection for Echo {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let whole = input.bytes().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = input.bytes()[..whole].iter().filter(|byte| **byte == b'\n').count();
        self.lines.fetch_add(lines as u64, Relaxed);
        out.put(&input.bytes()[..whole]);
        input.consume(whole);
        Ok(Flow::Continue)
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    toy: ToyArgs,
}

fn main() -> ExitCode {
    file_limit::turn_into_error();
    Line::parse().toy.run().unwrap_or_else(Failure::report)
}
