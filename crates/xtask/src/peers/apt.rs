//! Installing Debian packages without the services that come with them. A peer is started by
//! the lab, on a port of its own; one that the package starts would take memory and CPU beside
//! it. While apt works, a policy file forbids it to start services; where such a file is there
//! already it is left alone, and the service of a package that this run installed is stopped
//! by its own name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::table::Peer;
use crate::process;

/// Debian's script that decides which services an installation may start; 101 forbids all.
const POLICY_PATH: &str = "/usr/sbin/policy-rc.d";
const POLICY: &str = "#!/bin/sh\n# Written by `cargo xtask peers` while it installs.\nexit 101\n";

/// What one types to install these packages.
pub(crate) fn line(packages: &[&str]) -> String {
    let packages = packages.join(" ");
    if process::find("apt-get").is_none() {
        return format!("no apt here; bring these with your package manager: {packages}");
    }
    format!("{}apt-get install -y --no-install-recommends {packages}", prefix(is_root()))
}

fn prefix(is_root: bool) -> &'static str {
    if is_root { "" } else { "sudo " }
}

/// Installs the packages of these peers, none of which is there yet.
pub(crate) fn install(peers: &[&Peer]) -> Result<()> {
    if process::find("apt-get").is_none() {
        bail!("there is no apt-get here");
    }
    if !is_root() {
        bail!("only root can install packages");
    }
    let _policy = Policy::set(Path::new(POLICY_PATH))?;
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet");
        apt.args(["-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=120"]);
        apt
    };
    // Lists that cannot be fetched now may still be there from an earlier time, and do.
    if let Err(error) = process::run(apt().arg("update")) {
        eprintln!("{error:#}; trying with the lists that are here");
    }
    let packages = peers.iter().map(|peer| &peer.package);
    process::run(apt().args(["install", "-y", "--no-install-recommends"]).args(packages))?;
    peers.iter().filter_map(|peer| peer.unit.as_deref()).for_each(stop);
    Ok(())
}

/// Stops one unit and, where systemd runs, keeps it from starting at the next boot. Both
/// ways go by the unit's own record of its process, so that no other one is ended.
fn stop(unit: &str) {
    let mut command = if Path::new("/run/systemd/system").is_dir() {
        let mut command = Command::new("systemctl");
        command.args(["disable", "--now", unit]);
        command
    } else {
        let mut command = Command::new("service");
        command.args([unit, "stop"]);
        command
    };
    if !process::succeeds(&mut command) {
        eprintln!("could not stop the unit {unit}; it may disturb measurements");
    }
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// The policy file, for as long as this value lives.
struct Policy<'p> {
    path: &'p Path,
    is_ours: bool,
}

impl Policy<'_> {
    fn set(path: &Path) -> Result<Policy<'_>> {
        // A file of ours that is there was left by a run that was interrupted.
        let there = fs::read_to_string(path);
        let is_ours = there.is_err() || there.is_ok_and(|text| text == POLICY);
        if is_ours {
            let context = || format!("cannot write {}", path.display());
            fs::write(path, POLICY).with_context(context)?;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(path, mode).with_context(context)?;
        }
        Ok(Policy { path, is_ours })
    }
}

impl Drop for Policy<'_> {
    fn drop(&mut self) {
        if self.is_ours && fs::remove_file(self.path).is_err() {
            eprintln!("could not remove {}; please do", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_there_while_apt_works_and_gone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy-rc.d");
        let policy = Policy::set(&path).unwrap();
        assert_eq!(Command::new(&path).status().unwrap().code(), Some(101));
        drop(policy);
        assert!(!path.exists());
        fs::write(&path, POLICY).unwrap();
        drop(Policy::set(&path).unwrap());
        assert!(!path.exists(), "one left by an interrupted run is taken away");
    }

    #[test]
    fn a_policy_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy-rc.d");
        fs::write(&path, "#!/bin/sh\nexit 104\n").unwrap();
        drop(Policy::set(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "#!/bin/sh\nexit 104\n");
    }

    #[test]
    fn the_line_to_type_has_sudo_for_all_but_root() {
        assert_eq!((prefix(true), prefix(false)), ("", "sudo "));
        assert!(line(&["memcached", "redis-server"]).ends_with("memcached redis-server"));
    }
}
