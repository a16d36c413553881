//! What these tests share: a server on a free port, and the load of one group of clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::units::Span;
use lab::drive::{Session, SessionConfig};
use lab::plan::{Arrivals, Clients};
use load::{
    Busy, Caller, Dialect, DialectRow, Draw, Operation, Part, Preparation, Scenario, Service,
    Speaks, SpecError, UniformDraw, Workload,
};
use wire::{
    Address, Backend, Config, Connection, ListenOptions, Listener, ProtocolError, Server, clock,
};

/// Longer than any answer takes.
pub(crate) const LONG: Span = Span::from_ms(20_000);

/// A piece of load.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// A free port of the loopback.
pub(crate) fn any_port() -> Address {
    Address::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// A server of connections that `make` makes, and its address.
pub(crate) fn serve<C: Connection + 'static>(
    make: impl Fn() -> C + Send + Sync + 'static,
) -> (Server, Address) {
    let listener = Listener::bind(&any_port(), &ListenOptions::default()).expect("a free port");
    let server = Server::start(Config::default(), vec![listener], move |_| make());
    let server = server.expect("a server");
    let address = server.addresses()[0].clone();
    (server, address)
}

/// A client of a toy service.
pub(crate) enum Client {
    Dialect(Box<dyn Dialect>),
    Caller(Box<dyn Caller>),
    Busy(Box<dyn Busy>),
}

/// The workload of a toy service: what it draws are numbers below 100.
pub(crate) struct Toys {
    pub(crate) operations: &'static [Operation],
    pub(crate) preparation: Preparation,
    /// Makes the client of a dialect, by its name.
    pub(crate) make: fn(&str) -> Client,
}

impl std::fmt::Debug for Toys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("toys")
    }
}

/// A toy service that prepares the given number of parts.
pub(crate) fn read(
    part: &Part<'_>,
    operations: &'static [Operation],
    parts: u64,
    make: fn(&str) -> Client,
) -> Result<Arc<dyn Workload>, SpecError> {
    part.read::<toml::Table>()?;
    let preparation = Preparation { parts, ..Preparation::default() };
    Ok(Arc::new(Toys { operations, preparation, make }))
}

impl Workload for Toys {
    fn operations(&self) -> &[Operation] {
        self.operations
    }

    fn preparation(&self) -> Preparation {
        self.preparation.clone()
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: 100 })
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        match (self.make)(speaks.dialect.name) {
            Client::Dialect(dialect) => Ok(dialect),
            Client::Caller(_) | Client::Busy(_) => Err(ProtocolError::new("no dialect")),
        }
    }

    fn caller(
        self: Arc<Self>,
        speaks: &Speaks,
        _: &Address,
    ) -> Result<Box<dyn Caller>, ProtocolError> {
        match (self.make)(speaks.dialect.name) {
            Client::Caller(caller) => Ok(caller),
            Client::Dialect(_) | Client::Busy(_) => Err(ProtocolError::new("no caller")),
        }
    }

    fn busy(
        self: Arc<Self>,
        speaks: &Speaks,
        _: Option<&Address>,
    ) -> Result<Box<dyn Busy>, ProtocolError> {
        match (self.make)(speaks.dialect.name) {
            Client::Busy(busy) => Ok(busy),
            Client::Dialect(_) | Client::Caller(_) => Err(ProtocolError::new("not busy")),
        }
    }
}

/// What a toy service is asked; `rest` says the operations.
pub(crate) fn scenario(service: &'static Service, rest: &str) -> Scenario {
    Scenario::parse(&format!("service = 'toy'\n{rest}"), service).expect("right")
}

/// Three connections on two threads, in a closed loop.
pub(crate) fn clients() -> Clients {
    Clients {
        name: "clients".into(),
        mix: None,
        connections: 3,
        pipeline: 1,
        arrivals: Arrivals::Closed,
        threads: 2,
        cpus: Vec::new(),
        timeout: LONG,
        reconnect_every: None,
        spin: false,
        io: Backend::Auto,
    }
}

/// Opens a session at `address`, does with it what is wanted, and ends it and the server.
pub(crate) fn load<T>(
    (server, address): (Server, Address),
    dialect: &'static DialectRow,
    workload: &Scenario,
    clients: Clients,
    then: impl FnOnce(&mut Session) -> T,
) -> T {
    let load = SessionConfig {
        address: &address,
        batch: None,
        program: None,
        speaks: &Speaks::plainly(dialect),
        workload,
        clients: &[clients],
        round: 1,
        clock_zero: clock::now(),
        stop: Arc::new(AtomicBool::new(false)),
        live: None,
    };
    let mut session = Session::open(&load).expect("connected");
    let given = then(&mut session);
    drop(session);
    server.stop(Duration::from_secs(1));
    given
}
