//! What a protocol may ask of the loop that serves it: outgoing connections, and wakes for
//! foreign descriptors. Data plane, save that both allocate.

use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::OwnedFd;

use crate::clock::duration_ns;
use crate::config::ThreadIndex;
use crate::{Address, Ns, Waker};

/// A handle of one thread's event loop, for the protocols that it serves; clones are the same
/// loop. It stays on its thread: other threads reach a connection through its
/// [`Waker`](crate::Waker).
///
/// Requests are carried out once the current call of a protocol has returned.
#[derive(Debug)]
pub struct Loop<C>(Rc<State<C>>);

impl<C> Clone for Loop<C> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

#[derive(Debug)]
struct State<C> {
    thread: ThreadIndex,
    connects: RefCell<Vec<Connect<C>>>,
    /// Outgoing connections that are requested, connecting or open.
    outgoing: Cell<usize>,
    max_outgoing: usize,
    watches: Rc<Watches>,
}

/// A request for an outgoing connection.
#[derive(Debug)]
pub(crate) struct Connect<C> {
    pub(crate) address: Address,
    pub(crate) timeout_ns: Ns,
    pub(crate) protocol: C,
}

impl<C> Loop<C> {
    pub(crate) fn new(thread: ThreadIndex, max_outgoing: usize) -> Self {
        Self(Rc::new(State {
            thread,
            connects: RefCell::default(),
            outgoing: Cell::new(0),
            max_outgoing,
            watches: Rc::default(),
        }))
    }

    /// The loop's thread.
    pub fn thread(&self) -> ThreadIndex {
        self.0.thread
    }

    /// Connects to `address` without blocking, and serves the connection on this thread.
    /// [`Connection::opened`](crate::Connection::opened) is called once it is connected. If that
    /// fails, or takes longer than `timeout`, [`Connection::closed`](crate::Connection::closed)
    /// is called with the reason; whether to connect again is the protocol's decision.
    ///
    /// # Errors
    /// Returns the protocol when [`Config::max_outgoing`](crate::Config::max_outgoing) connections
    /// are open or connecting.
    pub fn connect(&self, address: Address, timeout: Duration, protocol: C) -> Result<(), C> {
        let outgoing = self.0.outgoing.get();
        if outgoing >= self.0.max_outgoing {
            return Err(protocol);
        }
        self.0.outgoing.set(outgoing + 1);
        let timeout_ns = duration_ns(timeout);
        self.0.connects.borrow_mut().push(Connect { address, timeout_ns, protocol });
        Ok(())
    }

    /// Calls `waker` once `descriptor` becomes readable: the pidfd of a child that exits, an
    /// eventfd, a pipe. It is called once; [`Watch::rearm`] asks for the next time. Dropping the
    /// [`Watch`] ends it. If the descriptor can't be polled, such as a regular file, `waker` is
    /// called at once, as a read of it doesn't block.
    ///
    /// Each watch takes a descriptor, so the limit of open descriptors limits them.
    pub fn watch(&self, descriptor: impl Into<Arc<OwnedFd>>, waker: Waker) -> Watch {
        let watches = Rc::clone(&self.0.watches);
        let number = watches.next.get();
        watches.next.set(number.wrapping_add(1));
        let watched = Watched { descriptor: descriptor.into(), waker };
        watches.push(WatchRequest::Add(number, watched));
        Watch { number, watches }
    }

    /// Whether requests wait.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        !self.0.connects.borrow().is_empty() || !self.0.watches.requests.borrow().is_empty()
    }

    pub(crate) fn take_connects(&self) -> Vec<Connect<C>> {
        mem::take(&mut *self.0.connects.borrow_mut())
    }

    pub(crate) fn take_watches(&self) -> Vec<WatchRequest> {
        mem::take(&mut *self.0.watches.requests.borrow_mut())
    }

    /// Counts an outgoing connection that has ended.
    pub(crate) fn release_outgoing(&self) {
        debug_assert!(self.0.outgoing.get() > 0, "an outgoing connection was released twice");
        self.0.outgoing.set(self.0.outgoing.get() - 1);
    }
}

/// A descriptor and whom to wake once it is readable.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) descriptor: Arc<OwnedFd>,
    pub(crate) waker: Waker,
}

/// A request concerning the watch with a number.
#[derive(Debug)]
pub(crate) enum WatchRequest {
    Add(u32, Watched),
    Rearm(u32),
    Remove(u32),
}

#[derive(Debug, Default)]
struct Watches {
    next: Cell<u32>,
    requests: RefCell<Vec<WatchRequest>>,
}

impl Watches {
    fn push(&self, request: WatchRequest) {
        self.requests.borrow_mut().push(request);
    }
}

/// A watched descriptor; see [`Loop::watch`]. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    number: u32,
    watches: Rc<Watches>,
}

impl Watch {
    /// Asks for one more wake, when the descriptor is readable the next time, or still.
    pub fn rearm(&self) {
        self.watches.push(WatchRequest::Rearm(self.number));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watches.push(WatchRequest::Remove(self.number));
    }
}
