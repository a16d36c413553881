//! The folder, port and socket of one start of a target.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use wire::Address;

use crate::placeholders;
use crate::plan::{Medium, Target};

/// The folder, port and socket of one start of a target. The socket's file is removed on drop, and
/// by [`remove_stale_sockets`] where the lab was killed.
#[derive(Debug)]
pub(super) struct Site {
    /// This program.
    exe: PathBuf,
    pub(super) folder: PathBuf,
    port: u16,
    socket: PathBuf,
    medium: Medium,
}

/// Numbers of sockets, which lie in the system's temporary folder: a socket's path has at most 107
/// bytes.
static SOCKETS: AtomicU32 = AtomicU32::new(0);

impl Site {
    pub(super) fn new(exe: &Path, folder: &Path, port: u16, medium: Medium) -> Self {
        let (process, number) = (std::process::id(), SOCKETS.fetch_add(1, Ordering::Relaxed));
        let socket = std::env::temp_dir().join(format!("loadline-{process}-{number}.socket"));
        Self { exe: exe.to_owned(), folder: folder.to_owned(), port, socket, medium }
    }

    /// The folder for its data, which placeholders call `{data}`.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(super) fn address(&self) -> Address {
        match self.medium {
            Medium::Tcp | Medium::Udp => Address::Internet((Ipv4Addr::LOCALHOST, self.port).into()),
            Medium::Tcp6 => Address::Internet((Ipv6Addr::LOCALHOST, self.port).into()),
            Medium::Unix => Address::Unix(self.socket.clone()),
        }
    }

    /// The value of a placeholder.
    fn value(&self, name: &str) -> Option<String> {
        let host = || match self.address() {
            Address::Internet(address) => address.ip().to_string(),
            Address::Unix(_) => String::new(),
        };
        Some(match name {
            "port" => self.port.to_string(),
            "host" => host(),
            "address" => self.address().to_string(),
            "socket" => self.socket.display().to_string(),
            "data" => self.data().display().to_string(),
            "dir" => self.folder.display().to_string(),
            "loadline" => self.exe.display().to_string(),
            _ => return None,
        })
    }

    /// The program and its arguments with every placeholder filled in.
    pub(super) fn fill(&self, command: &[String]) -> Vec<String> {
        let fill = |text: &String| placeholders::complete(text, &|name| self.value(name));
        command.iter().map(fill).collect()
    }

    /// Environment variables with every placeholder filled in.
    pub(super) fn fill_values(&self, env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let fill = |text: &String| placeholders::complete(text, &|name| self.value(name));
        env.iter().map(|(name, text)| (name.clone(), fill(text))).collect()
    }

    /// The command, with its output redirected to files in the folder.
    pub(super) fn prepare(
        &self,
        target: &Target,
        command: &[String],
        log: &str,
    ) -> io::Result<Command> {
        std::fs::create_dir_all(&self.folder)?;
        let filled = self.fill(command);
        let mut prepared = Command::new(&filled[0]);
        prepared
            .args(&filled[1..])
            .envs(self.fill_values(&target.env))
            .stdin(Stdio::null())
            .stdout(File::create(self.folder.join(format!("{log}stdout")))?)
            .stderr(File::create(self.folder.join(format!("{log}stderr")))?)
            .process_group(0);
        Ok(prepared)
    }
}

/// Removes sockets that killed labs have left in `folder`: of processes that are no more, and on
/// which nothing listens. A process of a container may be unseen here.
pub(super) fn remove_stale_sockets(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| {
            let numbers = name.strip_prefix("loadline-")?.strip_suffix(".socket")?;
            numbers.split_once('-')?.0.parse::<u32>().ok()
        });
        let Some(process) = process else { continue };
        let has_ended = !Path::new(&format!("/proc/{process}")).exists();
        if has_ended && refuses(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether nothing listens on a socket. Where something does and takes no connection, none is
/// waited for.
fn refuses(socket: &Path) -> bool {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let connected = stream.and_then(|stream| connect(stream, &SocketAddrUnix::new(socket)?));
    connected == Err(Errno::CONNREFUSED)
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixListener;

    use rustix::net::{bind, listen};

    use super::*;

    /// A socket that is listened on and has no room for a connection more, with those that it has.
    fn full_listener(path: &Path) -> Vec<OwnedFd> {
        let socket = || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket")
        };
        let address = SocketAddrUnix::new(path).expect("a path");
        let mut all = vec![socket()];
        bind(&all[0], &address).expect("bound");
        listen(&all[0], 0).expect("listened on");
        loop {
            all.push(socket());
            if connect(&all[all.len() - 1], &address).is_err() {
                return all;
            }
        }
    }

    #[test]
    fn sockets_of_processes_that_are_no_more_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        // Above the highest number that Linux gives.
        let (ended, here) = (4_194_305, std::process::id());
        let open = |name: String| UnixListener::bind(folder.path().join(name)).expect("a socket");
        drop(open(format!("loadline-{ended}-0.socket")));
        drop(open(format!("loadline-{here}-0.socket")));
        let listened = open(format!("loadline-{ended}-1.socket"));
        drop(open("loadline-x-0.socket".to_owned()));
        // Its one place for a connection that waits is taken.
        let full = folder.path().join(format!("loadline-{ended}-2.socket"));
        let _taken = full_listener(&full);
        remove_stale_sockets(folder.path());
        let left = |name: &str| folder.path().join(name).exists();
        assert!(!left(&format!("loadline-{ended}-0.socket")));
        assert!(left(&format!("loadline-{here}-0.socket")));
        assert!(left(&format!("loadline-{ended}-1.socket")));
        assert!(left("loadline-x-0.socket"));
        assert!(full.exists(), "it is listened on, and no connection is waited for");
        drop(listened);
    }
}
