//! Sending a node to another server, for `--plug`: on a thread of its own, with limits.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::core::{CommandKind, MOVING, Move, node_text};
use super::environment::Environment;
use super::message::{CommandEnd, CommandWhat, Message};
use crate::protocol::frame::{HEAD_BYTES, frame, length};
use crate::protocol::{Answer, Body, Command, Request, read_answer, write};

/// The longest that a connection, and each step of the exchange, may take.
const WITHIN: Duration = Duration::from_secs(60);

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
        let (path, password) = (std::mem::take(&mut self.path), String::new());
        let end = CommandEnd { kind: CommandKind::Move, path, try_no: MOVING, password, what };
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
    let answer = exchange(&one.host, &one.port, &bytes).map_err(|why| why.to_string())?;
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

fn exchange(host: &str, port: &str, request: &[u8]) -> std::io::Result<Vec<u8>> {
    use std::io::{Error, ErrorKind};
    let port: u16 = port.parse().map_err(|_| {
        Error::new(ErrorKind::InvalidInput, format!("{port:?} is no port: use 1 to 65535"))
    })?;
    let mut connected = Err(Error::new(ErrorKind::NotFound, "the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        connected = TcpStream::connect_timeout(&address, WITHIN);
        if connected.is_ok() {
            break;
        }
    }
    let mut stream = connected?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    stream.write_all(request)?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let bytes = length(head, MOST_BYTES).map_err(Error::other)?;
    let mut answer = Vec::new();
    stream.take(bytes).read_to_end(&mut answer)?;
    Ok(answer)
}
