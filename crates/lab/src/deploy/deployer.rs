//! Starting and stopping targets.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wire::Address;

use super::deployed::Deployed;
use super::error::DeployError;
use super::last_words::{describe, last_lines};
use super::site::{Site, remove_stale_sockets};
use super::supervisor::Supervised;
use super::{data_sets, ready};
use crate::cpus::pin_this_thread;
use crate::drive::batch::Batch;
use crate::plan::{KeptData, Medium, Target, TargetKind};

/// Starts and stops targets.
#[derive(Debug)]
pub struct Deployer {
    exe: PathBuf,
    /// The file's identity: it must not be replaced between rounds.
    inode: Option<(u64, u64)>,
    folder: PathBuf,
    /// Where data sets are kept.
    data: PathBuf,
    /// Whether copies are dropped from the page cache before each start.
    cools: bool,
    started: u32,
}

impl Deployer {
    /// Logs go to `folder`, which is made, and data sets are kept in `data`; `exe` is this program.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn new(exe: &Path, folder: &Path, data: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        remove_stale_sockets(&std::env::temp_dir());
        Ok(Self {
            exe: exe.to_owned(),
            inode: inode_of(exe),
            folder: folder.to_owned(),
            data: data.to_owned(),
            cools: false,
            started: 0,
        })
    }

    /// Sets whether targets find their kept data on the disk and not in the page cache.
    #[must_use]
    pub fn with_cold_data(self, cools: bool) -> Self {
        Self { cools, ..self }
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
        let site = Site::new(&self.exe, &folder, 0, Medium::Tcp);
        self.run_helper(target, "build", build, &site, stop).map(drop)
    }

    /// Runs a command around a target to its end. What it leaves behind lives as long as what is
    /// returned. All of it is killed when the run is stopped.
    fn run_helper(
        &mut self,
        target: &Target,
        what: &'static str,
        command: &[String],
        site: &Site,
        stop: &dyn Fn() -> bool,
    ) -> Result<Supervised, DeployError> {
        let failed = |how| DeployError::Helper { name: target.name.clone(), what, how };
        let unable = |error| failed(format!("can't start {}: {error}", command[0]));
        let words = Supervised::words(&self.exe, command);
        let prepared = site.prepare(target, &words, &format!("{what}-"));
        let mut helper = prepared.and_then(Supervised::start).map_err(unable)?;
        loop {
            match helper.try_status().map_err(unable)? {
                None if stop() => return Err(DeployError::Interrupted),
                None => std::thread::sleep(ready::LOOK_EVERY),
                Some(status) if status.success() => return Ok(helper),
                Some(status) => {
                    let lines = last_lines(&site.folder, &format!("{what}-"));
                    return Err(failed(format!("{}{lines}", describe(status))));
                }
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
        let site = Site::new(&self.exe, &folder, port, target.medium);
        let mut setup = None;
        if let Some(command) = &target.setup {
            setup = Some(self.run_helper(target, "setup", command, &site, stop)?);
        }
        if let TargetKind::Batch(_) = target.kind {
            let batch = Batch {
                exe: self.exe.clone(),
                command: site.fill(&command),
                env: site.fill_values(&target.env),
                cpus: target.cpus.clone(),
                folder,
                figures: target.figures.clone(),
            };
            let address = site.address();
            let mut deployed = Deployed::at(name, address);
            (deployed.batch, deployed.setup) = (Some(batch), setup);
            return Ok(deployed);
        }
        let data = target.kept_data.as_ref().map(|_| site.data());
        let is_restored = self.restore(target, &site).map_err(start_error)?;
        let process = self.spawn(target, &command, &site).map_err(start_error)?;
        let address = site.address();
        let mut deployed = Deployed::at(name, address);
        (deployed.is_restored, deployed.data) = (is_restored, data);
        (deployed.process, deployed.setup) = (Some((process, site)), setup);
        match deployed.await_ready(target, announced, stop) {
            Ok(()) => Ok(deployed),
            Err(error) => {
                self.stop(deployed);
                Err(error)
            }
        }
    }

    /// Makes the data folder of a target with kept data: a copy of them, or a link to them.
    /// Returns whether there were any.
    fn restore(&self, target: &Target, site: &Site) -> io::Result<bool> {
        let Some(KeptData { name, is_copied }) = &target.kept_data else { return Ok(false) };
        let kept = self.data.join(name);
        if !kept.is_dir() {
            std::fs::create_dir_all(site.data())?;
            return Ok(false);
        }
        if *is_copied {
            data_sets::copy(&kept, &site.data())?;
        } else {
            std::fs::create_dir_all(&site.folder)?;
            std::os::unix::fs::symlink(std::path::absolute(&kept)?, site.data())?;
        }
        if self.cools {
            data_sets::cool(&site.data())?;
        }
        Ok(true)
    }

    /// Stops a target that has been prepared, and keeps its data for later starts.
    ///
    /// # Errors
    /// When they can't be moved or copied.
    pub fn keep(&mut self, target: &Target, mut deployed: Deployed) -> io::Result<()> {
        let data = deployed.data.take();
        self.stop(deployed);
        let Some((kept, data)) = target.kept_data.as_ref().zip(data) else { return Ok(()) };
        std::fs::create_dir_all(&self.data)?;
        data_sets::keep(&data, &self.data.join(&kept.name))
    }

    /// Starts the process from a thread that is pinned first, so that it runs on its CPUs from its
    /// first instruction on.
    fn spawn(&self, target: &Target, command: &[String], site: &Site) -> io::Result<Supervised> {
        let command = site.prepare(target, &Supervised::words(&self.exe, command), "")?;
        std::thread::scope(|scope| {
            let starter = scope.spawn(|| {
                pin_this_thread(&target.cpus)?;
                Supervised::stopped_by(target.stop_signal, command)
            });
            starter.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread ended")))
        })
    }

    /// The whole command line, and whether the target prints a ready line.
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

    /// Ends a target and all that descends from it: its signal, and SIGKILL to what doesn't end
    /// in time.
    pub fn stop(&mut self, mut deployed: Deployed) {
        deployed.end();
        if let Some(data) = deployed.data.take() {
            // A copy of what is kept, a link to it, or what was never finished.
            let _ = std::fs::remove_dir_all(data);
        }
    }
}

/// The identity of a file, by which a replaced one is recognised.
fn inode_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}
