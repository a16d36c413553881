//! The generator's own ceiling on this host: against a server of this program that echoes every
//! byte, so that both sides only send and receive; and without a server, so that only the engine is
//! left. Data plane.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use base::units::Span;
use lab::cpus::pin_this_thread;
use lab::drive::{Session, SessionConfig};
use lab::plan::{Arrivals, Clients};
use load::{Scenario, Speaks, null as null_load};
use null::NullConnection;
use wire::clock::{MILLISECOND_NS, now};
use wire::{Address, Backend, Config, ListenOptions, Listener, Server};

/// What the generator reached with one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    pub(super) connections: usize,
    pub(super) pipeline: usize,
    pub(super) rate_per_s: f64,
    pub(super) generator_cpu_ns_per_op: f64,
    /// The part of its time that the generator was not waiting.
    pub(super) busy: f64,
}

/// With one request under way on each connection, and with many.
pub(super) fn ceilings(cpus: &[usize]) -> anyhow::Result<Vec<Ceiling>> {
    // The server's thread keeps the core of the thread that starts it.
    pin_this_thread(&cpus[..cpus.len().min(1)]).context("threads can't be pinned")?;
    let any = Address::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = Listener::bind(&any, &ListenOptions::default())?;
    let server = Server::start(Config::default(), vec![listener], |_| NullConnection::immediate())?;
    pin_this_thread(cpus)?;
    let pipelines = [1, 16];
    let ceilings = pipelines.map(|pipeline| ceiling(&server.addresses()[0], cpus, pipeline));
    server.stop(Duration::from_secs(1));
    ceilings.into_iter().collect()
}

/// What an operation costs the engine without any system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Engine {
    pub(super) connections: usize,
    pub(super) pipeline: usize,
    pub(super) cpu_ns_per_op: f64,
}

/// With one request under way on each connection, and with many.
pub(super) fn engine(cpus: &[usize]) -> anyhow::Result<Vec<Engine>> {
    let connections = 16;
    let cpu = cpus.last().copied();
    let cost = |pipeline| {
        // A thread of its own is pinned and gone.
        let run = || lab::drive::overhead(connections, pipeline, 500 * MILLISECOND_NS, cpu);
        let result = std::thread::scope(|scope| scope.spawn(run).join());
        let result = result.map_err(|_| anyhow::anyhow!("the engine's thread ended"))??;
        let operations = result.counts.operations.max(1) as f64;
        let cpu_ns_per_op = result.generator.total_ns as f64 / operations;
        Ok(Engine { connections, pipeline, cpu_ns_per_op })
    };
    [1, 64].into_iter().map(cost).collect()
}

fn ceiling(address: &Address, cpus: &[usize], pipeline: usize) -> anyhow::Result<Ceiling> {
    let text = "service='null'\noperation='ask'";
    let clients = Clients {
        name: "doctor".into(),
        mix: None,
        connections: 16,
        pipeline,
        arrivals: Arrivals::Closed,
        threads: 1,
        cpus: cpus.last().copied().into_iter().collect(),
        timeout: Span::from_ms(1000),
        reconnect_every: None,
        spin: false,
        io: Backend::Auto,
    };
    let connections = clients.connections;
    let load = SessionConfig {
        address,
        speaks: &Speaks::plainly(&null_load::DIALECT),
        batch: None,
        program: None,
        workload: &Scenario::parse(text, &null_load::SERVICE)?,
        clients: &[clients],
        round: 1,
        clock_zero: now(),
        stop: Arc::new(AtomicBool::new(false)),
        live: None,
    };
    let mut session = Session::open(&load)?;
    session.run(100 * MILLISECOND_NS)?;
    let result = session.run(700 * MILLISECOND_NS)?;
    let operations = result.counts.operations.max(1) as f64;
    Ok(Ceiling {
        connections,
        pipeline,
        rate_per_s: operations * 1e9 / result.duration_ns.max(1) as f64,
        generator_cpu_ns_per_op: result.generator.total_ns as f64 / operations,
        busy: result.busy,
    })
}
