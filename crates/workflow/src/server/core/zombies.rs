//! Jobs that are not their task's own, and what is decided for them.

use std::collections::BTreeMap;

use crate::model::{Child, Job, ZombieAction, ZombieRule, ZombieType};
use crate::protocol::{self, ZombieRow};

/// A job as it names itself: path, process, password.
type Key = (String, String, String);

/// One zombie.
#[derive(Clone, Debug)]
struct Zombie {
    kind: ZombieType,
    child: Child,
    calls: i64,
    try_no: i64,
    host: String,
    since_us: i64,
    /// What a user has decided.
    decided: Option<ZombieAction>,
    rule: Option<ZombieRule>,
    /// What a user has done to make it one.
    command: &'static str,
}

/// All zombies. The journal keeps what users decide; who calls again is seen again.
#[derive(Debug, Default)]
pub(super) struct Zombies(BTreeMap<Key, Zombie>);

/// The most zombies; one more replaces the one that is first by its path.
const MAX_ZOMBIES: usize = 10_000;

/// A job that has called.
pub(super) struct Call<'a> {
    pub(super) child: &'a protocol::Child,
    pub(super) host: &'a str,
    pub(super) report: Child,
    pub(super) kind: ZombieType,
    pub(super) rule: Option<ZombieRule>,
    pub(super) at_us: i64,
}

impl Zombies {
    /// Notes a job whose task a user has taken away; whether it is new.
    pub(super) fn add_user(
        &mut self,
        path: &str,
        job: &Job,
        at_us: i64,
        command: &'static str,
    ) -> bool {
        let key = (path.to_owned(), job.rid.to_string(), job.password.to_string());
        if self.0.contains_key(&key) {
            return false;
        }
        if self.0.len() >= MAX_ZOMBIES {
            self.0.pop_first();
        }
        let zombie = Zombie {
            kind: ZombieType::User,
            child: Child::Init,
            calls: 0,
            try_no: job.try_no.into(),
            host: String::new(),
            since_us: at_us,
            decided: None,
            rule: None,
            command,
        };
        self.0.insert(key, zombie);
        true
    }

    /// Notes a call, and returns what is done with it, and whether that was decided by hand.
    pub(super) fn called(&mut self, call: Call<'_>) -> (ZombieAction, bool) {
        let child = call.child;
        let key = (child.path.clone(), child.process_id.clone(), child.password.clone());
        if self.0.len() >= MAX_ZOMBIES && !self.0.contains_key(&key) {
            self.0.pop_first();
        }
        let zombie = self.0.entry(key.clone()).or_insert_with(|| Zombie {
            kind: call.kind,
            child: call.report,
            calls: 0,
            try_no: child.try_no,
            host: call.host.to_owned(),
            since_us: call.at_us,
            decided: None,
            rule: call.rule,
            command: "",
        });
        zombie.calls += 1;
        zombie.child = call.report;
        let rule = zombie
            .rule
            .as_ref()
            .filter(|rule| rule.children.is_empty() || rule.children.contains(&call.report));
        let action = zombie.decided.or_else(|| rule.map(|rule| rule.action));
        let is_decided = zombie.decided.is_some();
        let action = action.unwrap_or(ZombieAction::Block);
        let is_last = matches!(call.report, Child::Complete | Child::Abort);
        let is_over = match action {
            ZombieAction::Fob => is_last,
            ZombieAction::Remove | ZombieAction::Adopt => true,
            _ => false,
        };
        if is_over {
            self.0.remove(&key);
        }
        (action, is_decided)
    }

    /// Takes a user's decision for the zombies of a path; those without the process or password
    /// that is named are left alone. Returns whether there were any.
    pub(super) fn decide(
        &mut self,
        path: &str,
        (process, password): (&str, &str),
        action: ZombieAction,
    ) -> bool {
        let is_it = |key: &Key| {
            key.0 == path
                && (process.is_empty() || key.1 == process)
                && (password.is_empty() || key.2 == password)
        };
        let before = self.0.len();
        if action == ZombieAction::Remove {
            self.0.retain(|key, _| !is_it(key));
            return self.0.len() < before;
        }
        let mut found = false;
        for (key, zombie) in &mut self.0 {
            if is_it(key) {
                (zombie.decided, found) = (Some(action), true);
            }
        }
        found
    }

    /// Forgets those whose lifetime is over.
    pub(super) fn expire(&mut self, at_us: i64) {
        self.0.retain(|_, zombie| {
            let age_s = at_us.saturating_sub(zombie.since_us) / 1_000_000;
            age_s <= i64::from(zombie.kind.lifetime_s())
        });
    }

    /// All, as clients show them.
    pub(super) fn rows(&self, at_us: i64) -> Vec<ZombieRow> {
        let row = |((path, process, password), zombie): (&Key, &Zombie)| {
            let action = zombie.decided.unwrap_or(ZombieAction::Block) as i64;
            ZombieRow {
                user_action: action,
                try_no: zombie.try_no,
                duration: at_us.saturating_sub(zombie.since_us) / 1_000_000,
                calls: zombie.calls,
                zombie_type: zombie.kind as i64,
                last_child_cmd: zombie.child as i64,
                path: path.clone(),
                password: password.clone(),
                process_id: process.clone(),
                user_cmd: zombie.command.to_owned(),
                host: zombie.host.clone(),
                lifetime: zombie.kind.lifetime_s().into(),
                attribute_action: ZombieAction::Block as i64,
                user_action_set: zombie.decided.is_some(),
            }
        };
        self.0.iter().map(row).collect()
    }
}
