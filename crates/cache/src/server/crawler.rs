//! The crawler: a walk through the store that removes expired items, a bounded part at a time.
//!
//! A protocol of the first thread's loop without sockets: a timer gives it a turn, and a turn
//! visits a fixed number of the index's slots, not a time, so that no request waits for longer than
//! one turn. Once a second it looks whether anything can have expired. Control plane.

use std::sync::Arc;

use wire::clock::SECOND_NS;
use wire::{Batch, Datagrams, Ns, Replies, Wake, Waker};

use super::service::Service;
use crate::model::{Crawled, Cursor};

/// The slots of the index that one turn visits. With items outside of the processor's caches, that
/// takes a few microseconds.
pub const SLOTS_PER_TURN: usize = 128;

/// A shard that is passed over counts as this many slots, for its lock.
const SLOTS_PER_SHARD: usize = 8;

/// The time between two looks at whether anything has expired.
const LOOK_EVERY_NS: Ns = SECOND_NS;

/// A walk that has not reached the end. One that a limit has interrupted is continued by the next
/// run.
#[derive(Clone, Copy, Debug)]
struct Walk {
    cursor: Cursor,
    /// Whether shards are visited in which nothing can have expired.
    full: bool,
}

/// The protocol that walks.
#[derive(Debug)]
pub struct Crawler {
    service: Arc<Service>,
    walk: Option<Walk>,
    /// The items that this run has examined.
    checked: u64,
    next_ns: Ns,
}

impl Crawler {
    /// Creates the crawler of `service`, which is given its turns by the loop.
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, walk: None, checked: 0, next_ns: 0 }
    }

    /// One turn.
    fn turn(&mut self, now: Ns) {
        let service = Arc::clone(&self.service);
        let control = &service.crawler;
        if control.is_requested() && !self.walk.is_some_and(|walk| walk.full) {
            self.walk = Some(Walk { cursor: Cursor::default(), full: true });
            control.set_running(false);
        }
        let options = control.options();
        if !options.enabled {
            control.set_running(false);
            // A command wakes it.
            self.next_ns = Ns::MAX;
            return;
        }
        if !control.is_running() {
            self.walk.get_or_insert(Walk { cursor: Cursor::default(), full: false });
            self.checked = 0;
        }
        let is_over = self.walk(&service, now, u64::from(options.to_crawl));
        self.next_ns = if is_over {
            now.saturating_add(LOOK_EVERY_NS)
        } else {
            now.saturating_add(Ns::from(options.sleep_us) * 1000)
        };
    }

    /// Visits the slots of one turn; whether that was the run's last.
    fn walk(&mut self, service: &Service, now: Ns, to_crawl: u64) -> bool {
        let (control, now_s) = (&service.crawler, service.seconds(now));
        let mut left = SLOTS_PER_TURN;
        while let Some(Walk { cursor, full }) = self.walk
            && left > 0
        {
            let Crawled { next, slots, checked, .. } =
                service.store.crawl(now_s, cursor, left, full);
            if slots > 0 {
                control.set_running(true);
            }
            self.checked += checked;
            left = left.saturating_sub(slots.max(SLOTS_PER_SHARD));
            self.walk = next.map(|cursor| Walk { cursor, full });
            if to_crawl > 0 && self.checked >= to_crawl {
                break;
            }
        }
        let is_over = self.walk.is_none() || (to_crawl > 0 && self.checked >= to_crawl);
        if is_over {
            control.end();
        }
        is_over
    }
}

impl Datagrams for Crawler {
    fn opened(&mut self, now: Ns, waker: &Waker, _out: &mut Replies) {
        self.service.crawler.set_waker(waker.clone());
        self.next_ns = now.saturating_add(LOOK_EVERY_NS);
    }

    fn datagrams(&mut self, _now: Ns, _batch: &Batch, _replies: &mut Replies) {}

    fn resume(&mut self, now: Ns, _why: Wake, _out: &mut Replies) {
        self.turn(now);
    }

    fn deadline(&self) -> Option<Ns> {
        (self.next_ns != Ns::MAX).then_some(self.next_ns)
    }
}
