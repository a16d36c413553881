//! `loadline rpc ping`: how long a call takes, over any carrier, each answer checked. Control
//! plane.

pub(super) mod caller;
pub(super) mod cpus;
mod grpc;
mod rung;
pub(super) mod seen;
pub(super) mod show;
pub(super) mod started;
pub(super) mod trial;

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context as _;
use base::units::{ByteCount, Span};
use service::{Failure, Outcome, out};

use super::args::{self, SessionArgs};
use crate::carriers::{CarrierAddress, Tuning};
use crate::client::native::{Flush, FutureKind};
use crate::mpi::World;
use crate::server::native::serve_rank;
use crate::waiting::Wait;
use crate::writes::Writes;
use caller::{Caller, Function, How};
use cpus::Cpus;
use rung::{Rung, Within};
use seen::Seen;
use show::Beside;
use started::Started;
use trial::{Allocated, Limits, Trial};

/// Calls that say where both sides run, before the trial and after it: few, as one may take 88 ms.
const LOOKS: usize = 4;

/// The exit code after SIGINT, as that of a shell's.
const INTERRUPTED: u8 = 130;

/// Where calls go, and how they are written.
#[derive(Debug, clap::Args)]
pub(super) struct ToArgs {
    /// The server: here: (within this process), unix:PATH, shm:PATH, tcp:HOST:PORT, pipe:COMMAND
    /// (its standard input and output) or mpi: (rank 1 of a job of Open MPI, in which this is
    /// rank 0; mpi:2 is rank 2) by own frames, or grpc://HOST:PORT. For call also HOST, HOST:PORT
    /// and grpcs://HOST:PORT, and unix:PATH is gRPC. For ping with add also what a call within this
    /// process is made of: direct: (the function alone), codec: (and its messages encoded and
    /// decoded), table: (and found by its name); and frames: (here: by the frames that the others
    /// carry)
    pub(super) address: String,

    /// Start this command of the shell as the server, and end it afterwards. It prints a ready
    /// line, as `loadline serve rpc --listen 127.0.0.1:0` does, whose address is taken for tcp: or
    /// grpc:// with nothing after it
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,

    /// Run this side on a core, and what it starts, --server or pipe:, on another one
    #[arg(long, value_name = "CLIENT,SERVER", default_value = "any", value_parser = cpus::cpus)]
    cpus: Cpus,

    /// Divide each request into writes, to see what that costs
    #[arg(long, value_name = "HOW", default_value = "array")]
    writes: Writes,

    /// Divide each answer into this many reads, to see what that costs
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(2..=25))]
    reads: Option<u8>,

    /// Put a buffer between, which gathers writes and takes all that can be read, to see what that
    /// spares
    #[arg(long)]
    buffered: bool,

    /// When the buffer is flushed
    #[arg(long, value_name = "WHEN", default_value = "message", requires = "buffered")]
    flush: Flush,

    /// Leave Nagle's algorithm on, to see what that costs (tcp:)
    #[arg(long)]
    pub(super) nagle: bool,

    /// Acknowledge at once what comes to this side (tcp:)
    #[arg(long)]
    quickack: bool,

    /// How this side waits for answers; without it asleep, but hybrid over shared memory and MPI,
    /// whose ranks all wait like this
    #[arg(long, value_name = "HOW")]
    wait: Option<Wait>,

    /// How an answer is handed to the thread that waits for it (tcp:, unix: and pipe:)
    #[arg(long, value_name = "HOW", default_value = "caller")]
    future: FutureKind,
}

/// What is called, and how often.
#[derive(Debug, clap::Args)]
pub(super) struct PingArgs {
    #[command(flatten)]
    to: ToArgs,

    /// The function; the totals of add are checked, so no one else may add meanwhile
    #[arg(long, value_name = "NAME", default_value = "add")]
    function: Function,

    /// Bytes that echo sends and returns [default: 8]
    #[arg(long, value_name = "SIZE", value_parser = args::echoed)]
    bytes: Option<ByteCount>,

    /// The most samples
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,

    /// The most time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = args::time)]
    time: Span,
}

impl ToArgs {
    /// Where both sides run.
    pub(super) fn cpus(&self) -> Cpus {
        self.cpus
    }

    /// Whether the server is called by own frames: where gRPC is called, too, a Unix socket is one
    /// of gRPC.
    #[cfg(feature = "grpc")]
    pub(super) fn is_of_frames(&self) -> bool {
        let schemes = ["here:", "frames:", "tcp:", "shm:", "pipe:", "mpi:"];
        schemes.iter().any(|scheme| self.address.starts_with(scheme))
    }

    /// Whether a flag is typed that is about a connection.
    fn is_tuned(&self) -> bool {
        let is_planted = self.writes != Writes::default() || self.reads.is_some() || self.buffered;
        let is_tuned = self.nagle || self.quickack || self.wait.is_some();
        is_planted || is_tuned || self.server.is_some() || self.future != FutureKind::Caller
    }

    /// Whether the address alone is typed, as gRPC has it.
    #[cfg(feature = "grpc")]
    pub(super) fn check_bare(&self) -> Result<(), Failure> {
        if self.is_tuned() || self.cpus != Cpus::default() {
            let words = "--server, --cpus, --writes, --reads, --buffered, --nagle, --quickack, \
                         --wait and --future are for own frames: here:, tcp:, shm:, pipe: or mpi:";
            return Err(Failure::Usage(words.to_owned()));
        }
        Ok(())
    }

    /// Whether each flag is for this address.
    fn check(&self) -> Result<(), Failure> {
        let is_of = |schemes: &[&str]| schemes.iter().any(|one| self.address.starts_with(one));
        let for_frames = &["tcp:", "unix:", "pipe:", "shm:", "mpi:"][..];
        let for_futures = &["tcp:", "unix:", "pipe:"][..];
        let rows = [
            ("--nagle and --quickack are", self.nagle || self.quickack, &["tcp:"][..]),
            ("--wait is", self.wait.is_some(), for_frames),
            ("--future is", self.future != FutureKind::Caller, for_futures),
        ];
        for (flag, is_typed, schemes) in rows {
            if is_typed && !is_of(schemes) {
                let words = format!("{flag} for {} addresses", schemes.join(", "));
                return Err(Failure::Usage(words));
            }
        }
        if self.cpus.server.is_some_and(|server| self.cpus.client != Some(server))
            && self.server.is_none()
            && !is_of(&["pipe:", "here:", "frames:", "mpi:"])
        {
            let words = "--cpus CLIENT,SERVER: the server has to be started here, by --server or \
                         pipe:; of one that runs already only the client's core can be said";
            return Err(Failure::Usage(words.to_owned()));
        }
        let is_divided = self.writes != Writes::default() || self.reads.is_some() || self.buffered;
        if (caller::is_grpc(&self.address) || is_of(&["here:"])) && is_divided {
            let words = "--writes, --reads and --buffered are for own frames: tcp:, unix:, pipe:, \
                         shm:, mpi: and frames:";
            return Err(Failure::Usage(words.to_owned()));
        }
        if self.future != FutureKind::Caller && is_divided {
            let words = "--writes, --reads and --buffered are for a caller that reads its answers \
                         itself: leave out --future";
            return Err(Failure::Usage(words.to_owned()));
        }
        if is_of(&["mpi:"]) && self.server.is_some() {
            let words = "--server: the other ranks of mpi: are its servers, and mpirun starts them";
            return Err(Failure::Usage(words.to_owned()));
        }
        Ok(())
    }

    /// Serves rank 0 to its end, where this process is another rank of mpi:.
    pub(super) fn serve_rank(&self) -> Result<Option<ExitCode>, Failure> {
        let Ok(CarrierAddress::Mpi(server)) = self.address.parse() else { return Ok(None) };
        self.check()?;
        let world = World::join()?;
        if world.rank() == 0 {
            return Ok(None);
        }
        cpus::pin(self.cpus.server)?;
        // What is wrong with the job rank 0 says for all, and fails: where another rank fails
        // first, mpirun ends it unheard.
        let link = world.link(server, self.wait.unwrap_or_default(), Duration::MAX);
        let served = link.and_then(serve_rank);
        served.with_context(|| format!("rank {} can't serve rank 0", world.rank()))?;
        Ok(Some(ExitCode::SUCCESS))
    }

    /// The connection that is typed; the server, where it is started, stays with `server`.
    pub(super) fn caller(
        &self,
        session: SessionArgs,
        server: &mut Option<Started>,
    ) -> Result<Caller, Failure> {
        self.check()?;
        let tuning = Tuning { nagle: self.nagle, quickack: self.quickack, wait: self.wait };
        let of_grpc = [
            ("--tls-ca", session.encryption.tls_ca.is_some()),
            ("--gzip", session.gzip),
            ("--proto", !session.proto.is_empty()),
        ];
        if let Some((name, _)) = of_grpc.iter().find(|(_, is_typed)| *is_typed)
            && !caller::is_grpc(&self.address)
        {
            let words =
                format!("{name} is for grpc:// and grpcs://: own frames have no such thing");
            return Err(Failure::Usage(words));
        }
        cpus::pin(self.cpus.server)?;
        let mut address = self.address.clone();
        if let Some(command) = &self.server {
            let started =
                server.insert(Started::start(command, session.connect_timeout.duration())?);
            if ["tcp:", "grpc://"].contains(&&address[..]) {
                address.push_str(&started.address);
            }
        }
        let how = How {
            tuning,
            writes: self.writes,
            reads: self.reads.map(usize::from),
            buffered: self.buffered.then_some(self.flush),
            future: self.future,
            cpu: self.cpus.client,
        };
        Caller::connect(&address, session, how)
    }
}

/// The bytes of an echo, where none are typed.
const ECHO_BYTES: usize = 8;

/// Runs the trial, and shows it.
pub(super) fn ping(args: &PingArgs, session: SessionArgs) -> Outcome {
    if args.bytes.is_some() && args.function != Function::Echo {
        let words = "--bytes is what echo sends and returns: add --function echo, or leave it out";
        return Err(Failure::Usage(words.to_owned()));
    }
    if let Some(served) = args.to.serve_rank()? {
        return Ok(served);
    }
    let json = session.json;
    let mut server = None;
    let mut caller = match Rung::of(&args.to.address) {
        Some(_) if args.function != Function::Add => {
            let words = "direct:, codec: and table: are for --function add";
            return Err(Failure::Usage(words.to_owned()));
        }
        Some(_) if args.to.is_tuned() => {
            let words = "direct:, codec: and table: have no connection: of the flags of one they \
                         take --cpus";
            return Err(Failure::Usage(words.to_owned()));
        }
        Some(rung) => {
            cpus::pin(args.to.cpus.client)?;
            Caller::Within(Box::new(Within::new(rung)))
        }
        None => args.to.caller(session, &mut server)?,
    };
    let bytes = args.bytes.map_or(ECHO_BYTES, |size| size.bytes as usize);
    let mut work = caller::Work::new(args.function, bytes);
    let mut seen = Seen::default();
    seen.look_if_told(&mut caller, LOOKS)?;
    let allocated = Allocated::of(|| work.once(&mut caller))?;
    let stop = service::interruption()?;
    let (samples, time) = (args.count as usize, args.time.duration());
    let trial = Trial::run(Limits { samples, time, stop: &stop }, || work.once(&mut caller))?;
    let is_interrupted = stop.load(Relaxed);
    if !is_interrupted {
        seen.look_if_told(&mut caller, LOOKS)?;
    }
    let beside = Beside { allocated, seen };
    let shown = match json {
        true => show::json(&args.to.address, &work, &trial, &beside),
        false => show::text(&args.to.address, &work, &trial, &beside),
    };
    out::print(shown)?;
    Ok(if is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}
