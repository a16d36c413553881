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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use wire::{Interest, Poller};

use super::core::CommandKind;

/// The token of the descriptor that says that there is work.
const WORK: u64 = u64::MAX;

/// How often it is looked whether a command has ended of which no descriptor says so.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// How long commands may take up all places before it is named.
const LONG: Duration = Duration::from_secs(60);

/// A command, and whom to tell of its start and its end.
pub(super) struct Start {
    pub(super) kind: CommandKind,
    /// The path of its task.
    pub(super) path: String,
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
    places: Arc<Mutex<Places>>,
    signal: Arc<OwnedFd>,
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A command that runs.
struct Taken {
    kind: CommandKind,
    path: String,
    since: Instant,
}

/// The commands that run, and those that wait until there is a place.
struct Places {
    /// The most that run at once.
    most: usize,
    /// By process, which is also the process group.
    running: HashMap<u32, Taken>,
    waiting: VecDeque<Start>,
    /// Whether it was said that all places are taken up, since one last was free.
    is_said: bool,
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    fn new(most: usize) -> Self {
        Self { most, running: HashMap::new(), waiting: VecDeque::new(), is_said: false }
    }

    fn ended(&mut self, process: u32) {
        self.running.remove(&process);
        self.is_said = false;
    }

    /// The command that has run for longest.
    fn oldest(&self, now: Instant) -> Option<String> {
        let (process, taken) = self.running.iter().min_by_key(|(_, taken)| taken.since)?;
        let Taken { kind, path, .. } = taken;
        let kind = kind.variable();
        let seconds = taken.seconds(now);
        Some(format!(
            "the oldest, {kind} of {path} (process group {process}), has run for {seconds} s"
        ))
    }

    fn why(&self, path: &str, now: Instant) -> Option<String> {
        let name = CommandKind::Job.variable();
        let is_it = |kind: CommandKind, of: &str| kind == CommandKind::Job && of == path;
        if self.waiting.iter().any(|start| is_it(start.kind, &start.path)) {
            let oldest = self.oldest(now).unwrap_or_default();
            let count = self.running.len();
            return Some(format!(
                "its {name} waits for one of {} places (--max-jobs): {count} commands run; \
                 {oldest}",
                self.most
            ));
        }
        let its = self.running.iter().filter(|(_, taken)| is_it(taken.kind, &taken.path));
        // One that was requeued may still run, too.
        let (process, taken) = its.max_by_key(|(_, taken)| taken.since)?;
        let seconds = taken.seconds(now);
        Some(format!("its {name} (process group {process}) has run for {seconds} s"))
    }

    fn taken_up(&mut self, now: Instant) -> Option<String> {
        let is_long = |taken: &Taken| now.saturating_duration_since(taken.since) > LONG;
        let is_so = self.running.len() >= self.most && self.running.values().all(is_long);
        if !is_so || std::mem::replace(&mut self.is_said, true) {
            return None;
        }
        Some(format!(
            "all {} places of commands (--max-jobs) are taken by such as have run for more than {} \
             s, and {} wait: {}; end those that hang, or allow more",
            self.most,
            LONG.as_secs(),
            self.waiting.len(),
            self.oldest(now).unwrap_or_default()
        ))
    }
}

impl Taken {
    fn seconds(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.since).as_secs()
    }
}

impl Spawner {
    /// A spawner of at most `most` commands at once; others wait.
    ///
    /// # Errors
    /// When the system has no descriptor or thread for it.
    pub(super) fn start(most: usize) -> io::Result<Self> {
        let signal = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let poller = Poller::new()?;
        poller.add(&signal, WORK, Interest::Read)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let places = Arc::new(Mutex::new(Places::new(most)));
        let mut running = Running {
            places: Arc::clone(&places),
            is_over: Arc::clone(&is_over),
            signal: Arc::clone(&signal),
            poller,
            children: HashMap::new(),
        };
        let thread = std::thread::Builder::new().name("spawn".to_owned());
        let thread = thread.spawn(move || running.run())?;
        Ok(Self { places, signal, is_over, thread: Mutex::new(Some(thread)) })
    }

    /// How many commands run, and how many wait for those.
    pub(super) fn counts(&self) -> (u64, u64) {
        let places = lock(&self.places);
        (places.running.len() as u64, places.waiting.len() as u64)
    }

    /// What a task's job waits for: a place for its command, or that this ends.
    pub(super) fn why(&self, path: &str) -> Option<String> {
        lock(&self.places).why(path, Instant::now())
    }

    /// That no place has been free for long, with the command that has run for longest: once, until
    /// one is.
    pub(super) fn taken_up(&self) -> Option<String> {
        lock(&self.places).taken_up(Instant::now())
    }

    /// Has a command started, unless it is stopped.
    pub(super) fn submit(&self, start: Start) {
        lock(&self.places).waiting.push_back(start);
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
    places: Arc<Mutex<Places>>,
    is_over: Arc<AtomicBool>,
    signal: Arc<OwnedFd>,
    poller: Poller,
    /// With a descriptor that says its end, unless the system had none.
    children: HashMap<u32, (Child, Option<OwnedFd>, Start)>,
}

impl Running {
    fn run(&mut self) {
        loop {
            while !self.is_over.load(Ordering::Acquire)
                && let Some(start) = self.next()
            {
                self.spawn(start);
            }
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let is_unwatched = self.children.values().any(|(_, pidfd, _)| pidfd.is_none());
            // Only a bug of the program fails it; the next turn tries again.
            if self.poller.wait(is_unwatched.then_some(LOOK_EVERY_NS)).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let ready: Vec<u64> = self.poller.events().map(|event| event.token).collect();
            for token in ready {
                self.ready(token);
            }
            self.look();
        }
    }

    /// The next command for which there is a place.
    fn next(&self) -> Option<Start> {
        let mut places = lock(&self.places);
        if self.children.len() < places.most { places.waiting.pop_front() } else { None }
    }

    fn ready(&mut self, token: u64) {
        if token == WORK {
            let mut count = [0; 8];
            let _ = rustix::io::read(&*self.signal, &mut count);
            return;
        }
        let number = token as u32;
        let Some((child, _, _)) = self.children.get_mut(&number) else { return };
        let status = match child.try_wait() {
            Ok(Some(status)) => status,
            Ok(None) => return,
            // Someone else has taken it: it has ended, and no one knows how.
            Err(_) => ExitStatus::from_raw(0),
        };
        if let Some((_, pidfd, mut start)) = self.children.remove(&number) {
            if let Some(pidfd) = pidfd {
                let _ = self.poller.remove(&pidfd);
            }
            lock(&self.places).ended(number);
            (start.notify)(Happened::Ended(number, status));
        }
    }

    fn spawn(&mut self, mut start: Start) {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&start.command).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(why) => return (start.notify)(Happened::Failed(why)),
        };
        let number = child.id();
        (start.notify)(Happened::Started);
        let pid = Pid::from_raw(number.cast_signed());
        let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let token = number.into();
        let pidfd = pidfd.filter(|one| self.poller.add(one, token, Interest::Read).is_ok());
        let (kind, path) = (start.kind, start.path.clone());
        let taken = Taken { kind, path, since: Instant::now() };
        lock(&self.places).running.insert(number, taken);
        self.children.insert(number, (child, pidfd, start));
    }

    /// Looks for the ends of those that no descriptor says.
    fn look(&mut self) {
        let unwatched = self.children.iter().filter(|(_, (_, pidfd, _))| pidfd.is_none());
        let unwatched: Vec<u32> = unwatched.map(|(number, _)| *number).collect();
        unwatched.into_iter().for_each(|number| self.ready(number.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let (kind, path) = (CommandKind::Job, "/s/t".to_owned());
            spawner.submit(Start { kind, path, command: command.to_owned(), notify });
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
        assert_eq!(spawner.counts(), (0, 0));
    }

    #[test]
    fn commands_that_take_up_all_places_are_named_once_until_one_is_free() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let taken = |path: &str, seconds| {
            let (path, since) = (path.to_owned(), at(seconds));
            Taken { kind: CommandKind::Job, path, since }
        };
        let mut places = Places::new(2);
        places.running.insert(7, taken("/s/a", 0));
        assert_eq!(places.taken_up(at(100)), None, "one is free");
        places.running.insert(8, taken("/s/b", 10));
        assert_eq!(places.taken_up(at(70)), None, "one has run for no more than a minute");
        let (kind, path) = (CommandKind::Job, "/s/c".to_owned());
        let (command, notify) = (String::new(), Box::new(|_: Happened| {}));
        places.waiting.push_back(Start { kind, path, command, notify });
        let said = places.taken_up(at(71)).unwrap_or_default();
        let oldest = "the oldest, ECF_JOB_CMD of /s/a (process group 7), has run for 71 s";
        assert!(said.contains("all 2 places") && said.contains("1 wait"), "{said}");
        assert!(said.contains(oldest), "{said}");
        assert_eq!(places.taken_up(at(200)), None, "it was said");
        let why = places.why("/s/c", at(71)).unwrap_or_default();
        assert!(why.contains("one of 2 places") && why.contains(oldest), "{why}");
        let why = places.why("/s/b", at(71)).unwrap_or_default();
        assert_eq!(why, "its ECF_JOB_CMD (process group 8) has run for 61 s");
        places.ended(8);
        assert_eq!(places.why("/s/b", at(71)), None);
        places.running.insert(9, taken("/s/c", 80));
        assert!(places.taken_up(at(141)).is_some());
    }
}
