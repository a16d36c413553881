//! Deadlines of protocols and of idle connections.

use crate::common::{client, echo, serve, until};
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{Closed, Config, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake};

/// Sends a tick at each deadline, `left` times, then closes. Any byte received puts the next
/// tick off.
struct Ticker {
    next: Option<Ns>,
    left: u32,
    every_ns: Ns,
}

impl Connection for Ticker {
    fn opened(&mut self, now: Ns, _: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        self.next = Some(now + self.every_ns);
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        input.consume(input.len());
        self.next = Some(now + self.every_ns);
        out.put(b"later");
        Ok(Flow::Continue)
    }

    fn resume(&mut self, now: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        assert_eq!(why, Wake::Timer);
        let due = self.next.expect("a timer was asked for");
        assert!(now >= due, "called {} ns early", due - now);
        out.put(b"tick ");
        self.left -= 1;
        self.next = (self.left > 0).then_some(now + self.every_ns);
        Ok(if self.left > 0 { Flow::Continue } else { Flow::Close })
    }

    fn deadline(&self) -> Option<Ns> {
        self.next
    }
}

#[test]
fn a_timer_comes_once_for_each_deadline_and_not_early() {
    let ticker = |_| Ticker { next: None, left: 5, every_ns: 300_000 };
    let (_server, address) = serve(Config::default(), ticker);
    let mut clients: Vec<_> = (0..20).map(|_| client(address)).collect();
    for client in &mut clients {
        let mut got = String::new();
        client.read_to_string(&mut got).expect("ticks");
        assert_eq!(got, "tick tick tick tick tick ");
    }
}

#[test]
fn a_deadline_that_is_put_off_does_not_come() {
    let hour_ns = 3_600_000_000_000;
    let ticker = move |_| Ticker { next: None, left: 1, every_ns: hour_ns };
    let (server, address) = serve(Config::default(), ticker);
    let mut client = client(address);
    for _ in 0..1000 {
        client.write_all(b"x").expect("write");
        let mut got = [0; 5];
        client.read_exact(&mut got).expect("an answer");
        assert_eq!(&got, b"later");
    }
    let last = server.stop(crate::common::HANG_GUARD);
    assert_eq!(last.current_connections, 0, "a far deadline doesn't hold up the end");
}

/// Never moves its deadline: a mistake that must cost the others their speed only.
struct Stuck(Arc<Mutex<u32>>);

impl Connection for Stuck {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        out.put(input.bytes());
        input.consume(input.len());
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, _: Wake, _: &mut Output) -> Result<Flow, ProtocolError> {
        *self.0.lock().expect("count") += 1;
        Ok(Flow::Continue)
    }

    fn deadline(&self) -> Option<Ns> {
        Some(0)
    }
}

#[test]
fn a_deadline_that_stays_in_the_past_does_not_starve_the_others() {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let (_server, address) = serve(Config::default(), move |_| Stuck(Arc::clone(&counted)));
    let mut clients = [client(address), client(address)];
    for client in &mut clients {
        client.write_all(b"x").expect("write");
        client.read_exact(&mut [0; 1]).expect("an answer");
    }
    until("the deadline is met", || *calls.lock().expect("count") > 0);
}

/// Notes why it was closed.
struct Noting<C> {
    inner: C,
    closed: Arc<Mutex<Vec<Closed>>>,
}

impl<C: Connection> Connection for Noting<C> {
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        self.inner.receive(now, input, out)
    }

    fn closed(&mut self, why: Closed) {
        self.closed.lock().expect("list").push(why);
    }
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let closed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&closed);
    let idle_timeout = Some(Duration::from_millis(20));
    let (_server, address) = serve(Config { idle_timeout, ..Config::default() }, move |_| Noting {
        inner: echo(),
        closed: Arc::clone(&noted),
    });
    let started = std::time::Instant::now();
    let mut client = client(address);
    assert_eq!(client.read(&mut [0; 1]).expect("the end"), 0);
    assert!(started.elapsed() >= Duration::from_millis(20), "not before its time");
    crate::common::until("it was told", || !closed.lock().expect("list").is_empty());
    assert_eq!(*closed.lock().expect("list"), [Closed::Socket(ErrorKind::TimedOut)]);
}
