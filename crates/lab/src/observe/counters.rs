//! A service's own counters: a thread per target reads them once a second, and around slices on
//! request. Its CPU time is the lab's; that of answering is the service's.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use load::{Counter, CounterKind, Counters, MAX_COUNTERS_BYTES};
use wire::clock::{SECOND_NS, now};
use wire::{Address, ProtocolError};

use super::watch::Sink;

/// The deadline of an answer, after which it is unseen: a stopped service must not block the lab.
const ANSWER_WITHIN: Duration = Duration::from_millis(250);

/// The deadline of a reading, which covers the one in progress, too.
const READ_WITHIN: Duration = Duration::from_millis(600);

/// Reads one service's counters until it is dropped.
#[derive(Debug)]
pub struct CounterMeter {
    commands: Sender<Sender<Reading>>,
    /// Set while the service is stopped and can't answer.
    paused: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

/// Every counter as it stood at one moment, by name; `None` is unseen.
pub type Reading = Option<BTreeMap<String, (CounterKind, f64)>>;

impl CounterMeter {
    /// Starts reading the service at `address` every second, into the series of `name`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        name: &str,
        address: Address,
        how: Arc<dyn Counters>,
        sink: Sink,
    ) -> std::io::Result<Self> {
        let (commands, received) = channel();
        let (name, mut client) = (name.to_owned(), Client { address, how, connection: None });
        let handle = std::thread::Builder::new().name("counters".into());
        let paused = Arc::new(AtomicBool::new(false));
        let its = paused.clone();
        let handle = handle.spawn(move || read_on(&name, &mut client, &sink, &its, &received))?;
        Ok(Self { commands, paused, handle: Some(handle) })
    }

    /// Suspends the periodic readings, while the service is stopped, or resumes them.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Reads them now.
    pub fn read(&self) -> Reading {
        let (to, answer) = channel();
        self.commands.send(to).ok()?;
        answer.recv_timeout(READ_WITHIN).ok().flatten()
    }
}

impl Drop for CounterMeter {
    fn drop(&mut self) {
        // Disconnecting ends the thread.
        let (disconnected, _) = channel();
        self.commands = disconnected;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn read_on(
    name: &str,
    client: &mut Client,
    sink: &Sink,
    paused: &AtomicBool,
    commands: &Receiver<Sender<Reading>>,
) {
    let mut due = now();
    let mut has_warned = false;
    // A counter that never changes, such as a setting, gets no series.
    let mut first: BTreeMap<String, f64> = BTreeMap::new();
    loop {
        match commands.recv_timeout(Duration::from_nanos(due.saturating_sub(now()))) {
            Ok(to) => {
                let counters = client.read().ok();
                let by_name = |one: Counter| (one.name, (one.kind, one.value));
                // The reader may have timed out.
                let _ = to.send(counters.map(|all| all.into_iter().map(by_name).collect()));
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                due = (due + SECOND_NS).max(now());
                if paused.load(Ordering::Relaxed) {
                    continue;
                }
                match client.read() {
                    Ok(counters) => {
                        for one in counters {
                            let before = *first.entry(one.name.clone()).or_insert(one.value);
                            sink.service(name, &one, before != one.value);
                        }
                        sink.hand_over();
                    }
                    Err(fault) if !has_warned && !paused.load(Ordering::Relaxed) => {
                        tracing::warn!("{name}: its counters are unseen: {fault}");
                        has_warned = true;
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

/// The change between two readings: the growth of totals, and the last value of levels. A total
/// that fell was reset and is unseen.
pub(crate) fn between(before: &Reading, after: &Reading) -> Reading {
    let (before, after) = (before.as_ref()?, after.as_ref()?);
    let grown = |(name, (kind, value)): (&String, &(CounterKind, f64))| {
        let value = match kind {
            CounterKind::Level => *value,
            CounterKind::Total => {
                // A service may name a counter only once there is something to count.
                let earlier = before.get(name).map_or(0.0, |(_, value)| *value);
                Some(value - earlier).filter(|growth| *growth >= 0.0)?
            }
        };
        Some((name.clone(), (*kind, value)))
    };
    Some(after.iter().filter_map(grown).collect())
}

/// Adds one more slice; a name that is unseen in either is unseen in the sum.
pub(crate) fn plus(sum: Option<&Reading>, slice: Reading) -> Reading {
    let Some(sum) = sum else { return slice };
    let (sum, slice) = (sum.as_ref()?, slice?);
    let add = |(name, (kind, value)): (String, (CounterKind, f64))| {
        let (_, before) = sum.get(&name)?;
        let value = if kind == CounterKind::Total { before + value } else { value };
        Some((name, (kind, value)))
    };
    Some(slice.into_iter().filter_map(add).collect())
}

trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

/// The connection to the service; it is kept, and made anew when it fails.
struct Client {
    address: Address,
    how: Arc<dyn Counters>,
    connection: Option<Box<dyn Connection>>,
}

impl Client {
    fn read(&mut self) -> Result<Vec<Counter>, ProtocolError> {
        let kept = self.connection.is_some();
        // A service may close a connection that was idle for a second; once is no failure.
        let outcome = self.ask();
        let outcome = if kept && outcome.is_err() { self.ask() } else { outcome };
        outcome.inspect_err(|_| self.connection = None)
    }

    fn ask(&mut self) -> Result<Vec<Counter>, ProtocolError> {
        let failed = |error: std::io::Error| ProtocolError::new(error.to_string());
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.address).map_err(failed)?,
        };
        let deadline = Instant::now() + ANSWER_WITHIN;
        let (mut bytes, mut piece) = (Vec::new(), [0; 16 * 1024]);
        self.how.ask(&mut bytes);
        connection.write_all(&bytes).map_err(failed)?;
        bytes.clear();
        loop {
            let count = connection.read(&mut piece).map_err(failed)?;
            bytes.extend_from_slice(&piece[..count]);
            if let Some(counters) = self.how.read(&bytes, count == 0)? {
                self.connection = (count > 0).then_some(connection);
                return Ok(counters);
            }
            if count == 0 {
                return Err(ProtocolError::new("the service closed the connection"));
            }
            if bytes.len() > MAX_COUNTERS_BYTES || Instant::now() > deadline {
                return Err(ProtocolError::new("the answer is too long or comes too slowly"));
            }
        }
    }
}

fn connect(address: &Address) -> std::io::Result<Box<dyn Connection>> {
    Ok(match address {
        Address::Internet(address) => {
            let stream = TcpStream::connect_timeout(address, ANSWER_WITHIN)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_WITHIN))?;
            stream.set_write_timeout(Some(ANSWER_WITHIN))?;
            Box::new(stream)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_WITHIN))?;
            stream.set_write_timeout(Some(ANSWER_WITHIN))?;
            Box::new(stream)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(counters: &[(&str, CounterKind, f64)]) -> Reading {
        let named = |(name, kind, value): &(&str, _, _)| ((*name).to_owned(), (*kind, *value));
        Some(counters.iter().map(named).collect())
    }

    #[test]
    fn totals_add_up_over_slices_and_levels_stand_where_they_stood_last() {
        use CounterKind::{Level, Total};
        let before = reading(&[("gets", Total, 5.0), ("items", Level, 9.0), ("lost", Total, 4.0)]);
        let after = reading(&[
            ("gets", Total, 8.0),
            ("items", Level, 7.0),
            ("lost", Total, 1.0),
            ("new", Total, 2.0),
        ]);
        let slice = between(&before, &after);
        let expected = reading(&[("gets", Total, 3.0), ("items", Level, 7.0), ("new", Total, 2.0)]);
        assert_eq!(slice, expected, "what fell is unseen, what is new began at nothing");
        let sum = plus(Some(&slice), reading(&[("gets", Total, 2.0), ("items", Level, 1.0)]));
        assert_eq!(sum, reading(&[("gets", Total, 5.0), ("items", Level, 1.0)]));
        assert_eq!(plus(Some(&sum), None), None, "a slice that is unseen leaves no sum");
        assert_eq!(plus(None, sum.clone()), sum);
        assert_eq!(between(&None, &after), None);
    }
}
