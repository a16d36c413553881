//! The one thread that starts the commands of jobs, kills and status queries, and notices how they
//! end.
//!
//! Each command leads a process group of its own: a terminal's ^C for the server spares it, and
//! `kill -- -PID` ends it with all that it has started. `Command` of the standard library uses
//! posix_spawn: what a start costs doesn't depend on the server's memory. Ends are noticed by
//! pidfds.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::SIGCHLD;
use wire::{Interest, Poller};

use super::core::CommandKind;
use super::places::{Happened, Places, Running, Start};

/// The token of the descriptor that says that there is work.
const WORK: u64 = u64::MAX;

/// How often it is looked whether a command has ended of which no descriptor says so.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// Starts commands. Dropping it starts no more, and leaves those that run.
pub(super) struct Spawner {
    common: Arc<Common>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread and those who have it start commands share.
struct Common {
    places: Mutex<Places>,
    /// Wakes the thread.
    signal: OwnedFd,
    is_over: AtomicBool,
}

impl Common {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // It fails only when it is full, and then the thread has been woken.
        let _ = rustix::io::write(&self.signal, &1_u64.to_ne_bytes());
    }
}

impl Spawner {
    /// A spawner of at most `most` commands of jobs at once. Others wait: when one has ended or
    /// could not be started, some of them are taken out ([`Self::take_waiting`]).
    ///
    /// # Errors
    /// When the system has no descriptor or thread for it.
    pub(super) fn start(most: usize) -> io::Result<Self> {
        // Where whoever started this process ignores SIGCHLD, the system would forget how commands
        // end. A handler undoes that, and commands start with the default.
        if let Err(why) = signal_hook::flag::register(SIGCHLD, Arc::default()) {
            tracing::warn!("how commands end may stay unknown: SIGCHLD can't be asked for: {why}");
        }
        let common = Arc::new(Common {
            places: Mutex::new(Places::new(most)),
            signal: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_over: AtomicBool::new(false),
        });
        let poller = Poller::new()?;
        poller.add(&common.signal, WORK, Interest::Read)?;
        let mut starter = Starter { common: Arc::clone(&common), poller };
        let thread = std::thread::Builder::new().name("spawn".to_owned());
        let thread = thread.spawn(move || starter.run())?;
        Ok(Self { common, thread: Mutex::new(Some(thread)) })
    }

    /// How many commands run, and how many wait for those.
    pub(super) fn counts(&self) -> (u64, u64) {
        let (running, waiting) = self.common.places().counts();
        (running as u64, waiting as u64)
    }

    /// What a task's job waits for: a place for its command, or that this ends.
    pub(super) fn why(&self, path: &str, job: (i32, &str)) -> Option<String> {
        self.common.places().why(path, job, Instant::now())
    }

    /// Where a kill or status command of a task runs, since when; where it waits, what for.
    pub(super) fn why_signal(&self, kind: CommandKind, path: &str, waits: bool) -> Option<String> {
        self.common.places().why_signal(kind, path, waits, Instant::now())
    }

    /// That no place has been free for long, with the command that has run for longest.
    pub(super) fn taken_up(&self) -> Option<String> {
        self.common.places().taken_up(Instant::now())
    }

    /// The same, of each kind of commands once until a place is free.
    pub(super) fn newly_taken_up(&self) -> Vec<String> {
        self.common.places().newly_taken_up(Instant::now())
    }

    /// Has a command started; one of a job that finds no place waits. After [`Self::stop`] none is
    /// started.
    pub(super) fn submit(&self, start: Start) {
        self.common.places().add(start);
        self.common.wake();
    }

    /// Whether the command of a task's job was begun to be started, which the tree doesn't know
    /// yet.
    pub(super) fn has_begun(&self, path: &str, job: (i32, &str)) -> bool {
        self.common.places().has_begun(path, job)
    }

    /// The tree knows that the command of a task's job was started, or that it could not be.
    pub(super) fn begin_is_known(&self, path: &str, job: (i32, &str)) {
        self.common.places().begin_is_known(path, job);
    }

    /// How many kill and status commands are not started.
    pub(super) fn unstarted_signals(&self) -> usize {
        self.common.places().unstarted_signals()
    }

    /// Whether some that wait have a place now.
    pub(super) fn has_next(&self) -> bool {
        self.common.places().has_next()
    }

    /// Takes out some commands of jobs that have waited and have a place now. Whoever takes them
    /// has each started ([`Self::submit_taken`]), or gives its place back ([`Self::free`]).
    pub(super) fn take_waiting(&self) -> Vec<Start> {
        self.common.places().take_waiting()
    }

    /// Has a command that was taken out started.
    pub(super) fn submit_taken(&self, start: Start) {
        self.common.places().add_ready(start);
        self.common.wake();
    }

    /// Gives the place of a command back that was taken out, and isn't started.
    pub(super) fn free(&self) {
        self.common.places().free();
    }

    /// Takes out the command of a job, by the path of its task, its try and its password, where it
    /// is made and not started yet; its place is free.
    pub(super) fn take_out(&self, path: &str, job: (i32, &str)) -> Option<Start> {
        self.common.places().take_out(path, job)
    }

    /// Starts no more, and leaves those that run: [`Happened::Started`] has been passed on of each.
    pub(super) fn stop(&self) {
        self.common.is_over.store(true, Ordering::Release);
        self.common.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the thread has.
struct Starter {
    common: Arc<Common>,
    poller: Poller,
}

impl Starter {
    fn run(&mut self) {
        loop {
            loop {
                if self.common.is_over.load(Ordering::Acquire) {
                    return;
                }
                let Some(start) = self.common.places().next() else { break };
                self.spawn(start);
            }
            let is_unwatched = !self.common.places().unwatched().is_empty();
            // Only a bug of the program fails it; the next turn tries again.
            if self.poller.wait(is_unwatched.then_some(LOOK_EVERY_NS)).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let ready: Vec<u64> = self.poller.events().map(|event| event.token).collect();
            for token in ready {
                self.ready(token);
            }
            let unwatched: Vec<u32> = self.common.places().unwatched().iter().copied().collect();
            unwatched.into_iter().for_each(|process| self.ended(process));
        }
    }

    fn ready(&mut self, token: u64) {
        if token == WORK {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.common.signal, &mut count);
            return;
        }
        self.ended(token as u32);
    }

    /// Has it noticed that a command has ended, if it has.
    fn ended(&mut self, process: u32) {
        let ended = self.common.places().ended(process);
        let Some((mut running, status)) = ended else { return };
        if let Some(pidfd) = running.pidfd {
            let _ = self.poller.remove(&pidfd);
        }
        (running.start.notify)(Happened::Ended(process, status));
    }

    fn spawn(&mut self, mut start: Start) {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&start.command).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(why) => {
                if start.is_job() {
                    self.common.places().free();
                }
                return (start.notify)(Happened::Failed(why));
            }
        };
        let process = child.id();
        (start.notify)(Happened::Started);
        let pid = Pid::from_raw(process.cast_signed());
        let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let token = process.into();
        let pidfd = pidfd.filter(|one| self.poller.add(one, token, Interest::Read).is_ok());
        let running = Running { start, since: Instant::now(), child, pidfd };
        self.common.places().started(process, running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn commands_are_started_in_turn_and_their_ends_noticed() {
        let (sender, receiver) = channel();
        let spawner = Spawner::start(2).expect("a thread");
        for (number, command) in
            (1..).zip(["exit 3", "kill -9 $$", "true", "echo lost", "test -z \"$(cat)\""])
        {
            let sender = sender.clone();
            let name = command.to_owned();
            let notify = Box::new(move |happened| {
                if let Happened::Ended(_, status) = happened {
                    let status = status.expect("its own child").to_string();
                    sender.send((name.clone(), status)).expect("the test waits");
                }
            });
            let (kind, path) = (CommandKind::Job, format!("/s/t{number}"));
            let (job, command, is_for_zombie) = ((1, String::new()), command.to_owned(), false);
            spawner.submit(Start { kind, path, job, is_for_zombie, number, command, notify });
        }
        let mut ends = Vec::new();
        while ends.len() < 5 {
            ends.push(receiver.recv().expect("it goes on"));
            let waited = spawner.take_waiting();
            waited.into_iter().for_each(|start| spawner.submit_taken(start));
        }
        ends.sort();
        let meant = [
            ("echo lost", "exit status: 0"),
            ("exit 3", "exit status: 3"),
            ("kill -9 $$", "signal: 9 (SIGKILL)"),
            ("test -z \"$(cat)\"", "exit status: 0"),
            ("true", "exit status: 0"),
        ];
        assert_eq!(ends, meant.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(spawner.counts(), (0, 0));
    }
}
