//! The server of own frames (`native`) and, with the feature `grpc`, of gRPC: HTTP/2 by h2, and
//! above it what gRPC asks for. Control plane: it allocates per call, as h2 does. The first bytes
//! of a connection say which of the two it speaks (`opening.rs`).
//!
//! Connections are divided among threads, each with a runtime of its own.

mod accept;
#[cfg(feature = "grpc")]
mod grpc;
mod memory;
pub(crate) mod native;
mod opening;
mod settings;
mod shared;
#[cfg(not(feature = "grpc"))]
mod without_grpc;
mod work;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use wire::{Address, ListenOptions, Listener};

use accept::Accepted;
use shared::{FORCED, LEAVING, Shared, Stage};
#[cfg(not(feature = "grpc"))]
use without_grpc as grpc;

pub use native::serve_standard;
pub use settings::Settings;

/// A server whose addresses are bound, and that accepts no connection yet.
#[derive(Debug)]
pub struct BoundRpc {
    listeners: Vec<Listener>,
    /// The Unix socket over which memory is passed.
    memory: Option<Listener>,
    settings: Settings,
}

/// A running server.
pub struct RpcServer {
    addresses: Vec<Address>,
    shared: Arc<Shared>,
    ended: mpsc::Receiver<()>,
    threads: Vec<JoinHandle<()>>,
}

impl BoundRpc {
    /// Binds.
    ///
    /// # Errors
    /// When an address can't be had; the error names it.
    pub fn bind(addresses: &[Address], settings: Settings) -> anyhow::Result<Self> {
        let bind = |address| Listener::bind(address, &ListenOptions::default());
        let listeners = addresses.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { listeners, memory: None, settings })
    }

    /// Serves over shared memory, too, which it passes over a Unix socket at this path.
    ///
    /// # Errors
    /// When the path can't be had.
    pub fn share_memory(mut self, path: PathBuf) -> anyhow::Result<Self> {
        let address = Address::Unix(path);
        self.memory = Some(Listener::bind(&address, &ListenOptions::default())?);
        Ok(self)
    }

    /// What is bound.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has none.
    pub fn start(self) -> anyhow::Result<RpcServer> {
        let Self { listeners, memory, settings } = self;
        let addresses = listeners.iter().map(|listener| listener.address().clone()).collect();
        let threads = settings.threads.max(1);
        let shared = Arc::new(Shared::new(settings));
        shared.memory.give_back().context(service::FEWER_THREADS)?;
        let (end, ended) = mpsc::channel();
        let mut senders = Vec::new();
        let mut receivers = Vec::new();
        for _ in 0..threads {
            let (sender, receiver) = unbounded_channel();
            senders.push(sender);
            receivers.push(receiver);
        }
        let mut first = Some((listeners, senders, memory));
        let mut handles = Vec::new();
        for (number, receiver) in receivers.into_iter().enumerate() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (shared, end, first) = (Arc::clone(&shared), end.clone(), first.take());
            let thread = std::thread::Builder::new().name(format!("rpc-{number}"));
            let work = move || {
                runtime.block_on(async {
                    if let Some((listeners, senders, memory)) = first {
                        accept::start(listeners, senders, &shared);
                        if let Some(memory) = memory {
                            accept::start_shared(memory, &shared);
                        }
                    }
                    work(receiver, &shared).await;
                });
                // The other side is gone where nothing waits for the end.
                let _ = end.send(());
            };
            handles.push(thread.spawn(work).context(service::FEWER_THREADS)?);
        }
        Ok(RpcServer { addresses, shared, ended, threads: handles })
    }
}

/// A thread: its connections until the server stops, and then until they have ended.
async fn work(mut incoming: UnboundedReceiver<Accepted>, shared: &Arc<Shared>) {
    let mut stage = shared.stage();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = incoming.recv() => match accepted {
                Some(accepted) => {
                    connections.spawn(accepted.converse(Arc::clone(shared)));
                }
                None => break,
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
            _ = stage.wait_for(|stage| *stage != Stage::Serving) => break,
        }
    }
    let end = async { while connections.join_next().await.is_some() {} };
    let forced = async {
        // It fails once the server is gone, which forces, too.
        let _ = stage.wait_for(|stage| *stage == Stage::Forced).await;
        tokio::time::sleep(FORCED).await;
    };
    tokio::select! {
        () = end => {}
        () = forced => {}
    }
}

impl RpcServer {
    /// Where it is, with the ports that it was given.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Its counters, as `/metrics` has them.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.counters.page()
    }

    /// Says NOT_SERVING, tells clients to go elsewhere, lets calls finish until `drain` has passed,
    /// and ends those that are left with UNAVAILABLE.
    pub fn stop(self, drain: Duration) {
        let leaving = LEAVING.min(drain);
        let stages = [
            (Stage::Leaving, leaving),
            (Stage::Draining, drain - leaving),
            (Stage::Forced, 2 * FORCED),
        ];
        for (stage, time) in stages {
            self.shared.set_stage(stage);
            if self.wait(time) {
                break;
            }
        }
        for thread in self.threads.into_iter().filter(JoinHandle::is_finished) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }

    /// Waits until all threads have ended, or the time has passed.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let is_running = |thread: &JoinHandle<()>| !thread.is_finished();
        while self.threads.iter().any(is_running) {
            let left = until.saturating_duration_since(Instant::now());
            match self.ended.recv_timeout(left) {
                // Its thread ends right after it.
                Ok(()) => std::thread::yield_now(),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => return false,
            }
        }
        // Those of shared memory look for the end by themselves.
        while self.shared.sharing.load(Relaxed) > 0 {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

impl fmt::Debug for RpcServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcServer").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
