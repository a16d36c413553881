//! Starting, watching and stopping one target.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use wire::Address;

use super::guard::Guard;
use super::{pin_this_thread, ready};
use crate::plan::{Target, TargetKind};

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
        within: workload::units::Span,
        /// Its last lines.
        lines: String,
    },
    /// The run was stopped while the target started.
    #[error("interrupted")]
    Interrupted,
}

/// Starts targets: knows the program itself, the folder for logs, and the guard.
#[derive(Debug)]
pub struct Deployer {
    exe: PathBuf,
    folder: PathBuf,
    guard: Guard,
    started: u32,
}

/// A target that is ready.
#[derive(Debug)]
pub struct Deployed {
    /// Its name.
    pub name: String,
    /// Where it is spoken to.
    pub address: Address,
    process: Option<(Child, PathBuf)>,
}

impl Deployer {
    /// Logs go to `folder`, which is made; `exe` is this program.
    ///
    /// # Errors
    /// When the folder can't be made or the guard can't be started.
    pub fn new(exe: &Path, folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self {
            exe: exe.to_owned(),
            folder: folder.to_owned(),
            guard: Guard::start(exe)?,
            started: 0,
        })
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
        let (command, announced) = match &target.kind {
            TargetKind::Address(address) => {
                return Ok(Deployed {
                    name: target.name.clone(),
                    address: address.clone(),
                    process: None,
                });
            }
            TargetKind::Room(room, arguments) => {
                let exe = self.exe.display().to_string();
                let fixed = [exe, "serve".into(), (*room).into(), "--listen=127.0.0.1:0".into()];
                (fixed.into_iter().chain(arguments.iter().cloned()).collect::<Vec<_>>(), true)
            }
            TargetKind::Command(command) => (command.clone(), false),
        };
        let started = |source| DeployError::Start {
            name: target.name.clone(),
            program: command[0].clone(),
            source,
        };
        let port = ready::free_port().map_err(started)?;
        self.started += 1;
        let folder = self.folder.join(format!("{:04}-{}", self.started, target.name));
        std::fs::create_dir_all(&folder).map_err(started)?;
        let child = spawn(target, &command, port, &folder).map_err(started)?;
        self.guard.tell('+', child.id());
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut deployed = Deployed {
            name: target.name.clone(),
            address: Address::Internet(at),
            process: Some((child, folder)),
        };
        match deployed.await_ready(target, announced, stop) {
            Ok(()) => Ok(deployed),
            Err(error) => {
                self.stop(deployed);
                Err(error)
            }
        }
    }

    /// Ends a target: SIGTERM to its whole group, and SIGKILL if it does not end.
    pub fn stop(&mut self, mut deployed: Deployed) {
        let group = deployed.group();
        deployed.end();
        if let Some(group) = group {
            self.guard.tell('-', group.as_raw_nonzero().get() as u32);
        }
    }
}

/// Starts the process from a thread that is pinned first, so that it runs on its CPUs from its
/// first instruction on.
fn spawn(target: &Target, command: &[String], port: u16, folder: &Path) -> io::Result<Child> {
    let place = |argument: &String| {
        argument
            .replace("{port}", &port.to_string())
            .replace("{dir}", &folder.display().to_string())
    };
    let command: Vec<String> = command.iter().map(place).collect();
    let stdout = File::create(folder.join("stdout"))?;
    let stderr = File::create(folder.join("stderr"))?;
    std::thread::scope(|scope| {
        let starter = scope.spawn(|| {
            pin_this_thread(&target.cpus)?;
            Command::new(&command[0])
                .args(&command[1..])
                .envs(&target.env)
                .stdin(Stdio::null())
                .stdout(stdout)
                .stderr(stderr)
                .process_group(0)
                .spawn()
        });
        starter.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread ended")))
    })
}

impl Deployed {
    /// The process group, when the lab started it.
    pub fn group(&self) -> Option<Pid> {
        self.process.as_ref().and_then(|(child, _)| Pid::from_raw(child.id() as i32))
    }

    /// How it ended, if it has, with its last lines.
    pub fn ended(&mut self) -> Option<String> {
        let (child, folder) = self.process.as_mut()?;
        let status = child.try_wait().ok().flatten()?;
        Some(format!("{}{}", describe(status), last_lines(folder)))
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
            let folder = self.process.as_ref().map(|(_, folder)| folder.clone());
            let folder = folder.unwrap_or_default();
            if announced {
                if let Some(address) = ready::announced(&folder.join("stdout")) {
                    self.address = address;
                    return Ok(());
                }
            } else if ready::accepts(&self.address) {
                return Ok(());
            }
            if stop() {
                return Err(DeployError::Interrupted);
            }
            if Instant::now() > deadline {
                return Err(DeployError::NotReady {
                    name: target.name.clone(),
                    within: target.ready_within,
                    lines: last_lines(&folder),
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
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// The last lines of what a target printed, as the rest of a sentence; empty when it said nothing.
fn last_lines(folder: &Path) -> String {
    let read = |name| std::fs::read(folder.join(name)).unwrap_or_default();
    let said = [read("stdout"), read("stderr")].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<_> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() {
        return "; it printed nothing".to_owned();
    }
    format!("; its last lines:\n    {}", last.join("\n    "))
}
