//! The HTTP control plane: one thread with axum on tokio, within limits of its own, so that slow
//! clients don't keep others from it.

mod encrypted;
mod guard;
mod patient;
mod quick;
mod settings;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::metrics;
use encrypted::Encryption;
use guard::Guard;
use patient::{Patient, Requests, Waits};
use quick::{MAX_HEAD_BYTES, Talk};

pub use quick::{Question, Quick, Quickly};
pub use settings::{Face, HttpArgs, HttpLimits, HttpSettings, socket_address};

/// How long a request's head may take, and a connection until its first one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A router's requests, as connections call it.
type Routed = TowerToHyperService<Router>;

/// A timer as near as this is always set. To set one that is nearer than all others wakes the
/// thread once more, and each change that waits for the disk sets one of 30 s.
const NEAR: Duration = Duration::from_secs(10);

/// How long accepting pauses where the system has no descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running control plane. Dropping it stops it at once.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    end: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Binds, and serves what `router` makes of the address that was bound.
    ///
    /// # Errors
    /// When the address can't be had, or the system has no thread for it; the error names it.
    pub fn start(
        settings: HttpSettings,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> anyhow::Result<Self> {
        BoundHttp::bind(settings)?.start(router)
    }

    /// Where it is, with the port that it was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets answers finish until `drain` has passed, and ends.
    pub fn stop(mut self, drain: Duration) {
        self.end_within(drain);
    }

    fn end_within(&mut self, drain: Duration) {
        // Both are gone when it has ended already.
        let _ = self.end.take().map(|end| end.send(drain));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A control plane whose address is bound, and that accepts no connection yet.
pub struct BoundHttp {
    settings: HttpSettings,
    listener: TcpListener,
    encryption: Option<Encryption>,
    limits: HttpLimits,
    head: Duration,
    quick: Option<Arc<dyn Quick>>,
    reads: fn(&str) -> bool,
}

impl fmt::Debug for BoundHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundHttp").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl BoundHttp {
    /// Binds.
    ///
    /// # Errors
    /// When the address can't be had; the error names it.
    pub fn bind(settings: HttpSettings) -> anyhow::Result<Self> {
        let wanted = settings.address;
        let listener = TcpListener::bind(wanted).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.with_context(|| format!("cannot listen at {wanted}"))?;
        let limits = settings.face.limits();
        let (encryption, quick, head) = (None, None, HEAD_TIMEOUT);
        let reads: fn(&str) -> bool = |_| false;
        Ok(Self { settings, listener, encryption, limits, head, quick, reads })
    }

    /// Needs no token for a `POST` to a path that `reads` only: a question that is too long for a
    /// request's head.
    #[must_use]
    pub fn asked_by_post(self, reads: fn(&str) -> bool) -> Self {
        Self { reads, ..self }
    }

    /// Has little questions answered by this, before the router sees them.
    #[must_use]
    pub fn quickly(self, quick: Arc<dyn Quick>) -> Self {
        Self { quick: Some(quick), ..self }
    }

    /// Has other limits than those of its face.
    #[must_use]
    pub fn limited(self, limits: HttpLimits) -> Self {
        Self { limits, ..self }
    }

    /// Encrypts all connections; a handshake may take `limit`.
    #[must_use]
    pub fn encrypted(self, tls: wire::Tls, limit: Duration) -> Self {
        Self { encryption: Some(Encryption { tls, limit }), ..self }
    }

    /// Serves what `router` makes of the address.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(self, router: impl FnOnce(SocketAddr) -> Router) -> anyhow::Result<HttpServer> {
        let Self { settings, listener, encryption, limits, head, quick, reads } = self;
        let address = listener.local_addr()?;
        let waits = Waits { head, idle: limits.idle };
        let quick = quick.filter(|_| settings.face == Face::Api);
        let guard = Arc::new(Guard::new(settings, address.port(), reads));
        let router = TowerToHyperService::new(router(address));
        let answers = Answers { guard, router, quick, waits };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .context("cannot start the HTTP control plane")?;
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            let _whole = OrExit;
            let most = limits.connections as usize;
            runtime.block_on(serve(listener, encryption, answers, most, ended));
            // What still runs on another thread is not waited for.
            runtime.shutdown_background();
        });
        let thread = Some(thread.context("cannot start the HTTP control plane")?);
        Ok(HttpServer { address, end: Some(end), thread })
    }
}

/// Ends the process when its thread panics, which has been printed: what would go on keeps the data
/// directory locked, and answers nothing.
struct OrExit;

impl Drop for OrExit {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::exit(1);
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end_within(Duration::ZERO);
    }
}

/// `/metrics`, made anew for each request.
pub(crate) fn metrics_router(text: impl Fn() -> String + Send + Sync + 'static) -> Router {
    let text = Arc::new(text);
    let page = get(async move || ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text()));
    let none = async || (StatusCode::NOT_FOUND, "there is only /metrics\n");
    Router::new().route("/metrics", page).fallback(none)
}

async fn serve(
    listener: TcpListener,
    encryption: Option<Encryption>,
    answers: Answers,
    max_connections: usize,
    mut ended: oneshot::Receiver<Duration>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let graceful = GracefulShutdown::new();
    let (ending, ends) = watch::channel(());
    let mut tasks = JoinSet::new();
    // The oldest is first.
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    let mut near = tokio::time::interval(NEAR);
    let drain = loop {
        tokio::select! {
            drain = &mut ended => break drain.unwrap_or_default(),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if open.len() >= max_connections && let Some(oldest) = open.pop_front() {
                        oldest.abort();
                    }
                    // Else the end of an answer that takes several writes waits for the client's
                    // acknowledgement.
                    let _ = stream.set_nodelay(true);
                    let (answers, encryption) = (answers.clone(), encryption.clone());
                    let watching = (graceful.watcher(), ends.clone());
                    open.push_back(tasks.spawn(async move {
                        match encryption {
                            None => converse(stream, answers, watching).await,
                            Some(encryption) => {
                                if let Some(stream) = encryption.begin(stream).await {
                                    converse(stream, answers, watching).await;
                                }
                            }
                        }
                    }));
                }
                // Most often there is no descriptor left, which takes time to change.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            _ = near.tick() => {}
            Some(_) = tasks.join_next() => open.retain(|task| !task.is_finished()),
        }
    };
    drop((listener, ending));
    // What isn't answered by then is cut off.
    let _ = tokio::time::timeout(drain, graceful.shutdown()).await;
}

/// What answers the requests of all connections.
#[derive(Clone)]
struct Answers {
    guard: Arc<Guard>,
    router: Routed,
    quick: Option<Arc<dyn Quick>>,
    waits: Waits,
}

/// One connection.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Answers { guard, router, quick, waits }: Answers,
    (watcher, ended): (Watcher, watch::Receiver<()>),
) {
    let requests = Arc::new(Requests::default());
    let mut stream = Patient::new(stream, waits, Arc::clone(&requests));
    if let Some(quick) = quick {
        let (guard, requests) = (Arc::clone(&guard), Arc::clone(&requests));
        let talk = Talk { quick, guard, requests, ended };
        match talk.go(&mut stream).await {
            Some(rest) => stream.put_back(rest),
            None => return,
        }
    }
    let mut builder = http1::Builder::new();
    // The stream has limits of its own, which tell a head without an end from a client that waits.
    builder.header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES);
    let service = service_fn(move |request| {
        let begun = Instant::now();
        // What is not for this server, or wants more than to read, doesn't come to the router.
        let answer = match guard.refusal(&request) {
            Some(refusal) => Err(refusal),
            None => Ok(router.call(request)),
        };
        let (guard, open) = (Arc::clone(&guard), requests.begin());
        async move {
            let mut answer = match answer {
                Ok(routed) => routed.await?,
                Err(refusal) => refusal,
            };
            guard.add_headers(&mut answer, begun.elapsed());
            Ok::<_, Infallible>(open.until_sent(answer))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // A client that breaks the protocol or goes away is no concern of others.
    let _ = watcher.watch(connection).await;
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::Tokens;

    fn settings(tokens: Option<Tokens>) -> HttpSettings {
        let address = ([127, 0, 0, 1], 0).into();
        HttpSettings { address, takes_names: false, tokens, face: Face::Pages }
    }

    fn counting() -> impl Fn() -> String + Send + Sync {
        let count = std::sync::atomic::AtomicU64::new(0);
        move || format!("made {}\n", count.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }

    fn ask(server: &HttpServer, request: &str) -> String {
        let mut socket = TcpStream::connect(server.address()).expect("a connection");
        let host = server.address().to_string();
        socket.write_all(request.replace("HERE", &host).as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }

    const GET: &str = "GET /metrics HTTP/1.1\r\nHost: HERE\r\nConnection: close\r\n\r\n";

    #[test]
    fn metrics_are_made_for_each_request_and_nothing_else_is_there() {
        let server = HttpServer::start(settings(None), |_| metrics_router(counting()));
        let server = server.expect("a server");
        let first = ask(&server, GET);
        assert!(first.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4"));
        assert!(first.ends_with("\r\n\r\nmade 0\n"), "{first}");
        assert!(ask(&server, GET).ends_with("\r\n\r\nmade 1\n"));
        let head = ask(&server, &GET.replace("GET", "HEAD"));
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(&server, &GET.replace("/metrics", "/")).starts_with("HTTP/1.1 404 "));
        assert!(ask(&server, &GET.replace("GET", "POST")).starts_with("HTTP/1.1 405 "));
        let other = ask(&server, &GET.replace("HERE", "evil.example"));
        assert!(other.starts_with("HTTP/1.1 421 "), "{other}");
        let long = format!("GET /{} HTTP/1.1\r\nHost: HERE\r\n\r\n", "x".repeat(20_000));
        let long = ask(&server, &long);
        assert!(long.starts_with("HTTP/1.1 431 ") || long.starts_with("HTTP/1.1 414 "), "{long}");
        server.stop(Duration::from_secs(1));
    }

    #[test]
    fn connections_that_never_finish_their_heads_keep_nobody_out() {
        let server = HttpServer::start(settings(None), |_| metrics_router(counting()));
        let server = server.expect("a server");
        let slow: Vec<_> = (0..2 * Face::Pages.limits().connections)
            .map(|_| {
                let mut socket = TcpStream::connect(server.address()).expect("a connection");
                // The first ones may have been closed again.
                let _ = socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: ");
                socket
            })
            .collect();
        assert!(ask(&server, GET).starts_with("HTTP/1.1 200 "));
        drop(slow);
    }

    /// Sends, and reads an answer of the test's router without closing; or nothing, where the
    /// connection is closed.
    fn exchange(socket: &mut TcpStream, sent: &str) -> String {
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        let mut answer = Vec::new();
        let mut byte = [0];
        // One that is closed already is seen when it is read.
        let _ = socket.write_all(sent.as_bytes());
        while !answer.ends_with(b"made\n") {
            match socket.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => answer.push(byte[0]),
                Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(why) => panic!("{why} after {:?}", String::from_utf8_lossy(&answer)),
            }
        }
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn a_client_may_be_idle_for_longer_than_a_head_may_take() {
        // Longer than what a busy host may take between a connection and its first request.
        let short = Duration::from_secs(1);
        let start = |head, idle| {
            let bound = BoundHttp::bind(settings(None)).expect("an address");
            let limits = HttpLimits { idle, ..Face::Pages.limits() };
            let bound = BoundHttp { head, ..bound.limited(limits) };
            bound.start(|_| metrics_router(|| "made\n".to_owned())).expect("a server")
        };
        let server = start(short, Duration::from_secs(60));
        let get = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
        let connect =
            |server: &HttpServer| TcpStream::connect(server.address()).expect("connected");
        let mut idle = connect(&server);
        assert!(exchange(&mut idle, &get).ends_with("made\n"));
        // Neither a connection without any request nor half of one is waited for any longer.
        assert_eq!(exchange(&mut connect(&server), ""), "");
        let mut half = connect(&server);
        assert!(exchange(&mut half, &get).ends_with("made\n"));
        assert_eq!(exchange(&mut half, &get[..20]), "");
        assert!(exchange(&mut idle, &get).ends_with("made\n"), "after both of these");
        let server = start(Duration::from_secs(60), short);
        let get = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
        let mut idle = connect(&server);
        assert!(exchange(&mut idle, &get).ends_with("made\n"));
        assert_eq!(exchange(&mut idle, ""), "", "idle for too long");
    }

    #[test]
    fn where_there_are_tokens_each_request_needs_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, "0123456789abcdef\n").expect("written");
        let tokens = Tokens::read(path).expect("tokens");
        let server = HttpServer::start(settings(Some(tokens)), |_| metrics_router(counting()));
        let server = server.expect("a server");
        let none = ask(&server, GET);
        assert!(none.starts_with("HTTP/1.1 401 "), "{none}");
        assert!(none.to_lowercase().contains("www-authenticate: bearer"), "{none}");
        let with = |token| {
            let line = format!("\r\nAuthorization: Bearer {token}\r\nConnection");
            ask(&server, &GET.replace("\r\nConnection", &line))
        };
        assert!(with("0123456789abcdef").starts_with("HTTP/1.1 200 "));
        assert!(with("0123456789abcdee").starts_with("HTTP/1.1 401 "));
    }

    #[test]
    fn an_interface_takes_changes_with_a_token_and_from_its_own_origin_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, "0123456789abcdef\n").expect("written");
        let tokens = Tokens::read(path).expect("tokens");
        let settings = HttpSettings { face: Face::Api, ..settings(Some(tokens)) };
        let kept = [(header::CACHE_CONTROL, "immutable")];
        let both = get(async move || (kept, "read")).post(async || "changed");
        let server = HttpServer::start(settings, |_| Router::new().route("/metrics", both));
        let server = server.expect("a server");
        let read = ask(&server, GET);
        assert!(read.ends_with("\r\n\r\nread"), "{read}");
        assert!(read.contains("cache-control: immutable\r\n") && !read.contains("no-store"));
        let post = |more: &str| {
            let line = format!("\r\n{more}Content-Length: 0\r\nConnection");
            ask(&server, &GET.replace("GET", "POST").replace("\r\nConnection", &line))
        };
        let token = "Authorization: Bearer 0123456789abcdef\r\n";
        let refused = post("");
        assert!(
            refused.starts_with("HTTP/1.1 401 ") && refused.contains("www-authenticate: Bearer")
        );
        assert!(refused.contains("\r\n\r\n{\"error\":\"a token is needed\",\"fix\":"), "{refused}");
        let changed = post(token);
        assert!(changed.ends_with("\r\n\r\nchanged"), "{changed}");
        assert!(changed.contains("cache-control: no-store\r\n"), "{changed}");
        assert!(post(&format!("{token}Origin: http://HERE\r\n")).ends_with("changed"));
        for origin in ["http://evil.example", "null", "http://evil.example/HERE"] {
            let refused = post(&format!("{token}Origin: {origin}\r\n"));
            assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
        }
    }
}
