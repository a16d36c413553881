//! Sending a node to another server, for `--plug`: on a thread of its own, with limits.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::core::{CommandKind, MOVING, Move, node_text};
use super::environment::Environment;
use super::message::{CommandEnd, CommandWhat, Message};
use crate::protocol::frame::{HEAD_BYTES, frame, length};
use crate::protocol::{Answer, Body, Command, Request, read_answer, write};

/// The longest that a connection, and each step of the exchange, may take.
const STEP: Duration = Duration::from_secs(60);

/// The longest that all of it may take, however little comes at a time: until it is over the
/// journal has no snapshot. 60 MB are sent at 200 kB a second.
const WHOLE: Duration = Duration::from_secs(300);

/// The longest answer.
const MOST_BYTES: u64 = 16 << 20;

/// The most at once.
const MOST: usize = 8;

/// Nodes on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Mover(Arc<AtomicUsize>);

impl Mover {
    /// Sends one, and has the owner know what came of it.
    pub(super) fn start(&self, one: Move, environment: &Environment, owner: &Sender<Message>) {
        let own = (environment.host.clone(), environment.port.to_string());
        self.0.fetch_add(1, Ordering::Relaxed);
        let end = End {
            count: Arc::clone(&self.0),
            path: one.path.clone(),
            owner: owner.clone(),
            done: Err("MoveCmd Failed: it broke off, see the server's log".to_owned()),
        };
        if environment.is_encrypted() {
            let why = "nodes aren't moved between servers that encrypt: archive, copy and restore";
            return end.tell(Err(format!("MoveCmd Failed: {why}")));
        }
        if self.0.load(Ordering::Relaxed) > MOST {
            return end.tell(Err(format!("{MOST} nodes are being moved: try again")));
        }
        if !environment.starts_jobs {
            let why = "a server that starts no jobs (--dis_job_gen) sends no nodes to others";
            return end.tell(Err(format!("MoveCmd Failed: {why}")));
        }
        let work = move || {
            let (host, port) = (&one.host, &one.port);
            let done = send(&one, &own);
            end.tell(done.map_err(|why| format!("MoveCmd Failed for {host}:{port}  {why}\n")));
        };
        let thread = std::thread::Builder::new().name("plug".to_owned()).spawn(work);
        if let Err(why) = thread {
            tracing::error!("a node can't be moved: {why}");
        }
    }
}

/// Has the owner know what came of a move when it is dropped, however its thread ends.
struct End {
    count: Arc<AtomicUsize>,
    path: String,
    owner: Sender<Message>,
    done: Result<(), String>,
}

impl End {
    fn tell(mut self, done: Result<(), String>) {
        self.done = done;
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let what = match std::mem::replace(&mut self.done, Ok(())) {
            Ok(()) => CommandWhat::Moved,
            Err(why) => CommandWhat::NotMoved(why),
        };
        let end = CommandEnd {
            kind: CommandKind::Move,
            path: std::mem::take(&mut self.path),
            try_no: MOVING,
            password: String::new(),
            is_for_zombie: false,
            what,
        };
        // It ends last.
        let _ = self.owner.send(Message::Command(end));
    }
}

fn send(one: &Move, own: &(String, String)) -> Result<(), String> {
    let node = node_text(&one.before, &one.path);
    let (host, port) = own.clone();
    let (path, destination) = (one.path.clone(), one.destination.clone());
    let command = Command::Move { node, host: host.clone(), port, path, destination };
    let request = Request { host, body: Body::User(one.user.clone(), command) };
    let mut bytes = Vec::new();
    frame(&mut bytes, |out| out.extend_from_slice(&write(&request)));
    let until = Instant::now() + WHOLE;
    let answer = exchange((&one.host, &one.port), &bytes, until).map_err(|why| why.to_string())?;
    match read_answer(&answer) {
        Ok(Answer::Standard(0)) => Ok(()),
        Ok(Answer::Error(why)) => {
            let line = request.line();
            Err(format!("Error: request( {line} ) failed!  Server reply: {why}\n"))
        }
        Ok(other) => Err(format!("an answer that was not expected: {other:?}")),
        Err(why) => Err(why.to_string()),
    }
}

/// A connection that is over at a time.
struct Until(TcpStream, Instant);

/// What is left of the time for a step.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now()).min(STEP);
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A step that takes too long is what the system calls one that would have to wait.
fn timed(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Until {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.set_read_timeout(Some(left(self.1)?))?;
        self.0.read(into).map_err(timed)
    }
}

impl Write for Until {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set_write_timeout(Some(left(self.1)?))?;
        self.0.write(bytes).map_err(timed)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exchange((host, port): (&str, &str), request: &[u8], until: Instant) -> io::Result<Vec<u8>> {
    let port: u16 = port.parse().map_err(|_| {
        Error::new(ErrorKind::InvalidInput, format!("{port:?} is no port: use 1 to 65535"))
    })?;
    let mut connected = Err(Error::new(ErrorKind::NotFound, "the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        connected = TcpStream::connect_timeout(&address, left(until)?);
        if connected.is_ok() {
            break;
        }
    }
    let mut stream = Until(connected?, until);
    stream.write_all(request)?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let bytes = length(head, MOST_BYTES).map_err(Error::other)?;
    let mut answer = Vec::new();
    stream.take(bytes).read_to_end(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_server_that_sends_byte_by_byte_is_left_when_the_time_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.set_nodelay(true).expect("a socket");
            stream.write_all(format!("{MOST_BYTES:8x}").as_bytes()).expect("sent");
            while stream.write_all(b" ").is_ok() {}
        });
        let until = Instant::now() + Duration::from_secs(1);
        let ended = exchange(("127.0.0.1", &port), b"request", until);
        // Its end is that of the connection.
        server.join().expect("it ends");
        assert_eq!(ended.expect_err("the time is over").kind(), ErrorKind::TimedOut);
    }
}
