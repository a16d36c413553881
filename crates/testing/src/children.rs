//! Programs that tests run. Each has a limit of time: one that hangs fails its test, and doesn't
//! hang it.

use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long a program may run: many times what it takes where the machine is busy.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a program with this input to its end, and returns what it printed.
///
/// # Panics
/// When it can't be started, or has run for five minutes, after which it is killed.
pub fn output(command: &mut Command, input: &[u8]) -> Output {
    output_within(LIMIT, command, input)
}

fn output_within(limit: Duration, command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let limit = Limit::within(limit, &child);
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // What it prints is read meanwhile: it may print before it has read all. One that ends
        // early reads nothing.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output().expect("what is a child can be waited for")
    });
    if limit.end() {
        let [out, error] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        panic!("{command:?} has run for too long and was killed: {out}{error}");
    }
    output
}

/// Kills a child that has run for five minutes, as long as this value is there: keep it until the
/// child is waited for.
#[derive(Debug)]
pub struct Limit {
    ends: Option<Sender<()>>,
    /// Whether it has killed the child.
    watch: Option<JoinHandle<bool>>,
}

impl Limit {
    /// Begins now.
    ///
    /// # Panics
    /// Where the system can't say which process a child is.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        Self::within(LIMIT, child)
    }

    fn within(limit: Duration, child: &Child) -> Self {
        let pid = Pid::from_child(child);
        // Of a child that has ended it remains the one, where its number may be another's.
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("a child that was just started");
        let (ends, ended) = channel();
        let watch = thread::spawn(move || {
            let is_over = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_over {
                eprintln!(
                    "process {} of a test has run for {limit:?}: killed",
                    pid.as_raw_nonzero()
                );
            }
            is_over && pidfd_send_signal(&process, Signal::KILL).is_ok()
        });
        Self { ends: Some(ends), watch: Some(watch) }
    }

    /// The child may run on from now on. Returns whether it was killed.
    fn end(mut self) -> bool {
        self.stop()
    }

    fn stop(&mut self) -> bool {
        drop(self.ends.take());
        // It does nothing that panics.
        self.watch.take().is_some_and(|watch| watch.join().unwrap_or(false))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_input_and_its_output_is_there() {
        // More than pipes have room for.
        let input = b"words ".repeat(100_000);
        let out = output_within(Duration::from_secs(60), &mut Command::new("cat"), &input);
        assert!(out.status.success());
        assert_eq!(out.stdout, input);
    }

    #[test]
    #[should_panic(expected = "has run for too long and was killed")]
    fn a_program_that_runs_for_too_long_fails_its_test() {
        output_within(Duration::from_millis(10), Command::new("sleep").arg("600"), b"");
    }

    #[test]
    fn a_limit_that_is_left_kills_no_one() {
        let mut child = Command::new("true").spawn().expect("it starts");
        let limit = Limit::of(&child);
        assert!(child.wait().expect("it ends").success());
        assert!(!limit.end());
    }
}
