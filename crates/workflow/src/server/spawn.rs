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
use signal_hook::consts::SIGCHLD;
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
struct Running {
    start: Start,
    since: Instant,
    child: Child,
    /// Says its end, unless the system had none.
    pidfd: Option<OwnedFd>,
}

/// The commands that run, and those that wait until there is a place.
struct Places {
    /// The most commands of jobs that run at once.
    most: usize,
    /// By process, which is also the process group.
    running: HashMap<u32, Running>,
    /// How many of them are of jobs.
    jobs: usize,
    /// Those of jobs; before them kill and status commands, which are started at once: the owner
    /// has no more than a few of them started at a time.
    waiting: VecDeque<Start>,
    /// Whether it was said that all places are taken up, since one last was free.
    is_said: bool,
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    fn new(most: usize) -> Self {
        Self { most, running: HashMap::new(), jobs: 0, waiting: VecDeque::new(), is_said: false }
    }

    /// Takes a command that waits: of a job behind all others, any other before them.
    fn add(&mut self, start: Start) {
        match start.is_job() {
            true => self.waiting.push_back(start),
            false => self.waiting.push_front(start),
        }
    }

    /// The next command for which there is a place.
    fn next(&mut self) -> Option<Start> {
        let has_place = !self.waiting.front()?.is_job() || self.jobs < self.most;
        if has_place { self.waiting.pop_front() } else { None }
    }

    fn started(&mut self, process: u32, running: Running) {
        self.jobs += usize::from(running.start.is_job());
        self.running.insert(process, running);
    }

    /// Takes out a command that has ended, with how it did.
    fn ended(&mut self, process: u32) -> Option<(Running, ExitStatus)> {
        let status = match self.running.get_mut(&process)?.child.try_wait() {
            Ok(status) => status?,
            // Someone else has taken it: it has ended, and no one knows how.
            Err(_) => ExitStatus::from_raw(0),
        };
        let running = self.running.remove(&process)?;
        if running.start.is_job() {
            self.jobs -= 1;
            self.is_said = false;
        }
        Some((running, status))
    }

    /// Those whose ends no descriptor says.
    fn unwatched(&self) -> Vec<u32> {
        let unwatched = self.running.iter().filter(|(_, one)| one.pidfd.is_none());
        unwatched.map(|(process, _)| *process).collect()
    }

    /// The commands of jobs that run.
    fn of_jobs(&self) -> impl Iterator<Item = (&u32, &Running)> {
        self.running.iter().filter(|(_, one)| one.start.is_job())
    }

    /// The command of a job that has run for longest, and how to end it.
    fn oldest(&self, now: Instant) -> Option<String> {
        let (process, running) = self.of_jobs().min_by_key(|(_, one)| one.since)?;
        let Start { kind, path, .. } = &running.start;
        let kind = kind.variable();
        let seconds = running.seconds(now);
        Some(format!(
            "the oldest, {kind} of {path}, has run for {seconds} s; if it hangs, end it and what \
             it has started by `kill -- -{process}`"
        ))
    }

    fn why(&self, path: &str, now: Instant) -> Option<String> {
        let name = CommandKind::Job.variable();
        if self.waiting.iter().any(|start| start.is_job() && start.path == path) {
            let oldest = self.oldest(now).unwrap_or_default();
            let places = of_places(self.most);
            return Some(format!("its {name} waits, as {places} are taken: {oldest}"));
        }
        let its = self.of_jobs().filter(|(_, one)| one.start.path == path);
        // One that was requeued may still run, too.
        let (process, running) = its.max_by_key(|(_, one)| one.since)?;
        let seconds = running.seconds(now);
        Some(format!(
            "its {name} has run for {seconds} s; if it hangs, end it by `kill -- -{process}`"
        ))
    }

    /// That no place has been free for long.
    fn taken_up(&self, now: Instant) -> Option<String> {
        let is_long = |one: &Running| now.saturating_duration_since(one.since) > LONG;
        if self.jobs < self.most || !self.of_jobs().all(|(_, one)| is_long(one)) {
            return None;
        }
        Some(format!(
            "{} have been taken for more than {} s, and {} wait: {}",
            of_places(self.most),
            LONG.as_secs(),
            self.waiting.len(),
            self.oldest(now).unwrap_or_default()
        ))
    }

    /// The same, once until a place is free.
    fn newly_taken_up(&mut self, now: Instant) -> Option<String> {
        if self.is_said {
            return None;
        }
        let text = self.taken_up(now)?;
        self.is_said = true;
        Some(text)
    }
}

/// All places of jobs' commands, in words.
fn of_places(most: usize) -> String {
    format!("all places of jobs' commands (--max-jobs {most})")
}

impl Start {
    fn is_job(&self) -> bool {
        self.kind == CommandKind::Job
    }
}

impl Running {
    fn seconds(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.since).as_secs()
    }
}

impl Spawner {
    /// A spawner of at most `most` commands of jobs at once; others wait.
    ///
    /// # Errors
    /// When the system has no descriptor or thread for it.
    pub(super) fn start(most: usize) -> io::Result<Self> {
        // Where whoever started this process ignores SIGCHLD, the system would forget how commands
        // end. They have the system's own way again.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
        let signal = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let poller = Poller::new()?;
        poller.add(&signal, WORK, Interest::Read)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let places = Arc::new(Mutex::new(Places::new(most)));
        let mut starter = Starter {
            places: Arc::clone(&places),
            is_over: Arc::clone(&is_over),
            signal: Arc::clone(&signal),
            poller,
        };
        let thread = std::thread::Builder::new().name("spawn".to_owned());
        let thread = thread.spawn(move || starter.run())?;
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

    /// That no place has been free for long, with the command that has run for longest.
    pub(super) fn taken_up(&self) -> Option<String> {
        lock(&self.places).taken_up(Instant::now())
    }

    /// The same, once until a place is free.
    pub(super) fn newly_taken_up(&self) -> Option<String> {
        lock(&self.places).newly_taken_up(Instant::now())
    }

    /// Has a command started, unless it is stopped.
    pub(super) fn submit(&self, start: Start) {
        lock(&self.places).add(start);
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

/// What the thread has.
struct Starter {
    places: Arc<Mutex<Places>>,
    is_over: Arc<AtomicBool>,
    signal: Arc<OwnedFd>,
    poller: Poller,
}

impl Starter {
    fn run(&mut self) {
        loop {
            loop {
                if self.is_over.load(Ordering::Acquire) {
                    return;
                }
                let Some(start) = lock(&self.places).next() else { break };
                self.spawn(start);
            }
            let is_unwatched = !lock(&self.places).unwatched().is_empty();
            // Only a bug of the program fails it; the next turn tries again.
            if self.poller.wait(is_unwatched.then_some(LOOK_EVERY_NS)).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let ready: Vec<u64> = self.poller.events().map(|event| event.token).collect();
            for token in ready {
                self.ready(token);
            }
            let unwatched = lock(&self.places).unwatched();
            unwatched.into_iter().for_each(|process| self.ended(process));
        }
    }

    fn ready(&mut self, token: u64) {
        if token == WORK {
            let mut count = [0; 8];
            let _ = rustix::io::read(&*self.signal, &mut count);
            return;
        }
        self.ended(token as u32);
    }

    /// Has it noticed that a command has ended, if it has.
    fn ended(&mut self, process: u32) {
        let Some((mut running, status)) = lock(&self.places).ended(process) else { return };
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
            Err(why) => return (start.notify)(Happened::Failed(why)),
        };
        let process = child.id();
        (start.notify)(Happened::Started);
        let pid = Pid::from_raw(process.cast_signed());
        let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let token = process.into();
        let pidfd = pidfd.filter(|one| self.poller.add(one, token, Interest::Read).is_ok());
        let running = Running { start, since: Instant::now(), child, pidfd };
        lock(&self.places).started(process, running);
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
        let start = |path: &str| {
            let (kind, path, command) = (CommandKind::Job, path.to_owned(), String::new());
            Start { kind, path, command, notify: Box::new(|_| {}) }
        };
        let running = |path: &str, seconds| {
            let child = Command::new("true").spawn().expect("a process");
            Running { start: start(path), since: at(seconds), child, pidfd: None }
        };
        let mut places = Places::new(2);
        places.started(7, running("/s/a", 0));
        assert_eq!(places.newly_taken_up(at(100)), None, "one is free");
        places.started(8, running("/s/b", 10));
        assert_eq!(places.newly_taken_up(at(70)), None, "one has run for no more than a minute");
        places.add(start("/s/c"));
        assert!(places.next().is_none());
        let said = places.newly_taken_up(at(71)).unwrap_or_default();
        let oldest = "the oldest, ECF_JOB_CMD of /s/a, has run for 71 s; if it hangs, end it and \
                      what it has started by `kill -- -7`";
        let all = "all places of jobs' commands (--max-jobs 2)";
        assert!(
            said.starts_with(all) && said.contains("1 wait") && said.ends_with(oldest),
            "{said}"
        );
        assert_eq!(places.newly_taken_up(at(71)), None, "it was said");
        assert_eq!(places.taken_up(at(71)), Some(said), "it is so still");
        let why = places.why("/s/c", at(71)).unwrap_or_default();
        assert!(why.contains(all) && why.ends_with(oldest), "{why}");
        let why = places.why("/s/b", at(71)).unwrap_or_default();
        assert_eq!(why, "its ECF_JOB_CMD has run for 61 s; if it hangs, end it by `kill -- -8`");
        while places.ended(8).is_none() {
            std::thread::yield_now();
        }
        assert_eq!(places.why("/s/b", at(71)), None);
        places.started(9, running("/s/c", 80));
        assert!(places.newly_taken_up(at(141)).is_some());
        let kill = Start { kind: CommandKind::Kill, ..start("/s/a") };
        places.add(kill);
        let next = places.next().map(|start| start.kind);
        assert_eq!(next, Some(CommandKind::Kill), "it needs no place of a job");
    }
}
