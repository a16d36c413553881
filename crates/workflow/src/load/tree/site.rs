//! The server that is loaded: its address, its process and its folder, and what it says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::numbers::Numbers;
use super::super::requests::{command, query, sync};
use super::exchange::{agreed, exchange, text};
use super::process::Process;
use crate::protocol::{Command, Encoding, ServerCommand, SyncKind, is_spoken};

/// Why a step is not what it should be.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server was not reached, or closed the connection.
    Broken(std::io::Error),
    /// It said or did something else than it should.
    Wrong(String),
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

/// A wrong answer.
pub(super) fn wrong<T>(why: impl Into<String>) -> Result<T> {
    Err(Fault::Wrong(why.into()))
}

/// The server.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) at: SocketAddr,
    pub(super) process: Process,
    home: PathBuf,
    /// Where checkpoints are written.
    pub(super) check_file: PathBuf,
    /// Whether it speaks this program's own protocol, too.
    pub(super) is_own: bool,
    /// The document of the last answer, or what came in this program's protocol, and how it is
    /// written then.
    pub(super) answer: Vec<u8>,
    pub(super) encoding: Option<Encoding>,
}

impl Site {
    /// Asks the server at an address for its process and its folder, which are on this host.
    pub(super) fn find(at: SocketAddr) -> Result<Self> {
        let mut answer = Vec::new();
        exchange(at, &sync(SyncKind::Full, Numbers::default()), &mut answer)?;
        let text = self::text(&answer)?;
        let variable = |name: &str| {
            let line = |line: &str| {
                let value = line.strip_prefix("edit ")?.strip_prefix(name)?.strip_prefix(" '")?;
                Some(value.strip_suffix("' # server")?.to_owned())
            };
            text.lines().find_map(line).unwrap_or_default()
        };
        let (pid, home) = (variable("ECF_PID"), variable("ECF_HOME"));
        let check_file = Path::new(&home).join(variable("ECF_CHECK"));
        let process = pid.parse().ok().and_then(Process::of);
        let Some(process) = process.filter(|_| Path::new(&home).is_dir()) else {
            let why = format!("the server's process {pid} and folder {home} aren't on this host");
            return wrong(why + ": run it here");
        };
        let home = PathBuf::from(home);
        exchange(at, &command(Command::Server(ServerCommand::StatsText)), &mut answer)?;
        let is_own = is_spoken(&self::text(&answer)?);
        Ok(Self { at, process, home, check_file, is_own, answer, encoding: None })
    }

    /// Sends a request; its answer is in `answer`.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<Duration> {
        let (took, encoding) = exchange(self.at, request, &mut self.answer)?;
        self.encoding = encoding;
        Ok(took)
    }

    /// Sends a request that is answered without contents.
    pub(super) fn tell(&mut self, request: &[u8]) -> Result<Duration> {
        let took = self.ask(request)?;
        agreed(&self.answer)?;
        Ok(took)
    }

    /// What a node or an attribute of it is.
    pub(super) fn query(&mut self, kind: &str, path: &str, attribute: &str) -> Result<String> {
        self.ask(&query(kind, path, attribute))?;
        Ok(text(&self.answer)?)
    }

    /// Whether a node is in a state.
    pub(super) fn hold_state(&mut self, kind: &str, path: &str, state: &str) -> Result<()> {
        let found = self.query(kind, path, "")?;
        if found == state {
            return Ok(());
        }
        wrong(format!("{path} is {found} and should be {state}"))
    }

    /// The number and time of the file of checkpoints: another one after each checkpoint.
    pub(super) fn check_file_number(&self) -> Option<(u64, i64, i64)> {
        use std::os::unix::fs::MetadataExt as _;
        let file = std::fs::metadata(&self.check_file).ok()?;
        Some((file.ino(), file.mtime(), file.mtime_nsec()))
    }

    /// A folder of this load in the server's.
    pub(super) fn folder(&self) -> PathBuf {
        self.home.join("loadline-load")
    }
}
