//! Making events happen while a slice is measured, and noting when each did and how it ended.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use wire::{Ns, clock};

use crate::deploy::Guard;
use crate::plan::{Action, Event};

/// A command of an event gets this long beyond the end of its slice.
const GRACE: Duration = Duration::from_secs(30);

/// While a command runs it is looked at least this often whether the slice is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a door, as a shell, exits with where there is no such program.
const NO_PROGRAM: i32 = 127;

/// What events happen to, and among what.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) group: Option<Pid>,
    pub(super) address: String,
    /// Ends commands when the lab is killed.
    pub(super) guard: Arc<Guard>,
    /// Set when the run is to stop.
    pub(super) stop: Arc<AtomicBool>,
}

/// An event that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    /// When it began, on the run's clock.
    pub(crate) at: Ns,
    /// How long its target was stopped, or its command ran.
    pub(crate) took_ns: u64,
    pub(crate) name: String,
    /// What was done, in words.
    pub(crate) action: String,
    /// What a command exited with.
    pub(crate) exit_status: Option<i32>,
    pub(crate) failure: Option<String>,
}

/// A step of an event on the slice's timeline.
enum Step<'a> {
    /// An event begins; the number tells it from the others of the slice.
    Begin(usize, &'a Event),
    /// The target that the event of this number stopped goes on.
    Resume(usize),
}

/// Makes the events of a slice happen until it is over (`over` hears or hangs up), and says what
/// happened. A stopped target is always resumed, and no command outlives its slice for long.
pub(super) fn perform(
    events: &[Event],
    subject: &Subject,
    length_ns: u64,
    clock_zero: Ns,
    over: &Receiver<()>,
) -> Vec<Happened> {
    let started = clock::now();
    let mut doing = Doing {
        subject,
        clock_zero,
        happened: Vec::new(),
        stops: Vec::new(),
        commands: Vec::new(),
    };
    for (at_ns, step) in steps(events, subject, length_ns) {
        if !doing.wait(started + at_ns, over) {
            break;
        }
        match step {
            Step::Begin(number, event) => doing.begin(number, event),
            Step::Resume(number) => doing.resume(number),
        }
    }
    doing.end(over)
}

/// What is to happen to a target in a slice of this length, and when from its start.
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

/// What goes on in a slice.
struct Doing<'a> {
    subject: &'a Subject,
    clock_zero: Ns,
    happened: Vec<Happened>,
    /// The numbers of stops whose target has not gone on yet, and which of the events they are.
    stops: Vec<(usize, usize)>,
    commands: Vec<Running>,
}

/// A command that runs.
struct Running {
    /// Which of the events it is.
    index: usize,
    child: Child,
    /// Readable once it has ended.
    ended: OwnedFd,
}

impl Doing<'_> {
    /// Waits until then, while commands may end. Gives whether the slice goes on.
    ///
    /// A target that is stopped holds up the very answers whose end would end the slice, so while
    /// one is, nothing but time is waited for.
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
        let (index, before) = (self.happened.len(), clock::now());
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
                Ok((child, ended)) => self.commands.push(Running { index, child, ended }),
                Err(error) => outcome = Err(format!("{}: {error}", command[0])),
            },
        }
        self.happened.push(Happened {
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
        let stop = &mut self.happened[index];
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

    fn start(&self, command: &[String]) -> std::io::Result<(Child, OwnedFd)> {
        let group = self.subject.group;
        let pid = group.map_or(String::new(), |group| group.as_raw_nonzero().to_string());
        let address = &self.subject.address;
        let fill = |text: &String| text.replace("{address}", address).replace("{pid}", &pid);
        let command: Vec<String> = command.iter().map(fill).collect();
        let guard = &self.subject.guard;
        let command = guard.at_the_door(&command);
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ended) => {
                guard.let_in(&mut child);
                Ok((child, ended))
            }
            Err(error) => {
                child.kill().and_then(|()| child.wait())?;
                Err(error.into())
            }
        }
    }

    /// Waits so long for commands to end, and notes how those did that have.
    fn look(&mut self, wait: Duration) {
        let mut ends: Vec<PollFd<'_>> =
            self.commands.iter().map(|one| PollFd::new(&one.ended, PollFlags::IN)).collect();
        let wait = Timespec::try_from(wait).unwrap_or_default();
        // A wait that was interrupted is only shorter.
        let _ = poll(&mut ends, Some(&wait));
        drop(ends);
        let now = clock::now() - self.clock_zero;
        let (happened, guard) = (&mut self.happened, &self.subject.guard);
        self.commands.retain_mut(|one| {
            let (status, failure) = match one.child.try_wait() {
                Ok(None) => return true,
                Ok(Some(status)) => (status.code(), failure_of(status)),
                Err(error) => (None, Some(error.to_string())),
            };
            guard.forget(one.child.id());
            let event = &mut happened[one.index];
            event.took_ns = now.saturating_sub(event.at);
            event.exit_status = status;
            event.failure = failure.map(|how| format!("{}: {how}", event.action));
            false
        });
    }

    /// Waits for the commands that still run, and says what happened.
    fn end(mut self, over: &Receiver<()>) -> Vec<Happened> {
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
        self.happened
    }

    /// Ends the commands that still run, with all that they have started.
    fn give_up(&mut self, why: &str) {
        for mut one in self.commands.drain(..) {
            let _ = kill_process_group(Pid::from_child(&one.child), Signal::KILL);
            let _ = one.child.wait();
            self.subject.guard.forget(one.child.id());
            let event = &mut self.happened[one.index];
            event.took_ns = (clock::now() - self.clock_zero).saturating_sub(event.at);
            event.failure = Some(format!("{}: {why}", event.action));
        }
    }
}

fn is_over(over: &Receiver<()>) -> bool {
    over.try_recv() != Err(TryRecvError::Empty)
}

fn failure_of(status: ExitStatus) -> Option<String> {
    let missing = if status.code() == Some(NO_PROGRAM) { ": is there such a program?" } else { "" };
    (!status.success()).then(|| format!("{status}{missing}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::sync::mpsc::channel;

    use load::units::Span;

    use super::*;

    fn event(at_ms: u64, action: Action) -> Event {
        let name = action.to_string();
        Event { name, at: Span::from_ms(at_ms), every: None, action, target: None }
    }

    fn shell(script: &str) -> Action {
        Action::Command(["sh", "-c", script].map(str::to_owned).to_vec())
    }

    /// A guard whose doors are a shell's, as this test is no `loadline`.
    fn guard(folder: &Path) -> Guard {
        let exe = folder.join("exe");
        let doors = "#!/bin/sh\n[ $1 = enter ] || exec cat\nshift\nhead -c 1 > /dev/null\n\
                     exec \"$@\" < /dev/null\n";
        std::fs::write(&exe, doors).expect("written");
        let may_run = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&exe, may_run).expect("it may run");
        Guard::start(&exe).expect("a guard")
    }

    /// What happens in a slice of 200 ms to this child, which leads a group.
    fn performed(child: &Child, events: &[Event]) -> Vec<Happened> {
        let group = Some(Pid::from_child(child));
        let folder = tempfile::tempdir().expect("a folder");
        let subject = Subject {
            name: "it".to_owned(),
            group,
            address: "there:1".to_owned(),
            guard: Arc::new(guard(folder.path())),
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
        let happened = performed(&child, &events);
        child.wait().expect("it was killed");
        assert_eq!(happened.len(), 5, "the last lies behind the slice: {happened:?}");
        assert!(happened.is_sorted_by_key(|one| one.at), "{happened:?}");
        let stop = &happened[0];
        assert_eq!((&stop.name[..], &stop.failure), ("stop for 60 ms", &None));
        assert!(stop.at + stop.took_ns >= 60_000_000, "{stop:?}");
        let codes: Vec<_> = happened.iter().map(|one| one.exit_status).collect();
        assert_eq!(codes, [None, Some(3), Some(0), Some(127), None]);
        let failed: Vec<_> = happened.iter().map(|one| one.failure.is_some()).collect();
        assert_eq!(failed, [false, true, false, true, false]);
        assert!(happened[1].failure.as_ref().is_some_and(|how| how.contains("exit status: 3")));
    }

    #[test]
    fn a_target_goes_on_in_time_although_a_command_still_runs() {
        let mut child = sleeper();
        // The command ends when the target goes on; if that waited for the command, neither would.
        let until = "while grep -q '^State:.T' /proc/{pid}/status; do sleep 0.01; done";
        let events = [event(0, Action::Stop(Span::from_ms(50))), event(10, shell(until))];
        let happened = performed(&child, &events);
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!((happened.len(), happened[1].exit_status), (2, Some(0)), "{happened:?}");
        assert!(happened.iter().all(|one| one.failure.is_none()), "{happened:?}");
    }
}
