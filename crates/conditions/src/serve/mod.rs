//! `loadline serve conditions`. Control plane.

mod args;
mod shared;

use std::time::Duration;

use service::{
    Face, Failure, Harness, HttpArgs, HttpLimits, HttpSettings, Outcome, Run, Running, Tokens,
    is_local, raise_descriptor_limit,
};
use wire::Address;

use crate::server::{BoundConditions, DATA_VERSION};

pub(crate) use args::{ConditionsArgs, PORT};
pub(crate) use shared::{ONE_SERVER, SharedArgs};

impl Run for ConditionsArgs {
    fn run(self) -> Outcome {
        let shared = self.shared.settings(self.cache_size.bytes).map_err(Failure::usage)?;
        if shared.is_some() && !cfg!(feature = "tier") {
            return Err(Failure::Usage(ONE_SERVER.to_owned()));
        }
        let mut harness = Harness::begin(crate::SERVICE.name, &self.common)?;
        let addresses = self.listen.addresses(PORT);
        harness.check_exposure("--listen", &addresses)?;
        let tokens = self.token_file.clone().map(Tokens::read).transpose();
        let tokens = tokens.map_err(Failure::usage)?;
        if let Some(tokens) = tokens.clone() {
            harness.reload("tokens", move || tokens.read_again());
        }
        let files = self.encryption.files().map(|files| files.offering(&["http/1.1"]));
        let tls = files.map(|files| harness.read_tls(files)).transpose()?;
        let is_encrypted = tls.is_some();
        let settings =
            addresses.iter().map(|address| settings(address, tokens.as_ref(), is_encrypted));
        let bound = BoundConditions::bind(settings.collect::<Result<_, _>>()?);
        let bound = bound.map_err(service::unbound)?;
        let connections = raise_descriptor_limit(self.max_connections, 2);
        let limits = HttpLimits { connections, idle: self.idle_timeout.duration() };
        let mut bound = bound.seal_after(self.seal_after.bytes).synced(self.sync).limited(limits);
        if let Some(tls) = tls {
            bound = bound.encrypted(&tls, self.encryption.handshake_timeout());
        }
        harness.bind_metrics(&HttpArgs { metrics: self.metrics, token_file: None })?;
        let mut harness = harness.drop_privileges(&[])?;
        let data = harness.open_data(&self.data, DATA_VERSION)?;
        let server = match shared {
            #[cfg(feature = "tier")]
            Some(settings) => bound.start_shared(&settings, data.path())?,
            _ => bound.start(data.path())?,
        };
        harness.serve_metrics(server.metrics())?;
        let addresses = server.addresses().iter().map(|at| Address::Internet(*at)).collect();
        harness.run(Running {
            protocol: if is_encrypted { "https" } else { "http" },
            addresses,
            other: None,
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

fn settings(
    address: &Address,
    tokens: Option<&Tokens>,
    is_encrypted: bool,
) -> Result<HttpSettings, Failure> {
    let Address::Internet(socket) = address else {
        let words = format!("--listen {address}: this service listens at ADDRESS:PORT only");
        return Err(Failure::Usage(words));
    };
    let takes_names = !is_local(address);
    if takes_names && !is_encrypted {
        tracing::warn!(
            "--listen {address}: what is stored crosses the network unencrypted; add --tls-cert, \
             or have a firewall restrict it"
        );
    }
    if takes_names && tokens.is_none() {
        tracing::warn!(
            "--listen {address}: whoever reaches it may change what is stored; add --token-file"
        );
    }
    Ok(HttpSettings { address: *socket, takes_names, tokens: tokens.cloned(), face: Face::Api })
}
