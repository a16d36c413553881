//! `loadline serve workflow`, and the same by the name `ecflow_server`. Control plane.

mod args;
mod encryption;
mod web;

use std::fs::DirBuilder;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use service::{
    DataArgs, Failure, Harness, Outcome, Run, Running, listen_advice, make_data,
    raise_descriptor_limit,
};
use wire::Address;

use crate::server::{BoundWorkflow, DATA_VERSION, Environment, Limits, OWN_FOLDER, PORTS};

pub(crate) use args::WorkflowArgs;

/// The time within which a client has to take something of its answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// The time that answers over HTTP may take at the end.
const HTTP_DRAIN: Duration = Duration::from_millis(500);

impl Run for WorkflowArgs {
    fn run(mut self) -> Outcome {
        self.common.public |= self.ecflow_server;
        let mut harness = Harness::begin(crate::SERVICE.name, &self.common)?;
        let port = self.port()?;
        let addresses = self.listen.addresses(port);
        let is_reached =
            |one: &Address| matches!(one, Address::Internet(at) if !at.ip().is_loopback());
        let is_public = addresses.iter().any(is_reached);
        if self.ecflow_server && is_public {
            tracing::warn!(
                "called as ecflow_server: port {port} can be reached from other machines, as \
                 ecFlow's can; `--listen 127.0.0.1` has it reached from this one alone"
            );
        }
        harness.check_exposure("--listen", &addresses)?;
        let home = std::path::absolute(self.home()?)?;
        let variable = |name: &str| std::env::var(name).ok();
        let encryption = encryption::encryption(&self, port, variable).map_err(Failure::Usage)?;
        let (files, ssl) = encryption.map_or((None, None), |(files, ssl)| (Some(files), Some(ssl)));
        let tls = files.map(|files| harness.read_tls(files)).transpose()?;
        let mut bound = BoundWorkflow::bind(&addresses).map_err(|error| {
            anyhow::anyhow!("{error}; {}", unbound_advice(&error, self.ecflow_server))
        })?;
        if let Some(tls) = &tls {
            bound = bound.encrypted(tls, self.encryption.handshake_timeout());
        }
        let web = web::bind(&self, &mut harness, tls.as_ref())?;
        let mut harness = harness.drop_privileges(bound.listeners())?;
        let data = harness.open_data(&DataArgs { data: own_folder(&home)? }, DATA_VERSION)?;
        let home = home.canonicalize()?;
        let mut environment =
            Environment::new(&home, bound.port(), self.ecfinterval.into(), variable)
                .map_err(Failure::Usage)?;
        environment.jobs_host = jobs_host(&environment.host, &addresses);
        environment.is_public = is_public;
        environment.starts_jobs = !self.dis_job_gen;
        environment.ssl = ssl;
        let room = raise_descriptor_limit(self.max_connections, self.threads.threads);
        let limits = Limits {
            max_message: self.max_message.bytes,
            receive_memory: self.receive_memory.bytes,
            send_memory: self.send_memory.bytes,
            send_timeout: SEND_TIMEOUT,
            max_jobs: self.max_jobs as usize,
            max_connections: room as usize,
            threads: self.threads.threads.into(),
            log_flush: self.log_flush,
            sync: self.sync,
        };
        let terminate = || {
            // As any other end: the harness waits for this signal.
            let _ = kill_process(getpid(), Signal::TERM);
        };
        let server = bound.start(environment, data.path(), limits, terminate)?;
        let web = web.map(|web| web.start(&server)).transpose()?;
        harness.serve_metrics(server.metrics())?;
        let addresses = server.addresses();
        harness.run(Running {
            protocol: "ecflow",
            addresses,
            other: web.as_ref().map(|web| ("http", web.address().to_string())),
            data: Some(home),
            stop: Box::new(move |drain: Duration| {
                if let Some(web) = web {
                    web.stop(HTTP_DRAIN);
                }
                let counters = server.stop(drain);
                // It is free for another process once nothing writes to it any more.
                drop(data);
                counters
            }),
        })
    }
}

/// What jobs call this host: by its name, as ecFlow's server has it. Where that stands for none of
/// the addresses on which the server is reached at ECF_PORT, the port of the first (127.0.1.1 on
/// Debian), by the first that other machines reach, too, or else by `localhost`, if that is one of
/// them.
fn jobs_host(name: &str, addresses: &[Address]) -> String {
    let all = addresses.iter().filter_map(|one| match one {
        Address::Internet(at) => Some(*at),
        Address::Unix(_) => None,
    });
    let mut all = all.peekable();
    let Some(first) = all.peek().copied() else { return name.to_owned() };
    // Two of port 0 are given one each.
    let is_at_port = |at: &SocketAddr| *at == first || at.port() == first.port() && at.port() != 0;
    let listens: Vec<IpAddr> = all.filter(is_at_port).map(|at| at.ip()).collect();
    let is_any = listens.iter().any(IpAddr::is_unspecified);
    let is_reached = |found: SocketAddr| listens.contains(&found.ip());
    let reaches =
        |name: &str| (name, 0).to_socket_addrs().is_ok_and(|mut found| found.any(is_reached));
    if is_any || reaches(name) {
        return name.to_owned();
    }
    let host = match listens.iter().find(|one| !one.is_loopback()) {
        Some(public) => public.to_string(),
        None if reaches("localhost") => "localhost".to_owned(),
        None => first.ip().to_string(),
    };
    tracing::info!("jobs are given ECF_HOST={host}: {name} isn't an address of --listen");
    host
}

/// What to do where the address can't be bound: ecFlow's server has ports, and no `--listen`.
fn unbound_advice(error: &io::Error, is_ecflow_server: bool) -> &'static str {
    match (is_ecflow_server, error.kind()) {
        (true, io::ErrorKind::AddrInUse) => {
            "another server has it: stop that one, or choose another port with --port or ECF_PORT"
        }
        (true, _) => "choose another port with --port or ECF_PORT, or an address with --listen",
        (false, _) => listen_advice(error, "choose another address with --listen or --port"),
    }
}

/// The folder of what is this program's own, which is made where it isn't there.
fn own_folder(home: &Path) -> Result<PathBuf, Failure> {
    let own = home.join(OWN_FOLDER);
    make_data(home)?;
    // The journal has hashes of users' passwords.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&own)
        .map_err(|why| Failure::Other(anyhow::anyhow!("--data {}: {why}", home.display())))?;
    Ok(own)
}

impl WorkflowArgs {
    /// The port: typed, of the environment, or ecFlow's own.
    fn port(&self) -> Result<u16, Failure> {
        let typed = match (self.port, self.ecflow_server) {
            (Some(port), _) => Some(port),
            (None, true) => match std::env::var("ECF_PORT") {
                Ok(text) => Some(text.parse().map_err(|_| {
                    Failure::Usage(format!("ECF_PORT is {text:?}: it has to be a port"))
                })?),
                Err(_) => None,
            },
            (None, false) => None,
        };
        let port = typed.unwrap_or(args::PORT);
        if self.ecflow_server && !PORTS.contains(&port) {
            let (first, last) = (PORTS.start(), PORTS.end());
            return Err(Failure::Usage(format!(
                "--port {port}: ecFlow's clients take ports between {first} and {last} only"
            )));
        }
        Ok(port)
    }

    /// ECF_HOME.
    fn home(&self) -> Result<PathBuf, Failure> {
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        if self.ecflow_server {
            let home = std::env::var_os("ECF_HOME").filter(|home| !home.is_empty());
            return Ok(home.map_or_else(|| ".".into(), Into::into));
        }
        Err(Failure::Usage(
            "--data DIR is missing: the directory that ecFlow calls ECF_HOME".to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_port_is_taken_ecflow_s_server_is_given_another_by_its_own_option() {
        let taken = io::Error::from(io::ErrorKind::AddrInUse);
        let [own, ecflow] = [false, true].map(|is| unbound_advice(&taken, is));
        assert!(own.contains("--listen") && !own.contains("ECF_PORT"), "{own}");
        assert!(ecflow.contains("--port or ECF_PORT") && !ecflow.contains("--listen"), "{ecflow}");
    }

    #[test]
    fn jobs_call_this_host_by_its_name_where_that_is_listened_on() {
        let host = |name: &str, at: &str| jobs_host(name, &[at.parse().expect("an address")]);
        assert_eq!(host("127.0.0.1", "127.0.0.1:3141"), "127.0.0.1");
        assert_eq!(host("127.0.1.1", "127.0.0.1:3141"), "localhost");
        assert_eq!(host("127.0.1.1", "0.0.0.0:3141"), "127.0.1.1");
        assert_eq!(host("127.0.1.1", "127.0.0.2:3141"), "127.0.0.2", "localhost is another one");
        assert_eq!(host("127.0.1.1", "192.0.2.7:3141"), "192.0.2.7");
        let both = ["127.0.0.1:3141", "192.0.2.7:3141"].map(|at| at.parse().expect("an address"));
        assert_eq!(jobs_host("127.0.1.1", &both), "192.0.2.7", "for jobs on other machines");
        let apart = ["192.0.2.7:3141", "127.0.0.1:3142"].map(|at| at.parse().expect("an address"));
        assert_eq!(jobs_host("127.0.0.1", &apart), "192.0.2.7", "ECF_PORT is 3141");
    }
}
