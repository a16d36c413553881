//! A running target: its address, its process group, and its end.

use std::path::PathBuf;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use wire::Address;

use super::error::DeployError;
use super::last_words::{describe, last_lines};
use super::ready;
use super::site::Site;
use super::supervisor::Supervised;
use crate::drive::batch::Batch;
use crate::plan::Target;

/// A target that is ready.
#[derive(Debug)]
pub struct Deployed {
    /// Its name.
    pub name: String,
    /// The address of its service.
    pub address: Address,
    /// What to run, when it is a batch: nothing runs in between.
    pub batch: Option<Batch>,
    /// Whether it started on a copy of kept data.
    pub is_restored: bool,
    /// Its folder of data, where these are kept.
    pub(super) data: Option<PathBuf>,
    pub(super) process: Option<(Supervised, Site)>,
    /// What its `setup` left running.
    pub(super) setup: Option<Supervised>,
}

impl Deployed {
    /// Something at an address that the lab has not started.
    pub(super) fn at(name: String, address: Address) -> Self {
        let (batch, data, process, setup) = (None, None, None, None);
        Self { name, address, batch, is_restored: false, data, process, setup }
    }

    /// The value of a placeholder, where the target has one.
    pub fn value(&self, name: &str) -> Option<String> {
        let (host, port) = match &self.address {
            Address::Internet(address) => (address.ip().to_string(), address.port().to_string()),
            Address::Unix(_) => (String::new(), String::new()),
        };
        let site = || self.process.as_ref().map(|(_, site)| site);
        Some(match name {
            "address" => self.address.to_string(),
            "host" => host,
            "port" => port,
            "socket" => self.address.to_string().trim_start_matches("unix:").to_owned(),
            "loadline" => std::env::current_exe().ok()?.display().to_string(),
            "dir" => site()?.folder.display().to_string(),
            "data" => site()?.data().display().to_string(),
            _ => return None,
        })
    }

    /// The process group, when the lab started it.
    pub fn group(&self) -> Option<Pid> {
        self.process.as_ref().and_then(|(process, _)| process.process())
    }

    /// How it ended, if it has, with its last lines.
    pub fn ended(&mut self) -> Option<String> {
        let (process, site) = self.process.as_mut()?;
        let status = process.try_status().ok().flatten()?;
        // What becomes a daemon has ended as far as the lab sees.
        let daemon =
            if status.success() { " (a target has to stay in the foreground)" } else { "" };
        Some(format!("{}{daemon}{}", describe(status), last_lines(&site.folder, "")))
    }

    /// Whether its supervisor was killed: what it starts from now on may outlive it.
    pub fn is_unsupervised(&mut self) -> bool {
        self.process.as_mut().is_some_and(|(process, _)| process.is_unsupervised())
    }

    /// Stops every process of its group, until [`Deployed::resume`]. A stopped group is ended as
    /// any other: SIGKILL reaches it, and its supervisor resumes it after SIGTERM.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes its group.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            // A group that has ended is found by the checks of its connections.
            let _ = kill_process_group(group, signal);
        }
    }

    pub(super) fn await_ready(
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
            let folder = self.process.as_ref().map(|(_, site)| site.folder.clone());
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
                let awaited = match announced {
                    true => "its ready line".to_owned(),
                    false => format!("something that listens at {}", self.address),
                };
                return Err(DeployError::NotReady {
                    name: target.name.clone(),
                    within: target.ready_within,
                    awaited,
                    lines: last_lines(&folder, ""),
                });
            }
            std::thread::sleep(ready::LOOK_EVERY);
        }
    }

    pub(super) fn end(&mut self) {
        if let Some((mut process, _site)) = self.process.take() {
            process.stop();
        }
        if let Some(mut setup) = self.setup.take() {
            setup.stop();
        }
    }
}

impl Drop for Deployed {
    fn drop(&mut self) {
        self.end();
    }
}
