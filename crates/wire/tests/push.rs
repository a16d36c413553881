//! Push: values posted from other threads, merged while the reader doesn't read.

use crate::common::{client, serve};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use wire::{Config, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake, Waker};

/// A value, and who wants to know of it.
#[derive(Default)]
struct Topic {
    value: AtomicU64,
    watchers: Mutex<Vec<Waker>>,
    output_peak_bytes: AtomicUsize,
}

impl Topic {
    fn post(&self, value: u64) {
        self.value.store(value, SeqCst);
        self.watchers.lock().expect("watchers").iter().for_each(Waker::wake);
    }
}

/// Sends the newest value, padded to `update_bytes`, whenever it has changed and there is room.
struct Watcher {
    topic: Arc<Topic>,
    sent: u64,
    update_bytes: usize,
}

impl Watcher {
    fn send(&mut self, out: &mut Output) {
        let value = self.topic.value.load(SeqCst);
        // While earlier updates wait, this one waits here, and later ones take its place.
        if value > self.sent && out.is_empty() {
            out.put(&value.to_le_bytes());
            out.tail().resize(self.update_bytes, 0);
            self.sent = value;
        }
        self.topic.output_peak_bytes.fetch_max(out.capacity(), Relaxed);
    }
}

impl Connection for Watcher {
    fn opened(&mut self, _: Ns, peer: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        self.topic.watchers.lock().expect("watchers").push(peer.waker.clone());
        self.send(out);
        Ok(Flow::Continue)
    }

    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        Err(ProtocolError::new("a watcher has nothing to say"))
    }

    fn resume(&mut self, _: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        assert_ne!(why, Wake::Timer);
        self.send(out);
        Ok(Flow::Continue)
    }
}

fn next(reader: &mut impl Read, update: &mut [u8]) -> u64 {
    reader.read_exact(update).expect("an update");
    u64::from_le_bytes(update[..8].try_into().expect("eight bytes"))
}

#[test]
fn updates_merge_while_the_reader_does_not_read_and_the_last_one_arrives() {
    const UPDATES: u64 = 10_000;
    const UPDATE_BYTES: usize = 64 * 1024;
    let topic = Arc::new(Topic::default());
    topic.value.store(1, SeqCst);
    let watched = Arc::clone(&topic);
    let (_server, address) = serve(Config::default(), move |_| Watcher {
        topic: Arc::clone(&watched),
        sent: 0,
        update_bytes: UPDATE_BYTES,
    });
    let mut reader = client(address);
    let mut update = vec![0; UPDATE_BYTES];
    assert_eq!(next(&mut reader, &mut update), 1);
    (2..=UPDATES).for_each(|value| topic.post(value));

    let (mut last, mut count) = (1, 1);
    while last < UPDATES {
        let value = next(&mut reader, &mut update);
        assert!(value > last, "{value} after {last}");
        (last, count) = (value, count + 1);
    }
    println!("{count} of {UPDATES} updates were sent");
    assert!(count < UPDATES / 2, "unread updates merge");
    let peak_bytes = topic.output_peak_bytes.load(Relaxed);
    assert!(peak_bytes <= 2 * UPDATE_BYTES, "{peak_bytes} bytes for one update");
}

#[test]
fn no_wake_is_lost_among_many() {
    const WATCHERS: usize = 100;
    const POSTERS: u64 = 4;
    const EACH: u64 = 500;
    let topic = Arc::new(Topic::default());
    let watched = Arc::clone(&topic);
    let config = Config { threads: 3, ..Config::default() };
    let (server, address) =
        serve(config, move |_| Watcher { topic: Arc::clone(&watched), sent: 0, update_bytes: 8 });
    let mut readers: Vec<_> = (0..WATCHERS).map(|_| client(address)).collect();
    crate::common::until("all watch", || {
        topic.watchers.lock().expect("watchers").len() == WATCHERS
    });
    std::thread::scope(|scope| {
        for _ in 0..POSTERS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    topic.value.fetch_add(1, SeqCst);
                    topic.watchers.lock().expect("watchers").iter().for_each(Waker::wake);
                }
            });
        }
    });
    let mut update = [0; 8];
    for reader in &mut readers {
        let mut last = 0;
        while last < POSTERS * EACH {
            let value = next(reader, &mut update);
            assert!(value > last, "{value} after {last}");
            last = value;
        }
    }
    drop(readers);
    crate::common::until("all are closed", || server.counters().current_connections == 0);
    // Wakes for connections that have gone are harmless.
    topic.post(POSTERS * EACH + 1);
    drop(server);
    topic.post(POSTERS * EACH + 2);
}

/// Queues far more than it may put out at once, and goes on whenever there is room.
struct Flood {
    left: u64,
}

impl Flood {
    fn send(&mut self, out: &mut Output) -> Flow {
        while self.left > 0 && !out.is_full() {
            out.put(&self.left.to_le_bytes());
            self.left -= 1;
        }
        if self.left == 0 { Flow::Close } else { Flow::Continue }
    }
}

impl Connection for Flood {
    fn opened(&mut self, _: Ns, _: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(self.send(out))
    }

    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        assert!(why == Wake::Drained && out.is_empty());
        Ok(self.send(out))
    }
}

#[test]
fn a_full_output_that_is_sent_at_once_is_drained_too() {
    const COUNT: u64 = 500_000;
    let config = Config { output_limit_bytes: 1000, turn_bytes: 10_000, ..Config::default() };
    let (server, address) = serve(config, |_| Flood { left: COUNT });
    let mut reader = client(address);
    let mut got = Vec::new();
    reader.read_to_end(&mut got).expect("all");
    let values = got.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("8")));
    assert!(values.eq((1..=COUNT).rev()));
    assert!(server.counters().yields > 0, "a turn's bytes are limited");
}

/// Has always something to send, until it is told to stop.
struct Endless {
    stops: bool,
}

impl Connection for Endless {
    fn opened(&mut self, _: Ns, _: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        out.put(&[0; 100_000]);
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        self.stops |= !input.is_empty();
        input.consume(input.len());
        Ok(if self.stops && out.is_empty() { Flow::Close } else { Flow::Continue })
    }

    fn resume(&mut self, _: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if self.stops {
            return Ok(Flow::Close);
        }
        out.put(&[0; 100_000]);
        Ok(Flow::Continue)
    }
}

#[test]
fn who_is_pushed_to_without_end_can_still_ask_for_an_end() {
    let config = Config { output_limit_bytes: 50_000, ..Config::default() };
    let (_server, address) = serve(config, |_| Endless { stops: false });
    let mut reader = client(address);
    let mut some = vec![0; 1_000_000];
    reader.read_exact(&mut some).expect("more and more");
    reader.write_all(b"stop").expect("said");
    // The end comes: all that is left is read, and no more follows.
    while reader.read(&mut some).expect("bytes or the end") > 0 {}
}
