//! The server: threads that read requests, have short ones carried out and write answers, one that
//! carries out what is longer (`dispatch`), and those that write, render and start jobs. Control
//! plane.

mod access;
mod admitted;
mod awaited;
mod checkpoint;
mod clock;
mod connection;
mod core;
mod disk;
mod dispatch;
mod effects;
mod environment;
mod fates;
mod filing;
mod flush;
mod followers;
mod following;
mod job;
mod keyed_queue;
mod known;
mod lists;
mod log;
mod making;
mod message;
mod metrics;
mod mover;
mod opened;
mod own_commands;
mod owner;
mod passwords;
mod pending;
mod places;
mod pushing;
mod record;
mod shared;
mod signals;
mod slot;
mod snapshots;
mod spawn;
mod store;
mod texts;
mod timing;
mod turns;
mod web;

/// The locks of [`turns`], whose test puts loom's in their place.
mod locks {
    pub(super) use std::sync::atomic::AtomicBool;
    pub(super) use std::sync::{Mutex, MutexGuard};
}

use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::channel;
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use journal::{Journal, SyncPolicy};
use service::metrics::Metrics;
use service::{BoundHttp, HttpServer, Tokens};
use wire::{Address, Config, Counters, ListenOptions, Listener, Server, TaskPool, Tls, Waker};

use self::core::Core;
use access::Access;
use clock::Clock;
use connection::Session;
use dispatch::{Dispatch, serve};
use flush::Until;
use known::Known;
use log::{Category, Log, unix_us};
use message::Message;
use owner::Owner;
use pending::Pending;
use shared::Shared;
use signals::Signals;
use spawn::Spawner;
use store::{Logged, Opened};

use crate::protocol::header;

pub(crate) use disk::Disk;
pub use environment::{CheckMode, ECFLOW_VERSION, Environment, PORTS, VERSION_LINE, host_name};
pub use flush::LogFlush;
pub(crate) use job::job_files;
pub use lists::Lists;
pub use passwords::Passwords;

/// The version of the files in `.loadline`.
pub const DATA_VERSION: u32 = 2;

/// What of ECF_HOME is this program's own.
pub const OWN_FOLDER: &str = ".loadline";

/// Limits and settings of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest request, in bytes.
    pub max_message: u64,
    /// Requests that are being read or carried out, together, in bytes.
    pub receive_memory: u64,
    /// Large answers that are being sent, together, in bytes.
    pub send_memory: u64,
    /// Commands of jobs that run at once; others wait.
    pub max_jobs: usize,
    /// Connections open at once.
    pub max_connections: usize,
    /// Threads that read and write.
    pub threads: usize,
    /// A connection whose client takes nothing of its answer for this long is closed. One that
    /// follows is sent a sign of life three times as often.
    pub send_timeout: Duration,
    /// When a change is on the disk.
    pub sync: SyncPolicy,
    /// When the log's lines are written.
    pub log_flush: LogFlush,
}

/// Tasks that wait for a thread: parsing and rendering.
const MAX_QUEUED: usize = 4096;

/// Commands that print scripts (ECF_SCRIPT_CMD, ECF_FETCH), at once, for jobs and for answers each:
/// they are waited for, by a thread each.
const MAX_PRINTING: usize = 16;

/// A server whose addresses are bound.
#[derive(Debug)]
pub struct BoundWorkflow {
    listeners: Vec<Listener>,
    handshake_timeout: Duration,
}

/// A running server.
pub struct WorkflowServer {
    server: Option<Server>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    environment: Arc<Environment>,
}

impl std::fmt::Debug for WorkflowServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkflowServer").field("server", &self.server).finish_non_exhaustive()
    }
}

impl BoundWorkflow {
    /// Binds.
    ///
    /// # Errors
    /// When an address can't be had.
    pub fn bind(addresses: &[Address]) -> std::io::Result<Self> {
        // An answer is sent at once, or followed by the connection's end.
        let options = ListenOptions { no_delay: false, ..ListenOptions::default() };
        let bind = |address: &Address| Listener::bind(address, &options);
        let handshake_timeout = Config::default().handshake_timeout;
        Ok(Self {
            listeners: addresses.iter().map(bind).collect::<Result<_, _>>()?,
            handshake_timeout,
        })
    }

    /// Encrypts all connections; a handshake may take `limit`.
    #[must_use]
    pub fn encrypted(self, tls: &Tls, limit: Duration) -> Self {
        let listeners = self.listeners.into_iter().map(|one| one.with_tls(tls.clone())).collect();
        Self { listeners, handshake_timeout: limit }
    }

    /// The listeners, whose files may become another user's.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// The port of the first address.
    pub fn port(&self) -> u16 {
        match self.listeners.first().map(Listener::address) {
            Some(Address::Internet(address)) => address.port(),
            _ => 0,
        }
    }

    /// Reads what is in `data`, an absolute path which the caller has locked, and serves it.
    /// `terminate` ends the program, for `--terminate`. As ecFlow's server, this process works in
    /// ECF_HOME from then on: jobs and their commands run there, and relative paths begin there.
    ///
    /// # Errors
    /// When the journal can't be read, the log can't be written, or the system has no threads.
    pub fn start(
        self,
        environment: Environment,
        data: &Path,
        limits: Limits,
        terminate: impl Fn() + Send + 'static,
    ) -> anyhow::Result<WorkflowServer> {
        base::memory::keep_little();
        std::env::set_current_dir(&environment.home)
            .with_context(|| format!("ECF_HOME {}", environment.home.display()))?;
        let environment = Arc::new(environment);
        let (messages, received) = channel();
        let access = Access::read(&environment).map_err(anyhow::Error::msg)?;
        let log = Log::open(environment.log.clone(), limits.log_flush)
            .with_context(|| format!("the log {}", environment.log.display()))?;
        let shared = Arc::new(Shared {
            owner: messages.clone(),
            access: RwLock::new(access),
            log,
            pings: AtomicU32::new(0),
            pool: TaskPool::new("large", limits.threads.max(2), MAX_QUEUED)?,
            max_message: limits.max_message,
            memory: slot::Memory::new(limits.receive_memory),
            answers: slot::Memory::new(limits.send_memory),
            followers: slot::Memory::new((limits.max_connections as u64 / 4).max(1)),
            silence: limits.send_timeout.div_f64(3.0).min(header::SILENCE),
            spawner: Arc::new(Spawner::start(limits.max_jobs)?),
            opened: opened::Opened::new(limits.max_connections),
            fates: fates::Fates::default(),
        });
        let dispatch = Arc::new(Dispatch::new(messages));
        let mut core = Core::new(Arc::clone(&environment));
        let known = Known::of(data, &environment.home);
        let (journal, logged) =
            open_journal(&dispatch, &environment, &mut core, (data, limits.sync), &known)?;
        greet(&shared.log, &environment, &core);
        core.resume();
        // The owner is what notes all else.
        shared.fates.set_earlier(core.of_earlier());
        dispatch.begin(Owner {
            core,
            clock: Clock::new(&environment),
            checkpoints: checkpoint::Checkpoint::new(known),
            groups: 0,
            environment: Arc::clone(&environment),
            shared: Arc::clone(&shared),
            journal,
            pending: Pending::default(),
            followers: followers::Followers::default(),
            texts: texts::Texts::default(),
            awaited: awaited::Awaited::new(Arc::clone(&shared)),
            jobs: TaskPool::new("job", limits.threads.max(2), usize::MAX)?,
            printed_jobs: TaskPool::new("printed", MAX_PRINTING, usize::MAX)?,
            scripts: TaskPool::new("script", MAX_PRINTING, MAX_QUEUED)?,
            files: TaskPool::new("archive", 1, usize::MAX)?,
            writers: TaskPool::new("writer", 2, usize::MAX)?,
            mover: mover::Mover::default(),
            kills: Signals::default(),
            statuses: Signals::default(),
            making: making::Making::default(),
            submitted: 0,
            logged,
            is_snapshotting: false,
            terminate: Box::new(terminate),
        });
        let thread = std::thread::Builder::new().name("owner".to_owned());
        let own = Arc::clone(&dispatch);
        let thread = thread.spawn(move || serve(&own, &received))?;
        let server = Some(self.listen(&limits, &shared, &dispatch)?);
        Ok(WorkflowServer { server, thread: Some(thread), shared, environment })
    }

    /// Begins to serve connections.
    fn listen(
        self,
        limits: &Limits,
        shared: &Arc<Shared>,
        dispatch: &Arc<Dispatch>,
    ) -> anyhow::Result<Server> {
        let (of_passes, log) = (Arc::clone(dispatch), Arc::clone(shared));
        let after_pass = move || {
            of_passes.finish();
            log.log.came(Until::Group);
        };
        let config = Config {
            threads: limits.threads,
            max_connections: limits.max_connections,
            handshake_timeout: self.handshake_timeout,
            idle_timeout: Some(limits.send_timeout),
            thread_name: "workflow",
            after_pass: Some(Waker::new(after_pass)),
            ..Config::default()
        };
        let (of_sessions, to_owner) = (Arc::clone(shared), Arc::clone(dispatch));
        let session = move |_| Session::new(Arc::clone(&of_sessions), Arc::clone(&to_owner));
        Ok(Server::start(config, self.listeners, session)?)
    }
}

/// Opens the journal, or begins it with ecFlow's checkpoint; returns it with the bytes of the
/// records behind its snapshot.
fn open_journal(
    dispatch: &Arc<Dispatch>,
    environment: &Environment,
    core: &mut Core,
    (data, sync): (&Path, SyncPolicy),
    known: &Known,
) -> anyhow::Result<(Journal, Logged)> {
    let folder = data.join("journal");
    std::fs::create_dir_all(&folder)?;
    let notified = Arc::clone(dispatch);
    let opened = store::open(&folder, sync, core, move |done| notified.progress(done))
        .context("the journal can't be read")?;
    let Opened { mut journal, mut logged, is_empty } = opened;
    if is_empty {
        known.clear().context("what an earlier journal knew can't be removed")?;
    }
    if is_empty && !environment.check.exists() {
        let (home, check) = (environment.home.display(), environment.check.display());
        tracing::info!("ECF_HOME {home} has no journal and no {check}: the tree is empty");
    } else if is_empty {
        core.adopt(&environment.check)?;
        checkpoint::note_taken(&environment.check, known)?;
        // From here on the journal counts, which has to have it, too.
        let (head, tree) = core.stored();
        let bytes = store::write(journal.snapshot()?, &head, &store::kept(&tree))
            .map_err(anyhow::Error::msg)
            .context("the checkpoint that was taken can't be kept")?;
        logged.replaced(bytes);
    } else {
        checkpoint::refuse_other(&environment.check, known, &folder)?;
    }
    warn_of_others(environment, &folder, is_empty);
    Ok((journal, logged))
}

/// Names the checkpoints in ECF_HOME that other servers have written, and of a server that has
/// nothing also its own by another name: ECF_HOME or the port may be another one than is meant.
fn warn_of_others(environment: &Environment, journal: &Path, is_empty: bool) {
    let others = checkpoint::others(&environment.home, &environment.check);
    for other in others.into_iter().filter(|other| is_empty || !checkpoint::is_own(other)) {
        tracing::warn!(
            "{} is a checkpoint of another host or port, or of ecflow_start, and is not taken: to \
             serve it, stop, remove {} and what is in it, and start by that host and port, or with \
             its name in ECF_CHECK",
            other.display(),
            journal.display()
        );
    }
}

fn greet(log: &Log, environment: &Environment, core: &Core) {
    let at_us = unix_us();
    let Environment { host, port, home, interval_s, .. } = environment;
    for line in [
        String::new(),
        format!("Started at {} universal time", core.started()),
        format!("Host({host})  Port({port}) using TCP/IP v4"),
        format!("ECF_HOME {}", home.display()),
        format!("Job scheduling interval: {interval_s}"),
        format!("Server initial state is {}", core.state_word()),
    ] {
        log.add(Category::Message, at_us, &line);
    }
    if environment.is_public {
        // Who has started it by ecflow_start reads nothing else.
        let words = "other machines reach this port: without a white list and passwords whoever \
                     does may command the server; --listen 127.0.0.1 lets only this one in";
        log.add(Category::Warning, at_us, words);
    }
    log.write();
}

impl WorkflowServer {
    /// Where it is.
    pub fn addresses(&self) -> Vec<Address> {
        self.server.as_ref().map_or_else(Vec::new, |server| server.addresses().to_vec())
    }

    /// A reader of the loop's counters.
    pub fn counters(&self) -> impl Fn() -> Counters + Send + Sync + use<> {
        let reader = self.server.as_ref().map(Server::counters_reader);
        move || reader.as_ref().map(|read| read()).unwrap_or_default()
    }

    /// Counters for Prometheus.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + use<> {
        let (counters, owner) = (self.counters(), self.shared.owner.clone());
        move || {
            let mut page = Metrics::of("workflow");
            page.add_loop(&counters());
            metrics::add(&mut page, &owner);
            page.text()
        }
    }

    /// Serves the tree over HTTP at an address that is bound, too. Changes need one of the tokens;
    /// where other machines reach the address, so does all else.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn serve_http(
        &self,
        bound: BoundHttp,
        tokens: Option<Tokens>,
        is_public: bool,
    ) -> anyhow::Result<HttpServer> {
        let environment = Arc::clone(&self.environment);
        web::start(bound, Arc::clone(&self.shared), environment, tokens, is_public)
    }

    /// Stops accepting, lets what is in flight finish, and makes all durable.
    pub fn stop(mut self, drain: Duration) -> Option<Counters> {
        let counters = self.server.take().map(|server| server.stop(drain));
        self.end();
        counters
    }

    fn end(&mut self) {
        // The owner has ended only when it has panicked, which is printed.
        let _ = self.shared.owner.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for WorkflowServer {
    fn drop(&mut self) {
        drop(self.server.take());
        self.end();
    }
}
