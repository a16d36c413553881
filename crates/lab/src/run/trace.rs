//! The system calls of an operation: each target at each point once more, for half a second with
//! `strace` attached to it and to the threads of load. Counts stand, timings don't: each call stops
//! for the tracer, so nothing else is taken from these trials.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use wire::clock::MILLISECOND_NS;

use super::keep::Keeper;
use super::{Conductor, News, RunError};
use crate::observe::{floors, group_members, load_threads};
use crate::plan::Target;

/// How long calls are counted.
const TRACED_NS: u64 = 500 * MILLISECOND_NS;

/// How often one system call was made while it was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) system_ns: u64,
}

impl Conductor<'_> {
    /// Counts system calls, and measures the host's floors beside them. What can't be traced is
    /// said and left out.
    pub(super) fn trace(&mut self, keeper: &mut Keeper<'_>, folder: &Path) -> Result<(), RunError> {
        keeper.floors(&floors())?;
        if let Some(why) = crate::deploy::missing_program("strace") {
            let said = format!("system calls are not counted: {why}");
            self.say(0, 0, "counting system calls", Some(News::Said(&said)));
            return Ok(());
        }
        let plan = self.plan;
        for (point, here) in plan.points.iter().enumerate() {
            let targets = here.targets.iter().enumerate();
            for (index, target) in targets.filter(|(_, target)| target.skipped.is_none()) {
                if self.stopped() {
                    return Ok(());
                }
                self.tell(point, 0, &format!("counting system calls of {}", target.name));
                if let Err(why) = self.trace_one(keeper, folder, point, (index, target))? {
                    let name = &target.name;
                    let said = format!("system calls of {name} are not counted: {why}");
                    self.say(point, 0, "counting system calls", Some(News::Said(&said)));
                }
            }
        }
        Ok(())
    }

    /// One target at one point; says why not.
    fn trace_one(
        &mut self,
        keeper: &mut Keeper<'_>,
        folder: &Path,
        point: usize,
        (index, target): (usize, &Target),
    ) -> Result<Result<(), String>, RunError> {
        let mut bench = self.start(index, target, 0);
        if bench.deployed.is_some() {
            self.make_ready(&mut bench, point, target, 0);
        }
        let group = bench.deployed.as_ref().and_then(crate::deploy::Deployed::group);
        let server = group.map(group_members).unwrap_or_default();
        let traced = (|| {
            let session = bench.session.as_mut().ok_or("it can't be loaded")?;
            let server = Tracer::attach(&server, true, &folder.join("strace-server"))?;
            let generator =
                Tracer::attach(&load_threads(), false, &folder.join("strace-generator"))?;
            let piece = session.run(TRACED_NS).map_err(|error| error.to_string());
            let calls = [server.detach()?, generator.detach()?];
            Ok::<_, String>((piece?.counts.operations, calls))
        })();
        self.end(bench);
        let (operations, [server, generator]) = match traced {
            Ok(traced) => traced,
            Err(why) => return Ok(Err(why)),
        };
        keeper.calls(point, index, operations, false, &server)?;
        keeper.calls(point, index, operations, true, &generator)?;
        Ok(Ok(()))
    }
}

/// A running `strace -c`.
struct Tracer {
    child: Child,
    said: BufReader<ChildStderr>,
    file: std::path::PathBuf,
}

impl Tracer {
    /// Attaches to these processes (with all their threads) or threads; returns once it counts.
    fn attach(ids: &[u32], whole: bool, file: &Path) -> Result<Self, String> {
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

    /// Interrupted, it lets go of what it traces and writes its table.
    fn end(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::INT);
        }
        // What it still says must not fill the pipe on which it would wait.
        let mut rest = String::new();
        while matches!(self.said.read_line(&mut rest), Ok(read) if read > 0) {
            rest.clear();
        }
        let _ = self.child.wait();
    }

    fn detach(mut self) -> Result<Vec<Calls>, String> {
        self.end();
        let file = File::open(&self.file).map_err(|error| format!("strace: {error}"))?;
        let lines = BufReader::new(file).lines();
        Ok(lines.map_while(Result::ok).filter_map(|line| parse(&line)).collect())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// A line of strace's table: share, seconds, microseconds a call, calls, errors if any, name.
fn parse(line: &str) -> Option<Calls> {
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
    Some(Calls { name: name.to_owned(), calls, errors: errors.parse().ok()?, system_ns })
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
    let calls: Vec<Calls> = table.lines().filter_map(parse).collect();
    let row = |name: &str, calls, errors, system_ns| Calls {
        name: name.into(),
        calls,
        errors,
        system_ns,
    };
    let expected =
        [row("epoll_pwait2", 6_000, 0, 12_340_000), row("recvfrom", 6_004, 4, 7_784_000)];
    assert_eq!(calls, expected);
}
