//! Calls as futures. A thread of its own reads what comes, and hands each answer to the thread that
//! waits for it, in one of the ways of [`FutureKind`]; so any number of threads may call by one
//! connection. What that costs beside a caller that reads its answer itself is
//! [`FutureClient::handed_ns`].
//!
//! A call is in the table of promises until its answer has come or its future is dropped, and in
//! the session's until the server has ended it: both are empty when nothing is outstanding.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::meter::{Meter, Step, Traffic};
use super::{INPUT_BYTES, NativeClient, settle, unary, unavailable};
use crate::carriers::{Carrier, Peer, Sender};
use crate::protocol::native::{Begin, ClientSession};
use crate::protocol::status::{Code, Status};

/// How often the thread that reads looks whether its client is still there.
const LOOK: Duration = Duration::from_secs(2);

/// How often it tries to send what found no room. It reads meanwhile: a server that waits for room
/// itself reads nothing.
const AGAIN: Duration = Duration::from_millis(1);

/// Looks of a thread that spins between two of its clock.
const LOOKS: u32 = 64;

/// How an answer is handed to the thread that waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FutureKind {
    /// Not at all: the thread that has called reads its answer itself
    #[default]
    Caller,
    /// By a thread that reads, which wakes it by a condition variable
    Condvar,
    /// By a thread that reads, over a channel
    Channel,
    /// By a thread that reads; it waits for that on its CPU
    Spin,
}

/// An answer, and when it was read.
#[derive(Debug)]
struct Done {
    result: Result<Bytes, Status>,
    at: Instant,
}

/// Where an answer is put.
#[derive(Debug, Default)]
struct Place {
    done: Mutex<Option<Done>>,
    is_done: AtomicBool,
    wakes: Condvar,
}

/// Where the reader puts an answer.
#[derive(Debug)]
enum Target {
    Place(Arc<Place>),
    Channel(SyncSender<Done>),
}

/// What a reader has promised to fulfil.
#[derive(Debug)]
struct Promise {
    target: Target,
    /// Who awaits it, and is woken then.
    waker: Option<Waker>,
}

impl Promise {
    /// Hands the answer over; returns who is to be woken for it.
    #[must_use]
    fn fulfil(self, result: Result<Bytes, Status>) -> Option<Waker> {
        let done = Done { result, at: Instant::now() };
        match self.target {
            Target::Place(place) => {
                *lock(&place.done) = Some(done);
                place.is_done.store(true, Release);
                place.wakes.notify_one();
            }
            // It has room for one; a future that is gone needs none.
            Target::Channel(channel) => drop(channel.try_send(done)),
        }
        self.waker
    }
}

/// Where an answer is taken from.
#[derive(Debug)]
enum Source {
    Condvar(Arc<Place>),
    Spin(Arc<Place>),
    Channel(Receiver<Done>),
}

impl Source {
    /// Waits until an answer has come, or a time.
    fn wait(&self, until: Option<Instant>) -> Option<Done> {
        let left = || until.map(|until| until.saturating_duration_since(Instant::now()));
        match self {
            Self::Condvar(place) => {
                let done = lock(&place.done);
                let is_none = |done: &mut Option<Done>| done.is_none();
                let mut done = match left() {
                    None => place.wakes.wait_while(done, is_none),
                    Some(left) => place
                        .wakes
                        .wait_timeout_while(done, left, is_none)
                        .map(|(done, _)| done)
                        .map_err(|error| PoisonError::new(error.into_inner().0)),
                }
                .unwrap_or_else(PoisonError::into_inner);
                done.take()
            }
            Self::Spin(place) => {
                let is_over = || until.is_some_and(|until| until <= Instant::now());
                while !place.is_done.load(Acquire) {
                    if is_over() {
                        return None;
                    }
                    (0..LOOKS).for_each(|_| std::hint::spin_loop());
                }
                lock(&place.done).take()
            }
            Self::Channel(channel) => match left() {
                None => channel.recv().ok(),
                Some(left) => channel.recv_timeout(left).ok(),
            },
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What callers and the reader share.
#[derive(Debug)]
struct State {
    session: ClientSession,
    promises: HashMap<u64, Promise>,
    /// Whose answers have come.
    woken: Vec<Waker>,
    meter: Meter,
    /// `None` once the connection is to end.
    sender: Option<Arc<Sender>>,
}

impl State {
    /// Hands out what has come.
    fn settle(&mut self) {
        while let Some(event) = self.session.next_event() {
            let Some(result) = settle(event.what, &mut None) else { continue };
            if let Some(promise) = self.promises.remove(&event.id) {
                self.woken.extend(promise.fulfil(result));
            }
        }
        if let Some(status) = self.session.broken() {
            let promises = self.promises.drain();
            self.woken.extend(promises.filter_map(|(_, one)| one.fulfil(Err(status.clone()))));
        }
    }

    /// Sends once; `false` when there is nothing left.
    fn send(&mut self) -> io::Result<bool> {
        let Some(sender) = &self.sender else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if self.session.out().is_empty() {
            return Ok(false);
        }
        let sent = self.session.out().with_slices(|slices| sender.send(slices))?;
        self.session.out().advance(sent);
        self.meter.has_written(sent);
        Ok(true)
    }
}

/// The state, locked. Who is to be woken is woken once it is unlocked again: an executor may poll,
/// or drop a future, within `wake`.
struct Locked<'a> {
    // Fields are dropped in this order.
    state: MutexGuard<'a, State>,
    woken: Woken,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.woken.0 = mem::take(&mut self.state.woken);
    }
}

/// Woken when it is dropped.
struct Woken(Vec<Waker>);

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

#[derive(Debug)]
struct Connection {
    state: Mutex<State>,
    handed_ns: AtomicU64,
}

impl Connection {
    fn lock(&self) -> Locked<'_> {
        Locked { state: lock(&self.state), woken: Woken(Vec::new()) }
    }

    /// Sends all that waits, or what finds room until a time; the thread that reads sends the rest.
    /// It is sent in order, as one thread at a time has the state; no one has it while there is no
    /// room. Whether nothing is left.
    fn flush<'a>(&'a self, mut state: Locked<'a>, until: Option<Instant>) -> bool {
        while state.session.broken().is_none() {
            match state.send() {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let now = Instant::now();
                    if until.is_some_and(|until| until <= now) {
                        state.session.expire(now);
                        state.settle();
                        return false;
                    }
                    let sender = state.sender.clone();
                    drop(state);
                    // Whatever it ends with, sending says what is wrong.
                    let look = now + LOOK;
                    let until = Some(until.map_or(look, |until| until.min(look)));
                    let _ = sender.map(|sender| sender.wait_for_room(until));
                    state = self.lock();
                }
                Err(error) => {
                    state.session.breaks(unavailable(format!("the connection broke: {error}")));
                    state.settle();
                }
            }
        }
        true
    }

    /// Ends the calls whose deadlines have passed.
    fn expire(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        state.session.expire(now);
        state.settle();
        self.flush(state, Some(now));
    }

    /// What the thread that reads does, until the connection ends.
    fn read(&self, mut carrier: Box<dyn Carrier>) {
        let mut input = vec![0; INPUT_BYTES];
        let (mut look, mut due) = (LOOK, None);
        loop {
            let now = Instant::now();
            let until = due.map_or(now + look, |due: Instant| due.min(now + look));
            let came = carrier.receive(&mut input, Some(until));
            let mut state = self.lock();
            state.meter.traffic.waits = carrier.waits();
            match came {
                Ok(0) => drop(state.session.closed()),
                Ok(count) => {
                    state.meter.has_read(count);
                    // What is wrong has broken the session.
                    let _ = state.session.receive(input.get(..count).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    drop(state.session.breaks(unavailable(format!("cannot read: {error}"))));
                }
            }
            if state.sender.is_none() {
                // No one reads on for futures that are left.
                drop(state.session.breaks(unavailable("the connection was closed by its client")));
            }
            // Who awaits an answer looks at no clock.
            state.session.expire(now);
            state.settle();
            if state.session.broken().is_some() {
                return;
            }
            due = state.session.deadline();
            look = if self.flush(state, Some(now)) { LOOK } else { AGAIN };
        }
    }
}

/// A connection whose answers are read by a thread of its own.
#[derive(Debug)]
pub struct FutureClient {
    connection: Arc<Connection>,
    kind: FutureKind,
    peer: Peer,
    reader: Option<JoinHandle<()>>,
}

/// A call under way, to be waited for or awaited. Dropping it gives the call up.
///
/// The thread that reads ends a call that is awaited at its deadline, or within two seconds of it
/// where it sleeps; a server that goes on ends it in time.
#[derive(Debug)]
pub struct CallFuture {
    connection: Arc<Connection>,
    id: u64,
    source: Source,
    deadline: Option<Instant>,
}

impl FutureClient {
    /// Of a client without calls, over a carrier whose sending half is another thread's.
    ///
    /// # Errors
    /// When the carrier can't be divided, or there is no thread.
    pub fn of(client: NativeClient, kind: FutureKind) -> io::Result<Self> {
        let NativeClient { mut carrier, session, meter, .. } = client;
        let (peer, sender) = (carrier.peer(), Some(Arc::new(carrier.sender()?)));
        let (promises, woken) = (HashMap::new(), Vec::new());
        let state = State { session, promises, woken, meter, sender };
        let connection =
            Arc::new(Connection { state: Mutex::new(state), handed_ns: AtomicU64::new(0) });
        let theirs = Arc::clone(&connection);
        let reader = std::thread::Builder::new().name("rpc-reader".to_owned());
        let reader = Some(reader.spawn(move || theirs.read(carrier))?);
        Ok(Self { connection, kind, peer, reader })
    }

    /// The number of a method of one message for one message, `/package.Service/Method`.
    ///
    /// # Errors
    /// When the server has none of this name, or it is one of streams.
    pub fn method(&self, name: &str) -> Result<u32, Status> {
        unary(&self.connection.lock().session, name)
    }

    /// Begins a call. Where the server takes nothing, it waits for room until the deadline of the
    /// call, and without one for as long as that lasts: an executor waits with it.
    ///
    /// # Errors
    /// When as many calls are outstanding as the server allows, the message is larger than it
    /// takes, or the connection has ended.
    pub fn start(
        &self,
        method: u32,
        request: &Bytes,
        timeout: Option<Duration>,
    ) -> Result<CallFuture, Status> {
        let begin = Begin::within(timeout, Instant::now);
        let deadline = begin.now.zip(timeout).and_then(|(now, time)| now.checked_add(time));
        let mut state = self.connection.lock();
        let id = state.session.call(method, request, &begin)?.id;
        let (target, source) = match self.kind {
            FutureKind::Channel => {
                let (sender, receiver) = sync_channel(1);
                (Target::Channel(sender), Source::Channel(receiver))
            }
            FutureKind::Spin => {
                let place = Arc::<Place>::default();
                (Target::Place(Arc::clone(&place)), Source::Spin(place))
            }
            FutureKind::Caller | FutureKind::Condvar => {
                let place = Arc::<Place>::default();
                (Target::Place(Arc::clone(&place)), Source::Condvar(place))
            }
        };
        state.promises.insert(id, Promise { target, waker: None });
        self.connection.flush(state, deadline);
        Ok(CallFuture { connection: Arc::clone(&self.connection), id, source, deadline })
    }

    /// One call: waits for its answer.
    ///
    /// # Errors
    /// As the call ends, or the connection.
    pub fn call(
        &self,
        method: u32,
        request: &Bytes,
        timeout: Option<Duration>,
    ) -> Result<Bytes, Status> {
        self.start(method, request, timeout)?.wait()
    }

    /// Calls that have no end yet, and futures that have no answer.
    pub fn outstanding(&self) -> (usize, usize) {
        let state = self.connection.lock();
        (state.session.outstanding(), state.promises.len())
    }

    /// What has passed until now.
    pub fn traffic(&self) -> Traffic {
        self.connection.lock().meter.traffic
    }

    /// Notes each write and read from now on.
    pub fn note_steps(&self) {
        self.connection.lock().meter.note_steps();
    }

    /// Those since, in order, and notes no more; 1,024 at most.
    pub fn take_steps(&self) -> Vec<Step> {
        self.connection.lock().meter.take_steps()
    }

    /// How long all answers until now took from the thread that has read them to the one that has
    /// waited, in nanoseconds.
    pub fn handed_ns(&self) -> u64 {
        self.connection.handed_ns.load(Relaxed)
    }

    /// Which process is at the other end, as the system knows it.
    pub fn peer(&self) -> Peer {
        self.peer
    }
}

impl Drop for FutureClient {
    fn drop(&mut self) {
        self.connection.lock().sender = None;
        let here = std::thread::current().id();
        // A task that owns its client may end within `wake`, on the reader itself, which can't wait
        // for its own end: it ends by what it finds next.
        if let Some(reader) = self.reader.take().filter(|reader| reader.thread().id() != here) {
            // A thread that panicked has said so.
            let _ = reader.join();
        }
    }
}

impl CallFuture {
    /// Waits for the answer.
    ///
    /// # Errors
    /// As the call ends, or the connection.
    pub fn wait(self) -> Result<Bytes, Status> {
        loop {
            if let Some(done) = self.source.wait(self.deadline) {
                let took = done.at.elapsed().as_nanos() as u64;
                self.connection.handed_ns.fetch_add(took, Relaxed);
                return done.result;
            }
            self.connection.expire();
            if !self.connection.lock().promises.contains_key(&self.id)
                && let Some(done) = self.source.wait(Some(Instant::now()))
            {
                return done.result;
            }
        }
    }

    /// Whether the answer has come, so that [`CallFuture::wait`] doesn't wait.
    pub fn is_done(&self) -> bool {
        !self.connection.lock().promises.contains_key(&self.id)
    }
}

impl Future for CallFuture {
    type Output = Result<Bytes, Status>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A waker is another's code, as its end is: neither is called while the state is locked.
        let mut waker = Some(context.waker().clone());
        let mut state = self.connection.lock();
        if let Some(promise) = state.promises.get_mut(&self.id) {
            mem::swap(&mut promise.waker, &mut waker);
            drop(state);
            return Poll::Pending;
        }
        drop(state);
        // What was promised is there, unless it was taken before.
        let done = self.source.wait(Some(Instant::now()));
        Poll::Ready(match done {
            Some(Done { result, at }) => {
                let took = at.elapsed().as_nanos() as u64;
                self.connection.handed_ns.fetch_add(took, Relaxed);
                result
            }
            None => Err(Status::new(Code::Internal, "the answer was awaited before")),
        })
    }
}

impl Drop for CallFuture {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        // Its waker is dropped at the end, when the state is unlocked.
        let Some(_promise) = state.promises.remove(&self.id) else { return };
        state.session.cancel(self.id);
        state.settle();
        self.connection.flush(state, Some(Instant::now()));
    }
}
