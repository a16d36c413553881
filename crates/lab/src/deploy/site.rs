//! The folder, port and socket of one start of a target.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use wire::Address;

use crate::placeholders;
use crate::plan::{Medium, Target};

/// The folder, port and socket of one start of a target. The socket's file is removed on drop.
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

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}
