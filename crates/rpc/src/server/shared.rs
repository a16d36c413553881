//! What all connections of a server have in common.

#[cfg(feature = "grpc")]
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use service::metrics::{Kind, Metrics};
use tokio::sync::watch;

use super::memory::Memory;
use super::native::Methods;
use super::settings::Settings;
use crate::model;
#[cfg(feature = "grpc")]
use crate::model::function::Function;
use crate::protocol::status::Code;

/// How long calls and connections may take to end once they are made to.
pub(super) const FORCED: Duration = Duration::from_millis(300);

/// The service that needs no token: who asks whether a server is well has none.
pub(super) const HEALTH: &str = "/grpc.health.v1.Health/";

/// How long those that watch its health have to hear that a server stops, before HTTP/2's GOAWAY.
pub(super) const LEAVING: Duration = Duration::from_millis(100);

/// How far the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Stage {
    /// It serves.
    Serving,
    /// Health says that it stops; own frames, which have no GOAWAY, end from here on.
    Leaving,
    /// Calls in flight go on, and clients are sent elsewhere.
    Draining,
    /// What is left is ended.
    Forced,
}

/// What all connections have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    /// All functions, by their paths.
    #[cfg(feature = "grpc")]
    pub(super) functions: HashMap<String, Arc<Function>>,
    /// The same, by the numbers that own frames have for them.
    pub(super) methods: Methods,
    pub(super) memory: Arc<Memory>,
    pub(super) counters: Counters,
    pub(super) connections: AtomicUsize,
    /// Those of them over shared memory.
    pub(super) sharing: AtomicUsize,
    pub(super) pid: u32,
    stage: watch::Sender<Stage>,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        let functions = model::all();
        Self {
            methods: Methods::of(&functions),
            #[cfg(feature = "grpc")]
            functions,
            memory: Arc::new(Memory::of(settings.max_memory_bytes)),
            counters: Counters::default(),
            connections: AtomicUsize::new(0),
            sharing: AtomicUsize::new(0),
            pid: std::process::id(),
            stage: watch::channel(Stage::Serving).0,
            settings,
        }
    }

    /// A receiver of the stages that come.
    pub(super) fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// How far the server is now.
    pub(super) fn stage_now(&self) -> Stage {
        *self.stage.borrow()
    }

    pub(super) fn set_stage(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// Whether the server has begun to stop.
    #[cfg(feature = "grpc")]
    pub(super) fn is_stopping(&self) -> bool {
        self.stage_now() != Stage::Serving
    }
}

/// Waits until the server leaves this stage.
pub(super) fn next_stage(shared: Arc<Shared>, now: Stage) -> NextStage {
    Box::pin(async move {
        let mut stage = shared.stage();
        // The channel is part of what is shared.
        match stage.wait_for(|stage| *stage != now).await {
            Ok(stage) => *stage,
            Err(_) => Stage::Forced,
        }
    })
}

/// A wait for it.
pub(super) type NextStage = Pin<Box<dyn Future<Output = Stage> + Send>>;

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) open: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) calmed: AtomicU64,
}

impl Counters {
    /// Counts a call that has ended.
    pub(super) fn ended(&self, code: Code) {
        if code != Code::Ok {
            self.failed.fetch_add(1, Relaxed);
        }
    }

    /// The page of metrics.
    pub(super) fn page(&self) -> String {
        let mut page = Metrics::of("rpc");
        page.add(Kind::Gauge, "connections", "Connections open now.", self.open.load(Relaxed));
        for (name, help, value) in [
            ("connections_opened", "Connections accepted.", &self.opened),
            (
                "connections_refused",
                "Connections closed because there were too many.",
                &self.refused,
            ),
            (
                "connections_calmed",
                "Connections ended for too many pings or SETTINGS.",
                &self.calmed,
            ),
            ("calls", "Calls begun.", &self.calls),
            ("calls_failed", "Calls that ended with another status than OK.", &self.failed),
            ("messages_received", "Messages received.", &self.received),
            ("messages_sent", "Messages sent.", &self.sent),
        ] {
            page.add(Kind::Counter, name, help, value.load(Relaxed));
        }
        page.text()
    }
}
