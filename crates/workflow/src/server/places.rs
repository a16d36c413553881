//! The places of commands: which of them run, which wait for one, and what is to be warned of.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use super::core::CommandKind;
use super::keyed_queue::KeyedQueue;
use super::signals;

/// How long commands may take up all places before it is named.
const LONG: Duration = Duration::from_secs(60);

/// The most commands of jobs that have waited and are looked at, at a time.
const LOOKS: usize = 64;

/// A command, and whom to tell of its start and its end.
pub(super) struct Start {
    pub(super) kind: CommandKind,
    /// The path of its task.
    pub(super) path: String,
    /// The try and the password of its job.
    pub(super) job: (i32, String),
    /// Whether it is to kill a zombie of the task, and not that job.
    pub(super) is_for_zombie: bool,
    /// Of jobs and scripts, larger than those of what was submitted before; else 0.
    pub(super) number: u64,
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
    /// It has ended; how is unknown where another part of the process has waited for it.
    Ended(u32, io::Result<ExitStatus>),
}

/// A command that runs.
pub(super) struct Running {
    pub(super) start: Start,
    pub(super) since: Instant,
    pub(super) child: Child,
    /// Says its end, unless the system had none.
    pub(super) pidfd: Option<OwnedFd>,
}

/// The places of the commands of one kind.
struct Kind {
    most: usize,
    /// Those that run, in the order of time, by process.
    running: BTreeSet<(Instant, u32)>,
    /// Whether it was said that all are taken, since one last was free.
    is_said: bool,
}

/// The kinds that have places.
const KINDS: [CommandKind; 3] = [CommandKind::Job, CommandKind::Kill, CommandKind::Status];

/// The commands that run, and those that wait until there is a place.
pub(super) struct Places {
    /// In the order of [`KINDS`].
    kinds: [Kind; 3],
    /// By process, which is also the process group.
    running: HashMap<u32, Running>,
    /// The process of the command of a task's last job, by its path.
    jobs: HashMap<String, u32>,
    /// Those whose ends no descriptor says.
    unwatched: HashSet<u32>,
    /// Kill and status commands, which are started next: the owner has a few started at a time.
    signals: VecDeque<Start>,
    /// The jobs whose commands were begun to be started, by the paths of their tasks, until the
    /// tree knows it.
    begun: HashMap<String, (i32, String)>,
    /// Jobs' commands that have a place, and are started behind those.
    ready: KeyedQueue<String, Start>,
    /// Jobs' commands that wait for a place.
    waiting: KeyedQueue<String, Start>,
    /// The places of jobs' commands that run, are ready, or are being looked at.
    taken: usize,
}

impl Places {
    /// Places of as many commands of jobs.
    pub(super) fn new(most: usize) -> Self {
        let kind = |most| Kind { most, running: BTreeSet::new(), is_said: false };
        Self {
            kinds: [most, signals::MOST_RUNNING, signals::MOST_RUNNING].map(kind),
            running: HashMap::new(),
            jobs: HashMap::new(),
            unwatched: HashSet::new(),
            signals: VecDeque::new(),
            begun: HashMap::new(),
            ready: KeyedQueue::default(),
            waiting: KeyedQueue::default(),
            taken: 0,
        }
    }

    /// The places of a kind of which commands are started.
    fn kind(&mut self, kind: CommandKind) -> Option<&mut Kind> {
        KINDS.iter().position(|one| *one == kind).map(|at| &mut self.kinds[at])
    }

    /// How many commands run, and how many wait for those.
    pub(super) fn counts(&self) -> (usize, usize) {
        let waiting = self.signals.len() + self.ready.len() + self.waiting.len();
        (self.running.len(), waiting)
    }

    /// Takes a command. One of a job for which there is no place waits. Of a task that was
    /// submitted again it has the place of an older one, if that is not started.
    pub(super) fn add(&mut self, start: Start) {
        if !start.is_job() {
            self.signals.push_back(start);
        } else if self.ready.get(&start.path).is_some() {
            self.add_ready(start);
        } else if self.taken < self.kinds[0].most && self.waiting.is_empty() {
            self.taken += 1;
            self.add_ready(start);
        } else {
            self.waiting.add_at(start.number, start.path.clone(), start);
        }
    }

    /// Takes a command of a job that has a place. They go in the order in which they were
    /// submitted, that of the tree: threads make them in any.
    pub(super) fn add_ready(&mut self, start: Start) {
        self.ready.add_at(start.number, start.path.clone(), start);
    }

    /// The next command, which is started now.
    pub(super) fn next(&mut self) -> Option<Start> {
        let signal = self.signals.pop_front();
        signal.or_else(|| {
            let (path, start) = self.ready.pop()?;
            self.begun.insert(path, start.job.clone());
            Some(start)
        })
    }

    /// Whether the command of a task's job was begun to be started, which the tree doesn't know
    /// yet.
    pub(super) fn has_begun(&self, path: &str, (try_no, password): (i32, &str)) -> bool {
        self.begun.get(path).is_some_and(|job| (job.0, &*job.1) == (try_no, password))
    }

    /// The tree knows it now, or it has failed.
    pub(super) fn begin_is_known(&mut self, path: &str, job: (i32, &str)) {
        if self.has_begun(path, job) {
            self.begun.remove(path);
        }
    }

    /// How many kill and status commands are not started.
    pub(super) fn unstarted_signals(&self) -> usize {
        self.signals.len()
    }

    /// Whether there is a place for one that waits.
    pub(super) fn has_next(&self) -> bool {
        !self.waiting.is_empty() && self.taken < self.kinds[0].most
    }

    /// Takes out some commands of jobs that have waited, which have a place now. Whoever takes
    /// them says of each whether it is started ([`Self::add_ready`]) or not ([`Self::free`]).
    pub(super) fn take_waiting(&mut self) -> Vec<Start> {
        let free = self.kinds[0].most.saturating_sub(self.taken).min(LOOKS);
        let starts = std::iter::from_fn(|| self.waiting.pop());
        let starts: Vec<Start> = starts.take(free).map(|(_, start)| start).collect();
        self.taken += starts.len();
        starts
    }

    /// Takes out the command of a job that is not started yet.
    pub(super) fn take_out(&mut self, path: &str, job: (i32, &str)) -> Option<Start> {
        let is_it = |start: &Start| (start.job.0, &*start.job.1) == job;
        if self.waiting.get(path).is_some_and(is_it) {
            return self.waiting.remove(path);
        }
        self.ready.get(path).filter(|start| is_it(start))?;
        self.free();
        self.ready.remove(path)
    }

    /// Gives the place of a job's command back that is not started.
    pub(super) fn free(&mut self) {
        self.taken -= 1;
    }

    /// Takes a command that runs.
    pub(super) fn started(&mut self, process: u32, running: Running) {
        let Running { start, since, pidfd, .. } = &running;
        if let Some(kind) = self.kind(start.kind) {
            kind.running.insert((*since, process));
        }
        if start.is_job() {
            self.jobs.insert(start.path.clone(), process);
        }
        if pidfd.is_none() {
            self.unwatched.insert(process);
        }
        self.running.insert(process, running);
    }

    /// Takes out a command that has ended, with how it did.
    pub(super) fn ended(&mut self, process: u32) -> Option<(Running, io::Result<ExitStatus>)> {
        let status = self.running.get_mut(&process)?.child.try_wait().transpose()?;
        let running = self.running.remove(&process)?;
        let start = &running.start;
        if let Some(kind) = self.kind(start.kind) {
            kind.running.remove(&(running.since, process));
            kind.is_said = false;
        }
        if start.is_job() {
            self.free();
            // Of a task that was submitted again another one may run.
            if self.jobs.get(&start.path) == Some(&process) {
                self.jobs.remove(&start.path);
            }
        }
        self.unwatched.remove(&process);
        Some((running, status))
    }

    /// Those whose ends no descriptor says.
    pub(super) const fn unwatched(&self) -> &HashSet<u32> {
        &self.unwatched
    }

    /// The command of a kind that has run for longest, and how to end it.
    fn oldest(&self, kind: &Kind, now: Instant) -> Option<String> {
        let (_, process) = kind.running.first()?;
        let running = self.running.get(process)?;
        let Start { kind, path, .. } = &running.start;
        let kind = kind.variable();
        let seconds = running.seconds(now);
        Some(format!(
            "the oldest, {kind} of {path}, has run for {seconds} s; if it hangs, end it and what \
             it has started by `kill -- -{process}`"
        ))
    }

    /// What a task's job waits for: a place for its command, its start, or its end.
    pub(super) fn why(&self, path: &str, job: (i32, &str), now: Instant) -> Option<String> {
        if self.waiting.get(path).is_some() {
            return Some(self.why_waits(0, now));
        }
        let running =
            self.jobs.get(path).and_then(|process| Some((*process, self.running.get(process)?)));
        let is_it = |start: &Start| (start.job.0, &*start.job.1) == job;
        let is_started = self.ready.get(path).is_some_and(is_it) || self.has_begun(path, job);
        Some(match running {
            Some((process, running)) if is_it(&running.start) => running.why("its", process, now),
            _ if is_started => "its ECF_JOB_CMD has a place, and is started now".to_owned(),
            Some((process, running)) => running.why(
                &format!("an earlier job's (try {})", running.start.job.0),
                process,
                now,
            ),
            None => return None,
        })
    }

    /// That a command of a kind waits, and for what.
    fn why_waits(&self, at: usize, now: Instant) -> String {
        let (name, kind) = (KINDS[at].variable(), &self.kinds[at]);
        let (places, oldest) = (of_places(KINDS[at], kind.most), self.oldest(kind, now));
        let oldest = oldest.map_or_else(String::new, |oldest| format!(": {oldest}"));
        format!("its {name} waits, as {places} are taken{oldest}")
    }

    /// What a task's kill or status command waits for, or how long it has run for.
    pub(super) fn why_signal(
        &self,
        kind: CommandKind,
        path: &str,
        waits: bool,
        now: Instant,
    ) -> Option<String> {
        let at = KINDS.iter().position(|one| *one == kind)?;
        if waits {
            return Some(self.why_waits(at, now));
        }
        // There are few places.
        let mut running = self.kinds[at].running.iter().rev();
        running.find_map(|(_, process)| {
            let running = self.running.get(process)?;
            (running.start.path == path).then(|| running.why("its", *process, now))
        })
    }

    /// That no place of a kind has been free for long.
    fn taken_up_by(&self, at: usize, now: Instant) -> Option<String> {
        let kind = &self.kinds[at];
        let (newest, _) = kind.running.last()?;
        if kind.running.len() < kind.most || now.saturating_duration_since(*newest) <= LONG {
            return None;
        }
        let others = match (KINDS[at], self.waiting.len()) {
            (CommandKind::Job, 0) => String::new(),
            (CommandKind::Job, 1) => ", and one waits".to_owned(),
            (CommandKind::Job, many) => format!(", and {many} wait"),
            _ => ", so that no other is started".to_owned(),
        };
        Some(format!(
            "{} have been taken for more than {} s{others}: {}",
            of_places(KINDS[at], kind.most),
            LONG.as_secs(),
            self.oldest(kind, now).unwrap_or_default()
        ))
    }

    /// That no place has been free for long, of each kind of which it is so.
    pub(super) fn taken_up(&self, now: Instant) -> Option<String> {
        let all: Vec<String> =
            (0..KINDS.len()).filter_map(|at| self.taken_up_by(at, now)).collect();
        (!all.is_empty()).then(|| all.join("; and "))
    }

    /// The same, of each kind once until a place is free.
    pub(super) fn newly_taken_up(&mut self, now: Instant) -> Vec<String> {
        let mut all = Vec::new();
        for at in 0..KINDS.len() {
            if !self.kinds[at].is_said
                && let Some(text) = self.taken_up_by(at, now)
            {
                self.kinds[at].is_said = true;
                all.push(text);
            }
        }
        all
    }
}

/// All places of a kind, in words.
fn of_places(kind: CommandKind, most: usize) -> String {
    match kind {
        CommandKind::Job => format!("all places of jobs' commands (--max-jobs {most})"),
        _ => format!("all {most} places of {}", kind.variable()),
    }
}

impl Start {
    pub(super) fn is_job(&self) -> bool {
        self.kind == CommandKind::Job
    }
}

impl Running {
    fn seconds(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.since).as_secs()
    }

    /// For how long it has run, `whose` it is, and how to end it.
    fn why(&self, whose: &str, process: u32, now: Instant) -> String {
        let (name, seconds) = (self.start.kind.variable(), self.seconds(now));
        format!(
            "{whose} {name} has run for {seconds} s; if it hangs, end it by `kill -- -{process}`"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn start(kind: CommandKind, path: &str, number: u64) -> Start {
        let (path, job, command) = (path.to_owned(), (1, number.to_string()), String::new());
        let (is_for_zombie, notify) = (false, Box::new(|_| {}));
        Start { kind, path, job, is_for_zombie, number, command, notify }
    }

    fn job(path: &str, number: u64) -> Start {
        start(CommandKind::Job, path, number)
    }

    fn running(start: Start, since: Instant) -> Running {
        let child = Command::new("true").spawn().expect("a process");
        Running { start, since, child, pidfd: None }
    }

    /// Has what may be started run, under process numbers from one on.
    fn run(places: &mut Places, from: u32, since: Instant) -> u32 {
        let starts: Vec<Start> = std::iter::from_fn(|| places.next()).collect();
        let mut process = from;
        for start in starts {
            places.started(process, running(start, since));
            process += 1;
        }
        process
    }

    fn numbers(starts: &[Start]) -> Vec<u64> {
        starts.iter().map(|start| start.job.1.parse().expect("a number")).collect()
    }

    fn end(places: &mut Places, process: u32) -> io::Result<ExitStatus> {
        loop {
            if let Some((_, status)) = places.ended(process) {
                return status;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn commands_that_take_up_all_places_are_named_once_until_one_is_free() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut places = Places::new(2);
        places.add(job("/s/a", 1));
        assert_eq!(run(&mut places, 7, at(0)), 8);
        assert!(places.newly_taken_up(at(100)).is_empty(), "one is free");
        places.add(job("/s/b", 2));
        assert_eq!(run(&mut places, 8, at(10)), 9);
        assert!(places.newly_taken_up(at(70)).is_empty(), "one has run for no more than a minute");
        places.add(job("/s/c", 3));
        assert!(places.next().is_none());
        let said = places.newly_taken_up(at(71)).concat();
        let oldest = "the oldest, ECF_JOB_CMD of /s/a, has run for 71 s; if it hangs, end it and \
                      what it has started by `kill -- -7`";
        let all = "all places of jobs' commands (--max-jobs 2)";
        assert!(
            said.starts_with(all) && said.contains(", and one waits: ") && said.ends_with(oldest),
            "{said}"
        );
        assert!(places.newly_taken_up(at(71)).is_empty(), "it was said");
        assert_eq!(places.taken_up(at(71)), Some(said), "it is so still");
        let why = places.why("/s/c", (1, "3"), at(71)).unwrap_or_default();
        assert!(why.contains(all) && why.ends_with(oldest), "{why}");
        let why = places.why("/s/b", (1, "2"), at(71)).unwrap_or_default();
        assert_eq!(why, "its ECF_JOB_CMD has run for 61 s; if it hangs, end it by `kill -- -8`");
        let why = places.why("/s/b", (2, "5"), at(71)).unwrap_or_default();
        assert!(why.starts_with("an earlier job's (try 1) ECF_JOB_CMD has run for 61 s"), "{why}");
        end(&mut places, 8).expect("its own child");
        let why = places.why("/s/b", (1, "2"), at(71)).unwrap_or_default();
        assert!(why.ends_with("is started now"), "the tree doesn't know its start yet: {why}");
        places.begin_is_known("/s/b", (1, "2"));
        assert_eq!(places.why("/s/b", (1, "2"), at(71)), None);
        places.take_waiting().into_iter().for_each(|start| places.add_ready(start));
        run(&mut places, 9, at(80));
        assert_eq!(places.newly_taken_up(at(141)).len(), 1);
    }

    #[test]
    fn jobs_that_wait_are_started_in_the_order_in_which_they_were_submitted() {
        let mut places = Places::new(1);
        for number in [1, 4, 2, 5, 3] {
            places.add(job(&format!("/s/t{number}"), number));
        }
        let mut order = Vec::new();
        for process in 1..=5 {
            assert_eq!(run(&mut places, process, Instant::now()), process + 1);
            order.push(places.running[&process].start.number);
            end(&mut places, process).expect("its own child");
            places.take_waiting().into_iter().for_each(|start| places.add_ready(start));
        }
        assert_eq!(order, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn kill_commands_go_first_in_the_order_of_time_and_are_named_where_they_hang() {
        let begun = Instant::now();
        let mut places = Places::new(1);
        places.add(job("/s/a", 1));
        for number in 0..signals::MOST_RUNNING as u64 {
            places.add(start(CommandKind::Kill, &format!("/s/t{number}"), number));
        }
        places.add(start(CommandKind::Status, "/s/a", 99));
        let all: Vec<Start> = std::iter::from_fn(|| places.next()).collect();
        let meant: Vec<u64> = (0..signals::MOST_RUNNING as u64).chain([99, 1]).collect();
        assert_eq!(numbers(&all), meant);
        for (process, start) in (1..).zip(all) {
            places.started(process, running(start, begun));
        }
        let said = places.newly_taken_up(begun + Duration::from_secs(61));
        assert_eq!(said.len(), 2, "{said:?}");
        let kills = "all 32 places of ECF_KILL_CMD have been taken for more than 60 s, so that no \
                     other is started: the oldest, ECF_KILL_CMD of /s/t0, has run for 61 s";
        assert!(said[1].starts_with(kills) && said[1].ends_with("`kill -- -1`"), "{said:?}");
        let shown = places.taken_up(begun + Duration::from_secs(61)).unwrap_or_default();
        assert_eq!(shown, said.join("; and "));
    }

    #[test]
    fn of_a_task_that_is_submitted_again_the_last_command_waits_and_a_kill_takes_it_out() {
        let mut places = Places::new(1);
        places.add(job("/s/a", 1));
        run(&mut places, 1, Instant::now());
        for (path, number) in [("/s/b", 2), ("/s/c", 3), ("/s/b", 5)] {
            places.add(job(path, number));
        }
        assert_eq!(places.counts(), (1, 2));
        assert!(!places.has_next(), "there is no place");
        assert!(places.take_out("/s/b", (1, "2")).is_none(), "that one was replaced");
        end(&mut places, 1).expect("its own child");
        assert!(places.has_next());
        assert_eq!(numbers(&places.take_waiting()), [5], "there is one place");
        assert!(!places.has_next());
        places.free();
        assert!(places.has_next(), "it is not started");
        assert!(places.take_out("/s/c", (1, "3")).is_some());
        assert!(places.take_waiting().is_empty());
        // One that has a place is taken out, too.
        places.add(job("/s/d", 6));
        assert!(places.take_out("/s/d", (1, "6")).is_some());
        assert!(places.next().is_none());
        // And so is one of a task that is submitted again, which the last one then has.
        for (path, number) in [("/s/e", 7), ("/s/f", 8), ("/s/e", 9)] {
            places.add(job(path, number));
        }
        let last: Vec<Start> = std::iter::from_fn(|| places.next()).collect();
        assert_eq!((numbers(&last), places.counts()), (vec![9], (0, 1)));
        assert!(places.has_begun("/s/e", (1, "9")) && !places.has_begun("/s/e", (1, "7")));
        assert!(!places.has_begun("/s/f", (1, "8")));
        places.free();
        places.begin_is_known("/s/e", (1, "7"));
        assert!(places.has_next() && places.has_begun("/s/e", (1, "9")));
        places.begin_is_known("/s/e", (1, "9"));
        assert!(!places.has_begun("/s/e", (1, "9")));
    }

    #[test]
    fn an_end_that_someone_else_has_waited_for_is_no_success() {
        let mut places = Places::new(1);
        let running = running(job("/s/a", 1), Instant::now());
        let process = rustix::process::Pid::from_child(&running.child);
        let none = rustix::process::WaitOptions::empty();
        rustix::process::waitpid(Some(process), none).expect("it ends");
        places.add(job("/s/a", 1));
        assert!(places.next().is_some());
        places.started(1, running);
        end(&mut places, 1).expect_err("how it has ended is unknown");
        assert_eq!(places.counts(), (0, 0));
    }
}
