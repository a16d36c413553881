//! System calls of processes or threads, counted by `strace -c`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The calls of one system call while tracing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SystemCall {
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) system_ns: u64,
}

/// A running `strace -c`.
pub(super) struct Tracer {
    child: Child,
    said: BufReader<ChildStderr>,
    file: std::path::PathBuf,
}

impl Tracer {
    /// Attaches to these processes (with all their threads) or threads; returns once it counts.
    pub(super) fn attach(ids: &[u32], whole: bool, file: &Path) -> Result<Self, String> {
        if ids.is_empty() {
            return Err("it has no process here".to_owned());
        }
        let mut command = Command::new("strace");
        command.arg("-c").args(whole.then_some("-f")).arg("-o").arg(file);
        command.args(ids.iter().flat_map(|id| ["-p".to_owned(), id.to_string()]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("strace: {error}"))?;
        let said = child.stderr.take().ok_or("strace says nothing")?;
        let mut tracer = Self { child, said: BufReader::new(said), file: file.to_owned() };
        for _ in ids {
            let line = tracer.line()?;
            if !line.contains("attached") {
                tracer.end();
                return Err(format!("{} (may this user trace? see strace(1))", line.trim()));
            }
        }
        Ok(tracer)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| format!("strace: {error}"))?;
        Ok(line)
    }

    /// Interrupts strace, which then detaches and writes its table.
    fn end(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::INT);
        }
        // Its messages are read to the end: strace would block on a full pipe.
        let mut rest = String::new();
        while matches!(self.said.read_line(&mut rest), Ok(read) if read > 0) {
            rest.clear();
        }
        let _ = self.child.wait();
    }

    pub(super) fn detach(mut self) -> Result<Vec<SystemCall>, String> {
        self.end();
        counted(&self.file)
    }
}

/// What a command is put behind to have its calls counted, and those of what it starts.
pub(super) fn wrap(file: &Path) -> Vec<String> {
    let words = ["strace", "-c", "-f", "-o"].map(str::to_owned);
    words.into_iter().chain([file.display().to_string()]).collect()
}

/// The calls of strace's table in a file.
pub(super) fn counted(file: &Path) -> Result<Vec<SystemCall>, String> {
    let file = File::open(file).map_err(|error| format!("strace: {error}"))?;
    let lines = BufReader::new(file).lines();
    Ok(lines.map_while(Result::ok).filter_map(|line| parse(&line)).collect())
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// A line of strace's table: share, seconds, microseconds a call, calls, errors if any, name.
fn parse(line: &str) -> Option<SystemCall> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (errors, name) = match words[..] {
        [_, _, _, _, name] => ("0", name),
        [_, _, _, _, errors, name] => (errors, name),
        _ => return None,
    };
    let (seconds, calls) = (words[1].parse::<f64>().ok()?, words[3].parse().ok()?);
    if name == "total" {
        return None;
    }
    let system_ns = (seconds * 1e9) as u64;
    Some(SystemCall { name: name.to_owned(), calls, errors: errors.parse().ok()?, system_ns })
}

#[test]
fn straces_table_is_read_as_it_was_recorded() {
    let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.32    0.012340           2      6000           epoll_pwait2
 38.68    0.007784           1      6004         4 recvfrom
------ ----------- ----------- --------- --------- ----------------
100.00    0.020124           1     12004         4 total
";
    let calls: Vec<SystemCall> = table.lines().filter_map(parse).collect();
    let row = |name: &str, calls, errors, system_ns| SystemCall {
        name: name.into(),
        calls,
        errors,
        system_ns,
    };
    let expected =
        [row("epoll_pwait2", 6_000, 0, 12_340_000), row("recvfrom", 6_004, 4, 7_784_000)];
    assert_eq!(calls, expected);
}
