//! `loadline workflow record`: what clients ask a server and how it answers, as they do. Control
//! plane.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as Clock, SystemTime, UNIX_EPOCH};

use base::units::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::json;
use service::{Failure, Outcome, out, socket_address};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::server::{ServerArgs, failure};
use crate::client::Client;
use crate::protocol::frame::{HEAD_BYTES, frame, length};
use crate::protocol::{Command, ServerCommand, header, read, write};
use crate::traffic::{Answered, Exchange, Header, VERSION, without_passwords};
use base::many;

const EXAMPLES: &str = "\
Examples:
  loadline workflow record localhost:3141 --to day.jsonl --listen 127.0.0.1:3142
  ECF_PORT=3142 ecflow_client --ping                   and all else that is to be recorded
  loadline workflow record localhost --to hour.jsonl --for 1h
  loadline workflow replay day.jsonl localhost:4141

Clients that name this address instead of the server's are served as by it, and each request is kept
with its time and answer, a line of JSON each, without passwords: of trees, zombies, files and the
log, which have those of jobs, by length and checksum. Jobs ask the server that ECF_HOST and
ECF_PORT of their scripts name. Clients' connections here are not encrypted; --ssl is for the
server's.

Requests that the server has not answered in time are kept, too: it may have done them. Those in
this program's own protocol (get --level) are passed on, and counted as not understood.

Exit codes: 0 ended by Ctrl-C, SIGTERM or --for; 1 the server can't be reached at the start, the
address of --listen can't be had, or the file can't be written; 2 the file is there already.";

/// Connections at once; one more waits.
const CONNECTIONS: usize = 256;

/// The longest request.
const REQUEST_BYTES: u64 = 1 << 30;

/// Requests over this length are taken one at a time, so that all together need no more memory
/// than one.
const LONG_BYTES: u64 = 64 << 10;

/// How long a client may take for each part of its request, and of what it is answered.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether this ends, and how long connections may go on then.
const LOOK: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_secs(5);

/// A server, and a file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The file, which must not be there yet
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Where clients ask instead; port 0 is any
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0",
          value_parser = socket_address)]
    listen: SocketAddr,
    /// Take connections from other machines, too: they can do what this machine can
    #[arg(long)]
    public: bool,
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    within: Option<Span>,
    /// Print one JSON object once it listens, and one at the end
    #[arg(long)]
    json: bool,
}

/// What all connections share.
struct Recording {
    server: Client,
    file: Mutex<File>,
    begun: Clock,
    /// Held by who has a long request.
    long: Mutex<()>,
    open: AtomicUsize,
    counts: Counts,
    /// Why the file can't be written.
    broken: Mutex<Option<std::io::Error>>,
    is_over: Arc<AtomicBool>,
}

#[derive(Default)]
struct Counts {
    recorded: AtomicU64,
    /// Requests that no one understands.
    unread: AtomicU64,
    /// Requests that the server has not answered in time, and clients that went away.
    failed: AtomicU64,
}

pub(super) fn run(args: &RecordArgs) -> Outcome {
    if !args.listen.ip().is_loopback() && !args.public {
        let why = "other machines reach it, and could do what this one can: add --public";
        return Err(Failure::Usage(format!("--listen {}: {why}", args.listen)));
    }
    let server = args.server.client()?;
    server.command(Command::Server(ServerCommand::Ping)).map_err(failure)?;
    // Without an address there is no file either.
    let listener = TcpListener::bind(args.listen)
        .map_err(|why| anyhow::anyhow!("--listen {}: {why}", args.listen))?;
    listener.set_nonblocking(true)?;
    let shown = args.to.display();
    // What variables have is no one else's.
    let mut options = File::options();
    let made = options.write(true).create_new(true).mode(0o600).open(&args.to);
    let mut file = made.map_err(|why| match why.kind() {
        ErrorKind::AlreadyExists => {
            Failure::Usage(format!("--to {shown}: {why}: name another file"))
        }
        _ => Failure::Other(anyhow::anyhow!("--to {shown}: {why}")),
    })?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let address = server.address().to_owned();
    let header =
        Header { loadline_traffic: VERSION, server: address.clone(), begun: since.as_secs() };
    line(&mut file, &header).map_err(|why| anyhow::anyhow!("--to {shown}: {why}"))?;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let at = listener.local_addr()?;
    let ready = json!({"ready": true, "address": at.to_string(), "server": address});
    let text = format!("{at} leads to {address}; each request is kept in {shown}");
    out::print(if args.json { format!("{ready}\n") } else { format!("{text}\n") })?;
    let recording = Arc::new(Recording {
        server,
        file: Mutex::new(file),
        begun: Clock::now(),
        long: Mutex::new(()),
        open: AtomicUsize::new(0),
        counts: Counts::default(),
        broken: Mutex::new(None),
        is_over,
    });
    recording.accept(&listener, args.within.map(|span| Clock::now() + span.duration()))?;
    recording.end(args.json)
}

impl Recording {
    /// Takes connections until it is over.
    fn accept(self: &Arc<Self>, listener: &TcpListener, end: Option<Clock>) -> Result<(), Failure> {
        while !self.is_over.load(Ordering::Relaxed) && end.is_none_or(|end| Clock::now() < end) {
            let mut fds = [PollFd::new(listener, PollFlags::IN)];
            let look = Timespec::try_from(LOOK).unwrap_or_default();
            // A signal interrupts it.
            if !matches!(poll(&mut fds, Some(&look)), Ok(1..)) {
                continue;
            }
            if self.open.load(Ordering::Acquire) >= CONNECTIONS {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let Ok((stream, _)) = listener.accept() else { continue };
            self.open.fetch_add(1, Ordering::AcqRel);
            let own = Arc::clone(self);
            let name = std::thread::Builder::new().name("record".to_owned());
            let spawned = name.spawn(move || {
                if own.serve(stream).is_err() {
                    own.counts.failed.fetch_add(1, Ordering::Relaxed);
                }
                own.open.fetch_sub(1, Ordering::AcqRel);
            });
            if let Err(why) = spawned {
                self.open.fetch_sub(1, Ordering::AcqRel);
                out::note(format!("a connection is refused: {why}"));
            }
        }
        Ok(())
    }

    /// One request of a client: the server's answer is passed on as it is.
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        use std::io::Error;
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head)?;
        if head[0] == header::FIRST {
            return self.pass_on(stream, &head);
        }
        let bytes = length(head, REQUEST_BYTES).map_err(Error::other)?;
        let long = (bytes > LONG_BYTES).then(|| self.long.lock());
        let mut request = Vec::new();
        (&mut stream).take(bytes).read_to_end(&mut request)?;
        if (request.len() as u64) < bytes {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let at = self.begun.elapsed();
        let answer = self.server.send(&request);
        let took = self.begun.elapsed().saturating_sub(at);
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                // Unless it can't have come there, the server may have done it.
                if !why.is_refused_connection() {
                    self.keep(at, took, &request, None);
                }
                return Err(Error::other(why));
            }
        };
        let mut framed = Vec::with_capacity(answer.len() + HEAD_BYTES);
        frame(&mut framed, |out| out.extend_from_slice(&answer));
        let sent = stream.write_all(&framed);
        drop(framed);
        drop(stream);
        self.keep(at, took, &request, Some(&answer));
        drop(long);
        sent
    }

    /// A request in this program's own protocol, which is not kept.
    fn pass_on(&self, mut stream: TcpStream, begun: &[u8]) -> std::io::Result<()> {
        use std::io::Error;
        self.counts.unread.fetch_add(1, Ordering::Relaxed);
        let mut request = begun.to_vec();
        while !request.ends_with(b"\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            request.extend(byte);
            if request.len() > header::LINE_LIMIT {
                return Err(Error::other("a line without an end"));
            }
        }
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head)?;
        request.extend(head);
        let bytes = length(head, LONG_BYTES).map_err(Error::other)?;
        (&mut stream).take(bytes).read_to_end(&mut request)?;
        stream.write_all(&self.server.relay(&request).map_err(Error::other)?)
    }

    fn keep(&self, at: Duration, took: Duration, request: &[u8], answer: Option<&[u8]>) {
        let Ok(mut read) = read(request) else {
            self.counts.unread.fetch_add(1, Ordering::Relaxed);
            return;
        };
        without_passwords(&mut read);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let exchange = Exchange {
            at_us: micros(at),
            took_us: micros(took),
            request: String::from_utf8_lossy(&write(&read)).into_owned(),
            answer: answer.map_or_else(Answered::none, |answer| Answered::of(answer, &read)),
        };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match line(&mut file, &exchange) {
            Ok(()) => _ = self.counts.recorded.fetch_add(1, Ordering::Relaxed),
            Err(why) => {
                *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Lets requests that are under way come to their end, and says how many there were: those that
    /// don't are not answered.
    fn end(&self, is_json: bool) -> Outcome {
        let begun = Clock::now();
        while self.open.load(Ordering::Acquire) > 0 && begun.elapsed() < DRAIN {
            std::thread::sleep(Duration::from_millis(10));
        }
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(why) = broken {
            return Err(anyhow::Error::new(why).context("the recording can't be written").into());
        }
        let Counts { recorded, unread, failed } = &self.counts;
        let [recorded, unread, failed] =
            [recorded, unread, failed].map(|count| count.load(Ordering::Relaxed));
        let failed = failed + self.open.load(Ordering::Acquire) as u64;
        if is_json {
            let all = json!({
                "schema": 1, "recorded": recorded, "not_understood": unread, "failed": failed,
            });
            out::print(format_args!("{all}\n"))?;
        } else {
            out::print(format_args!(
                "{} recorded; {unread} not understood, {failed} not answered\n",
                many(recorded, "request")
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Appends a line with one write, so that what is in the file is whole lines.
fn line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    file.write_all(&text)
}
