//! Jobs that are not their task's own, and what is decided for them, as ecFlow's `ZombieCtrl` does:
//! one of each path that they say they are; another one of the same path counts as the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::escape::{escaped, plain};
use crate::model::{Child, Job, Snapshot, ZombieAction, ZombieRule, ZombieType};
use crate::protocol::{self, ZombieRow};

/// One zombie.
#[derive(Clone, Debug)]
struct Zombie {
    kind: ZombieType,
    child: Child,
    calls: i64,
    try_no: i64,
    host: String,
    process: String,
    password: String,
    since_us: i64,
    /// What a user has decided.
    decided: Option<ZombieAction>,
    rule: Option<ZombieRule>,
    /// What a user has done to make it one.
    command: String,
}

impl Zombie {
    /// What is done with its last call; [`ZombieAction::Block`] without a decision.
    fn action(&self) -> ZombieAction {
        self.decided.unwrap_or_else(|| self.ruled())
    }

    /// What its attribute says of its last call; [`ZombieAction::Block`] where that says nothing.
    fn ruled(&self) -> ZombieAction {
        let applies =
            |rule: &&ZombieRule| rule.children.is_empty() || rule.children.contains(&self.child);
        self.rule.as_ref().filter(applies).map_or(ZombieAction::Block, |rule| rule.action)
    }

    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        let texts = [&self.host, &self.process, &self.password, &self.command];
        texts.into_iter().map(String::len).sum()
    }

    fn lifetime_s(&self) -> i64 {
        self.rule.as_ref().map_or(self.kind.lifetime_s(), |rule| rule.lifetime_s).into()
    }

    /// Whether it is this job: the process where both are known, else the password.
    fn is(&self, process: &str, password: &str) -> bool {
        if process.is_empty() || self.process.is_empty() {
            self.password == password
        } else {
            self.process == process
        }
    }

    /// Texts with tabs between them. The attribute that decides is looked for again.
    fn encode(&self) -> String {
        let decided = self.decided.map_or(-1, |action| action as i64);
        let numbers = [self.kind as i64, self.child as i64, self.calls, self.try_no, self.since_us];
        let mut texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        texts.push(decided.to_string());
        let own = [&self.host, &self.process, &self.password, &self.command];
        texts.extend(own.map(|text| escaped(text)));
        texts.join("\t")
    }

    fn decode(text: &str) -> Option<Self> {
        let mut texts = text.split('\t');
        let mut number = || texts.next()?.parse::<i64>().ok();
        let [kind, child, calls, try_no, since_us, decided] =
            [number()?, number()?, number()?, number()?, number()?, number()?];
        let mut own = || texts.next().map(plain);
        Some(Self {
            kind: ZombieType::ALL.into_iter().find(|one| *one as i64 == kind)?,
            child: Child::ALL.into_iter().find(|one| *one as i64 == child)?,
            calls,
            try_no,
            since_us,
            decided: ZombieAction::ALL.into_iter().find(|one| *one as i64 == decided),
            host: own()?,
            process: own()?,
            password: own()?,
            command: own()?,
            rule: None,
        })
    }
}

/// All zombies, by the paths that they say they are.
#[derive(Debug, Default)]
pub(super) struct Zombies {
    /// Shared with those who list them.
    all: Arc<BTreeMap<String, Zombie>>,
    /// The bytes of their texts.
    bytes: usize,
}

/// The most zombies, and bytes of their texts; one more replaces the first by its path that no user
/// has decided on, or else the first of all.
const MAX_ZOMBIES: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;

/// The longest path of a job: that of a file on Linux.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// The longest process, password and host of a job, each.
pub(super) const MAX_TEXT_BYTES: usize = 1024;

/// What a snapshot's lines of them begin with.
const HEAD: &str = "zombie:";

/// A job that has called.
pub(super) struct Call<'a> {
    pub(super) child: &'a protocol::Child,
    pub(super) host: &'a str,
    pub(super) report: Child,
    pub(super) kind: ZombieType,
    pub(super) at_us: i64,
}

/// What is to be done with a zombie.
pub(super) struct Decided {
    pub(super) action: ZombieAction,
    /// Whether a user has said so, and no attribute.
    pub(super) is_manual: bool,
    /// Its type.
    pub(super) kind: ZombieType,
}

impl Zombies {
    /// Changes one zombie.
    fn change<R>(&mut self, path: &str, change: impl FnOnce(&mut Zombie) -> R) -> Option<R> {
        let zombie = Arc::make_mut(&mut self.all).get_mut(path)?;
        let before = zombie.bytes();
        let done = change(zombie);
        self.bytes = self.bytes + zombie.bytes() - before;
        self.make_room(path, (0, 0));
        Some(done)
    }

    fn add(&mut self, path: &str, zombie: Zombie) {
        let bytes = path.len() + zombie.bytes();
        self.make_room(path, (1, bytes));
        self.bytes += bytes;
        Arc::make_mut(&mut self.all).insert(path.to_owned(), zombie);
    }

    fn remove(&mut self, path: &str) {
        if let Some(zombie) = Arc::make_mut(&mut self.all).remove(path) {
            self.bytes -= path.len() + zombie.bytes();
        }
    }

    /// Has others than that of a path make room for more of them, of more bytes.
    fn make_room(&mut self, path: &str, (more, bytes): (usize, usize)) {
        while self.all.len() + more > MAX_ZOMBIES || self.bytes + bytes > MAX_BYTES {
            let others = || self.all.iter().filter(|(other, _)| *other != path);
            let undecided = others().find(|(_, one)| one.decided.is_none());
            let Some((gone, _)) = undecided.or_else(|| others().next()) else { return };
            let gone = gone.clone();
            self.remove(&gone);
        }
    }

    /// Notes a job whose task a user has taken away; whether it is new.
    pub(super) fn add_user(
        &mut self,
        path: &str,
        job: &Job,
        at_us: i64,
        (command, rule): (&'static str, Option<ZombieRule>),
    ) -> bool {
        if self.all.contains_key(path) {
            return false;
        }
        let zombie = Zombie {
            kind: ZombieType::User,
            child: Child::Init,
            calls: 0,
            try_no: job.try_no.into(),
            host: String::new(),
            process: job.rid.to_string(),
            password: job.password.to_string(),
            since_us: at_us,
            decided: None,
            rule,
            command: command.to_owned(),
        };
        self.add(path, zombie);
        true
    }

    /// Notes a call, and returns what is done with it. `rule` is the attribute that decides for a
    /// type now.
    pub(super) fn called(
        &mut self,
        call: &Call<'_>,
        rule: impl FnOnce(ZombieType) -> Option<ZombieRule>,
    ) -> Decided {
        let child = call.child;
        let (path, process, password) = (&*child.path, &*child.process_id, &*child.password);
        let is_new = !self.all.contains_key(path);
        if is_new {
            let zombie = Zombie {
                kind: call.kind,
                child: call.report,
                calls: 0,
                try_no: child.try_no,
                host: String::new(),
                process: process.to_owned(),
                password: password.to_owned(),
                since_us: call.at_us,
                decided: None,
                rule: None,
                command: String::new(),
            };
            self.add(path, zombie);
        }
        let changed = self.change(path, |zombie| {
            if call.kind == ZombieType::Path {
                zombie.kind = ZombieType::Path;
            }
            zombie.rule = rule(zombie.kind);
            zombie.child = call.report;
            zombie.calls += i64::from(!is_new);
            if zombie.host.is_empty() {
                call.host.clone_into(&mut zombie.host);
            }
            if zombie.process.is_empty() {
                process.clone_into(&mut zombie.process);
            }
            let is_manual = zombie.decided.is_some();
            Decided { action: zombie.action(), is_manual, kind: zombie.kind }
        });
        let decided = changed.expect("added above");
        let is_last = matches!(call.report, Child::Complete | Child::Abort);
        let is_over = match decided.action {
            ZombieAction::Fob => is_last,
            ZombieAction::Adopt => call.kind != ZombieType::Path,
            ZombieAction::Remove => true,
            _ => false,
        };
        if is_over {
            self.remove(path);
        }
        decided
    }

    /// Takes a user's decision for the zombie of a path, which is this job as far as that is known.
    pub(super) fn decide(
        &mut self,
        path: &str,
        (process, password): (&str, &str),
        action: ZombieAction,
    ) {
        let Some(zombie) = self.all.get(path) else { return };
        match action {
            ZombieAction::Remove if zombie.is(process, password) => self.remove(path),
            ZombieAction::Remove => {}
            action => drop(self.change(path, |zombie| zombie.decided = Some(action))),
        }
    }

    /// Takes a user's decision for a path alone, whose task has this job. Returns the process of
    /// one that is to be killed.
    ///
    /// # Errors
    /// The decision needs a task, or a zombie that can be told apart from its job.
    pub(super) fn decide_by_path(
        &mut self,
        path: &str,
        job: Option<&Job>,
        action: ZombieAction,
    ) -> Result<Option<String>, String> {
        let needs_job = |word: &str, behind: &str| {
            let why = format!("Can't {word} zombie, there is no corresponding task{behind}");
            Err(format!("ZombieCtrl::{word}Cli: {why}"))
        };
        let behind = format!(" for path {path}");
        let zombie = self.all.get(path);
        match (action, job) {
            (ZombieAction::Adopt, None) => return needs_job("adopt", "!"),
            (ZombieAction::Block, None) => return needs_job("block", &behind),
            (ZombieAction::Kill, None) => return needs_job("kill", &behind),
            _ => {}
        }
        let Some(zombie) = zombie else {
            return match action {
                ZombieAction::Kill => Err(format!(
                    "ZombieCtrl::killCli: Can't kill, could not locate zombie(and hence pid) for \
                     path: {path}"
                )),
                _ => Ok(None),
            };
        };
        let has_other_process = job.is_some_and(|job| *zombie.process != *job.rid);
        let has_other_password = job.is_some_and(|job| *zombie.password != *job.password);
        match action {
            ZombieAction::Adopt if has_other_process => Err(format!(
                "ZombieCtrl::adoptCli: Can *not* adopt zombies, where process id are different. \
                 Task({}) zombie({}). Please kill both process, and re-queue",
                job.map_or("", |job| &job.rid),
                zombie.process
            )),
            ZombieAction::Adopt | ZombieAction::Block if !has_other_password => Ok(None),
            ZombieAction::Remove => {
                self.remove(path);
                Ok(None)
            }
            ZombieAction::Kill => {
                let process = zombie.process.clone();
                self.change(path, |zombie| zombie.decided = Some(action));
                if !has_other_process && !has_other_password {
                    self.remove(path);
                }
                Ok(Some(process))
            }
            action => {
                self.change(path, |zombie| zombie.decided = Some(action));
                Ok(None)
            }
        }
    }

    /// Whether this process is the zombie of a path.
    pub(super) fn has(&self, path: &str, process: &str) -> bool {
        !process.is_empty() && self.all.get(path).is_some_and(|zombie| zombie.process == process)
    }

    /// What a snapshot keeps of them.
    pub(super) fn stored(&self) -> impl Iterator<Item = (String, String)> {
        self.all.iter().map(|(path, one)| (format!("{HEAD}{}", escaped(path)), one.encode()))
    }

    /// Takes a line of a snapshot's head, where it is one of these; attributes of `tree` decide.
    pub(super) fn restore(&mut self, name: &str, value: &str, tree: &Snapshot) {
        let path = name.strip_prefix(HEAD).map(plain);
        if let (Some(path), Some(mut zombie)) = (path, Zombie::decode(value)) {
            zombie.rule = tree.zombie_rule(&path, zombie.kind);
            self.add(&path, zombie);
        }
    }

    /// Forgets the zombie of a path whose job has ended in good order.
    pub(super) fn ended(&mut self, child: &protocol::Child) {
        if self.all.get(&child.path).is_some_and(|one| one.is(&child.process_id, &child.password)) {
            self.remove(&child.path);
        }
    }

    /// Forgets those whose lifetime is over.
    pub(super) fn expire(&mut self, at_us: i64) {
        let is_over = |zombie: &Zombie| {
            at_us.saturating_sub(zombie.since_us) / 1_000_000 > zombie.lifetime_s()
        };
        let over = self.all.iter().filter(|(_, zombie)| is_over(zombie));
        for path in over.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            self.remove(&path);
        }
    }

    /// What makes the rows of all, as clients show them, on any thread.
    pub(super) fn rows(&self, at_us: i64) -> impl FnOnce() -> Vec<ZombieRow> + Send + use<> {
        let all = Arc::clone(&self.all);
        let row = move |(path, zombie): (&String, &Zombie)| ZombieRow {
            user_action: zombie.decided.unwrap_or(ZombieAction::Block) as i64,
            try_no: zombie.try_no,
            duration: at_us.saturating_sub(zombie.since_us) / 1_000_000,
            calls: zombie.calls,
            zombie_type: zombie.kind as i64,
            last_child_cmd: zombie.child as i64,
            path: path.clone(),
            password: zombie.password.clone(),
            process_id: zombie.process.clone(),
            user_cmd: zombie.command.clone(),
            host: zombie.host.clone(),
            lifetime: zombie.lifetime_s(),
            attribute_action: zombie.ruled() as i64,
            user_action_set: zombie.decided.is_some(),
        };
        move || all.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_is_read_as_it_was_stored() {
        let rule = ZombieRule {
            kind: ZombieType::Path,
            action: ZombieAction::Fob,
            children: Vec::new(),
            lifetime_s: 7,
        };
        let mut zombies = Zombies::default();
        let job = Job { rid: "1\t2".into(), password: "p q".into(), try_no: 3, ..Job::default() };
        zombies.add_user("/s/a b", &job, -5, ("delete", Some(rule)));
        zombies.decide("/s/a b", ("", ""), ZombieAction::Kill);
        let mut read = Zombies::default();
        for (name, value) in zombies.stored() {
            assert!(!name.contains([' ', '\n']) && !value.contains('\n'), "{name} {value}");
            read.restore(&name, &value, &crate::model::Tree::default());
        }
        zombies.change("/s/a b", |one| one.rule = None);
        assert_eq!(read.rows(0)(), zombies.rows(0)());
        assert_eq!((read.rows(0)().len(), read.bytes), (1, zombies.bytes));
    }

    #[test]
    fn zombies_are_as_many_and_as_long_as_stated_and_those_decided_on_stay() {
        for (text, most) in [("", MAX_ZOMBIES), (&*"x".repeat(1024), MAX_BYTES / 3077)] {
            let mut zombies = Zombies::default();
            let own = |place: usize| protocol::Child {
                path: format!("/{place:04}"),
                password: text.to_owned(),
                process_id: text.to_owned(),
                ..protocol::Child::default()
            };
            let mut called = |place| {
                let (report, kind) = (Child::Event, ZombieType::Path);
                let child = &own(place);
                let call = Call { child, host: text, report, kind, at_us: 0 };
                zombies.called(&call, |_| None);
                if place == 0 {
                    zombies.decide("/0000", ("", ""), ZombieAction::Fob);
                }
            };
            (0..10_000).chain(1..200).for_each(&mut called);
            let rows = zombies.rows(0)();
            assert!(rows.len() <= most && rows.len() > most - 10, "{} of {most}", rows.len());
            assert_eq!(rows[0].path, "/0000");
            assert!(rows.iter().any(|row| row.path == "/0199"), "the last one is there");
            let bytes = rows.iter().map(|row| row.path.len() + 3 * row.host.len());
            assert_eq!(zombies.bytes, bytes.sum::<usize>());
            assert!(zombies.bytes <= MAX_BYTES);
            for row in &rows {
                zombies.remove(&row.path);
            }
            assert_eq!(zombies.bytes, 0);
        }
    }
}
