//! `loadline serve cache`. It takes memcached's options, too. Control plane.

mod address;
mod args;
mod encryption;
mod files;
mod memcached;
mod options;

use std::process::ExitCode;
use std::time::Duration;

use rustix::process::geteuid;
use service::{
    FEWER_THREADS, Failure, Harness, Outcome, Run, Running, is_local, listen_advice,
    raise_descriptor_limit, warn_of_memory,
};
use wire::Backend;

use crate::model::MakeError;
use crate::server::{BoundCache, Options, StartError};
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
        // memcached ignores -u unless it is root; it is a warning here.
        let unused = self.common.user.take_if(|_| !geteuid().is_root());
        let mut harness = Harness::begin(crate::SERVICE.name, &self.common)?;
        if let Some(user) = unused {
            tracing::warn!("--user {user} (or -u) has no effect: only root can change users");
        }
        for name in self.memcached.check().map_err(Failure::usage)? {
            tracing::warn!("{name} is accepted for compatibility and has no effect");
        }
        self.max_connections = raise_descriptor_limit(self.max_connections, self.threads);
        let options = options(&self).map_err(Failure::usage)?;
        self.check_exposure(&harness, &options)?;
        self.reload_on_hangup(&mut harness, &options);
        let memory = options.memory_bytes;
        warn_of_memory(memory as u64, "--memory (or -m)");
        let bound = BoundCache::bind(options).map_err(explained)?;
        harness.bind_metrics(&self.http)?;
        let mut harness = harness.drop_privileges(bound.listeners())?;
        let server = bound.start().map_err(explained)?;
        harness.serve_metrics(server.prometheus())?;
        files::write_ports(server.addresses(), server.datagram_addresses())?;
        let pid_file = self.memcached.pid_file.clone().map(files::PidFile::write).transpose()?;
        let io = if server.backend() == Backend::Uring { "uring" } else { "epoll" };
        tracing::info!(memory, io, "serving");
        let outcome = harness.run(Running {
            protocol: "memcached",
            addresses: server.addresses().to_vec(),
            other: server.datagram_addresses().first().map(|at| ("udp", at.to_string())),
            data: None,
            stop: Box::new(move |drain: Duration| Some(server.stop(drain))),
        });
        drop(pid_file);
        outcome
    }
}

impl CacheArgs {
    /// `--listen` has to say --public for what other machines can reach; memcached's `-l` means it.
    fn check_exposure(&self, harness: &Harness, options: &Options) -> Result<(), Failure> {
        let own: Vec<_> = self.listen.iter().map(|one| one.place.with_port(self.port)).collect();
        harness.check_exposure("--listen", &own)?;
        let reached = [&options.listen, &options.listen_plain, &options.datagrams];
        if let Some(address) = reached.into_iter().flatten().find(|at| !is_local(at))
            && let Some(option) = self.test_option()
        {
            return Err(Failure::Usage(format!(
                "{option} is for tests at addresses of this machine only, and other machines can \
                 reach {address}: leave it out, or listen at 127.0.0.1"
            )));
        }
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
                 answers to small requests sent to any host. Leave --udp-port out, or have a \
                 firewall restrict it"
            );
        }
        Ok(())
    }

    /// The option, if one is given, that lets clients or tests break what the service promises.
    fn test_option(&self) -> Option<&'static str> {
        match (self.debug_time, self.test_corrupt_every) {
            (true, _) => Some("--debug-time"),
            (_, Some(_)) => Some("--test-corrupt-every"),
            _ => None,
        }
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
            harness.reload("certificates", move || reload.run().map_err(anyhow::Error::msg));
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
