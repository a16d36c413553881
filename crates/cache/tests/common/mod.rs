//! A service and its connections in memory, without a socket.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use cache::model::Clock;
use cache::server::{CacheConnection, Options, Service};
use wire::{Connection, Flow, Input, Output, ProtocolError, Wake};

pub const SECOND_NS: u64 = 1_000_000_000;

/// One connection that is spoken to in bytes.
pub struct Session {
    connection: CacheConnection,
    input: Input,
    pub out: Output,
    pub now_ns: u64,
    pub ended: Option<Result<(), ProtocolError>>,
}

pub fn service(options: Options) -> Arc<Service> {
    let clock = Clock { start_ns: 0, start_unix_s: 1_700_000_000 };
    Arc::new(Service::new(options, clock).expect("a service"))
}

impl Session {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        Self::of(&service(options))
    }

    pub fn of(service: &Arc<Service>) -> Self {
        let connection = CacheConnection::new(Arc::clone(service), 0);
        let out = Output::new(1 << 30);
        Self { connection, input: Input::new(), out, now_ns: 0, ended: None }
    }

    /// Hands bytes in as the loop does: through the place that the connection names, if any.
    pub fn hear(&mut self, mut bytes: &[u8]) {
        loop {
            if self.ended.is_some() {
                return;
            }
            match self.connection.place() {
                Some(place) if !place.is_empty() && self.input.is_empty() => {
                    let count = place.len().min(bytes.len());
                    place[..count].copy_from_slice(&bytes[..count]);
                    bytes = &bytes[count..];
                    self.connection.placed(count);
                }
                _ => {
                    self.input.append(bytes);
                    bytes = &[];
                }
            }
            match self.connection.receive(self.now_ns, &mut self.input, &mut self.out) {
                Ok(Flow::Continue) => {}
                Ok(Flow::Close) => self.ended = Some(Ok(())),
                Err(fault) => self.ended = Some(Err(fault)),
            }
            if bytes.is_empty() {
                return;
            }
        }
    }

    /// Says something and gives what is answered.
    pub fn say(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.hear(bytes.as_ref());
        String::from_utf8_lossy(&self.out.take()).into_owned()
    }

    /// Lets the time come that the connection waits for, if it waits for one.
    pub fn pass_time(&mut self) -> bool {
        let Some(deadline) = self.connection.deadline() else { return false };
        self.now_ns = self.now_ns.max(deadline);
        if let Err(fault) = self.connection.resume(self.now_ns, Wake::Timer, &mut self.out) {
            self.ended = Some(Err(fault));
        }
        true
    }

    /// The bytes that the connection has not understood yet.
    pub fn waiting(&self) -> usize {
        self.input.len()
    }
}
