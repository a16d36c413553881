//! What these tests share: a server on a free port, and the load of one group of clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab::drive::{Load, Session};
use lab::plan::{Arrivals, Clients};
use load::units::Span;
use load::{Client, DialectRow, Operation, Service, Workload, WorkloadSpec};
use wire::{Address, Config, Connection, ListenOptions, Listener, Server, clock};

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

/// A service with one operation.
pub(crate) const fn service(operations: &'static [Operation]) -> Service {
    Service {
        name: "toy",
        doc: "",
        operations,
        dialects: &[],
        longest_key_bytes: 250,
        longest_value_bytes: 1024,
        prepares: true,
    }
}

/// A dialect without more ado.
pub(crate) const fn dialect(name: &'static str, client: Client) -> DialectRow {
    DialectRow::new(name, "", client)
}

/// A workload of 100 keys in a service of one's own; `rest` says the operations.
pub(crate) fn workload(service: &'static Service, rest: &str) -> Workload {
    let text = format!("service = 'toy'\nkeys = {{ count = 100 }}\n{rest}");
    toml::from_str::<WorkloadSpec>(&text).expect("well formed").resolve(service).expect("right")
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
    }
}

/// Opens a session at `address`, does with it what is wanted, and ends it and the server.
pub(crate) fn load<T>(
    (server, address): (Server, Address),
    dialect: &'static DialectRow,
    workload: &Workload,
    clients: Clients,
    then: impl FnOnce(&mut Session) -> T,
) -> T {
    let load = Load {
        address: &address,
        batch: None,
        program: None,
        dialect,
        workload,
        clients: &[clients],
        round: 1,
        clock_zero: clock::now(),
        stop: Arc::new(AtomicBool::new(false)),
        onlooker: None,
    };
    let mut session = Session::open(&load).expect("connected");
    let given = then(&mut session);
    drop(session);
    server.stop(Duration::from_secs(1));
    given
}
