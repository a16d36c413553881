//! The life of a service: what comes before its sockets, the ready line, signals, and its end.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use wire::{Address, Listener};

use crate::data::{DataArgs, DataDir};
use crate::http::{BoundHttp, HttpArgs, HttpServer, metrics_router};
use crate::listen::check_exposure;
use crate::notify::notify;
use crate::privileges::Privileges;
use crate::reload::{Reload, Reloader};
use crate::{CommonArgs, Failure, Outcome, Ready, TlsFiles, append, is_local, log};

/// How long connections may finish what is in flight after the first signal.
pub const DRAIN: Duration = Duration::from_secs(5);

/// The most time that a control plane may take for its last answers.
const HTTP_DRAIN: Duration = Duration::from_millis(500);

/// A service that has begun, and may still have the privileges of root. Only once they are dropped
/// it accepts bytes and opens data: threads start after [`Harness::drop_privileges`].
pub struct Harness {
    service: &'static str,
    is_public: bool,
    privileges: Option<Privileges>,
    end: TerminationSignals,
    reloads: Vec<(&'static str, Reload)>,
    http: Option<BoundHttp>,
}

/// A service that is bound, and has given up privileges where `--user` is given.
pub struct Unprivileged {
    harness: Harness,
    server: Option<HttpServer>,
}

/// A service that is bound and serves.
pub struct Running {
    /// The protocol of its connections, by which the ready line names their addresses.
    pub protocol: &'static str,
    /// Where it accepts connections.
    pub addresses: Vec<Address>,
    /// Where else it can be reached, such as by datagrams, and by which name.
    pub other: Option<(&'static str, String)>,
    /// The data directory, where it has one.
    pub data: Option<PathBuf>,
    /// Stops it within a time; returns what it has carried, where that is known.
    pub stop: Box<dyn FnOnce(Duration) -> Option<wire::Counters>>,
}

impl Harness {
    /// Begins: starts the log, catches the signals that end a service, so that none is missed, and
    /// looks up the user that it shall become.
    ///
    /// # Errors
    /// When there is no such user, or signals can't be caught.
    pub fn begin(service: &'static str, args: &CommonArgs) -> Result<Self, Failure> {
        log::start(args.log, args.log_json);
        let privileges = args.user.as_deref().map(Privileges::of).transpose();
        Ok(Self {
            service,
            is_public: args.public,
            privileges: privileges.map_err(Failure::usage)?,
            end: TerminationSignals::catch()?,
            reloads: Vec::new(),
            http: None,
        })
    }

    /// Refuses addresses of `option` that other machines can reach, unless `--public` is given.
    ///
    /// # Errors
    /// A usage error that names the first such address.
    pub fn check_exposure(&self, option: &str, addresses: &[Address]) -> Result<(), Failure> {
        check_exposure(option, addresses, self.is_public)
    }

    /// Opens the file that `option` names, to append to it, with the privileges that the service
    /// still has. A new one belongs to the user that it becomes.
    ///
    /// # Errors
    /// When it can't be written, or is a pipe; the error names it.
    pub fn open_to_append(&self, option: &str, path: &Path) -> Result<File, Failure> {
        append::open(option, path, self.privileges.as_ref())
    }

    /// Has SIGHUP read something again, on a thread of its own. The name is for the log.
    pub fn reload(
        &mut self,
        what: &'static str,
        read: impl FnMut() -> anyhow::Result<()> + Send + 'static,
    ) {
        self.reloads.push((what, Box::new(read)));
    }

    /// Reads the files of encrypted connections, now and at each SIGHUP.
    ///
    /// # Errors
    /// When they are of no use; the error names the file.
    pub fn read_tls(&mut self, files: TlsFiles) -> Result<wire::Tls, Failure> {
        let files = files.absolute()?;
        let tls = files.read().map_err(Failure::usage)?;
        let renewed = tls.clone();
        self.reload("certificates", move || files.renew(&renewed));
        Ok(tls)
    }

    /// Binds the address of the counters, where the arguments ask for it, and reads the tokens.
    /// Nothing is accepted before [`Unprivileged::serve_metrics`].
    ///
    /// # Errors
    /// When the address is not allowed or can't be bound, or the tokens can't be read.
    pub fn bind_metrics(&mut self, args: &HttpArgs) -> Result<(), Failure> {
        let Some(address) = args.metrics else { return Ok(()) };
        let internet = Address::Internet(address);
        check_exposure("--metrics", std::slice::from_ref(&internet), self.is_public)?;
        if !is_local(&internet) {
            tracing::warn!(
                "--metrics {address}: counters and tokens cross the network unencrypted; put a \
                 proxy with TLS before a loopback address, or have a firewall restrict it"
            );
        }
        let settings = args.settings(address)?;
        if let Some(tokens) = settings.tokens.clone() {
            self.reload("tokens", move || tokens.read_again());
        }
        let bound = BoundHttp::bind(settings).context("choose another address with --metrics")?;
        self.http = Some(bound);
        Ok(())
    }

    /// Gives up the privileges of root, where `--user` is given. It takes the listeners because
    /// their Unix sockets' files become the user's; a server that is started has them no more.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn drop_privileges(mut self, bound: &[Listener]) -> anyhow::Result<Unprivileged> {
        if let Some(privileges) = self.privileges.take() {
            privileges.drop_all(bound)?;
        }
        Ok(Unprivileged { harness: self, server: None })
    }
}

impl Unprivileged {
    /// Opens the data directory, as the user that the service now is.
    ///
    /// # Errors
    /// As the exit codes of [`Failure`] say: it is another service's, or in use, or of another
    /// version, or can't be written.
    pub fn open_data(&self, args: &DataArgs, version: u32) -> Result<DataDir, Failure> {
        DataDir::open(&args.data, self.harness.service, version)
    }

    /// Serves counters to Prometheus, where [`Harness::bind_metrics`] has bound an address.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn serve_metrics(
        &mut self,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        let Some(bound) = self.harness.http.take() else { return Ok(()) };
        self.server = Some(bound.start(|_| metrics_router(text))?);
        Ok(())
    }

    /// Prints the ready line, serves until a signal, and stops within [`DRAIN`].
    ///
    /// # Errors
    /// When nothing can be printed.
    pub fn run(self, running: Running) -> Outcome {
        let Self { harness, server } = self;
        let reloader = Reloader::start(harness.reloads)?;
        let addresses: Vec<_> = running.addresses.iter().map(ToString::to_string).collect();
        let metrics = server.as_ref().map(|http| ("metrics", http.address().to_string()));
        let named: Vec<_> = running.other.into_iter().chain(metrics).collect();
        let ready = Ready {
            service: harness.service,
            protocol: running.protocol,
            addresses: &addresses,
            other_addresses: &named,
            data: running.data.as_deref(),
        };
        ready.print()?;
        notify("READY=1");
        let other = named.iter().map(|(name, address)| format!("{name} {address}"));
        let shown: Vec<String> = addresses.iter().cloned().chain(other).collect();
        tracing::info!(addresses = ?shown, "ready");
        harness.end.wait(&reloader);
        notify("STOPPING=1");
        if let Some(http) = server {
            http.stop(HTTP_DRAIN);
        }
        match (running.stop)(DRAIN) {
            Some(counters) => tracing::info!(
                connections = counters.total_connections,
                bytes_read = counters.bytes_read,
                bytes_written = counters.bytes_written,
                "stopped"
            ),
            None => tracing::info!("stopped"),
        }
        Ok(std::process::ExitCode::SUCCESS)
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("service", &self.service).finish_non_exhaustive()
    }
}

impl fmt::Debug for Unprivileged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprivileged")
            .field("service", &self.harness.service)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// What the first SIGINT from now on sets; the second one ends the process.
///
/// # Errors
/// When the system refuses it.
pub fn interruption() -> anyhow::Result<Arc<AtomicBool>> {
    let is_set = Arc::new(AtomicBool::new(false));
    // In this order: the first one finds it unset.
    signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&is_set))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&is_set))?;
    Ok(is_set)
}

/// The signals that a service handles.
#[derive(Debug)]
pub struct TerminationSignals(Signals);

impl TerminationSignals {
    /// Catches them from here on.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn catch() -> anyhow::Result<Self> {
        let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]);
        Ok(Self(signals.context("cannot wait for signals")?))
    }

    /// Waits for the first signal that ends: SIGINT, SIGTERM, or memcached's SIGUSR1. SIGHUP reads
    /// again. The second signal quits at once, and what is in flight is lost.
    fn wait(mut self, reloader: &Reloader) {
        for signal in self.0.forever() {
            if signal != SIGHUP {
                tracing::info!(signal, drain_s = DRAIN.as_secs(), "stopping");
                break;
            }
            reloader.request();
        }
        // Without a thread to spare the drain goes on all the same.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = self.0.forever().find(|signal| *signal != SIGHUP) {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }

    /// Waits for the first signal that ends, with nothing to read again.
    pub fn wait_only(self) {
        self.wait(&Reloader::idle());
    }
}
