//! What services need of the loop, each shown with a toy: several protocols, answers that wait
//! for a commit, children, beacons.

use crate::common::{
    HANG_GUARD, client, echo, internet, line, listener, loopback, read_line, start, until,
};
use rustix::fd::OwnedFd;
use rustix::process::{PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use wire::clock::MILLISECOND_NS;
use wire::{
    Address, AnswerId, Answers, Batch, Config, Connection, DatagramListener, DatagramOptions,
    Datagrams, Flow, Input, Loop, Ns, Output, Peer, ProtocolError, Replies, Server, ServerBuilder,
    Task, TaskPool, Wake, Waker, Watch,
};

/// Answers each byte with its successor: nothing like lines.
struct Successor;

impl Connection for Successor {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let next: Vec<u8> = input.bytes().iter().map(|byte| byte.wrapping_add(1)).collect();
        out.put(&next);
        input.consume(next.len());
        Ok(Flow::Continue)
    }
}

#[test]
fn two_listeners_of_one_server_speak_two_protocols() {
    let builder = ServerBuilder::new(Config { threads: 2, ..Config::default() });
    let builder = builder
        .listen(listener(), |_| -> Box<dyn Connection> { Box::new(echo()) })
        .listen(listener(), |_| Box::new(Successor));
    let (server, addresses) = start(builder);
    for _ in 0..3 {
        let (mut lines, mut bytes) = (client(addresses[0]), client(addresses[1]));
        lines.write_all(b"abc\n").expect("write");
        bytes.write_all(b"abc\n").expect("write");
        assert_eq!(read_line(&mut lines), "abc\n");
        let mut got = [0; 4];
        bytes.read_exact(&mut got).expect("an answer");
        assert_eq!(&got, b"bcd\x0b");
    }
    assert_eq!(server.stop(HANG_GUARD).total_connections, 6);
}

/// A journal whose commits are done when the test says so: one message for each.
type Commits = Arc<Mutex<Receiver<()>>>;

/// `put X` is answered once it is committed, `get` at once; in the order of the requests.
struct Journalled {
    pool: Arc<TaskPool>,
    commits: Commits,
    answers: Answers,
    waiting: VecDeque<(AnswerId, Task<String>)>,
    waker: Option<Waker>,
}

impl Connection for Journalled {
    fn opened(&mut self, _: Ns, peer: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        self.waker = Some(peer.waker.clone());
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        while !self.answers.is_full() {
            let Some(request) = line(input) else { break };
            let Some(put) = request.strip_prefix("put ") else {
                self.answers.put(out, |out| out.put(format!("{request}!\n").as_bytes()));
                continue;
            };
            let (commits, put) = (Arc::clone(&self.commits), put.to_owned());
            let commit = move || {
                commits.lock().expect("the journal").recv().expect("a commit");
                put
            };
            let waker = self.waker.clone().expect("opened");
            match self.pool.submit(waker, commit) {
                Ok(task) => self.waiting.push_back((self.answers.defer(), task)),
                Err(full) => {
                    self.answers.put(out, |out| out.put(format!("busy: {full}\n").as_bytes()));
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        assert!(matches!(why, Wake::Posted | Wake::Drained));
        let answers = &mut self.answers;
        self.waiting.retain_mut(|(id, task)| match task.take() {
            None => true,
            Some(put) => {
                let answer = format!("committed {}\n", put.expect("no panic"));
                !answers.complete(*id, out, |out| out.put(answer.as_bytes()))
            }
        });
        Ok(Flow::Continue)
    }

    fn wants_input(&self) -> bool {
        !self.answers.is_full()
    }

    fn has_pending(&self) -> bool {
        !self.answers.is_empty()
    }
}

/// A server of [`Journalled`], with limits on waiting answers and queued tasks.
fn journalled(max_answers: usize, max_queued: usize) -> (Server, SocketAddr, Sender<()>) {
    let (commit, commits) = channel();
    let commits = Arc::new(Mutex::new(commits));
    let pool = Arc::new(TaskPool::new("journal", 1, max_queued).expect("threads"));
    let make = move |_| Journalled {
        pool: Arc::clone(&pool),
        commits: Arc::clone(&commits),
        answers: Answers::new(max_answers, 1 << 20),
        waiting: VecDeque::new(),
        waker: None,
    };
    let server = Server::start(Config::default(), vec![listener()], make).expect("a server");
    let address = internet(&server.addresses()[0]);
    (server, address, commit)
}

#[test]
fn answers_that_wait_for_a_commit_keep_their_order_among_pipelined_ones() {
    let (server, address, commit) = journalled(100, 100);
    let mut writer = client(address);
    writer.write_all(b"first\nput a\nsecond\nput b\nthird\n").expect("write");
    assert_eq!(read_line(&mut writer), "first!\n");
    let mut other = client(address);
    other.write_all(b"get\n").expect("write");
    assert_eq!(read_line(&mut other), "get!\n", "a commit holds up its own connection only");
    commit.send(()).expect("a journal");
    assert_eq!(read_line(&mut writer), "committed a\n");
    assert_eq!(read_line(&mut writer), "second!\n");
    commit.send(()).expect("a journal");
    assert_eq!(read_line(&mut writer), "committed b\n");
    assert_eq!(read_line(&mut writer), "third!\n");
    assert_eq!(server.stop(HANG_GUARD).total_connections, 2);
}

#[test]
fn a_connection_with_many_answers_that_wait_is_not_read_from() {
    const REQUESTS: usize = 200_000;
    let (server, address, commit) = journalled(3, 100);
    let mut writer = client(address);
    let mut reader = writer.try_clone().expect("a clone");
    let writing = std::thread::spawn(move || {
        for number in 0..REQUESTS {
            let request = format!("put {number} {}\n", "x".repeat(100));
            writer.write_all(request.as_bytes()).expect("write");
        }
    });
    // Three wait for their commits, so what is read besides is what was read with them.
    until("some is read", || server.counters().bytes_read > 0);
    for number in 0..1000 {
        let limit_bytes = 1_u64 << 20;
        let answered_bytes = number * 110;
        assert!(server.counters().bytes_read <= answered_bytes + limit_bytes);
        commit.send(()).expect("a journal");
        assert!(read_line(&mut reader).starts_with(&format!("committed {number} ")));
    }
    (1000..REQUESTS).for_each(|_| commit.send(()).expect("a journal"));
    for number in 1000..REQUESTS {
        assert!(read_line(&mut reader).starts_with(&format!("committed {number} ")));
    }
    writing.join().expect("all is written");
    assert_eq!(server.counters().protocol_errors, 0, "no input limit was passed");
}

#[test]
fn pending_answers_are_sent_after_the_last_request_and_by_a_server_that_stops() {
    let (server, address, commit) = journalled(100, 100);
    let (mut finished, mut open) = (client(address), client(address));
    finished.write_all(b"put a\n").expect("write");
    finished.shutdown(Shutdown::Write).expect("the last request");
    open.write_all(b"put b\nafter\n").expect("write");
    until("all is read", || server.counters().bytes_read == 18);
    let stopping = std::thread::spawn(move || server.stop(HANG_GUARD));
    commit.send(()).expect("a journal");
    commit.send(()).expect("a journal");
    let mut answers = [String::new(), String::new()];
    finished.read_to_string(&mut answers[0]).expect("an answer, and the end");
    open.read_to_string(&mut answers[1]).expect("answers, and the end");
    answers.sort();
    // The pool's one thread commits in the order in which the requests came.
    assert!(answers[0].starts_with("committed a\n") && answers[1].starts_with("committed b\n"));
    assert_eq!(answers[1], "committed b\nafter!\n");
    assert_eq!(stopping.join().expect("stopped").current_connections, 0);
}

#[test]
fn a_full_pool_is_answered_and_not_waited_for() {
    let (server, address, commit) = journalled(100, 1);
    let mut writer = client(address);
    // The pool's thread begins the first at any time, and so makes room for one of the others.
    writer.write_all(b"put a\nput b\nput c\nput d\n").expect("write");
    until("all is read", || server.counters().bytes_read == 24);
    // The loop answers another one once it has done what it read before.
    let mut other = client(address);
    other.write_all(b"get\n").expect("write");
    assert_eq!(read_line(&mut other), "get!\n");
    (0..4).for_each(|_| commit.send(()).expect("a journal"));
    let answers: Vec<_> = (0..4).map(|_| read_line(&mut writer)).collect();
    assert_eq!(answers[0], "committed a\n");
    let busy = "busy: 1 tasks wait for a thread already\n";
    let refused = answers.iter().filter(|answer| *answer == busy).count();
    assert!((2..=3).contains(&refused), "{answers:?}");
    assert!(answers.iter().all(|answer| answer == busy || answer.starts_with("committed")));
}

/// Starts a child for the line `run`, and answers with how it has ended.
struct Spawner {
    own: Loop<Spawner>,
    waker: Option<Waker>,
    child: Option<(Child, Watch)>,
}

impl Connection for Spawner {
    fn opened(&mut self, _: Ns, peer: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        self.waker = Some(peer.waker.clone());
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let Some(request) = line(input) else { return Ok(Flow::Continue) };
        match (&mut self.child, request.as_str()) {
            (None, "run") => {
                // It ends when its input does.
                let mut command = Command::new("cat");
                let child = command.stdin(Stdio::piped()).spawn().expect("a child");
                let id = rustix::process::Pid::from_child(&child);
                let exits = pidfd_open(id, PidfdFlags::empty()).expect("a pidfd");
                let watch = self.own.watch(exits, self.waker.clone().expect("opened"));
                self.child = Some((child, watch));
                out.put(b"running\n");
            }
            (Some((child, _)), "end") => drop(child.stdin.take()),
            _ => out.put(b"?\n"),
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if let Some((mut child, _watch)) = self.child.take() {
            let status = child.wait().expect("its status");
            out.put(format!("exit {}\n", status.code().unwrap_or(-1)).as_bytes());
        }
        Ok(Flow::Continue)
    }
}

#[test]
fn a_child_that_exits_wakes_the_connection_that_watches_it() {
    let make = |own| Spawner { own, waker: None, child: None };
    let server = Server::start(Config::default(), vec![listener()], make).expect("a server");
    let mut client = client(internet(&server.addresses()[0]));
    for _ in 0..2 {
        client.write_all(b"run\n").expect("write");
        assert_eq!(read_line(&mut client), "running\n");
        client.write_all(b"x\n").expect("write");
        assert_eq!(read_line(&mut client), "?\n", "the loop goes on meanwhile");
        client.write_all(b"end\n").expect("write");
        assert_eq!(read_line(&mut client), "exit 0\n");
    }
}

/// Counts the bytes of a pipe, rearming its watch each time.
struct Pipes {
    own: Loop<Pipes>,
    pipe: Arc<OwnedFd>,
    watch: Option<Watch>,
}

impl Connection for Pipes {
    fn opened(&mut self, _: Ns, peer: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        self.watch = Some(self.own.watch(Arc::clone(&self.pipe), peer.waker.clone()));
        Ok(Flow::Continue)
    }

    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        let mut bytes = [0; 100];
        let count = rustix::io::read(&*self.pipe, &mut bytes).expect("it is readable");
        out.put(&bytes[..count]);
        self.watch.as_ref().expect("opened").rearm();
        Ok(if count == 0 { Flow::Close } else { Flow::Continue })
    }
}

#[test]
fn a_watch_wakes_once_each_time_it_is_armed() {
    let (read, mut write) = std::io::pipe().expect("a pipe");
    let pipe: Arc<OwnedFd> = Arc::new(read.into());
    let make = move |own| Pipes { own, pipe: Arc::clone(&pipe), watch: None };
    let server = Server::start(Config::default(), vec![listener()], make).expect("a server");
    let mut client = client(internet(&server.addresses()[0]));
    for text in ["one\n", "two\n"] {
        write.write_all(text.as_bytes()).expect("write");
        assert_eq!(read_line(&mut client), text);
    }
    drop(write);
    assert_eq!(client.read(&mut [0]).expect("the end"), 0);
}

/// Sends a beacon to the group at once and then every 20 ms, and counts what it hears of them by a
/// socket that has joined; answers datagrams to the first with that count.
struct Beacons {
    group: SocketAddr,
    next_ns: Option<Ns>,
    sent: u64,
    heard: u64,
}

const DIRECT: usize = 0;
const JOINED: usize = 1;
const EVERY_NS: Ns = 20 * MILLISECOND_NS;

impl Datagrams for Beacons {
    fn opened(&mut self, now: Ns, _: &Waker, out: &mut Replies) {
        self.resume(now, Wake::Timer, out);
    }

    fn datagrams(&mut self, _: Ns, batch: &Batch, replies: &mut Replies) {
        for (from, bytes) in batch.iter() {
            if batch.socket() == JOINED {
                self.heard += u64::from(bytes.starts_with(b"beacon"));
            } else {
                replies.push(from.clone(), format!("{} of {}", self.heard, self.sent).as_bytes());
            }
        }
    }

    fn resume(&mut self, now: Ns, why: Wake, out: &mut Replies) {
        assert_eq!(why, Wake::Timer);
        out.push_by(
            DIRECT,
            Address::Internet(self.group),
            format!("beacon {}", self.sent).as_bytes(),
        );
        self.sent += 1;
        self.next_ns = Some(now + EVERY_NS);
    }

    fn deadline(&self) -> Option<Ns> {
        self.next_ns
    }
}

#[test]
fn a_beacon_is_sent_by_timer_and_heard_by_those_who_joined_its_group() {
    let local = [127, 0, 0, 1].into();
    let group: std::net::Ipv4Addr = [224, 0, 0, 129].into();
    let sending = DatagramOptions { multicast_interface: Some(local), ..Default::default() };
    let joining = DatagramOptions {
        shares_address: true,
        groups: vec![(group, local)],
        ..Default::default()
    };
    let direct = DatagramListener::bind_with(&loopback(), 1, &sending).expect("a socket");
    let anywhere = Address::Internet((group, 0).into());
    let joined = match DatagramListener::bind_with(&anywhere, 1, &joining) {
        Ok(joined) => joined,
        Err(error) => return testing::skip(format!("this host has no multicast: {error}")),
    };
    let (own, group) = (internet(direct.address()), internet(joined.address()));
    let beacons = move |_| Beacons { group, next_ns: None, sent: 0, heard: 0 };
    let builder: ServerBuilder<Box<dyn Connection>> = ServerBuilder::new(Config::default());
    let server = builder.datagrams(vec![direct, joined], beacons).start().expect("a server");
    let asker = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    asker.set_read_timeout(Some(HANG_GUARD)).expect("a time-out");
    until("three are heard", || {
        asker.send_to(b"?", own).expect("sent");
        let mut answer = [0; 100];
        let count = asker.recv(&mut answer).expect("an answer");
        let text = String::from_utf8_lossy(&answer[..count]).into_owned();
        let (heard, sent) = text.split_once(" of ").expect("two numbers");
        let [heard, sent] = [heard, sent].map(|number| number.parse::<u64>().expect("a number"));
        assert!(heard <= sent, "{text}");
        heard >= 3
    });
    assert_eq!(server.stop(HANG_GUARD).datagrams_dropped, 0);
}
