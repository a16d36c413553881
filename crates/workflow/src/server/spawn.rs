//! The one thread that starts commands of the shell, and notices how they end.
//!
//! Each command leads a process group of its own, so that it outlives the server. `Command` of the
//! standard library uses posix_spawn: what a start costs doesn't depend on the server's memory.
//! Ends are noticed by pidfds.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use wire::{Interest, Poller};

/// The token of the descriptor that says that there is work.
const WORK: u64 = u64::MAX;

/// A command, and whom to tell of its start and its end.
pub(super) struct Start {
    /// For `/bin/sh -c`.
    pub(super) command: String,
    /// Called on the spawner's thread; must not wait.
    pub(super) notify: Box<dyn FnMut(Happened) + Send>,
}

/// What has happened to a command.
#[derive(Debug)]
pub(super) enum Happened {
    /// It runs.
    Started,
    /// It could not be started.
    Failed(io::Error),
    /// It has ended.
    Ended(u32, ExitStatus),
}

/// Starts commands. Dropping it starts no more, and leaves those that run.
pub(super) struct Spawner {
    work: Sender<Start>,
    signal: Arc<OwnedFd>,
    is_over: Arc<AtomicBool>,
    /// Commands that run, and that wait.
    counts: Arc<[AtomicU64; 2]>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Spawner {
    /// A spawner of at most `most` commands at once; others wait.
    ///
    /// # Errors
    /// When the system has no descriptor or thread for it.
    pub(super) fn start(most: usize) -> io::Result<Self> {
        let (work, works) = channel();
        let signal = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let poller = Poller::new()?;
        poller.add(&signal, WORK, Interest::Read)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let mut running = Running {
            counts: Arc::clone(&counts),
            is_over: Arc::clone(&is_over),
            works,
            signal: Arc::clone(&signal),
            poller,
            most,
            waiting: VecDeque::new(),
            children: HashMap::new(),
        };
        let thread = std::thread::Builder::new().name("spawn".to_owned());
        let thread = thread.spawn(move || running.run())?;
        Ok(Self { work, signal, is_over, counts, thread: Mutex::new(Some(thread)) })
    }

    /// How many commands run, and how many wait for those.
    pub(super) fn counts(&self) -> (u64, u64) {
        let [running, waiting] = &*self.counts;
        (running.load(Ordering::Relaxed), waiting.load(Ordering::Relaxed))
    }

    /// Has a command started, unless it is stopped.
    pub(super) fn submit(&self, start: Start) {
        // Its thread may have ended.
        let _ = self.work.send(start);
        wake(&self.signal);
    }

    /// Starts no more, and leaves those that run. Those that run have been told of then.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        wake(&self.signal);
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

fn wake(signal: &OwnedFd) {
    // It fails only when it is full, and then the thread has been woken.
    let _ = rustix::io::write(signal, &1_u64.to_ne_bytes());
}

struct Running {
    counts: Arc<[AtomicU64; 2]>,
    is_over: Arc<AtomicBool>,
    works: Receiver<Start>,
    signal: Arc<OwnedFd>,
    poller: Poller,
    most: usize,
    waiting: VecDeque<Start>,
    children: HashMap<u32, (Child, OwnedFd, Start)>,
}

impl Running {
    fn run(&mut self) {
        loop {
            self.waiting.extend(self.works.try_iter());
            while self.children.len() < self.most
                && !self.is_over.load(Ordering::Acquire)
                && let Some(start) = self.waiting.pop_front()
            {
                self.spawn(start);
            }
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            self.counts[0].store(self.children.len() as u64, Ordering::Relaxed);
            self.counts[1].store(self.waiting.len() as u64, Ordering::Relaxed);
            // Only a bug of the program fails it; the next turn tries again.
            if self.poller.wait(None).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let ready: Vec<u64> = self.poller.events().map(|event| event.token).collect();
            for token in ready {
                self.ready(token);
            }
        }
    }

    fn ready(&mut self, token: u64) {
        if token == WORK {
            let mut count = [0; 8];
            let _ = rustix::io::read(&*self.signal, &mut count);
            return;
        }
        let number = token as u32;
        let Some((child, _, _)) = self.children.get_mut(&number) else { return };
        let Ok(Some(status)) = child.try_wait() else { return };
        if let Some((_, pidfd, mut start)) = self.children.remove(&number) {
            let _ = self.poller.remove(&pidfd);
            (start.notify)(Happened::Ended(number, status));
        }
    }

    fn spawn(&mut self, mut start: Start) {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&start.command).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(why) => return (start.notify)(Happened::Failed(why)),
        };
        let number = child.id();
        (start.notify)(Happened::Started);
        let pidfd =
            Pid::from_raw(number.cast_signed()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let pidfd = match pidfd {
            Some(Ok(pidfd)) => pidfd,
            // Without a descriptor for it the end can only be waited for.
            _ => {
                let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0));
                return (start.notify)(Happened::Ended(number, status));
            }
        };
        if self.poller.add(&pidfd, number.into(), Interest::Read).is_ok() {
            self.children.insert(number, (child, pidfd, start));
        } else {
            let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0));
            (start.notify)(Happened::Ended(number, status));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Happened, Spawner, Start};
    use std::sync::mpsc::channel;

    #[test]
    fn commands_are_started_in_turn_and_their_ends_noticed() {
        let spawner = Spawner::start(2).expect("a thread");
        let (sender, receiver) = channel();
        for command in ["exit 3", "kill -9 $$", "true", "echo lost", "test -z \"$(cat)\""] {
            let sender = sender.clone();
            let name = command.to_owned();
            let notify = Box::new(move |happened| {
                if let Happened::Ended(_, status) = happened {
                    sender.send((name.clone(), status.to_string())).expect("the test waits");
                }
            });
            spawner.submit(Start { command: command.to_owned(), notify });
        }
        drop(sender);
        let mut ends: Vec<_> = receiver.iter().collect();
        ends.sort();
        let meant = [
            ("echo lost", "exit status: 0"),
            ("exit 3", "exit status: 3"),
            ("kill -9 $$", "signal: 9 (SIGKILL)"),
            ("test -z \"$(cat)\"", "exit status: 0"),
            ("true", "exit status: 0"),
        ];
        assert_eq!(ends, meant.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
