//! Outgoing connections: calls of other servers from the loop, and connects that fail.

use crate::common::{HANG_GUARD, Lines, client, internet, line, listener, read_line, start, until};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{
    Address, AnswerId, Answers, Closed, Config, Connection, Flow, Input, Loop, Ns, Output, Peer,
    ProtocolError, Server, ServerBuilder, Wake, Waker,
};

/// Where the answer of an upstream call is put.
type Answer = Rc<RefCell<Option<String>>>;

/// What the connections of a thread ask of one upstream connection, and what it answers.
#[derive(Default)]
struct Calls {
    asked: VecDeque<(String, Answer, Waker)>,
    upstream: Option<Waker>,
    /// Why the upstream connection is closed, which may be before anything is asked of it.
    ended: Option<String>,
}

/// A line is asked of the server upstream, and its answer is the answer.
struct Front {
    own: Loop<Box<dyn Connection>>,
    upstream: Address,
    calls: Rc<RefCell<Calls>>,
    answers: Answers,
    waiting: VecDeque<(AnswerId, Answer)>,
    waker: Option<Waker>,
}

impl Connection for Front {
    fn opened(&mut self, _: Ns, peer: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        self.waker = Some(peer.waker.clone());
        let upstream = Upstream { calls: Rc::clone(&self.calls), sent: VecDeque::new() };
        let connected = self.own.connect(self.upstream.clone(), HANG_GUARD, Box::new(upstream));
        connected.map_err(|_| ProtocolError::new("too many connections upstream"))?;
        Ok(Flow::Continue)
    }

    fn receive(&mut self, _: Ns, input: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        while let Some(request) = line(input) {
            let answer = Rc::default();
            self.waiting.push_back((self.answers.defer(), Rc::clone(&answer)));
            let own = self.waker.clone().expect("opened");
            let mut calls = self.calls.borrow_mut();
            if let Some(end) = &calls.ended {
                *answer.borrow_mut() = Some(end.clone());
                own.wake();
                continue;
            }
            calls.asked.push_back((request, answer, own));
            calls.upstream.iter().for_each(Waker::wake);
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        let answers = &mut self.answers;
        self.waiting.retain(|(id, answer)| match answer.take() {
            None => true,
            Some(answer) => !answers.complete(*id, out, |out| out.put(answer.as_bytes())),
        });
        Ok(Flow::Continue)
    }

    fn has_pending(&self) -> bool {
        !self.answers.is_empty()
    }
}

/// The connection upstream: sends what is asked, and hands each answer to who asked.
struct Upstream {
    calls: Rc<RefCell<Calls>>,
    sent: VecDeque<(Answer, Waker)>,
}

impl Upstream {
    fn answer_all(&mut self, with: &str) {
        let mut calls = self.calls.borrow_mut();
        calls.ended = Some(with.to_owned());
        let unsent = calls.asked.drain(..).map(|(_, answer, waker)| (answer, waker));
        for (answer, waker) in self.sent.drain(..).chain(unsent) {
            *answer.borrow_mut() = Some(with.to_owned());
            waker.wake();
        }
    }
}

impl Connection for Upstream {
    fn opened(&mut self, now: Ns, peer: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        self.calls.borrow_mut().upstream = Some(peer.waker.clone());
        self.resume(now, Wake::Posted, out)
    }

    fn receive(&mut self, _: Ns, input: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        while let Some(answered) = line(input) {
            let (answer, waker) = self.sent.pop_front().expect("it was asked");
            *answer.borrow_mut() = Some(format!("{answered}\n"));
            waker.wake();
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        for (request, answer, waker) in self.calls.borrow_mut().asked.drain(..) {
            out.put(format!("{request}\n").as_bytes());
            self.sent.push_back((answer, waker));
        }
        Ok(Flow::Continue)
    }

    fn has_pending(&self) -> bool {
        !self.sent.is_empty()
    }

    fn closed(&mut self, why: Closed) {
        self.answer_all(&format!("upstream: {why:?}\n"));
    }
}

fn front(upstream: Address) -> (Server, Vec<SocketAddr>) {
    let make = move |own| -> Box<dyn Connection> {
        Box::new(Front {
            own,
            upstream: upstream.clone(),
            calls: Rc::default(),
            answers: Answers::new(100, 1 << 20),
            waiting: VecDeque::new(),
            waker: None,
        })
    };
    start(
        ServerBuilder::new(Config { max_outgoing: 2, ..Config::default() })
            .listen(listener(), make),
    )
}

#[test]
fn an_upstream_call_is_made_from_the_loop_and_its_answer_is_passed_on() {
    let shout = |_| {
        Lines(|line: &[u8], out: &mut Output| {
            out.put(&line.to_ascii_uppercase());
            Flow::Continue
        })
    };
    let upstream = Server::start(Config::default(), vec![listener()], shout).expect("a server");
    let (server, addresses) = front(upstream.addresses()[0].clone());
    let (mut first, mut second) = (client(addresses[0]), client(addresses[0]));
    first.write_all(b"one\ntwo\n").expect("write");
    second.write_all(b"three\n").expect("write");
    assert_eq!(read_line(&mut first), "ONE\n");
    assert_eq!(read_line(&mut first), "TWO\n");
    assert_eq!(read_line(&mut second), "THREE\n");
    // A third would be one outgoing connection too many.
    let mut third = client(addresses[0]);
    assert_eq!(third.read(&mut [0]).expect("the end"), 0);
    let counters = server.stop(HANG_GUARD);
    assert_eq!((counters.total_connections, counters.current_connections), (3, 0));
    assert_eq!(upstream.stop(HANG_GUARD).total_connections, 2);
}

/// A socket with a port of its own.
fn bound() -> (OwnedFd, Address) {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = getsockname(&socket).expect("its address");
    let address = SocketAddr::try_from(address).expect("an internet address");
    (socket, Address::Internet(address))
}

#[test]
fn a_connect_that_is_refused_is_reported_to_its_protocol() {
    // A socket that is bound and doesn't listen.
    let (_bound, address) = bound();
    let (_server, addresses) = front(address);
    let mut asker = client(addresses[0]);
    asker.write_all(b"one\n").expect("write");
    assert_eq!(read_line(&mut asker), "upstream: Socket(ConnectionRefused)\n");
}

/// Connects to an address that is given, with a time-out of 1 ms, and notes how that ends.
struct Impatient(Option<Loop<Impatient>>, Address, Arc<Mutex<Vec<Closed>>>);

impl Connection for Impatient {
    fn opened(&mut self, _: Ns, _: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        if let Some(own) = self.0.take() {
            let protocol = Self(None, self.1.clone(), Arc::clone(&self.2));
            let timeout = Duration::from_millis(1);
            assert!(own.connect(self.1.clone(), timeout, protocol).is_ok());
        }
        Ok(Flow::Continue)
    }

    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(Flow::Continue)
    }

    fn closed(&mut self, why: Closed) {
        self.2.lock().expect("ends").push(why);
    }
}

#[test]
fn a_connect_without_an_answer_ends_at_its_deadline() {
    // A listener with a full backlog leaves further attempts unanswered.
    let (full, filling) = bound();
    listen(&full, 0).expect("listening");
    let _fill: Vec<_> = (0..4).map(|_| wire::stream::connect(&filling)).collect();
    let ends = Arc::<Mutex<Vec<Closed>>>::default();
    let noted = Arc::clone(&ends);
    let make = move |own| Impatient(Some(own), filling.clone(), Arc::clone(&noted));
    let server = Server::start(Config::default(), vec![listener()], make).expect("a server");
    let _client = client(internet(&server.addresses()[0]));
    until("it has ended", || !ends.lock().expect("ends").is_empty());
    let timed_out = Closed::Socket(std::io::ErrorKind::TimedOut);
    assert_eq!(ends.lock().expect("ends")[..], [timed_out]);
}
