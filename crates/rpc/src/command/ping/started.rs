//! The server that a trial starts itself.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value as Json;

use super::show::time;

/// How long a server may take to end by itself: no call of it is left.
const END_TIME: Duration = Duration::from_millis(300);

/// What the shell runs: the command; and beside it what ends all of its group once this process has
/// ended, whichever way, and with it the other end of the standard input.
const SCRIPT: &str = "exec 3<&0 </dev/null
{ trap '' TERM INT HUP; cat <&3; kill -TERM 0; sleep 0.3; kill -KILL 0; } >/dev/null 2>&1 &
exec 3<&-
eval \"$1\"";

/// How often it is asked whether it has ended.
const END_STEP: Duration = Duration::from_millis(2);

/// A server, which ends with this value.
#[derive(Debug)]
pub(in crate::command) struct Started {
    child: Child,
    /// Where it listens.
    pub(super) address: String,
}

impl Started {
    /// Starts a command of the shell, and waits for its ready line, which has to come in time.
    pub(super) fn start(command: &str, limit: Duration) -> anyhow::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sh", command])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command}"))?;
        let out = child.stdout.take().context("a pipe")?;
        let mut started = Self { child, address: String::new() };
        let (sender, receiver) = channel();
        // It ends with the command, which may print more: what no one reads would end it.
        thread::Builder::new().spawn(move || {
            let mut out = BufReader::new(out);
            let _ = sender.send(ready(&mut out));
            io::copy(&mut out, &mut io::sink())
        })?;
        match receiver.recv_timeout(limit) {
            Ok(Some(address)) => {
                started.address = address;
                Ok(started)
            }
            Ok(None) | Err(RecvTimeoutError::Disconnected) => bail!(
                "{command} has ended without a ready line, which has its \"address\" (--server)"
            ),
            Err(RecvTimeoutError::Timeout) => bail!(
                "{command} has printed no ready line, which has its \"address\", within {} \
                 (--connect-timeout)",
                time(limit.as_nanos() as f64)
            ),
        }
    }
}

/// The address of a ready line.
fn ready(out: impl BufRead) -> Option<String> {
    let lines = out.lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str::<Json>(&line).ok()).find_map(|ready| {
        let address = ready["address"].as_str();
        address.map(str::to_owned)
    })
}

impl Drop for Started {
    fn drop(&mut self) {
        let Ok(group) = i32::try_from(self.child.id()) else { return };
        let Some(group) = Pid::from_raw(group) else { return };
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::TERM);
        let until = Instant::now() + END_TIME;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(END_STEP);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_ready_line_and_ends_with_its_value() {
        let limit = Duration::from_secs(30);
        let command = "echo no JSON; echo '{\"address\": \"a:1\"}'; sleep 60";
        let started = Started::start(command, limit);
        let started = started.expect("it starts");
        assert_eq!(started.address, "a:1");
        let begun = Instant::now();
        drop(started);
        assert!(begun.elapsed() < Duration::from_secs(30));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("printed");
        let command = format!(
            "echo '{{\"address\": \"a:1\"}}'; head -c 1000000 /dev/zero; echo $? > {0}.new; \
             mv {0}.new {0}; sleep 60",
            file.display()
        );
        let started = Started::start(&command, limit).expect("it starts");
        let until = Instant::now() + limit;
        while !file.exists() {
            assert!(Instant::now() < until, "what it prints is not read");
            thread::yield_now();
        }
        drop(started);
        let printed = std::fs::read_to_string(file).expect("a code");
        assert_eq!(printed.trim(), "0", "all that it has printed");
        let error = Started::start("true", limit).expect_err("no ready line");
        assert!(error.to_string().contains("without a ready line"), "{error}");
        let short = Duration::from_millis(20);
        let error = Started::start("sleep 60", short).expect_err("no ready line");
        assert!(error.to_string().contains("no ready line, which has its"), "{error}");
    }
}
