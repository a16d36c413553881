//! Jobs that are not their task's own, and what is decided for them, as ecFlow's `ZombieCtrl` does.

use std::collections::BTreeMap;

use crate::model::{Child, Job, ZombieAction, ZombieRule, ZombieType};
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
    command: &'static str,
}

impl Zombie {
    /// What is done with its last call; [`ZombieAction::Block`] without a decision.
    fn action(&self) -> ZombieAction {
        let applies =
            |rule: &&ZombieRule| rule.children.is_empty() || rule.children.contains(&self.child);
        let ruled = || self.rule.as_ref().filter(applies).map(|rule| rule.action);
        self.decided.or_else(ruled).unwrap_or(ZombieAction::Block)
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
}

/// All zombies, by the paths that they say they are. The journal keeps what users decide; who
/// calls again is seen again.
#[derive(Debug, Default)]
pub(super) struct Zombies {
    all: BTreeMap<String, Vec<Zombie>>,
    count: usize,
}

/// The most zombies; one more replaces the one that is first by its path.
const MAX_ZOMBIES: usize = 10_000;

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
    /// The place of a job among those of its path, or else of the path's first.
    fn find(&self, path: &str, process: &str, password: &str) -> Option<usize> {
        let all = self.all.get(path)?;
        Some(all.iter().position(|one| one.is(process, password)).unwrap_or(0))
    }

    fn add(&mut self, path: &str, zombie: Zombie) {
        if self.count >= MAX_ZOMBIES
            && let Some((_, gone)) = self.all.pop_first()
        {
            self.count -= gone.len();
        }
        self.all.entry(path.to_owned()).or_default().push(zombie);
        self.count += 1;
    }

    fn take(&mut self, path: &str, place: usize) {
        let Some(all) = self.all.get_mut(path) else { return };
        all.remove(place);
        self.count -= 1;
        if all.is_empty() {
            self.all.remove(path);
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
            command,
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
        let is_new = self.find(path, process, password).is_none();
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
                command: "",
            };
            self.add(path, zombie);
        }
        let place = self.find(path, process, password).unwrap_or(0);
        let zombie = &mut self.all.get_mut(path).expect("added above")[place];
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
        let (action, kind) = (zombie.action(), zombie.kind);
        let is_manual = zombie.decided.is_some();
        let is_last = matches!(call.report, Child::Complete | Child::Abort);
        let is_over = match action {
            ZombieAction::Fob => is_last,
            ZombieAction::Adopt => call.kind != ZombieType::Path,
            ZombieAction::Remove => true,
            _ => false,
        };
        if is_over {
            self.take(path, place);
        }
        Decided { action, is_manual, kind }
    }

    /// Takes a user's decision for a zombie of a path: that of this process or password, or else
    /// the first of the path.
    pub(super) fn decide(
        &mut self,
        path: &str,
        (process, password): (&str, &str),
        action: ZombieAction,
    ) {
        let Some(place) = self.find(path, process, password) else { return };
        let Some(zombie) = self.all.get_mut(path).and_then(|all| all.get_mut(place)) else {
            return;
        };
        match action {
            ZombieAction::Remove if zombie.is(process, password) => self.take(path, place),
            ZombieAction::Remove => {}
            action => zombie.decided = Some(action),
        }
    }

    /// Takes a user's decision for a path alone, whose task has this job: it is of the zombie with
    /// another password, or else another process, or else the first. Returns the process of one
    /// that is to be killed.
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
            format!("ZombieCtrl::{word}Cli: {why}")
        };
        let behind = format!(" for path {path}");
        match (action, job) {
            (ZombieAction::Adopt, None) => return Err(needs_job("adopt", "!")),
            (ZombieAction::Block, None) => return Err(needs_job("block", &behind)),
            (ZombieAction::Kill, None) => return Err(needs_job("kill", &behind)),
            _ => {}
        }
        let all = self.all.get(path).map_or(&[][..], |all| all);
        let of_process = |job: &Job| all.iter().position(|one| *one.process != *job.rid);
        if let (ZombieAction::Adopt, Some(job)) = (action, job)
            && let Some(place) = of_process(job)
        {
            return Err(format!(
                "ZombieCtrl::adoptCli: Can *not* adopt zombies, where process id are different. \
                 Task({}) zombie({}). Please kill both process, and re-queue",
                job.rid, all[place].process
            ));
        }
        let of_password =
            job.and_then(|job| all.iter().position(|one| *one.password != *job.password));
        let is_sure = matches!(action, ZombieAction::Adopt | ZombieAction::Block);
        let first = || (!is_sure && !all.is_empty()).then_some(0);
        let place = of_password.or_else(|| job.filter(|_| !is_sure).and_then(of_process));
        let Some(place) = place.or_else(first) else {
            return match action {
                ZombieAction::Kill => Err(format!(
                    "ZombieCtrl::killCli: Can't kill, could not locate zombie(and hence pid) for \
                     path: {path}"
                )),
                _ => Ok(None),
            };
        };
        if action == ZombieAction::Remove {
            self.take(path, place);
            return Ok(None);
        }
        let Some(zombie) = self.all.get_mut(path).and_then(|all| all.get_mut(place)) else {
            return Ok(None);
        };
        zombie.decided = Some(action);
        Ok((action == ZombieAction::Kill).then(|| zombie.process.clone()))
    }

    /// Forgets those whose lifetime is over.
    pub(super) fn expire(&mut self, at_us: i64) {
        self.all.retain(|_, all| {
            all.retain(|zombie| {
                at_us.saturating_sub(zombie.since_us) / 1_000_000 <= zombie.lifetime_s()
            });
            !all.is_empty()
        });
        self.count = self.all.values().map(Vec::len).sum();
    }

    /// All, as clients show them.
    pub(super) fn rows(&self, at_us: i64) -> Vec<ZombieRow> {
        let row = |path: &String, zombie: &Zombie| ZombieRow {
            user_action: zombie.decided.unwrap_or(ZombieAction::Block) as i64,
            try_no: zombie.try_no,
            duration: at_us.saturating_sub(zombie.since_us) / 1_000_000,
            calls: zombie.calls,
            zombie_type: zombie.kind as i64,
            last_child_cmd: zombie.child as i64,
            path: path.clone(),
            password: zombie.password.clone(),
            process_id: zombie.process.clone(),
            user_cmd: zombie.command.to_owned(),
            host: zombie.host.clone(),
            lifetime: zombie.lifetime_s(),
            attribute_action: zombie.rule.as_ref().map_or(ZombieAction::Block, |rule| rule.action)
                as i64,
            user_action_set: zombie.decided.is_some(),
        };
        self.all.iter().flat_map(|(path, all)| all.iter().map(move |one| row(path, one))).collect()
    }
}
