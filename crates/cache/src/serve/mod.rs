//! `loadline serve cache`. It takes memcached's options, too. Control plane.

mod address;
mod args;
mod encryption;
mod files;
mod memcached;
mod options;

use std::process::ExitCode;
use std::time::Duration;

use rustix::process::Signal;
use service::{
    FEWER_THREADS, Failure, Harness, Outcome, Run, Running, is_local, listen_advice, make_room,
    warn_of_memory,
};
use wire::Backend;

use crate::model::MakeError;
use crate::server::{CacheServer, Options, StartError};
use options::{options, read_accounts};

pub(crate) use address::DEFAULT_PORT;
pub(crate) use args::CacheArgs;

/// What `-i` prints.
const LICENSE: &str = "\
loadline is under the MIT License or the Apache License, Version 2.0, at your choice: the files
LICENSE-MIT and LICENSE-APACHE of its source say both in full. It holds no code of memcached.";

impl Run for CacheArgs {
    fn run(mut self) -> Outcome {
        if self.memcached.license {
            service::out::print(format!("{LICENSE}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        self.common.log = self.log_level();
        let mut harness = Harness::begin(crate::SERVICE.name, &self.common)?;
        // memcached's way to end in good order.
        harness.end_on(Signal::USR1.as_raw())?;
        for name in self.memcached.check().map_err(Failure::usage)? {
            tracing::warn!("{name} means nothing to this service and changes nothing");
        }
        self.max_connections = make_room(self.max_connections, self.threads);
        let options = options(&self).map_err(Failure::usage)?;
        self.check_exposure(&harness, &options)?;
        self.reload_on_hangup(&mut harness, &options);
        let memory = options.memory_bytes;
        warn_of_memory(memory as u64);
        let server = CacheServer::start(options).map_err(explained)?;
        harness.serve_metrics(&self.http, server.prometheus())?;
        harness.drop_privileges(server.addresses())?;
        files::write_ports(server.addresses(), server.datagram_addresses())?;
        let pid_file = self.memcached.pid_file.clone().map(files::PidFile::write).transpose()?;
        let io = if server.backend() == Backend::Uring { "uring" } else { "epoll" };
        tracing::info!(memory, io, "serving");
        let outcome = harness.run(Running {
            speaks: "memcached",
            addresses: server.addresses().to_vec(),
            datagrams: server.datagram_addresses().first().map(|at| ("udp", at.to_string())),
            data: None,
            stop: Box::new(move |drain: Duration| Some(server.stop(drain))),
        });
        drop(pid_file);
        outcome
    }
}

impl CacheArgs {
    fn log_level(&self) -> tracing::Level {
        match self.memcached.verbose {
            0 => self.common.log,
            1 => self.common.log.max(tracing::Level::INFO),
            2 => self.common.log.max(tracing::Level::DEBUG),
            _ => tracing::Level::TRACE,
        }
    }

    /// `--listen` has to say --public for what other machines can reach; memcached's `-l` means it.
    fn check_exposure(&self, harness: &Harness, options: &Options) -> Result<(), Failure> {
        let own: Vec<_> = self.listen.iter().map(|one| one.place.with_port(self.port)).collect();
        harness.check_exposure("--listen", &own)?;
        let theirs = self.memcached.interfaces.iter().map(|one| one.place.with_port(self.port));
        if let Some(address) = theirs.into_iter().find(|at| !is_local(at) && !self.common.public) {
            tracing::warn!(
                "-l {address} can be reached from other machines, which may read and change all \
                 items unless --auth-file or --tls-client-ca keeps them out"
            );
        }
        if let Some(address) = options.datagrams.iter().find(|at| !is_local(at)) {
            tracing::warn!(
                "UDP at {address} can be reached from other machines: a forged sender has large \
                 answers to small requests sent to anybody. Leave --udp-port out, or have a \
                 firewall keep strangers from it"
            );
        }
        Ok(())
    }

    /// SIGHUP reads accounts and certificates again.
    fn reload_on_hangup(&self, harness: &mut Harness, options: &Options) {
        if let (Some(path), Some(accounts)) = (self.auth_file.clone(), options.accounts.clone()) {
            harness.reload("accounts", move || {
                accounts.renew(read_accounts(&path)?);
                Ok(())
            });
        }
        if let Some(encryption) = &options.encryption {
            let reload = encryption.reload.clone();
            harness.reload("certificates", move || reload().map_err(anyhow::Error::msg));
        }
    }
}

/// The error with what to do about it.
fn explained(error: StartError) -> Failure {
    let is_typed = match &error {
        StartError::Store(why) => !matches!(why, MakeError::OutOfMemory { .. }),
        StartError::Listen(_) | StartError::Threads(_) => false,
    };
    let advice = match &error {
        StartError::Store(MakeError::ManyThreads) => "use --threads 1, or --store global-lock",
        StartError::Store(_) => "change --memory, --max-item or --store",
        StartError::Listen(error) => listen_advice(error, "choose another address with --listen"),
        StartError::Threads(error) if error.to_string().contains("io_uring") => "use --io epoll",
        StartError::Threads(_) => FEWER_THREADS,
    };
    let error = anyhow::anyhow!("{error}; {advice}");
    if is_typed { Failure::usage(error) } else { error.into() }
}
