//! The events of a suite: performed while a slice is measured, with their times and outcomes.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use wire::{Ns, clock};

use crate::deploy::{NO_PROGRAM, Supervised};
use crate::placeholders;
use crate::plan::{Action, Event};

/// How long a command of an event may run beyond the end of its slice.
const GRACE: Duration = Duration::from_secs(30);

/// The period at which the end of the slice is checked while a command runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The target of events and its environment.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) group: Option<Pid>,
    pub(super) address: String,
    /// This program, which supervises commands.
    pub(super) exe: PathBuf,
    /// Set to stop the run.
    pub(super) stop: Arc<AtomicBool>,
}

/// The outcome of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventOutcome {
    /// When it began, on the run's clock.
    pub(crate) at: Ns,
    /// How long its target was stopped, or its command ran.
    pub(crate) took_ns: u64,
    pub(crate) name: String,
    /// What was done, as text.
    pub(crate) action: String,
    /// The exit status of a command.
    pub(crate) exit_status: Option<i32>,
    pub(crate) failure: Option<String>,
}

/// A step on the slice's timeline.
enum Step<'a> {
    /// An event begins; the number identifies it in the slice.
    Begin(usize, &'a Event),
    /// The target that the event of this number stopped goes on.
    Resume(usize),
}

/// Performs the events of a slice until it is over (`over` receives or disconnects), and returns
/// their outcomes. A stopped target is always resumed, and no command outlives its slice by more
/// than [`GRACE`].
pub(super) fn perform(
    events: &[Event],
    subject: &Subject,
    length_ns: u64,
    clock_zero: Ns,
    over: &Receiver<()>,
) -> Vec<EventOutcome> {
    let started = clock::now();
    let mut runner = EventRunner {
        subject,
        clock_zero,
        outcomes: Vec::new(),
        stops: Vec::new(),
        commands: Vec::new(),
        ended: Vec::new(),
    };
    for (at_ns, step) in steps(events, subject, length_ns) {
        if !runner.wait(started + at_ns, over) {
            break;
        }
        match step {
            Step::Begin(number, event) => runner.begin(number, event),
            Step::Resume(number) => runner.resume(number),
        }
    }
    runner.end(over)
}

/// The steps for one target in a slice of this length, with their times from its start.
fn steps<'a>(events: &'a [Event], subject: &Subject, length_ns: u64) -> Vec<(u64, Step<'a>)> {
    let to_it = |event: &&Event| event.target.as_ref().is_none_or(|name| *name == subject.name);
    let mut steps = Vec::new();
    for event in events.iter().filter(to_it) {
        for at_ns in event.times(length_ns) {
            let number = steps.len();
            steps.push((at_ns, Step::Begin(number, event)));
            if let Action::Stop(length) = event.action {
                steps.push((at_ns + length.ns, Step::Resume(number)));
            }
        }
    }
    steps.sort_by_key(|(at_ns, _)| *at_ns);
    steps
}

/// The events of one slice while they are performed.
struct EventRunner<'a> {
    subject: &'a Subject,
    clock_zero: Ns,
    outcomes: Vec<EventOutcome>,
    /// Stops whose target has not been resumed yet: their numbers and their outcomes' indices.
    stops: Vec<(usize, usize)>,
    commands: Vec<Running>,
    /// Commands that have ended: what they left behind may run until the slice is over.
    ended: Vec<Supervised>,
}

/// A running command.
struct Running {
    /// The index of its outcome.
    index: usize,
    command: Supervised,
}

impl EventRunner<'_> {
    /// Waits until then, while commands may end. Returns whether the slice is still measured.
    ///
    /// A slice can't end while its target is stopped, because its answers are outstanding; so
    /// then only the time is waited for.
    fn wait(&mut self, until: Ns, over: &Receiver<()>) -> bool {
        loop {
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            match (self.commands.is_empty(), self.stops.is_empty()) {
                (true, true) => return over.recv_timeout(left) == Err(RecvTimeoutError::Timeout),
                (true, false) => {
                    std::thread::sleep(left);
                    return true;
                }
                (false, _) => self.look(left.min(LOOK_EVERY)),
            }
            if self.stops.is_empty() && is_over(over) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
        }
    }

    fn begin(&mut self, number: usize, event: &Event) {
        let (index, before) = (self.outcomes.len(), clock::now());
        let mut outcome = Ok(());
        match &event.action {
            Action::Stop(_) => {
                self.stops.push((number, index));
                outcome = self.signal(Signal::STOP);
            }
            Action::Signal(number) => {
                outcome = match Signal::from_named_raw(*number) {
                    Some(named) => self.signal(named),
                    None => Err(format!("there is no signal {number}")),
                };
            }
            Action::Command(command) => match self.start(command) {
                Ok(command) => self.commands.push(Running { index, command }),
                Err(error) => outcome = Err(format!("{}: {error}", command[0])),
            },
        }
        self.outcomes.push(EventOutcome {
            at: before - self.clock_zero,
            took_ns: clock::now() - before,
            name: event.name.clone(),
            action: event.action.to_string(),
            exit_status: None,
            failure: outcome.err(),
        });
    }

    fn resume(&mut self, number: usize) {
        let outcome = self.signal(Signal::CONT);
        let Some(place) = self.stops.iter().position(|(stop, _)| *stop == number) else { return };
        let (_, index) = self.stops.swap_remove(place);
        let stop = &mut self.outcomes[index];
        stop.took_ns = (clock::now() - self.clock_zero).saturating_sub(stop.at);
        stop.failure = stop.failure.take().or(outcome.err());
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let Some(group) = self.subject.group else {
            let name = &self.subject.name;
            return Err(format!("{name} was not started here, so it gets no signals"));
        };
        kill_process_group(group, signal).map_err(|error| format!("signalling: {error}"))
    }

    fn start(&self, command: &[String]) -> std::io::Result<Supervised> {
        let group = self.subject.group;
        let pid = group.map_or(String::new(), |group| group.as_raw_nonzero().to_string());
        let address = &self.subject.address;
        let value = |name: &str| match name {
            "address" => Some(address.clone()),
            "pid" => Some(pid.clone()),
            _ => None,
        };
        let fill = |text: &String| placeholders::complete(text, &value);
        let command: Vec<String> = command.iter().map(fill).collect();
        let words = Supervised::words(&self.subject.exe, &command);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
        Supervised::start(command)
    }

    /// Waits up to `wait` for commands to end, and keeps the outcomes of those that have.
    fn look(&mut self, wait: Duration) {
        let events: Vec<_> = self.commands.iter().map(|one| one.command.end_event()).collect();
        let mut ends: Vec<PollFd<'_>> =
            events.iter().map(|event| PollFd::new(event, PollFlags::IN)).collect();
        let wait = Timespec::try_from(wait).unwrap_or_default();
        // An interrupted wait is only shorter.
        let _ = poll(&mut ends, Some(&wait));
        drop(ends);
        let now = clock::now() - self.clock_zero;
        for mut one in std::mem::take(&mut self.commands) {
            let (status, failure) = match one.command.try_status() {
                Ok(None) => {
                    self.commands.push(one);
                    continue;
                }
                Ok(Some(status)) => (status.code(), failure_of(status)),
                Err(error) => (None, Some(error.to_string())),
            };
            let event = &mut self.outcomes[one.index];
            event.took_ns = now.saturating_sub(event.at);
            event.exit_status = status;
            event.failure = failure.map(|how| format!("{}: {how}", event.name));
            self.ended.push(one.command);
        }
    }

    /// Waits for the commands that still run, and returns all outcomes.
    fn end(mut self, over: &Receiver<()>) -> Vec<EventOutcome> {
        let mut ended: Option<Instant> = None;
        while !self.commands.is_empty() {
            if ended.is_none() && is_over(over) {
                ended = Some(Instant::now());
            }
            if self.subject.stop.load(Ordering::Relaxed) {
                self.give_up("the run was interrupted");
            } else if ended.is_some_and(|ended| ended.elapsed() > GRACE) {
                self.give_up(&format!("it still ran {} s after its slice", GRACE.as_secs()));
            }
            self.look(LOOK_EVERY);
        }
        self.outcomes
    }

    /// Kills the commands that still run, with all that they have started.
    fn give_up(&mut self, why: &str) {
        for mut one in self.commands.drain(..) {
            one.command.kill();
            let event = &mut self.outcomes[one.index];
            event.took_ns = (clock::now() - self.clock_zero).saturating_sub(event.at);
            event.failure = Some(format!("{}: {why}", event.name));
        }
    }
}

fn is_over(over: &Receiver<()>) -> bool {
    over.try_recv() != Err(TryRecvError::Empty)
}

fn failure_of(status: ExitStatus) -> Option<String> {
    let missing = if status.code() == Some(i32::from(NO_PROGRAM)) {
        ": is there such a program?"
    } else {
        ""
    };
    (!status.success()).then(|| format!("{status}{missing}"))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::Child;
    use std::sync::mpsc::channel;
    use std::thread::yield_now;

    use base::units::Span;

    use super::*;

    fn event(at_ms: u64, action: Action) -> Event {
        let name = action.to_string();
        Event { name, at: Span::from_ms(at_ms), every: None, action, target: None }
    }

    fn shell(script: &str) -> Action {
        Action::Command(["sh", "-c", script].map(str::to_owned).to_vec())
    }

    /// The supervisor, as a test of this program, which is no `loadline`.
    #[test]
    #[ignore = "the others have it run, by a script"]
    #[expect(clippy::exit, reason = "it stands for a whole process")]
    fn the_supervisor() {
        let words = std::env::args().skip_while(|word| word != "supervise").skip(1);
        let command: Vec<String> = words.collect();
        if !command.is_empty() {
            let _ = crate::deploy::supervise_main(&command);
            std::process::exit(i32::from(NO_PROGRAM));
        }
    }

    /// A script that is as `loadline` to those who start a supervisor.
    fn exe(folder: &Path) -> PathBuf {
        let (exe, own) = (folder.join("exe"), std::env::current_exe().expect("this program"));
        let name = "run::events::tests::the_supervisor";
        let script =
            format!("#!/bin/sh\nexec {own:?} --ignored --exact --nocapture {name} -- \"$@\"\n");
        std::fs::write(&exe, script).expect("written");
        let may_run = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&exe, may_run).expect("it may run");
        // A child that another test forks at this moment still holds the file open for writing.
        loop {
            match Command::new(&exe).stdout(Stdio::null()).status() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => yield_now(),
                ran => break assert!(ran.expect("it runs").success()),
            }
        }
        exe
    }

    /// The outcomes of a slice of 200 ms for this child, which leads a group.
    fn performed(child: &Child, events: &[Event]) -> Vec<EventOutcome> {
        let group = Some(Pid::from_child(child));
        let folder = tempfile::tempdir().expect("a folder");
        let subject = Subject {
            name: "it".to_owned(),
            group,
            address: "there:1".to_owned(),
            exe: exe(folder.path()),
            stop: Arc::default(),
        };
        let (_goes_on, over) = channel();
        perform(events, &subject, 200_000_000, clock::now(), &over)
    }

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").process_group(0).spawn().expect("sleep runs")
    }

    #[test]
    fn each_event_is_noted_with_when_it_was_and_how_it_ended() {
        let mut child = sleeper();
        let events = [
            event(0, Action::Stop(Span::from_ms(60))),
            event(10, shell("exit 3")),
            event(20, shell("test {address} = there:1")),
            event(30, Action::Command(vec!["/no/such/program".to_owned()])),
            event(100, Action::Signal(9)),
            event(300, Action::Signal(15)),
        ];
        let outcomes = performed(&child, &events);
        child.wait().expect("it was killed");
        assert_eq!(outcomes.len(), 5, "the last lies behind the slice: {outcomes:?}");
        assert!(outcomes.is_sorted_by_key(|one| one.at), "{outcomes:?}");
        let stop = &outcomes[0];
        assert_eq!((&stop.name[..], &stop.failure), ("stop for 60 ms", &None));
        assert!(stop.at + stop.took_ns >= 60_000_000, "{stop:?}");
        let codes: Vec<_> = outcomes.iter().map(|one| one.exit_status).collect();
        assert_eq!(codes, [None, Some(3), Some(0), Some(127), None]);
        let failed: Vec<_> = outcomes.iter().map(|one| one.failure.is_some()).collect();
        assert_eq!(failed, [false, true, false, true, false]);
        assert!(outcomes[1].failure.as_ref().is_some_and(|how| how.contains("exit status: 3")));
    }

    #[test]
    fn a_target_is_resumed_in_time_although_a_command_still_runs() {
        let mut child = sleeper();
        // The command ends when the target goes on; if that waited for the command, neither would.
        let until = "while grep -q '^State:.T' /proc/{pid}/status; do sleep 0.01; done";
        let events = [event(0, Action::Stop(Span::from_ms(50))), event(10, shell(until))];
        let outcomes = performed(&child, &events);
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!((outcomes.len(), outcomes[1].exit_status), (2, Some(0)), "{outcomes:?}");
        assert!(outcomes.iter().all(|one| one.failure.is_none()), "{outcomes:?}");
    }
}
