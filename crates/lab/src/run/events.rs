//! Making events happen while a slice is measured.

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::plan::{Action, Event};

/// What events happen to.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) group: Option<Pid>,
    pub(super) address: String,
}

/// A step of an event on the slice's timeline.
enum Step<'a> {
    Begin(&'a Action),
    Resume,
}

/// Makes the events of a slice happen until it is over (`over` hears or hangs up). A stopped
/// target is always resumed. Gives what went wrong, if anything did.
pub(super) fn perform(
    events: &[Event],
    subject: &Subject,
    length_ns: u64,
    over: &Receiver<()>,
) -> Option<String> {
    let started = Instant::now();
    let mut steps = Vec::new();
    let to_it = |event: &&Event| event.target.as_ref().is_none_or(|name| *name == subject.name);
    for event in events.iter().filter(to_it) {
        for at_ns in event.times(length_ns) {
            steps.push((at_ns, Step::Begin(&event.action)));
            if let Action::Stop(length) = event.action {
                steps.push((at_ns + length.ns, Step::Resume));
            }
        }
    }
    steps.sort_by_key(|(at_ns, _)| *at_ns);
    let mut wrong = None;
    let mut stopped = false;
    for (at_ns, step) in steps {
        let wait = Duration::from_nanos(at_ns).saturating_sub(started.elapsed());
        // A target that is stopped holds up the very answers whose end would end the slice: it
        // is resumed on time, whatever happens.
        if stopped {
            std::thread::sleep(wait);
        } else if over.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return wrong;
        }
        let outcome = match step {
            Step::Begin(Action::Stop(_)) => {
                stopped = true;
                signal(subject, Signal::STOP)
            }
            Step::Resume => {
                stopped = false;
                signal(subject, Signal::CONT)
            }
            Step::Begin(Action::Signal(number)) => match Signal::from_named_raw(*number) {
                Some(named) => signal(subject, named),
                None => Err(format!("there is no signal {number}")),
            },
            Step::Begin(Action::Command(command)) => run(command, subject),
        };
        wrong = wrong.or(outcome.err());
    }
    wrong
}

fn signal(subject: &Subject, signal: Signal) -> Result<(), String> {
    let Some(group) = subject.group else {
        return Err(format!("{} was not started here, so it gets no signals", subject.name));
    };
    kill_process_group(group, signal).map_err(|error| format!("signalling: {error}"))
}

fn run(command: &[String], subject: &Subject) -> Result<(), String> {
    let pid = subject.group.map_or(String::new(), |group| group.as_raw_nonzero().to_string());
    let fill = |text: &String| text.replace("{address}", &subject.address).replace("{pid}", &pid);
    let command: Vec<String> = command.iter().map(fill).collect();
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{}: {status}", command[0])),
        Err(error) => Err(format!("{}: {error}", command[0])),
    }
}
