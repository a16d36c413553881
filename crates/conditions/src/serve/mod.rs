//! `loadline serve conditions`. Control plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use service::{
    CommonArgs, DataArgs, Face, Failure, Harness, HttpArgs, HttpSettings, ListenArgs, Outcome, Run,
    Running, Tokens, is_local, socket_address,
};
use wire::Address;

use crate::server::{BoundConditions, DATA_VERSION};

/// The port where `--listen` names none.
pub(crate) const PORT: u16 = 8350;

const EXAMPLES: &str = "\
Examples:
  loadline serve conditions --data data                        on 127.0.0.1:8350
  loadline serve conditions --data data --listen 127.0.0.1:0   any free port
  loadline serve conditions --data data --listen 0.0.0.0 --public --token-file tokens

Folders are made, and objects inserted and read, with `loadline conditions`, or by any client of
HTTP: docs/conditions.md lists the requests.";

/// Arguments of `loadline serve conditions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConditionsArgs {
    #[command(flatten)]
    common: CommonArgs,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    data: DataArgs,

    /// Make changes only for requests with a token of this file, a line each, as
    /// `Authorization: Bearer`; questions need none
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Serve counters to Prometheus at http://ADDRESS/metrics, too; port 0 is any
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
}

impl Run for ConditionsArgs {
    fn run(self) -> Outcome {
        let mut harness = Harness::begin(crate::SERVICE.name, &self.common)?;
        let addresses = self.listen.addresses(PORT);
        harness.check_exposure("--listen", &addresses)?;
        let tokens = self.token_file.clone().map(Tokens::read).transpose();
        let tokens = tokens.map_err(Failure::usage)?;
        if let Some(tokens) = tokens.clone() {
            harness.reload("tokens", move || tokens.read_again());
        }
        let settings = addresses.iter().map(|address| settings(address, tokens.as_ref()));
        let bound = BoundConditions::bind(settings.collect::<Result<_, _>>()?)?;
        harness.bind_metrics(&HttpArgs { metrics: self.metrics, token_file: None })?;
        let mut harness = harness.drop_privileges(&[])?;
        let data = harness.open_data(&self.data, DATA_VERSION)?;
        let server = bound.start(data.path())?;
        harness.serve_metrics(server.metrics())?;
        let addresses = server.addresses().iter().map(|at| Address::Internet(*at)).collect();
        harness.run(Running {
            protocol: "http",
            addresses,
            datagrams: None,
            data: Some(data.path().to_owned()),
            stop: Box::new(move |drain: Duration| {
                server.stop(drain);
                // It is free for another process once nothing writes to it any more.
                drop(data);
                None
            }),
        })
    }
}

fn settings(address: &Address, tokens: Option<&Tokens>) -> Result<HttpSettings, Failure> {
    let Address::Internet(socket) = address else {
        let words = format!("--listen {address}: this service listens at ADDRESS:PORT only");
        return Err(Failure::Usage(words));
    };
    if !is_local(address) {
        let open = if tokens.is_none() {
            ", and --token-file names none of who may change it"
        } else {
            ""
        };
        tracing::warn!(
            "--listen {address}: what is stored crosses the network unencrypted{open}; put a proxy \
             with TLS before a loopback address, or have a firewall restrict it"
        );
    }
    let takes_names = !is_local(address);
    Ok(HttpSettings { address: *socket, takes_names, tokens: tokens.cloned(), face: Face::Api })
}
