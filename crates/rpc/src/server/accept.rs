//! Accepts connections, and divides them among the threads.

use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use wire::{Address, Listener};

use super::native;
use super::opening::converse;
use super::shared::{Shared, Stage};
use crate::shm::MOST_LINKS;

/// How long accepting pauses where the system has no descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection that was accepted.
pub(super) struct Accepted {
    socket: Socket,
    _counted: Counted,
}

enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// Starts a task for each listener.
pub(super) fn start(
    listeners: Vec<Listener>,
    threads: Vec<UnboundedSender<Accepted>>,
    shared: &Arc<Shared>,
) {
    for listener in listeners {
        let (threads, shared) = (threads.clone(), Arc::clone(shared));
        tokio::spawn(async move {
            let mut stage = shared.stage();
            tokio::select! {
                ended = accept(&listener, &threads, &shared) => {
                    if let Err(error) = ended {
                        tracing::error!("cannot accept on {}: {error}", listener.address());
                    }
                }
                _ = stage.wait_for(|stage| *stage != Stage::Serving) => {}
            }
        });
    }
}

/// Starts the task of the socket over which memory is passed.
pub(super) fn start_shared(listener: Listener, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let mut stage = shared.stage();
        tokio::select! {
            ended = accept_shared(&listener, &shared) => {
                if let Err(error) = ended {
                    tracing::error!("cannot accept on {}: {error}", listener.address());
                }
            }
            _ = stage.wait_for(|stage| *stage != Stage::Serving) => {}
        }
    });
}

async fn accept_shared(listener: &Listener, shared: &Arc<Shared>) -> io::Result<()> {
    let bound = UnixListener::from_std(listener.as_fd().try_clone_to_owned()?.into())?;
    loop {
        let Ok((socket, _)) = bound.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let shares = shared.sharing.load(Relaxed);
        let is_full = shared.connections.load(Relaxed) >= shared.settings.max_connections;
        if shares >= MOST_LINKS || is_full {
            shared.counters.refused.fetch_add(1, Relaxed);
            continue;
        }
        let socket = socket.into_std()?;
        socket.set_nonblocking(false)?;
        let (counted, its) = (Sharing::new(shared), Arc::clone(shared));
        let thread = std::thread::Builder::new().name("rpc-shm".to_owned());
        let started = thread.spawn(move || {
            let _counted = counted;
            native::serve_shared(socket, its);
        });
        if let Err(error) = started {
            tracing::warn!("a connection over shared memory found no thread: {error}");
        }
    }
}

/// A listener of the runtime.
enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Bound {
    /// A second descriptor of the listener's socket: `listener` itself has to stay, because it
    /// removes the file of a Unix socket when it is dropped.
    fn of(listener: &Listener) -> io::Result<Self> {
        let socket = listener.as_fd().try_clone_to_owned()?;
        Ok(match listener.address() {
            Address::Internet(_) => Self::Tcp(TcpListener::from_std(socket.into())?),
            Address::Unix(_) => Self::Unix(UnixListener::from_std(socket.into())?),
        })
    }

    /// A connection as a socket of the standard library, which any thread's runtime can take.
    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => Ok(Socket::Tcp(listener.accept().await?.0.into_std()?)),
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0.into_std()?)),
        }
    }
}

async fn accept(
    listener: &Listener,
    threads: &[UnboundedSender<Accepted>],
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let bound = Bound::of(listener)?;
    let mut next = 0;
    loop {
        let Ok(socket) = bound.accept().await else {
            // Most often no descriptor is left: one is free once another connection ends.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if shared.connections.load(Relaxed) >= shared.settings.max_connections {
            shared.counters.refused.fetch_add(1, Relaxed);
            continue;
        }
        let counted = Counted::new(shared);
        // In turn: how much each will bring isn't known.
        next = (next + 1) % threads.len();
        // A thread that is gone has printed why.
        let _ = threads[next].send(Accepted { socket, _counted: counted });
    }
}

/// Counts a connection out when it ends, however it does.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Relaxed);
        shared.counters.opened.fetch_add(1, Relaxed);
        shared.counters.open.fetch_add(1, Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
        self.0.counters.open.fetch_sub(1, Relaxed);
    }
}

/// The same for one over shared memory, which counts among those, too.
struct Sharing(Counted);

impl Sharing {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.sharing.fetch_add(1, Relaxed);
        Self(Counted::new(shared))
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        let Counted(shared) = &self.0;
        shared.sharing.fetch_sub(1, Relaxed);
    }
}

impl Accepted {
    /// Serves the connection until it ends.
    pub(super) async fn converse(self, shared: Arc<Shared>) {
        let tls = shared.settings.tls.clone();
        let Self { socket, _counted } = self;
        match socket {
            Socket::Tcp(socket) => {
                let Ok(stream) = tuned(socket, shared.settings.nagle) else { return };
                match tls {
                    // Each in a box: the task of a connection is as large as its largest way.
                    None => Box::pin(converse(stream, "tcp", shared)).await,
                    Some(tls) => Box::pin(encrypted(stream, tls, shared)).await,
                }
            }
            // Its file decides who may connect to it: it is never encrypted.
            Socket::Unix(socket) => {
                if let Ok(stream) = UnixStream::from_std(socket) {
                    Box::pin(converse(stream, "unix", shared)).await;
                }
            }
        }
    }
}

/// The stream of a connection. Without TCP_NODELAY an answer of several writes waits for the
/// client's acknowledgement.
fn tuned(socket: std::net::TcpStream, nagle: bool) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(socket)?;
    stream.set_nodelay(!nagle)?;
    Ok(stream)
}

/// Serves an encrypted connection.
async fn encrypted(stream: TcpStream, tls: wire::Tls, shared: Arc<Shared>) {
    let acceptor = TlsAcceptor::from(tls.config());
    let limit = shared.settings.handshake_timeout;
    let accepted = Box::pin(timeout(limit, acceptor.accept(stream)));
    if let Ok(Ok(stream)) = accepted.await {
        Box::pin(converse(stream, "tcp+tls", shared)).await;
    }
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of what a function returns.
    fn size<F>(_: impl FnOnce(Accepted, Arc<Shared>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_a_connection_is_small() {
        let of = size(|accepted, shared| accepted.converse(shared));
        assert!(of <= 384, "{of} bytes");
    }

    #[test]
    fn an_accepted_socket_has_tcp_nodelay_unless_nagle_is_planted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        for nagle in [false, true] {
            let near = std::net::TcpStream::connect(listener.local_addr().expect("bound"));
            let (far, _) = listener.accept().expect("a connection");
            far.set_nonblocking(true).expect("an option");
            assert!(!far.nodelay().expect("an option"), "the system leaves it off");
            runtime.as_ref().expect("a runtime").block_on(async {
                let stream = tuned(far, nagle).expect("a stream");
                assert_eq!(stream.nodelay().expect("an option"), !nagle);
            });
            drop(near);
        }
    }
}
