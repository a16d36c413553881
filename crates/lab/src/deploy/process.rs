//! Starting, watching and stopping one target.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use wire::Address;

use super::guard::Guard;
use super::{kept, pin_this_thread, ready};
use crate::drive::batch::Batch;
use crate::plan::{Medium, Target, TargetKind};

/// A target gets this long to end after SIGTERM before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(6);

/// How many lines of a target's output an error shows.
const LAST_LINES: usize = 8;

/// Why a target is not there.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// It could not be started.
    #[error("{name}: can't start {program}: {source}")]
    Start {
        /// The target.
        name: String,
        /// Its program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{name}: {how}")]
    Ended {
        /// The target.
        name: String,
        /// How it ended, with its last lines.
        how: String,
    },
    /// It was not ready in time.
    #[error("{name}: not ready within {within}{lines}")]
    NotReady {
        /// The target.
        name: String,
        /// The time it had.
        within: load::units::Span,
        /// Its last lines.
        lines: String,
    },
    /// A command around it failed.
    #[error("{name}: its {what} failed: {how}")]
    Helper {
        /// The target.
        name: String,
        /// `build` or `setup`.
        what: &'static str,
        /// What happened, with its last lines.
        how: String,
    },
    /// This program's file is another one than at the start of the run.
    #[error("{} was replaced since the run began, as by a build: run it again", exe.display())]
    Replaced {
        /// The file.
        exe: PathBuf,
    },
    /// The run was stopped while the target started.
    #[error("interrupted")]
    Interrupted,
}

/// Starts targets: knows the program itself, the folder for logs, and the guard.
#[derive(Debug)]
pub struct Deployer {
    exe: PathBuf,
    /// Which file that is: what serves and loads has to be the same from the first round on.
    inode: Option<(u64, u64)>,
    folder: PathBuf,
    /// Where data sets are kept.
    data: PathBuf,
    /// Whether their copies are dropped from the page cache before each start.
    cools: bool,
    guard: Arc<Guard>,
    started: u32,
}

/// A target that is ready.
#[derive(Debug)]
pub struct Deployed {
    /// Its name.
    pub name: String,
    /// Where it is spoken to.
    pub address: Address,
    /// What to run, when it is a batch: nothing runs in between.
    pub batch: Option<Batch>,
    /// Whether its data were prepared before, and copied.
    pub is_restored: bool,
    /// Its folder of data, where these are kept.
    data: Option<PathBuf>,
    process: Option<(Child, Place)>,
}

impl Deployer {
    /// Logs go to `folder`, which is made, and data sets are kept in `data`; `exe` is this program.
    ///
    /// # Errors
    /// When the folder can't be made or the guard can't be started.
    pub fn new(exe: &Path, folder: &Path, data: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self {
            exe: exe.to_owned(),
            inode: inode_of(exe),
            folder: folder.to_owned(),
            data: data.to_owned(),
            cools: false,
            guard: Arc::new(Guard::start(exe)?),
            started: 0,
        })
    }

    /// The same, whose targets find their kept data on the disk and not in memory.
    #[must_use]
    pub fn with_cold_data(self, cools: bool) -> Self {
        Self { cools, ..self }
    }

    /// The guard, for what is started beside targets.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// This program.
    pub fn exe(&self) -> &Path {
        &self.exe
    }

    /// The folder for what belongs to `name` beside the target that was started last.
    pub fn folder_beside(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{:04}-{name}", self.started))
    }

    /// A folder of its own for what belongs to `name`.
    fn folder_for(&mut self, name: &str) -> PathBuf {
        self.started += 1;
        self.folder.join(format!("{:04}-{name}", self.started))
    }

    /// Runs a target's `build`, once for all its starts. `stop` is asked while it runs.
    ///
    /// # Errors
    /// When it can't be started or fails, with its last lines.
    pub fn build(&mut self, target: &Target, stop: &dyn Fn() -> bool) -> Result<(), DeployError> {
        let Some(build) = &target.build else { return Ok(()) };
        let folder = self.folder.join(format!("build-{}", target.name));
        let place = Place::new(&folder, 0, Medium::Tcp);
        self.help(target, "build", build, &place, stop)
    }

    /// Runs a command around a target to its end. It is guarded as targets are, and ended with all
    /// that it has started when the run is stopped.
    fn help(
        &mut self,
        target: &Target,
        what: &'static str,
        command: &[String],
        place: &Place,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), DeployError> {
        let failed = |how| DeployError::Helper { name: target.name.clone(), what, how };
        let unable = |error| failed(format!("can't start {}: {error}", command[0]));
        let prepared = place.prepare(target, &self.guard.at_the_door(command), &format!("{what}-"));
        let spawned = prepared.and_then(|mut command| command.stdin(Stdio::piped()).spawn());
        let mut child = spawned.map_err(unable)?;
        self.guard.let_in(&mut child);
        let status = loop {
            match child.try_wait().map_err(unable)? {
                None if stop() => break None,
                None => std::thread::sleep(ready::LOOK_EVERY),
                ended => break ended,
            }
        };
        if status.is_none() {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
        }
        self.guard.forget(child.id());
        match status {
            None => Err(DeployError::Interrupted),
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let lines = last_lines(&place.folder, &format!("{what}-"));
                Err(failed(format!("{}{lines}", describe(status))))
            }
        }
    }

    /// Starts `target` and waits until it is ready. `stop` is asked while waiting.
    ///
    /// # Errors
    /// Why it is not there, with its last lines of output.
    pub fn deploy(
        &mut self,
        target: &Target,
        stop: &dyn Fn() -> bool,
    ) -> Result<Deployed, DeployError> {
        let name = target.name.clone();
        if inode_of(&self.exe) != self.inode {
            return Err(DeployError::Replaced { exe: self.exe.clone() });
        }
        if target.kind == TargetKind::InProcess {
            // Its process is started for each piece of load.
            let address = Address::Unix(PathBuf::from("in-process"));
            return Ok(Deployed::at(name, address));
        }
        if let TargetKind::Address(address) = &target.kind {
            return Ok(Deployed::at(name, address.clone()));
        }
        let folder = self.folder_for(&name);
        let (command, announced) = self.command(target);
        let start_error = |source| DeployError::Start {
            name: name.clone(),
            program: command.first().cloned().unwrap_or_default(),
            source,
        };
        let port = ready::free_port().map_err(start_error)?;
        let place = Place::new(&folder, port, target.medium);
        if let Some(setup) = &target.setup {
            self.help(target, "setup", setup, &place, stop)?;
        }
        if let TargetKind::Batch(_) = target.kind {
            let batch = Batch {
                exe: self.exe.clone(),
                command: place.fill(&command),
                env: target.env.clone(),
                cpus: target.cpus.clone(),
                folder,
                figures: target.figures.clone(),
            };
            let address = place.address();
            let mut deployed = Deployed::at(name, address);
            deployed.batch = Some(batch);
            return Ok(deployed);
        }
        let data = target.kept_data.as_ref().map(|_| place.data());
        let is_restored = self.restore(target, &place).map_err(start_error)?;
        let mut child = self.spawn(target, &command, &place).map_err(start_error)?;
        self.guard.let_in(&mut child);
        let address = place.address();
        let mut deployed = Deployed::at(name, address);
        (deployed.is_restored, deployed.data) = (is_restored, data);
        deployed.process = Some((child, place));
        match deployed.await_ready(target, announced, stop) {
            Ok(()) => Ok(deployed),
            Err(error) => {
                self.stop(deployed);
                Err(error)
            }
        }
    }

    /// Copies the data of a target to where it starts, if they are kept; whether they are.
    fn restore(&self, target: &Target, place: &Place) -> io::Result<bool> {
        let Some(name) = &target.kept_data else { return Ok(false) };
        let kept = self.data.join(name);
        let is_there = kept.is_dir();
        if is_there {
            kept::copy(&kept, &place.data())?;
            if self.cools {
                kept::cool(&place.data())?;
            }
        } else {
            std::fs::create_dir_all(place.data())?;
        }
        Ok(is_there)
    }

    /// Stops a target that has been prepared, and keeps its data for later starts.
    ///
    /// # Errors
    /// When they can't be copied.
    pub fn keep(&mut self, target: &Target, mut deployed: Deployed) -> io::Result<()> {
        let data = deployed.data.take();
        self.stop(deployed);
        let Some((name, data)) = target.kept_data.as_ref().zip(data) else { return Ok(()) };
        std::fs::create_dir_all(&self.data)?;
        kept::keep(&data, &self.data.join(name))?;
        std::fs::remove_dir_all(data)
    }

    /// Starts the process from a thread that is pinned first, so that it runs on its CPUs from its
    /// first instruction on. It waits at its door until the guard knows of it.
    fn spawn(&self, target: &Target, command: &[String], place: &Place) -> io::Result<Child> {
        let mut command = place.prepare(target, &self.guard.at_the_door(command), "")?;
        command.stdin(Stdio::piped());
        std::thread::scope(|scope| {
            let starter = scope.spawn(|| {
                pin_this_thread(&target.cpus)?;
                command.spawn()
            });
            starter.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread ended")))
        })
    }

    /// The whole command line, and whether the target says by itself that it is ready.
    fn command(&self, target: &Target) -> (Vec<String>, bool) {
        let mut command = target.wrap.clone().unwrap_or_default();
        match &target.kind {
            TargetKind::Service(service, arguments) => {
                let listen = match target.medium {
                    Medium::Tcp | Medium::Udp => "--listen=127.0.0.1:0",
                    Medium::Tcp6 => "--listen=[::1]:0",
                    Medium::Unix => "--listen=unix:{socket}",
                };
                command.push(self.exe.display().to_string());
                command.extend(["serve", service, listen].map(str::to_owned));
                command.extend(arguments.iter().cloned());
                (command, true)
            }
            TargetKind::Command(own) | TargetKind::Batch(own) => {
                command.extend(own.iter().cloned());
                (command, false)
            }
            TargetKind::Address(_) | TargetKind::InProcess => (command, false),
        }
    }

    /// Ends a target: SIGTERM to its whole group, and SIGKILL if it does not end.
    pub fn stop(&mut self, mut deployed: Deployed) {
        let group = deployed.group();
        deployed.end();
        if let Some(data) = deployed.data.take() {
            // A copy of what is kept, or what was never finished.
            let _ = std::fs::remove_dir_all(data);
        }
        if let Some(group) = group {
            self.guard.forget(group.as_raw_nonzero().get() as u32);
        }
    }
}

/// Where one start of a target happens: its folder, port and socket.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    port: u16,
    socket: PathBuf,
    medium: Medium,
}

/// Sockets get numbers of their own, because a path of more than 107 bytes is none for a socket.
static SOCKETS: AtomicU32 = AtomicU32::new(0);

impl Place {
    fn new(folder: &Path, port: u16, medium: Medium) -> Self {
        let (process, number) = (std::process::id(), SOCKETS.fetch_add(1, Ordering::Relaxed));
        let socket = std::env::temp_dir().join(format!("loadline-{process}-{number}.socket"));
        Self { folder: folder.to_owned(), port, socket, medium }
    }

    /// The folder for its data, which placeholders call `{data}`.
    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn address(&self) -> Address {
        match self.medium {
            Medium::Tcp | Medium::Udp => Address::Internet((Ipv4Addr::LOCALHOST, self.port).into()),
            Medium::Tcp6 => Address::Internet((Ipv6Addr::LOCALHOST, self.port).into()),
            Medium::Unix => Address::Unix(self.socket.clone()),
        }
    }

    /// The program and its arguments with every placeholder filled in.
    fn fill(&self, command: &[String]) -> Vec<String> {
        let fill = |argument: &String| {
            argument
                .replace("{port}", &self.port.to_string())
                .replace("{socket}", &self.socket.display().to_string())
                .replace("{data}", &self.data().display().to_string())
                .replace("{dir}", &self.folder.display().to_string())
        };
        command.iter().map(fill).collect()
    }

    /// The command, with its output going to files in the folder.
    fn prepare(&self, target: &Target, command: &[String], log: &str) -> io::Result<Command> {
        std::fs::create_dir_all(&self.folder)?;
        let filled = self.fill(command);
        let mut prepared = Command::new(&filled[0]);
        prepared
            .args(&filled[1..])
            .envs(&target.env)
            .stdin(Stdio::null())
            .stdout(File::create(self.folder.join(format!("{log}stdout")))?)
            .stderr(File::create(self.folder.join(format!("{log}stderr")))?)
            .process_group(0);
        Ok(prepared)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Deployed {
    /// Something at an address that the lab has not started.
    fn at(name: String, address: Address) -> Self {
        Self { name, address, batch: None, is_restored: false, data: None, process: None }
    }

    /// Text of the suite with what is known of the target filled in.
    pub fn fill(&self, text: &str) -> String {
        let (host, port) = match &self.address {
            Address::Internet(address) => (address.ip().to_string(), address.port().to_string()),
            Address::Unix(_) => (String::new(), String::new()),
        };
        let text = match &self.process {
            Some((_, place)) => text.replace("{dir}", &place.folder.display().to_string()),
            None => text.to_owned(),
        };
        let socket = self.address.to_string();
        text.replace("{address}", &self.address.to_string())
            .replace("{host}", &host)
            .replace("{port}", &port)
            .replace("{socket}", socket.trim_start_matches("unix:"))
    }

    /// The process group, when the lab started it.
    pub fn group(&self) -> Option<Pid> {
        self.process.as_ref().and_then(|(child, _)| Pid::from_raw(child.id() as i32))
    }

    /// How it ended, if it has, with its last lines.
    pub fn ended(&mut self) -> Option<String> {
        let (child, place) = self.process.as_mut()?;
        let status = child.try_wait().ok().flatten()?;
        Some(format!("{}{}", describe(status), last_lines(&place.folder, "")))
    }

    fn await_ready(
        &mut self,
        target: &Target,
        announced: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), DeployError> {
        let deadline = Instant::now() + target.ready_within.duration();
        loop {
            if let Some(how) = self.ended() {
                return Err(DeployError::Ended { name: target.name.clone(), how });
            }
            let folder = self.process.as_ref().map(|(_, place)| place.folder.clone());
            let folder = folder.unwrap_or_default();
            if announced {
                match ready::announced(&folder.join("stdout"), target.medium) {
                    Ok(None) => {}
                    Ok(Some(address)) => {
                        self.address = address;
                        return Ok(());
                    }
                    Err(how) => {
                        return Err(DeployError::Ended { name: target.name.clone(), how });
                    }
                }
            } else if ready::accepts(&self.address, target.medium) {
                return Ok(());
            }
            if stop() {
                return Err(DeployError::Interrupted);
            }
            if Instant::now() > deadline {
                return Err(DeployError::NotReady {
                    name: target.name.clone(),
                    within: target.ready_within,
                    lines: last_lines(&folder, ""),
                });
            }
            std::thread::sleep(ready::LOOK_EVERY);
        }
    }

    fn end(&mut self) {
        let Some(group) = self.group() else { return };
        let Some((child, _)) = self.process.as_mut() else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let deadline = Instant::now() + STOP_WITHIN;
        let mut leader_ended = false;
        while Instant::now() < deadline {
            leader_ended |= matches!(child.try_wait(), Ok(Some(_)));
            if leader_ended && test_kill_process_group(group).is_err() {
                self.process = None;
                return;
            }
            std::thread::sleep(ready::LOOK_EVERY);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
        self.process = None;
    }
}

impl Drop for Deployed {
    fn drop(&mut self) {
        self.end();
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with status {code}"),
        (None, Some(signal)) if signal == Signal::XFSZ.as_raw() => {
            "it was ended because it wrote a larger file than ulimit -f allows".to_owned()
        }
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// What tells a file from another one that is put in its place.
fn inode_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}

/// The last bytes of a file, which may be long.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    const MOST_BYTES: u64 = 64 << 10;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
    let mut end = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut end)?;
    Ok(end)
}

/// The last lines of what a target printed, as the rest of a sentence; empty when it said nothing.
fn last_lines(folder: &Path, log: &str) -> String {
    let end = |name| end_of(&folder.join(format!("{log}{name}"))).unwrap_or_default();
    let said = [end("stdout"), end("stderr")].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<_> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() {
        return "; it printed nothing".to_owned();
    }
    format!("; its last lines:\n    {}", last.join("\n    "))
}
